"""Instructions on the built-in corpus's sentences, with their ideal responses: what language models are aligned on.

    Negate: The baker sold two pizzas.                   The baker did not sell two pizzas.
    Past: The doctor is drinking tea.                    The doctor drank tea.
    Shorten: The old nurse slept badly in the garden.    The nurse slept.
    Answer: The boy lost a key. What did the boy lose?   A key.

Both follow from one derivation: the response is the same clause in another tense, negated, without what can be left
out, or the part that a question asks for. As in the corpus, the sentences of dev and test have combinations of words
that training lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from transduce.config import Split
from transduce.corpora.grammar.choices import choices_for
from transduce.corpora.grammar.clauses import Clause
from transduce.corpora.grammar.german import Case
from transduce.corpora.grammar.holdout import is_held_out
from transduce.corpora.grammar.phrases import Gap, Nominal, NounPhrase
from transduce.corpora.grammar.sentence_sampler import SentenceSampler
from transduce.corpora.grammar.sentences import QUESTION_WORDS, OpenQuestion, Statement, english_text
from transduce.corpora.grammar.tenses import Tense
from transduce.edit_distance import edit_distance
from transduce.errors import DataError

__all__ = ["INSTRUCTION_KINDS", "Instruction", "InstructionKind", "generate_instructions", "response_quality"]

InstructionKind = Literal["negate", "past", "shorten", "answer"]
INSTRUCTION_KINDS: tuple[InstructionKind, ...] = get_args(InstructionKind)

MAX_REPEATS = 10_000  # consecutive samples equal to earlier ones


@dataclass(frozen=True, slots=True)
class Instruction:
    """A prompt with its ideal response."""

    kind: InstructionKind
    prompt: str
    response: str


def generate_instructions(split: Split, *, n: int, seed: int) -> Iterator[Instruction]:
    """Stream the distinct instructions of a split, a function of the arguments alone.

    A smaller ``n`` yields a prefix of a larger one. The kinds are equally frequent on average. Raises DataError when no
    new instructions are found.

    >>> [instruction] = generate_instructions("train", n=1, seed=1)
    >>> instruction.prompt.split(":")[0].lower() == instruction.kind
    True
    """
    random = Random(f"instructions {split} {seed}")
    sampler = SentenceSampler(random, choices_for(split))
    seen: set[str] = set()
    n_repeated = 0
    while len(seen) < n:
        kind = random.choice(INSTRUCTION_KINDS)
        clause = sampler.clause(may_negate=False)
        instruction = _instruction(kind, clause, random)
        if instruction is None or (split != "train" and not any(map(is_held_out, clause.combinations()))):
            continue
        if instruction.prompt in seen:
            n_repeated += 1
            if n_repeated == MAX_REPEATS:
                raise DataError(
                    f"the grammar found only {len(seen):,} distinct {split} instructions of {n:,}; request fewer"
                )
            continue
        n_repeated = 0
        seen.add(instruction.prompt)
        yield instruction


def response_quality(response: str, ideal: str) -> float:
    """Return the quality of a response: 1 minus its edit distance from the ideal one in words, per word of the longer.

    >>> response_quality("He not sleep.", "He does not sleep.")
    0.75
    """
    ours, theirs = response.split(), ideal.split()
    return 1 - edit_distance(ours, theirs) / max(len(ours), len(theirs), 1)


def _instruction(kind: InstructionKind, clause: Clause, random: Random) -> Instruction | None:
    """Return an instruction on a clause; None if this kind does not apply to it."""
    if kind == "answer":
        return _question(clause, random)
    changed = _CHANGES[kind](clause)
    statement = _text(clause)
    if changed is None or _text(changed) == statement:
        return None
    return Instruction(kind, f"{kind.capitalize()}: {statement}", _text(changed))


def _text(clause: Clause) -> str:
    return english_text(Statement(clause).english(), ".")


def _negated(clause: Clause) -> Clause | None:
    has_perfect = clause.tense in (Tense.PERFECT, Tense.PLUPERFECT)
    return None if has_perfect or clause.frequency else clause._replace(is_negated=True)


def _in_the_past(clause: Clause) -> Clause | None:
    """Return the clause in the simple past; None if it is no present or future, or has a time that would not fit."""
    is_dated = clause.time is not None or clause.frequency is not None
    if is_dated or clause.modal or clause.tense not in (Tense.PRESENT, Tense.PROGRESSIVE, Tense.FUTURE):
        return None
    return clause._replace(tense=Tense.PAST)


def _shortened(clause: Clause) -> Clause | None:
    """Return the clause without adverbials, and its noun phrases without adjectives and modifiers."""
    if clause.frequency:
        return None
    return clause._replace(
        subject=_bare(clause.subject),
        indirect=None if clause.indirect is None else _bare(clause.indirect),
        direct=None if clause.direct is None else _bare(clause.direct),
        time=None,
        companion=None,
        place=None,
        manner=None,
    )


_CHANGES: Mapping[str, Callable[[Clause], Clause | None]] = {
    "negate": _negated,
    "past": _in_the_past,
    "shorten": _shortened,
}


def _bare(nominal: Nominal) -> Nominal:
    return nominal._replace(adjective=None, modifier=None) if isinstance(nominal, NounPhrase) else nominal


def _question(clause: Clause, random: Random) -> Instruction | None:
    """Return a statement, a question about a part of it, and that part as the response."""
    if clause.frequency:
        return None
    word, asked, answer = random.choice(list(_questions(clause)) or [(None, None, None)])
    if word is None or asked is None or answer is None:
        return None
    question = english_text(OpenQuestion(QUESTION_WORDS[word], asked).english(), "?")
    return Instruction("answer", f"Answer: {_text(clause)} {question}", english_text(answer, "."))


def _questions(clause: Clause) -> Iterator[tuple[str, Clause, str]]:
    """Yield the question word, the clause without what is asked for, and that as a bracket."""
    if _are_persons(clause.subject):
        yield "who", clause._replace(subject=Gap()), clause.subject.english(Case.NOMINATIVE)
    direct = clause.direct
    if isinstance(direct, NounPhrase) and not any(noun.location for noun in direct.heads()):
        word = "whom" if _are_persons(direct) else "what"
        yield word, clause._replace(direct=Gap()), direct.english(Case.ACCUSATIVE)
    if clause.place:
        yield "where", clause._replace(place=None), clause.place.english()
    if clause.time:
        yield "when", clause._replace(time=None), clause.time.tree


def _are_persons(nominal: Nominal) -> bool:
    heads = nominal.heads()
    return bool(heads) and all(noun.category == "person" for noun in heads)
