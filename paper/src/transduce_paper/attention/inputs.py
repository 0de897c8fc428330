"""Inputs of figures 3 to 5: the record of the run, the drawn sentences, and what the reports say of both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from transduce.files import write_text
from transduce.inference import Translator
from transduce.view import LinePanel, attention_grid, attention_lines, attention_page
from transduce_paper.attention.sentences import GOVERNMENTS, LAW, OWN, DrawnSentence, drawn_sentence, sentence_of_user
from transduce_paper.experiments import Experiments, Scale
from transduce_paper.report import Draw, how_to_reproduce
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord
from transduce_paper.sizes import corpus_description, model_description, size_description

__all__ = ["PAGE", "FigureInputs", "compared_layer", "figure_inputs", "lines"]

PAGE = "attention.html"  # shared by the three figures: same model, same sentences
PAPER = "paper (caption)"


@dataclass(frozen=True, slots=True, eq=False)
class FigureInputs:
    """The record of the model's run, and the sentences that are drawn."""

    record: RunRecord
    scale: Scale
    own: DrawnSentence  # our own sentence, or the user's
    governments: DrawnSentence
    law: DrawnSentence

    @property
    def sizes(self) -> tuple[str, str, str]:
        """Column names: the paper, our model in the paper's sentence, our model in our own sentence."""
        size = (size_description if self.record.updates else _size_of_model)(self.record.config)
        return PAPER, f"ours, the paper's sentence ({size})", "ours, another sentence"

    @property
    def this_model(self) -> str:
        """Name the model with its size."""
        if not self.record.updates:
            return f"the model {self.record.name} ({model_description(self.record.config['model'])})"
        return f"this model ({size_description(self.record.config)}, {self.record.updates:,} updates)"

    def how_measured(self) -> str:
        """Describe the model, its quality and what counts as attention."""
        record = self.record
        model, training = (record.config[table] for table in ("model", "training"))
        score = record.dev_scores["sacrebleu"]
        return " ".join(
            (
                "How it was measured. The model has",
                f"{model['n_encoder_layers']} + {model['n_decoder_layers']} layers of {model['n_heads']} heads,",
                f"d_model {model['d_model']}, {model['norm']}-norm,",
                f"trained on {corpus_description(record.config['data'])}, for {record.updates:,} updates"
                f" ({training['optimiser']}{_end_of(record)})."
                if record.updates
                else f"and was trained elsewhere ({record.name}).",
                f"Its BLEU on {record.dev_text} is {score['score']:.1f} (`{score['signature']}`).",
                "“Attention” is the encoder self-attention between words: summed over the subwords of a key, averaged",
                "over the subwords of a query (Clark et al., 2019).",
            )
        )

    def ending(self, figure: str) -> str:
        """Link the interactive page and say how to reproduce the report."""
        record = self.record
        again = how_to_reproduce(
            figure,
            seeds=f"seed {record.config['training']['seed']}" if record.updates else f"`--model {record.name}`",
            hardware=(f"trained in {record.minutes:.1f} minutes on " if record.updates else "measured on ")
            + f"{record.machine}, torch {record.torch}",
            scale=self.scale,
        )
        return (
            f"All layers, heads and kinds of attention of the drawn sentences, interactive: [{PAGE}]({PAGE}) (one page"
            f" for figures 3 to 5).\n\n{again}"
        )

    def page(self) -> str:
        """Return the attention page of all drawn sentences and their translations."""
        maps = [each.maps for each in (self.own, self.governments, self.law)]
        return attention_page(maps, title="Attention in the sentences of figures 3 to 5")

    def grid_alt(self) -> str:
        """Return the alternative text of ``grid``."""
        n_layers, n_heads = self.own.words.weights.shape[:2]
        return f"Maps of encoder self-attention in one sentence: {n_layers} layers (rows) of {n_heads} heads (columns)"

    def grid(self, marked: Collection[tuple[int, int]]) -> Draw:
        """Return the drawing of all heads in our own sentence, with a frame around ``marked`` ones."""
        drawing = attention_grid(self.own.words.weights, title=f"{self.grid_alt()}. {self.own.text}", marked=marked)
        return lambda path: write_text(path, drawing)


def _size_of_model(config: Mapping[str, Any]) -> str:
    return model_description(config["model"])


def lines(sentence: DrawnSentence, *panels: LinePanel, alt: str, note: str) -> Draw:
    """Return the drawing of panels of lines in a sentence, side by side."""
    drawing = attention_lines(panels, title=f"{alt}. {sentence.text}", note=note)
    return lambda path: write_text(path, drawing)


def compared_layer(sentence: DrawnSentence) -> int:
    """Return the layer that is compared with the paper's "layer 5 of 6": the last but one, from 0."""
    return max(0, len(sentence.words.weights) - 2)


def figure_inputs(experiments: Experiments, experiment: Experiment, request: Request) -> FigureInputs:
    """Return the record of an experiment and the attention of its model in the sentences.

    Only a sentence of the user needs the model itself. Raises DataError if it has no words, or too many to draw.
    """
    governments, law = (drawn_sentence(experiments, experiment, each) for each in (GOVERNMENTS, LAW))
    if request.sentence is None:
        own = drawn_sentence(experiments, experiment, OWN)
    else:
        translator = Translator.load(experiments.model_folder(experiment), device=experiments.device)
        own = sentence_of_user(translator, request.sentence)
    return FigureInputs(experiments.run(experiment), experiments.scale, own, governments, law)


def _end_of(record: RunRecord) -> str:
    """Say how far the model is trained, where it is known."""
    best = "; the best checkpoints count" if record.config["training"].get("averaging") == "best" else ""
    fall = record.last_fall
    return best if fall is None else f"{best}; dev perplexity fell by {100 * fall:.1f} % over the last tenth"
