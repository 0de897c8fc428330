"""Figure 4: heads that attend from a pronoun to its antecedent."""
# L layers, H heads

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.paper.attention.antecedents import Anaphor, find_anaphors, is_pronoun
from transduce.paper.attention.heads import Probe, ProbeItem, best_head, strongest_other
from transduce.paper.attention.inputs import PAGE, FigureInputs, figure_inputs
from transduce.paper.attention.structure import RelationResult, compared, relation_table
from transduce.paper.attention.word_attention import WordAttention, attention_between_words, untrained
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table, picture, verdict_line
from transduce.paper.request import Request
from transduce.tasks import Translator
from transduce.view import HeadLines, LinePanel

__all__ = ["Pronouns", "make_figure4", "pronoun_to_draw"]

Floats = NDArray[np.floating[Any]]
Head = tuple[int, int]  # layer and head, both from 0

N_HEADS_SHOWN, N_HEADS_DRAWN = 5, 2
LEAST_PRONOUNS = 10  # to choose heads, and to measure them


@dataclass(frozen=True, slots=True, eq=False)
class Pronouns:
    """Sentences and their pronouns with exactly one agreeing earlier noun, the antecedent."""

    samples: list[WordAttention]
    anaphors: list[tuple[int, Anaphor]]  # with the index of the sentence

    @staticmethod
    def from_texts(translator: Translator, texts: Sequence[str]) -> Pronouns:
        """Return the pronouns of some texts."""
        samples = attention_between_words(translator, texts)
        anaphors = [(number, each) for number, sample in enumerate(samples) for each in find_anaphors(sample.words)]
        return Pronouns(samples, [(number, each) for number, each in anaphors if len(each.nouns) == 1])

    def probe(self) -> Probe:
        """Return the probe from pronouns to their antecedents."""
        items = [ProbeItem(number, each.pronoun, each.nouns) for number, each in self.anaphors]
        return Probe([strongest_other(sample) for sample in self.samples], items)

    def noun_mass(self) -> tuple[Floats, Floats]:
        """Return the mean weight on the antecedent, of the pronoun and of the other words after it; each (L, H)."""
        from_pronoun, from_others = [], []
        for number, each in self.anaphors:
            sample, (noun,) = self.samples[number], each.nouns
            to_noun = sample.weights[:, :, noun + 1 : sample.n_words, noun]
            from_pronoun.append(to_noun[:, :, each.pronoun - noun - 1])
            others = np.delete(to_noun, each.pronoun - noun - 1, axis=-1)
            from_others.append(others.mean(axis=-1) if others.shape[-1] else np.zeros(others.shape[:2]))
        return np.mean(from_pronoun, axis=0), np.mean(from_others, axis=0)


def make_figure4(experiments: Experiments, request: Request) -> Report:
    """Probe heads for attention from pronouns to antecedents, and draw two heads in the sentence."""
    inputs = figure_inputs(experiments, request)
    choosing, measuring = (Pronouns.from_texts(inputs.translator, texts) for texts in (inputs.dev, inputs.test))
    is_enough = min(len(choosing.anaphors), len(measuring.anaphors)) >= LEAST_PRONOUNS
    result = _probed(inputs, choosing, measuring) if is_enough else None
    pronoun = pronoun_to_draw(inputs.sentence.words[:-1])
    heads: list[Head] = []
    if is_enough:
        heads = _heads_by_gain(choosing)
    elif pronoun is not None:
        heads = _heads_by_sentence(inputs.sentence, pronoun)
    drawn = heads[:N_HEADS_DRAWN] if pronoun is not None else []
    drawings = {"figure4-all-heads": inputs.grid(drawn)}
    pictures: list[str | Table] = []
    if pronoun is not None:
        word = inputs.sentence.words[pronoun.pronoun]
        alt = f"Encoder self-attention: {_names(drawn[:1])}, all queries; {_names(drawn)}, query “{word}” alone"
        note = "On the left, for each query its three greatest weights; the stronger a line, the greater the weight."
        panels = _panels(inputs.sentence, pronoun, drawn)
        drawings = {"figure4": inputs.lines(*panels, alt=alt, note=note), **drawings}
        pictures.append(picture("figure4", alt))
    return Report(
        "figure4",
        "Figure 4: heads that attend from a pronoun to its antecedent",
        (
            verdict_line(_verdict(inputs, result)),
            *pictures,
            *_of_the_sentence(inputs, pronoun, drawn, is_enough=is_enough),
            inputs.how_measured(),
            *(_measured(inputs, choosing, measuring, heads, result) if result is not None else [_too_few(inputs)]),
            picture("figure4-all-heads", inputs.grid_alt() + ("; frames mark the heads drawn above" if drawn else "")),
            inputs.ending("figure4"),
        ),
        drawings,
        {PAGE: inputs.page()},
    )


def pronoun_to_draw(words: Sequence[str]) -> Anaphor | None:
    """Return the first pronoun with an agreeing earlier noun, else the first after another word, else None.

    >>> pronoun_to_draw("The law is right but its use is not".split())
    Anaphor(pronoun=5, nouns=())
    """
    with_noun = [each for each in find_anaphors(words) if each.nouns]
    if with_noun:
        return with_noun[0]
    return next((Anaphor(place, ()) for place, word in enumerate(words) if place and is_pronoun(word)), None)


def _heads_by_gain(pronouns: Pronouns) -> list[Head]:
    """All heads, by how much more weight on the antecedent the pronoun has than other words have."""
    from_pronoun, from_others = pronouns.noun_mass()
    return _in_order(from_pronoun - from_others)


def _heads_by_sentence(sentence: WordAttention, pronoun: Anaphor) -> list[Head]:
    """All heads, by the pronoun's greatest weight on one earlier word."""
    return _in_order(sentence.weights[:, :, pronoun.pronoun, : pronoun.pronoun].max(axis=-1))


def _in_order(scores_LH: Floats) -> list[Head]:
    heads = [(int(layer), int(head)) for layer, head in np.ndindex(*scores_LH.shape)]
    return sorted(heads, key=lambda head: -scores_LH[head])


def _names(heads: Sequence[Head]) -> str:
    return "; ".join(f"layer {layer + 1}, head {head + 1}" for layer, head in heads)


def _panels(sentence: WordAttention, pronoun: Anaphor, heads: Sequence[Head]) -> list[LinePanel]:
    """All queries of the first head, and the pronoun alone in each head, as in the paper."""
    lines = [
        HeadLines(_names([(layer, head)]), slot, sentence.weights[layer, head])
        for slot, (layer, head) in enumerate(heads)
    ]
    layer, head = heads[0]
    word = sentence.words[pronoun.pronoun]
    whole = LinePanel(
        (f"Layer {layer + 1}, head {head + 1}", "all queries"), sentence.words, sentence.words, (lines[0],)
    )
    alone = LinePanel((f"Query “{word}” alone",), sentence.words, sentence.words, tuple(lines), query=pronoun.pronoun)
    return [whole, alone]


def _of_the_sentence(
    inputs: FigureInputs, pronoun: Anaphor | None, heads: Sequence[Head], *, is_enough: bool
) -> list[str | Table]:
    if pronoun is None:
        return [
            f"“{inputs.text}” has no pronoun of the third person after another word, so no lines are drawn. Give a"
            " sentence with one, such as “A man is painting his house.”"
        ]
    sentence = inputs.sentence
    word, nouns = sentence.words[pronoun.pronoun], [sentence.words[noun] for noun in pronoun.nouns]
    match nouns:
        case []:
            agreement = "no earlier noun of the word lists agrees with it"
        case [noun]:
            agreement = f"the only earlier noun of the word lists that agrees with it is “{noun}”"
        case _:
            agreement = f"{len(nouns)} earlier nouns agree with it ({', '.join(nouns)})"
    how = (
        "The drawn heads are the two in which, on the dev text, pronouns have the most weight on the antecedent beyond"
        " that of other words."
        if is_enough
        else "The drawn heads are the two in which this pronoun has the greatest weight on one earlier word."
    )
    rows = [sentence.weights[layer, head, pronoun.pronoun] for layer, head in heads]
    earlier = [int(row[: pronoun.pronoun].argmax()) for row in rows]
    to_words = [f"{sentence.words[place]} {row[place]:.2f}" for row, place in zip(rows, earlier, strict=True)]
    to_nouns = [", ".join(f"{sentence.words[noun]} {row[noun]:.2f}" for noun in pronoun.nouns) for row in rows]
    paper, ours = inputs.sizes
    return [
        f"The sentence is “{inputs.text}” Its pronoun is “{word}”; {agreement}. {how}",
        Table(
            "-paper",
            ("", paper, ours),
            (
                ("heads", "5 and 6 of layer 5 of 6", f"{_names(heads)} (of {sentence.weights.shape[0]} layers)"),
                ("pronoun", "its", word),
                ("strongest earlier key, weight", "Law, application (no numbers)", "; ".join(to_words)),
                ("weight on nouns that agree", "no numbers", "; ".join(to_nouns) if nouns else None),
            ),
        ),
    ]


def _too_few(inputs: FigureInputs) -> str:
    return (
        f"{inputs.record.dev_text} and {inputs.record.test_text} have fewer than {LEAST_PRONOUNS} pronouns with exactly"
        " one agreeing earlier noun: there are no statistics over sentences."
    )


def _probed(inputs: FigureInputs, choosing: Pronouns, measuring: Pronouns) -> RelationResult:
    initial = untrained(inputs.translator)
    initial_choosing, initial_measuring = (
        Pronouns.from_texts(initial, texts).probe() for texts in (inputs.dev, inputs.test)
    )
    return RelationResult(
        "pronoun → noun",
        best_head(choosing.probe(), measuring.probe()),
        best_head(initial_choosing, initial_measuring),
    )


def _measured(
    inputs: FigureInputs, choosing: Pronouns, measuring: Pronouns, heads: Sequence[Head], result: RelationResult
) -> list[str | Table]:
    where = f"{inputs.record.dev_text} ({len(choosing.anaphors)} pronouns)"
    return [
        "Antecedents come from word lists: a pronoun counts if exactly one earlier noun of the lists agrees with it in"
        " gender and number. (Of 60 such pairs in Multi30k's captions, drawn at random and read by hand, 56 were"
        f" right.) Heads and baseline are chosen on {where} and measured on {len(measuring.anaphors)} pronouns of"
        f" {inputs.record.test_text}.",
        "Accuracy: the share of pronouns whose greatest weight, other than on the pronoun itself and EOS, is on the"
        " antecedent; beside it the best position baseline, which ignores the words, and the same search in the"
        " untrained model:",
        relation_table([result], name="-share"),
        "Weight: the heads with the largest lead of pronouns over the other words after the antecedent, in the mean"
        " weight on the antecedent:",
        _table_of_heads(measuring, heads[:N_HEADS_SHOWN]),
        _remarks(measuring, heads[0]),
    ]


def _table_of_heads(measuring: Pronouns, heads: Sequence[Head]) -> Table:
    (from_pronoun, from_others), accuracies = measuring.noun_mass(), measuring.probe().accuracies()
    rows: list[tuple[Cell, ...]] = [
        (
            layer + 1,
            head + 1,
            100 * float(from_pronoun[layer, head]),
            100 * float(from_others[layer, head]),
            100 * float(from_pronoun[layer, head] - from_others[layer, head]),
            100 * float(accuracies[layer, head]),
        )
        for layer, head in heads
    ]
    columns = ("layer", "head", "pronoun to antecedent %", "others to antecedent %", "difference", "accuracy %")
    return Table("-heads", columns, tuple(rows), formats=dict.fromkeys(columns[2:], ".1f"))


def _verdict(inputs: FigureInputs, result: RelationResult | None) -> str:
    if result is None:
        return (
            f"Undecided: {inputs.record.dev_text} and {inputs.record.test_text} have too few pronouns with a known"
            f" antecedent (fewer than {LEAST_PRONOUNS} each)."
        )
    if result.trained.beats_baseline:
        return (
            f"{inputs.this_model} shows what figure 4 shows: a head finds the antecedents of pronouns better than the"
            f" best position baseline ({compared(result)})."
        )
    return (
        f"{inputs.this_model} does not show what figure 4 shows: no head finds the antecedents of pronouns better than"
        f" the best position baseline ({compared(result)})."
    )


def _remarks(measuring: Pronouns, best: Head) -> str:
    from_pronoun, from_others = measuring.noun_mass()
    gain = 100 * float((from_pronoun - from_others)[best])
    more = "more" if gain > 0 else "less"
    return (
        f"In the first head of this table a pronoun has {abs(gain):.1f} points {more} weight on its antecedent than the"
        " other words have. Translation into German needs little of this: “his” becomes “sein” whoever is meant, and"
        " only “it” requires the antecedent. A weight shows what a head reads, not how the model uses it."
    )
