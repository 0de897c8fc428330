"""Inputs of figures 3 to 5: the trained model, the sentence that is drawn, and the sentences of the statistics."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transduce.config import BeamSearchConfig, DataConfig, RunConfig, Split, TrainingConfig, TransformerConfig
from transduce.corpora import ParallelText
from transduce.errors import DataError
from transduce.files import write_text
from transduce.paper.attention.word_attention import WordAttention, attention_between_words
from transduce.paper.experiments import Experiment, Experiments, RunRecord, Scale
from transduce.paper.report import Draw, how_to_reproduce
from transduce.paper.request import Request
from transduce.paper.sizes import corpus_description, size_description
from transduce.paper.table3 import row_experiment
from transduce.tasks import Translator
from transduce.view import LinePanel, attention_grid, attention_lines, attention_of_translation, attention_page

__all__ = ["DEFAULT_SENTENCE", "PAGE", "FigureInputs", "attention_experiment", "figure_inputs"]

# An image caption, as in the training text of --scale cpu, with a subject far from its verb and a pronoun.
DEFAULT_SENTENCE = "A woman in a red jacket who is standing near the lake is throwing a ball to her dog."
MAX_WORDS = 60  # of a sentence that is drawn
PAGE = "attention.html"  # shared by the three figures: same model, same sentence
PAPER = "paper (encoder of 6 layers; width and training text not stated)"  # captions of figures 3 to 5


@dataclass(frozen=True, slots=True, eq=False)
class FigureInputs:
    """The model, the record of its run, and the sentences."""

    record: RunRecord
    scale: Scale
    translator: Translator
    text: str  # the sentence that is drawn
    sentence: WordAttention
    dev: tuple[str, ...]  # to choose heads
    test: tuple[str, ...]  # to measure them
    n_trees: int  # sentences of the grammar, for choosing and for measuring

    @property
    def sizes(self) -> tuple[str, str]:
        """Column names of the paper's values and of ours, each with the size of its model."""
        return PAPER, f"ours ({size_description(self.record.config)})"

    @property
    def this_model(self) -> str:
        """Name the model with its size, as the subject of a verdict."""
        return f"This model ({size_description(self.record.config)}, {self.record.updates:,} updates)"

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
                f"trained on {corpus_description(record.config['data'])},",
                f"for {record.updates:,} updates ({training['optimiser']}).",
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
            seeds=f"seed {record.config['training']['seed']}",
            hardware=f"trained in {record.minutes:.1f} minutes on {record.machine}, torch {record.torch}",
            scale=self.scale,
        )
        return (
            f"All layers, heads and kinds of attention of this sentence, interactive: [{PAGE}]({PAGE}) (one page for"
            f" figures 3 to 5).\n\n{again}"
        )

    def page(self) -> str:
        """Return the attention page of the sentence and its translation."""
        maps = attention_of_translation(self.translator, self.text)
        return attention_page([maps], title=f"Attention: {maps.source}")

    def grid_alt(self) -> str:
        """Return the alternative text of ``grid``."""
        n_layers, n_heads = self.sentence.weights.shape[:2]
        return f"Maps of encoder self-attention in one sentence: {n_layers} layers (rows) of {n_heads} heads (columns)"

    def grid(self, marked: Collection[tuple[int, int]]) -> Draw:
        """Return the drawing of all heads of all layers, with a frame around ``marked`` ones."""
        drawing = attention_grid(self.sentence.weights, title=f"{self.grid_alt()}. {self.text}", marked=marked)
        return lambda path: write_text(path, drawing)

    def lines(self, *panels: LinePanel, alt: str, note: str) -> Draw:
        """Return the drawing of panels of lines, side by side."""
        drawing = attention_lines(panels, title=f"{alt}. {self.text}", note=note)
        return lambda path: write_text(path, drawing)


def figure_inputs(experiments: Experiments, request: Request) -> FigureInputs:
    """Train or find the model, and compute its attention in the sentence.

    Raises DataError if the sentence has no words, or more than a drawing holds.
    """
    experiment = attention_experiment(experiments.scale, is_short=request.is_short)
    record = experiments.run(experiment)
    translator = Translator.load(experiments.model_folder(experiment), device=experiments.device)
    text = DEFAULT_SENTENCE if request.sentence is None else request.sentence
    (sentence,) = attention_between_words(translator, [text])
    if sentence.n_words > MAX_WORDS:
        raise DataError(f"figures 3 to 5 draw at most {MAX_WORDS} words; the sentence has {sentence.n_words}")
    n_sentences = 60 if request.is_short else 1000
    dev, test = (_sentences(experiment.config.data, experiments.data_folder, split, n_sentences) for split in SPLITS)
    return FigureInputs(
        record, experiments.scale, translator, text, sentence, dev, test, n_trees=60 if request.is_short else 500
    )


SPLITS: tuple[Split, ...] = ("dev", "test")


def _sentences(data: DataConfig, data_folder: Path | None, split: Split, n_sentences: int) -> tuple[str, ...]:
    sources = (source for source, _ in ParallelText(data, data_folder).pairs(split) if source.strip())
    return tuple(islice(sources, n_sentences))


def attention_experiment(scale: Scale, *, is_short: bool) -> Experiment:
    """Return the experiment whose heads are probed; above the scale of a CPU it is the base row of Table 3."""
    if is_short:
        return Experiment("attention-short", _short_config())
    if scale != "cpu":
        return row_experiment("base", scale, seed=1)
    return Experiment("attention", _captions_config())


def _captions_config() -> RunConfig:
    """4 + 4 layers of 8 heads: about ten minutes of one CPU thread."""
    max_updates = 900
    return RunConfig(
        model=TransformerConfig(
            n_encoder_layers=4, n_decoder_layers=4, d_model=256, d_ff=512, n_heads=8, d_k=32, d_v=32, norm="pre"
        ),
        data=DataConfig(corpus="multi30k", vocab_size=6000),
        training=TrainingConfig(
            max_updates=max_updates, max_tokens_per_batch=2048, warmup_steps=200, lr_factor=1.0, decay="linear",
            optimiser="muon", precision="bf16", validation_bleu=False, validate_every_updates=max_updates,
            checkpoint_every_updates=30,
        ),
    )  # fmt: skip


def _short_config() -> RunConfig:
    """A smoke test of seconds; the model has learned next to nothing."""
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=2, n_decoder_layers=1, d_model=32, d_ff=48, n_heads=4, d_k=8, d_v=8),
        data=DataConfig(corpus="grammar", n_pairs=300, vocab_size=400),
        training=TrainingConfig(
            max_updates=6, max_tokens_per_batch=400, warmup_steps=2, validation_bleu=False, validate_every_updates=6,
            checkpoint_every_updates=2,
        ),
        search=BeamSearchConfig(beam_size=1, max_extra_tokens=1),
    )  # fmt: skip
