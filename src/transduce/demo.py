"""The first run of a newcomer: a Transformer learns a language in a few minutes, and shows what it has learned."""

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
from transduce.metrics import TranslationScores
from transduce.tasks import RunResult, Translator, open_prepared, train
from transduce.training import Listener
from transduce.view import attention_of_translation, write_attention_page

__all__ = ["DemoResult", "Example", "demo_config", "run_demo"]

N_EXAMPLES = 10
PAGE_FILE = "attention.html"


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence of the test set, what the model makes of it, and what its translator did."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What there is to show."""

    run: RunResult
    scores: TranslationScores | None  # None: stopped before the end, or no text to score
    examples: tuple[Example, ...]
    page: Path | None


def demo_config(corpus: str = BUILT_IN, *, seed: int = 1, precision: Precision = "fp32") -> RunConfig:
    """The run that shows a corpus, English to German: some minutes for the built-in one, a quarter of an hour else.

    Raises ConfigError if ``corpus`` cannot be the name of one.
    """
    config = _grammar_config() if corpus == BUILT_IN else _real_text_config(corpus)
    training = config.training.model_copy(update={"seed": seed, "precision": precision})
    return config.model_copy(update={"training": training})


def _grammar_config() -> RunConfig:
    """A model small enough for a laptop, and the recipe of section 5 scaled to some minutes.

    Deviates: smaller; 200 updates of warm-up to 0.4 times equation 3 (a peak of 1.8e-3); no dropout, as the run ends
    after about five epochs. Each is a field of the configuration that ``--set`` changes.
    """
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=2, n_decoder_layers=2, d_model=256, d_ff=512, n_heads=4, p_drop=0.0),
        data=DataConfig(corpus="grammar", vocab_size=4000),
        training=TrainingConfig(
            max_updates=1300,
            max_tokens_per_batch=1500,
            warmup_steps=200,
            lr_factor=0.4,
            validate_every_updates=260,
            validation_sentences=200,
            checkpoint_every_updates=26,
        ),
    )


def _real_text_config(corpus: str) -> RunConfig:
    """Some 30,000 pairs of real text in a quarter of an hour on two cores.

    Deviates: smaller; 300 updates of warm-up to 0.4 times equation 3 (a peak of 1.4e-3). Two layers a side, not four of
    the same cost: these learn to attend to the source much later.
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
    """Fetch those corpora of the catalogue that are not on the disk yet, and their dev and test text.

    Where training text is there, and other text cannot be fetched, ``log`` gets a warning: a run goes without.
    """
    folders = data_folders(data_folder)
    for corpus in (CATALOGUE[name] for name in config.weights if name in CATALOGUE):
        if not has_training_text(corpus, config.src_language, config.tgt_language, folders):
            get_corpus(corpus, cache_folder(), direction=config.direction, progress=progress, log=log)
            continue
        lacking = _held_out_text_lacking(corpus, config, folders)
        try:
            if lacking.dev or lacking.test:
                get_corpus(lacking, cache_folder(), direction=config.direction, progress=progress, log=log)
        except (DataError, OSError) as error:
            log(f"warning: dev or test text of {corpus.name} is missing: {error}")


def _held_out_text_lacking(corpus: Corpus, config: DataConfig, folders: Sequence[Path]) -> Corpus:
    """A corpus of nothing but the dev and test text that a run would read if it were there."""
    languages = config.src_language, config.tgt_language

    def lacking(split: Split) -> tuple[Text, ...]:
        if any(config.files_of(split)):
            return ()
        texts = (text for text in corpus.texts(split) if text.is_in(*languages))
        return tuple(text for text in texts if not find_text(text, *languages, folders))

    return replace(corpus, train=(), dev=lacking("dev"), test=lacking("test"), further=())


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
    """Train in ``folder``, then translate some of the test set and draw the attention of it.

    Raises ConfigError for a run that is not of a translator.
    """
    if config.data.task != "translation":
        raise ConfigError("the demo shows a translator; for a parser: transduce train recipes/parsing-gum.toml")
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
    assert scores is None or isinstance(scores, TranslationScores)  # its corpora are for translation
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
