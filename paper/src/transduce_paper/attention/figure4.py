"""Figure 4: heads that attend from a pronoun to its antecedent.

Shapes: L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from transduce.inference import Translator
from transduce.view import HeadLines, LinePanel
from transduce_paper.attention.antecedents import Anaphor, find_anaphors, is_pronoun
from transduce_paper.attention.heads import Probe, ProbeItem, best_head, head_names, strongest_other
from transduce_paper.attention.inputs import PAGE, FigureInputs, figure_inputs, lines
from transduce_paper.attention.measurements import measured, n_sentences, texts, with_one_model
from transduce_paper.attention.models import shown_model
from transduce_paper.attention.sentences import DrawnSentence
from transduce_paper.attention.structure import RelationResult, comparison_text, relation_table
from transduce_paper.attention.word_attention import WordAttention, attention_between_words, untrained
from transduce_paper.experiments import Experiments
from transduce_paper.report import Cell, Claim, Draw, Report, Table, agreement, picture
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment

__all__ = ["MeasuredPronouns", "PronounHead", "Pronouns", "make_figure4", "pronoun_to_draw"]

Floats = NDArray[np.floating[Any]]
Head = tuple[int, int]  # layer and head, both from 0

N_HEADS_SHOWN, N_HEADS_DRAWN = 5, 2
MIN_PRONOUNS = 10  # in dev, to choose heads, and in test, to measure them
SHARP_WEIGHT = 0.5  # of a query's attention on one key
NOTE = "On the left, for each query its three greatest weights; the stronger a line, the greater the weight."


@dataclass(frozen=True, slots=True, eq=False)
class Pronouns:
    """Sentences, and their pronouns with exactly one agreeing earlier noun (the antecedent)."""

    samples: list[WordAttention]
    anaphors: list[tuple[int, Anaphor]]  # sentence index and pronoun

    @staticmethod
    def from_texts(translator: Translator, texts: Sequence[str]) -> Pronouns:
        """Return the pronouns of some texts."""
        samples = attention_between_words(translator, texts)
        anaphors = [(number, each) for number, sample in enumerate(samples) for each in find_anaphors(sample.words)]
        return Pronouns(samples, [(number, each) for number, each in anaphors if len(each.nouns) == 1])

    def probe(self) -> Probe:
        """Return the probe that asks each pronoun for its antecedent."""
        items = [ProbeItem(number, each.pronoun, each.nouns) for number, each in self.anaphors]
        return Probe([strongest_other(sample) for sample in self.samples], items)

    def noun_mass(self) -> tuple[Floats, Floats]:
        """Return the mean weights (L, H) on the antecedent: from the pronoun, and from other words after the noun."""
        from_pronoun, from_others = [], []
        for number, each in self.anaphors:
            sample, (noun,) = self.samples[number], each.nouns
            to_noun = sample.weights[:, :, noun + 1 : sample.n_words, noun]
            from_pronoun.append(to_noun[:, :, each.pronoun - noun - 1])
            others = np.delete(to_noun, each.pronoun - noun - 1, axis=-1)
            from_others.append(others.mean(axis=-1) if others.shape[-1] else np.zeros(others.shape[:2]))
        return np.mean(from_pronoun, axis=0), np.mean(from_others, axis=0)


@dataclass(frozen=True, slots=True)
class PronounHead:
    """Mean weights of one head on the antecedents of the test text, and the share of pronouns that it answers."""

    layer: int  # from 0
    head: int  # from 0
    from_pronoun: float
    from_others: float
    accuracy: float

    @property
    def index(self) -> Head:
        """Layer and head."""
        return self.layer, self.head


@dataclass(frozen=True, slots=True)
class MeasuredPronouns:
    """Attention from pronouns to antecedents; without result and heads if the texts have too few pronouns."""

    n_dev: int
    n_test: int
    result: RelationResult | None
    heads: tuple[PronounHead, ...]  # the largest gain on the dev text first


def make_figure4(experiments: Experiments, request: Request) -> Report:
    """Probe heads for attention from pronouns to antecedents, and draw two of them in two sentences."""
    experiments, experiment = shown_model(experiments, request)
    inputs, pronouns = with_one_model(
        experiments,
        experiment,
        lambda: (
            figure_inputs(experiments, experiment, request),
            _measured_pronouns(experiments, experiment, n_sentences(experiments)),
        ),
    )
    views = [_View.of("figure4-papers-sentence", inputs.law, _antecedent_of_its(inputs.law), pronouns)]
    own = pronoun_to_draw(inputs.own.words.words[:-1])
    if own is not None:
        views.append(_View.of("figure4", inputs.own, own, pronouns))
    marked = views[1].heads if own is not None else ()
    return Report(
        "Figure 4: heads that attend from a pronoun to its antecedent",
        (
            *(picture(view.name, view.alt) for view in views),
            *_sentence_sections(inputs, views, is_measured=pronouns.result is not None),
            inputs.how_measured(),
            *_measured_sections(inputs, pronouns),
            picture(
                "figure4-all-heads",
                inputs.grid_alt() + ("; frames mark the heads drawn above" if marked else ""),
            ),
            inputs.ending("figure4"),
        ),
        drawings={**{view.name: view.drawing() for view in views}, "figure4-all-heads": inputs.grid(marked)},
        pages={PAGE: inputs.page()},
        claims=_claims(views[0], pronouns, is_trained=inputs.record.is_trained_to_the_end),
        finding=_verdict(inputs, pronouns),
        name="figure4",
    )


def _measured_pronouns(experiments: Experiments, experiment: Experiment, n: int) -> MeasuredPronouns:
    def measure(translator: Translator) -> list[MeasuredPronouns]:
        dev, test = (texts(experiments, experiment, split, n) for split in ("dev", "test"))
        return [_probed(translator, dev, test)]

    (pronouns,) = measured(
        experiments,
        experiment,
        "pronouns",
        TypeAdapter(list[MeasuredPronouns]),
        measure,
        settings={"n_sentences": n, "min_pronouns": MIN_PRONOUNS},
    )
    return pronouns


def _probed(translator: Translator, dev_texts: Sequence[str], test_texts: Sequence[str]) -> MeasuredPronouns:
    dev, test = (Pronouns.from_texts(translator, each) for each in (dev_texts, test_texts))
    n_dev, n_test = len(dev.anaphors), len(test.anaphors)
    if min(n_dev, n_test) < MIN_PRONOUNS:
        return MeasuredPronouns(n_dev, n_test, None, ())
    initial = untrained(translator)
    initial_dev, initial_test = (Pronouns.from_texts(initial, each).probe() for each in (dev_texts, test_texts))
    result = RelationResult(
        "pronoun → noun", best_head(dev.probe(), test.probe()), best_head(initial_dev, initial_test)
    )
    return MeasuredPronouns(n_dev, n_test, result, tuple(_heads_by_gain(dev, test)))


def _heads_by_gain(dev: Pronouns, test: Pronouns) -> list[PronounHead]:
    """Rank all heads by the weight on the dev antecedents from the pronoun minus that from the other words."""
    from_pronoun, from_others = dev.noun_mass()
    (test_pronoun, test_others), accuracies = test.noun_mass(), test.probe().accuracies()
    return [
        PronounHead(*head, float(test_pronoun[head]), float(test_others[head]), float(accuracies[head]))
        for head in _ranked(from_pronoun - from_others)
    ]


def _ranked(scores_LH: Floats) -> list[Head]:
    heads = [(int(layer), int(head)) for layer, head in np.ndindex(*scores_LH.shape)]
    return sorted(heads, key=lambda head: -scores_LH[head])


def pronoun_to_draw(words: Sequence[str]) -> Anaphor | None:
    """Return the first pronoun with an agreeing earlier noun, else the first after another word, else None.

    >>> pronoun_to_draw("The law is right but its use is not .".split())
    Anaphor(pronoun=5, nouns=())
    """
    with_noun = [each for each in find_anaphors(words) if each.nouns]
    if with_noun:
        return with_noun[0]
    return next((Anaphor(position, ()) for position, word in enumerate(words) if position and is_pronoun(word)), None)


def _antecedent_of_its(law: DrawnSentence) -> Anaphor:
    """Return the pronoun of the paper's sentence, "its", and its antecedent, "Law"."""
    return Anaphor(law.position("its"), (law.position("Law"),))


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """A sentence, its pronoun, and the heads that are drawn in it."""

    name: str
    sentence: DrawnSentence
    pronoun: Anaphor
    heads: tuple[Head, ...]

    @staticmethod
    def of(name: str, sentence: DrawnSentence, pronoun: Anaphor, measured: MeasuredPronouns) -> _View:
        """Choose the heads with the largest gain, or without one those with the greatest weight on an earlier word."""
        to_earlier = sentence.words.weights[:, :, pronoun.pronoun, : pronoun.pronoun].max(axis=-1)
        heads = [each.index for each in measured.heads] or _ranked(to_earlier)
        return _View(name, sentence, pronoun, tuple(heads[:N_HEADS_DRAWN]))

    @property
    def words(self) -> tuple[str, ...]:
        return self.sentence.words.words

    @property
    def word(self) -> str:
        """The pronoun."""
        return self.words[self.pronoun.pronoun]

    @property
    def rows(self) -> list[Floats]:
        """The weights of the pronoun on all words, in each head."""
        return [self.sentence.words.weights[layer, head, self.pronoun.pronoun] for layer, head in self.heads]

    @property
    def alt(self) -> str:
        return (
            f"Encoder self-attention: {head_names(self.heads[:1])}, all queries; {head_names(self.heads)},"
            f" query “{self.word}” alone"
        )

    def drawing(self) -> Draw:
        """Return two panels, as in the paper: all queries of the first head, and the pronoun alone in every head."""
        heads = [
            HeadLines(head_names([(layer, head)]), slot, self.sentence.words.weights[layer, head])
            for slot, (layer, head) in enumerate(self.heads)
        ]
        layer, head = self.heads[0]
        whole = LinePanel(
            (f"Layer {layer + 1}, head {head + 1}", "all queries"), self.words, self.words, tuple(heads[:1])
        )
        alone = LinePanel(
            (f"Query “{self.word}” alone",), self.words, self.words, tuple(heads), query=self.pronoun.pronoun
        )
        return lines(self.sentence, whole, alone, alt=self.alt, note=NOTE)

    def compared_cells(self) -> list[Cell]:
        """Return heads, pronoun, strongest earlier keys, greatest weights, and weights on nouns that agree."""
        strongest = [(int(row[: self.pronoun.pronoun].argmax()), row) for row in self.rows]
        of_nouns = [
            ", ".join(f"{self.words[noun]} {row[noun]:.2f}" for noun in self.pronoun.nouns) for row in self.rows
        ]
        return [
            f"{head_names(self.heads)} (of {self.sentence.words.weights.shape[0]} layers)",
            self.word,
            "; ".join(f"{self.words[key]} {row[key]:.2f}" for key, row in strongest),
            "; ".join(f"{row.max():.2f}" for row in self.rows),
            "; ".join(of_nouns) if self.pronoun.nouns else None,
        ]


def _sentence_sections(inputs: FigureInputs, views: Sequence[_View], *, is_measured: bool) -> list[str | Table]:
    law, *own = views
    maps = law.sentence.maps
    how = (
        "The drawn heads are the two with the largest gain on the dev text: weight on the antecedent from the pronoun"
        " minus that from the other words."
        if is_measured
        else "The drawn heads are the two in which the pronoun has the greatest weight on one earlier word."
    )
    rows = ("heads", "pronoun", "strongest earlier key, weight", "greatest weight", "weight on the antecedent")
    printed: tuple[Cell, ...] = ("5 and 6 of layer 5 of 6", "its", None, "“very sharp”", None)
    own_cells: list[Cell] = own[0].compared_cells() if own else [None] * len(rows)
    return [
        f"The sentence of the paper is “{maps.source}”; the model's translation is “{maps.translation}”. Its pronoun is"
        f" “{law.word}”; we read “Law” as its antecedent, the caption names none.",
        f"{_about_own_sentence(inputs, own)} {how}",
        Table("-paper", ("", *inputs.sizes), tuple(zip(rows, printed, law.compared_cells(), own_cells, strict=True))),
    ]


def _about_own_sentence(inputs: FigureInputs, own: Sequence[_View]) -> str:
    if not own:
        return (
            f"“{inputs.own.text}” has no pronoun of the third person after another word, so no lines are drawn. Give a"
            " sentence with one, such as “A man is painting his house.”"
        )
    nouns = [own[0].words[noun] for noun in own[0].pronoun.nouns]
    match nouns:
        case []:
            agreement = "no earlier noun of the word lists agrees with it"
        case [noun]:
            agreement = f"the only earlier noun of the word lists that agrees with it is “{noun}”"
        case _:
            agreement = f"{len(nouns)} earlier nouns agree with it ({', '.join(nouns)})"
    return f"The other sentence is “{inputs.own.text}” Its pronoun is “{own[0].word}”; {agreement}."


def _measured_sections(inputs: FigureInputs, pronouns: MeasuredPronouns) -> list[str | Table]:
    record = inputs.record
    if pronouns.result is None:
        return [
            f"{record.dev_text} and {record.test_text} have fewer than {MIN_PRONOUNS} pronouns with exactly one"
            " agreeing earlier noun: there are no statistics over sentences."
        ]
    return [
        "Antecedents come from word lists: a pronoun counts if exactly one earlier noun of the lists agrees with it in"
        " gender and number. (Of 60 such pairs in Multi30k's captions, drawn at random and read by hand, 56 were"
        f" right.) Heads and baseline are chosen on {record.dev_text} ({pronouns.n_dev} pronouns) and measured on"
        f" {pronouns.n_test} pronouns of {record.test_text}.",
        "Accuracy: the share of pronouns whose greatest weight, other than on the pronoun itself and EOS, is on the"
        " antecedent; beside it the best position baseline, which ignores the words, and the same search in the"
        " untrained model:",
        relation_table([pronouns.result], name="-share"),
        "Weight: the heads with the largest lead of pronouns over the other words after the antecedent, in the mean"
        " weight on the antecedent:",
        _table_of_heads(pronouns.heads[:N_HEADS_SHOWN]),
        _remarks(pronouns.heads[0]),
    ]


def _table_of_heads(heads: Sequence[PronounHead]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            each.layer + 1,
            each.head + 1,
            100 * each.from_pronoun,
            100 * each.from_others,
            100 * (each.from_pronoun - each.from_others),
            100 * each.accuracy,
        )
        for each in heads
    ]
    columns = ("layer", "head", "pronoun to antecedent %", "others to antecedent %", "difference", "accuracy %")
    return Table("-heads", columns, tuple(rows), formats=dict.fromkeys(columns[2:], ".1f"))


def _remarks(best: PronounHead) -> str:
    gain = 100 * (best.from_pronoun - best.from_others)
    more = "more" if gain > 0 else "less"
    return (
        f"In the first head of this table a pronoun has {abs(gain):.1f} points {more} weight on its antecedent than the"
        " other words have. Translation into German needs little of this: “his” becomes “sein” whoever is meant, and"
        " only “it” requires the antecedent. A weight shows what a head reads, not how the model uses it."
    )


def _verdict(inputs: FigureInputs, pronouns: MeasuredPronouns) -> str:
    result = pronouns.result
    if result is None:
        return (
            f"Undecided: {inputs.record.dev_text} and {inputs.record.test_text} have too few pronouns with a known"
            f" antecedent (fewer than {MIN_PRONOUNS} each)."
        )
    who = "a head finds" if result.trained.beats_baseline else "no head finds"
    return (
        f"Figure 4: in {inputs.this_model}, {who} the antecedents of pronouns better than the best position baseline"
        f" ({comparison_text(result)})."
    )


def _claims(law: _View, pronouns: MeasuredPronouns, *, is_trained: bool) -> tuple[Claim, ...]:
    """Return the sentences of the caption."""
    result = pronouns.result
    greatest = [float(row.max()) for row in law.rows]
    n_sharp = sum(weight >= SHARP_WEIGHT for weight in greatest)
    is_sharp = None if 0 < n_sharp < len(greatest) else n_sharp > 0
    return (
        Claim(
            "Two attention heads, also in layer 5 of 6, apparently involved in anaphora resolution.",
            "Figure 4",
            agreement(None if result is None else result.trained.beats_baseline, is_trained=is_trained),
            "The texts have too few pronouns with a known antecedent."
            if result is None
            else f"The best head and the best position baseline: {comparison_text(result)}.",
        ),
        Claim(
            "Note that the attentions are very sharp for this word.",
            "Figure 4",
            agreement(is_sharp, is_trained=is_trained),
            f"In the two drawn heads ({head_names(law.heads)}) the greatest weight of “{law.word}” is"
            f" {' and '.join(f'{weight:.2f}' for weight in greatest)}; sharp: {SHARP_WEIGHT} or more.",
        ),
    )
