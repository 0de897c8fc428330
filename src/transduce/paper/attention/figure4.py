"""Figure 4: heads that find what a pronoun stands for."""
# L layers, H heads

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.paper.attention.antecedents import Anaphor, find_anaphors, is_pronoun
from transduce.paper.attention.heads import Exam, Question, find_head, greatest_other
from transduce.paper.attention.scene import Scene, page_of, set_scene
from transduce.paper.attention.structure import StructureFinding, structure_table
from transduce.paper.attention.word_attention import WordAttention, attention_between_words, untrained
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table
from transduce.paper.request import Request
from transduce.tasks import Translator
from transduce.view import HeadLines, LinePanel

__all__ = ["Pronouns", "make_figure4", "pronoun_to_draw"]

Floats = NDArray[np.floating[Any]]
Head = tuple[int, int]  # layer and head, both from 0

N_HEADS_SHOWN, N_HEADS_DRAWN = 5, 2
LEAST_PRONOUNS = 10  # to choose heads by, and to measure them on


@dataclass(frozen=True, slots=True, eq=False)
class Pronouns:
    """Sentences, and the pronouns in them with one earlier noun that agrees."""

    samples: list[WordAttention]
    anaphors: list[tuple[int, Anaphor]]  # with the number of the sentence

    @staticmethod
    def from_texts(translator: Translator, texts: Sequence[str]) -> Pronouns:
        """Those that the word lists decide."""
        samples = attention_between_words(translator, texts)
        anaphors = [(number, each) for number, sample in enumerate(samples) for each in find_anaphors(sample.words)]
        return Pronouns(samples, [(number, each) for number, each in anaphors if len(each.nouns) == 1])

    def exam(self) -> Exam:
        """For which word does the pronoun stand?"""
        questions = [Question(number, each.pronoun, each.nouns) for number, each in self.anaphors]
        return Exam([greatest_other(sample) for sample in self.samples], questions)

    def noun_mass(self) -> tuple[Floats, Floats]:
        """How much of its attention the pronoun gives to its noun, and the other words after the noun; each (L, H)."""
        from_pronoun, from_others = [], []
        for number, each in self.anaphors:
            sample, (noun,) = self.samples[number], each.nouns
            to_noun = sample.weights[:, :, noun + 1 : sample.n_words, noun]
            from_pronoun.append(to_noun[:, :, each.pronoun - noun - 1])
            others = np.delete(to_noun, each.pronoun - noun - 1, axis=-1)
            from_others.append(others.mean(axis=-1) if others.shape[-1] else np.zeros(others.shape[:2]))
        return np.mean(from_pronoun, axis=0), np.mean(from_others, axis=0)


def make_figure4(experiments: Experiments, request: Request) -> Report:
    """Choose the heads in which pronouns look at their nouns, measure them, and draw two in the sentence given."""
    scene = set_scene(experiments, request)
    choosing, measuring = (Pronouns.from_texts(scene.translator, texts) for texts in (scene.dev, scene.test))
    is_enough = min(len(choosing.anaphors), len(measuring.anaphors)) >= LEAST_PRONOUNS
    pronoun = pronoun_to_draw(scene.sentence.words[:-1])
    heads: list[Head] = []
    if is_enough:
        heads = _heads_by_gain(choosing)
    elif pronoun is not None:
        heads = _heads_by_sentence(scene.sentence, pronoun)
    drawn = heads[:N_HEADS_DRAWN] if pronoun is not None else []
    drawings = {"figure4-all-heads": scene.grid(drawn)}
    if pronoun is not None:
        drawings = {"figure4": scene.lines(*_panels(scene.sentence, pronoun, drawn)), **drawings}
    return Report(
        "figure4",
        "Figure 4: heads that find what a pronoun stands for",
        (
            scene.about("figure4"),
            *_of_the_sentence(scene, pronoun, drawn, is_enough=is_enough),
            *(_measured(scene, choosing, measuring, heads) if is_enough else [_too_few(scene)]),
        ),
        drawings,
        {page_of("figure4"): scene.page()},
    )


def pronoun_to_draw(words: Sequence[str]) -> Anaphor | None:
    """The first pronoun with an earlier noun that agrees; else the first that is not the first word; else None.

    >>> pronoun_to_draw("The law is right but its use is not".split())
    Anaphor(pronoun=5, nouns=())
    """
    with_noun = [each for each in find_anaphors(words) if each.nouns]
    if with_noun:
        return with_noun[0]
    return next((Anaphor(place, ()) for place, word in enumerate(words) if place and is_pronoun(word)), None)


def _heads_by_gain(pronouns: Pronouns) -> list[Head]:
    """All heads, those first whose pronouns give more to their nouns than other words do."""
    from_pronoun, from_others = pronouns.noun_mass()
    return _in_order(from_pronoun - from_others)


def _heads_by_sentence(sentence: WordAttention, pronoun: Anaphor) -> list[Head]:
    """All heads, those first that give most of the pronoun's attention to one earlier word."""
    return _in_order(sentence.weights[:, :, pronoun.pronoun, : pronoun.pronoun].max(axis=-1))


def _in_order(scores_LH: Floats) -> list[Head]:
    heads = [(int(layer), int(head)) for layer, head in np.ndindex(*scores_LH.shape)]
    return sorted(heads, key=lambda head: -scores_LH[head])


def _panels(sentence: WordAttention, pronoun: Anaphor, heads: Sequence[Head]) -> list[LinePanel]:
    """All words of the first head, and the pronoun alone in each, as in the paper."""
    lines = [
        HeadLines(f"layer {layer + 1}, head {head + 1}", slot, sentence.weights[layer, head])
        for slot, (layer, head) in enumerate(heads)
    ]
    layer, head = heads[0]
    word = sentence.words[pronoun.pronoun]
    whole = LinePanel((f"Layer {layer + 1}, head {head + 1}", "all words"), sentence.words, sentence.words, (lines[0],))
    alone = LinePanel((f"“{word}” alone",), sentence.words, sentence.words, tuple(lines), query=pronoun.pronoun)
    return [whole, alone]


def _of_the_sentence(
    scene: Scene, pronoun: Anaphor | None, heads: Sequence[Head], *, is_enough: bool
) -> list[str | Table]:
    if pronoun is None:
        return [
            f"“{scene.text}” has no pronoun of the third person with a word before it: there is nothing to stand for,"
            " and no lines are drawn. Give a sentence with one, as in “A man is painting his house.”"
        ]
    sentence = scene.sentence
    word, nouns = sentence.words[pronoun.pronoun], [sentence.words[noun] for noun in pronoun.nouns]
    match nouns:
        case []:
            agreement = "no earlier noun of our lists agrees with it"
        case [noun]:
            agreement = f"“{noun}” alone of our lists agrees with it"
        case _:
            agreement = f"{len(nouns)} earlier nouns agree with it ({', '.join(nouns)})"
    how = (
        "They are the two whose pronouns, in the dev text, give most to their nouns beyond what other words give them."
        if is_enough
        else "They are the two that give most of its attention to one earlier word, here and nowhere else."
    )
    rows = [scene.sentence.weights[layer, head, pronoun.pronoun] for layer, head in heads]
    earlier = [int(row[: pronoun.pronoun].argmax()) for row in rows]
    of_heads = [f"layer {layer + 1}, head {head + 1}" for layer, head in heads]
    to_words = [f"{sentence.words[place]} {row[place]:.2f}" for row, place in zip(rows, earlier, strict=True)]
    to_nouns = [", ".join(f"{sentence.words[noun]} {row[noun]:.2f}" for noun in pronoun.nouns) for row in rows]
    return [
        f"The sentence: “{scene.text}” Its pronoun is “{word}”; {agreement}. {how}",
        Table(
            "-paper",
            ("", "paper", "ours"),
            (
                ("heads", "5 and 6 of layer 5 of 6", "; ".join(of_heads)),
                ("pronoun", "its", word),
                ("the earlier word that it looks at most", "Law, application", "; ".join(to_words)),
                ("its weight on the nouns that agree", "“very sharp”", "; ".join(to_nouns) if nouns else None),
            ),
        ),
    ]


def _too_few(scene: Scene) -> str:
    return (
        f"{scene.record.dev_text} and {scene.record.test_text} have not {LEAST_PRONOUNS} pronouns each with one earlier"
        " noun that agrees: no number over many sentences can be given."
    )


def _measured(scene: Scene, choosing: Pronouns, measuring: Pronouns, heads: Sequence[Head]) -> list[str | Table]:
    blank = untrained(scene.translator)
    blank_exams = [Pronouns.from_texts(blank, texts).exam() for texts in (scene.dev, scene.test)]
    found = StructureFinding(
        "pronoun → noun", find_head(choosing.exam(), measuring.exam()), find_head(blank_exams[0], blank_exams[1])
    )
    where = f"{scene.record.dev_text} ({len(choosing.anaphors)} pronouns)"
    return [
        "What a pronoun stands for is taken from word lists: a pronoun counts where one earlier noun of the lists"
        " agrees with it in gender and number. (Of 60 such pairs in Multi30k's captions, drawn at random and read by"
        " hand, 56 were right.)"
        f" The heads in which pronouns of {where} give most to their nouns, beyond what the other words after the noun"
        f" give it, measured on {len(measuring.anaphors)} pronouns of {scene.record.test_text}:",
        _table_of_heads(measuring, heads[:N_HEADS_SHOWN]),
        "The head whose greatest weight, other than on itself, is most often on the noun, chosen and measured on the"
        " same two texts, beside the best rule that looks at no word, and beside what is found before training:",
        structure_table([found], name="-share"),
        _verdict(found, measuring, heads[0]),
    ]


def _table_of_heads(measuring: Pronouns, heads: Sequence[Head]) -> Table:
    (from_pronoun, from_others), shares = measuring.noun_mass(), measuring.exam().shares()
    rows: list[tuple[Cell, ...]] = [
        (
            layer + 1,
            head + 1,
            100 * float(from_pronoun[layer, head]),
            100 * float(from_others[layer, head]),
            100 * float(from_pronoun[layer, head] - from_others[layer, head]),
            100 * float(shares[layer, head]),
        )
        for layer, head in heads
    ]
    columns = ("layer", "head", "pronoun to noun %", "others to noun %", "difference", "noun first %")
    return Table("-heads", columns, tuple(rows), formats=dict.fromkeys(columns[2:], ".1f"))


def _verdict(found: StructureFinding, measuring: Pronouns, best: Head) -> str:
    from_pronoun, from_others = measuring.noun_mass()
    gain = 100 * float((from_pronoun - from_others)[best])
    more = "more" if gain > 0 else "less"
    if found.trained.beats_rule:
        first = "A head of this model finds the noun more often than the rule does: it follows pronouns."
    else:
        first = (
            "No head of this model finds the noun more often than the rule does: it does not show what figure 4 shows."
        )
    return (
        f"{first} In the first head of the list, a pronoun gives {abs(gain):.1f} points {more} of its attention to the"
        " noun than the other words do. A translator into German needs little of this: “his” becomes “sein” whoever is"
        " meant, and only “it” asks for the noun. And a head that looks at the noun need not be used for it."
    )
