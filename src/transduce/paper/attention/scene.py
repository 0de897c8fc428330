"""A trained model and a sentence before it: what figures 3 to 5 are made from, and what their reports share."""

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
from transduce.paper.report import Draw
from transduce.paper.request import Request
from transduce.paper.table3 import row_experiment
from transduce.tasks import Translator
from transduce.view import LinePanel, attention_grid, attention_lines, attention_of_translation, attention_page

__all__ = ["DEFAULT_SENTENCE", "Scene", "attention_experiment", "page_of", "set_scene"]

# A caption, as the model of --scale cpu was trained on, with a subject far from its verb and a pronoun.
DEFAULT_SENTENCE = "A woman in a red jacket who is standing near the lake is throwing a ball to her dog."
MOST_WORDS = 60  # of a sentence that is drawn


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The model, what is recorded of its run, and the sentence as its encoder sees it."""

    record: RunRecord
    translator: Translator
    text: str
    sentence: WordAttention
    dev: tuple[str, ...]  # sentences to choose heads by
    test: tuple[str, ...]  # and to measure them on
    n_trees: int  # sentences of the grammar for each of the two

    def about(self, figure: str) -> str:
        """Where the numbers are from."""
        record = self.record
        model, training, data = (record.config[table] for table in ("model", "training", "data"))
        score, page = record.dev_scores["sacrebleu"], page_of(figure)
        return " ".join(
            (
                f"The model: {model['n_encoder_layers']} + {model['n_decoder_layers']} layers of {model['n_heads']}",
                f"heads, d_model {model['d_model']}, {model['norm']}-norm, trained on {_corpora(data['corpus'])}",
                f"({data['direction']}) for {record.updates:,} updates ({training['optimiser']}, seed",
                f"{training['seed']}), {record.minutes:.1f} minutes on {record.machine}. It has a BLEU of",
                f"{score['score']:.1f} on {record.dev_text} (`{score['signature']}`).",
                "All attention is that of the encoder's self-attention, between words: what goes to the pieces of a",
                "word is added up, what comes from them averaged (Clark et al., 2019).",
                f"All layers and heads, and the decoder's, to be pointed at: [{page}]({page}).",
            )
        )

    def page(self) -> str:
        """All attention in the translation of the sentence, as one HTML page."""
        maps = attention_of_translation(self.translator, self.text)
        return attention_page([maps], title=f"Attention: {maps.source}")

    def grid(self, marked: Collection[tuple[int, int]]) -> Draw:
        """Every head of every layer, with a frame round some."""
        drawing = attention_grid(self.sentence.weights, title=f"Every head: {self.text}", marked=marked)
        return lambda path: write_text(path, drawing)

    def lines(self, *panels: LinePanel) -> Draw:
        """Panels of lines, side by side."""
        drawing = attention_lines(panels, title=self.text)
        return lambda path: write_text(path, drawing)


def page_of(figure: str) -> str:
    """The name of the page on which all attention can be pointed at."""
    return f"{figure}-attention.html"


def _corpora(corpus: str | dict[str, float]) -> str:
    return corpus if isinstance(corpus, str) else ", ".join(corpus)


def set_scene(experiments: Experiments, request: Request) -> Scene:
    """Train the model, or find it, and let it read the sentence.

    Raises DataError if there is no word in the sentence, or more than a drawing holds.
    """
    experiment = attention_experiment(experiments.scale, is_short=request.is_short)
    record = experiments.run(experiment)
    translator = Translator.load(experiments.model_folder(experiment), device=experiments.device)
    text = DEFAULT_SENTENCE if request.sentence is None else request.sentence
    (sentence,) = attention_between_words(translator, [text])
    if sentence.n_words > MOST_WORDS:
        raise DataError(f"the figures of attention hold {MOST_WORDS} words, the sentence has {sentence.n_words}")
    n_sentences = 60 if request.is_short else 1000
    dev, test = (_sentences(experiment.config.data, experiments.data_folder, split, n_sentences) for split in PARTS)
    return Scene(record, translator, text, sentence, dev, test, n_trees=60 if request.is_short else 500)


PARTS: tuple[Split, ...] = ("dev", "test")


def _sentences(data: DataConfig, data_folder: Path | None, split: Split, n_sentences: int) -> tuple[str, ...]:
    sources = (source for source, _ in ParallelText(data, data_folder).pairs(split) if source.strip())
    return tuple(islice(sources, n_sentences))


def attention_experiment(scale: Scale, *, is_short: bool) -> Experiment:
    """The model whose heads are looked at. Above the scale of a CPU it is that of the first row of Table 3."""
    if is_short:
        return Experiment("attention-short", _short())
    if scale != "cpu":
        return row_experiment("base", scale, seed=1)
    return Experiment("attention", _on_captions())


def _on_captions() -> RunConfig:
    """4 + 4 layers of 8 heads, in some minutes on 2 cores."""
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


def _short() -> RunConfig:
    """Some seconds: a model that has learned nothing to speak of."""
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=2, n_decoder_layers=1, d_model=32, d_ff=48, n_heads=4, d_k=8, d_v=8),
        data=DataConfig(corpus="grammar", n_pairs=300, vocab_size=400),
        training=TrainingConfig(
            max_updates=6, max_tokens_per_batch=400, warmup_steps=2, validation_bleu=False, validate_every_updates=6,
            checkpoint_every_updates=2,
        ),
        search=BeamSearchConfig(beam_size=1, max_extra_tokens=1),
    )  # fmt: skip
