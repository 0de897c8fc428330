"""The demo: train a small Transformer within minutes, score it and show examples and attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transduce.config import (
    DataConfig,
    Precision,
    RunConfig,
    Split,
    TrainingConfig,
    TransformerConfig,
    config_from_mapping,
)
from transduce.corpora import (
    BUILT_IN,
    CATALOGUE,
    Corpus,
    Progress,
    Text,
    cache_folder,
    data_folders,
    find_text,
    get_corpus,
    has_training_text,
)
from transduce.errors import ConfigError, DataError
from transduce.inference import Translator
from transduce.inference.trained_model import TrainedModel
from transduce.metrics import TranslationScores
from transduce.runs import RunResult, train
from transduce.tasks import open_prepared
from transduce.training import Listener
from transduce.view import attention_of_translation, write_attention_page

__all__ = ["DemoResult", "Example", "demo_config", "run_demo"]

N_EXAMPLES = 10
PAGE_FILE = "attention.html"


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence of the test set, the model's translation, and the reference."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The result of a demo run."""

    run: RunResult
    scores: TranslationScores | None  # None: interrupted, or no text to score
    examples: tuple[Example, ...]
    page: Path | None


def demo_config(corpus: str = BUILT_IN, *, seed: int = 1, precision: Precision = "fp32") -> RunConfig:
    """Return the demo run of a corpus: some minutes for the built-in one, else a quarter of an hour.

    Raises ConfigError if ``corpus`` is not a valid corpus name.
    """
    config = _grammar_config() if corpus == BUILT_IN else _real_text_config(corpus)
    training = config.training.model_copy(update={"seed": seed, "precision": precision})
    return config.model_copy(update={"training": training})


def _grammar_config() -> RunConfig:
    """Return a small model with the recipe of section 5, scaled to a few minutes on a laptop.

    Deviates: smaller model; 200 warm-up updates to 0.4 times equation 3 (peak 1.8e-3); no dropout, as the run has only
    about five epochs. ``--set`` changes each of these fields.
    """
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=2, n_decoder_layers=2, d_model=256, d_ff=512, n_heads=4, p_drop=0.0),
        data=DataConfig(corpus="grammar", vocab_size=4000),
        training=TrainingConfig(
            max_updates=1600,
            max_tokens_per_batch=1500,
            warmup_steps=200,
            lr_factor=0.4,
            validate_every_updates=320,
            validation_sentences=200,
            checkpoint_every_updates=32,
        ),
    )


def _real_text_config(corpus: str) -> RunConfig:
    """Return a run for about 30,000 pairs of real text that takes a quarter of an hour on two cores.

    Deviates: smaller model; 300 warm-up updates to 0.4 times equation 3 (peak 1.4e-3). Two layers per side, since four
    narrower ones of the same cost learn to attend to the source much later.
    """
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=2, n_decoder_layers=2, d_model=256, d_ff=512, n_heads=4),
        data=config_from_mapping(DataConfig, {"corpus": corpus, "vocab_size": 6000}, where="--corpus"),
        training=TrainingConfig(
            max_updates=1_000_000,
            max_minutes=15.0,
            max_tokens_per_batch=1500,
            warmup_steps=300,
            lr_factor=0.4,
            validate_every_updates=500,
            validation_sentences=200,
            checkpoint_every_updates=100,
        ),
    )


def fetch_missing(
    config: DataConfig, data_folder: Path | None, *, progress: Callable[[str], Progress], log: Callable[[str], None]
) -> None:
    """Download missing corpora of the catalogue, with their dev and test text.

    If only dev or test text cannot be downloaded, ``log`` gets a warning and the run continues without it.
    """
    folders = data_folders(data_folder)
    for corpus in (CATALOGUE[name] for name in config.weights if name in CATALOGUE):
        if not has_training_text(corpus, config.src_language, config.tgt_language, folders):
            get_corpus(corpus, cache_folder(), direction=config.direction, progress=progress, log=log)
            continue
        missing = _missing_held_out_text(corpus, config, folders)
        try:
            if missing.dev or missing.test:
                get_corpus(missing, cache_folder(), direction=config.direction, progress=progress, log=log)
        except (DataError, OSError) as error:
            log(f"warning: dev or test text of {corpus.name} is missing: {error}")


def _missing_held_out_text(corpus: Corpus, config: DataConfig, folders: Sequence[Path]) -> Corpus:
    """Return ``corpus`` reduced to the dev and test text that a run would read, but that is missing."""
    languages = config.src_language, config.tgt_language

    def missing(split: Split) -> tuple[Text, ...]:
        if config.names_of(split):
            return ()
        texts = (text for text in corpus.texts(split) if text.is_in(*languages))
        return tuple(text for text in texts if not find_text(text, *languages, folders))

    return replace(corpus, train=(), dev=missing("dev"), test=missing("test"), further=())


def run_demo(
    folder: Path,
    *,
    config: RunConfig,
    data_folder: Path | None = None,
    device: str | torch.device = "cpu",
    listeners: Sequence[Listener] = (),
    should_stop: Callable[[], bool] = lambda: False,
    while_training: AbstractContextManager[object] | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> DemoResult:
    """Train in ``folder``, then translate examples of the test set and draw their attention.

    Raises ConfigError if the run's task is not translation.
    """
    if TrainedModel.class_of(config.data.task) is not Translator:
        raise ConfigError("the demo trains a translator; for a parser: transduce train parsing-gum")
    run = train(
        config,
        folder,
        data_folder=data_folder,
        device=device,
        listeners=listeners,
        should_stop=should_stop,
        while_training=while_training,
        log=log,
    )
    if run.model_folder is None:
        return DemoResult(run, None, (), None)
    scores = run.scores
    assert scores is None or isinstance(scores, TranslationScores)  # the task is translation
    translator = Translator.load(run.model_folder, device=device)
    prepared = open_prepared(folder / "store")
    sources, references = prepared.text("test") or prepared.text("dev") or ([], [])
    pairs = [pair for pair in zip(sources, references, strict=True) if pair[0].strip()]
    chosen = pairs[:: max(1, len(pairs) // N_EXAMPLES)][:N_EXAMPLES]
    translations = translator.translate([source for source, _ in chosen], split=False)
    examples = tuple(
        Example(source, translation, reference)
        for (source, reference), translation in zip(chosen, translations, strict=True)
    )
    if not examples:
        return DemoResult(run, scores, (), None)
    page = folder / PAGE_FILE
    maps = [attention_of_translation(translator, example.source, example.translation) for example in examples]
    write_attention_page(page, maps, title="Attention of a small Transformer")
    return DemoResult(run, scores, examples, page)
