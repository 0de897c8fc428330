"""Files and folders that are loaded: damage gives a one-line error, or the loaded object is sound.

Where sums protect it ("as_is"), what is loaded must be the very same; with its manifest made anew ("signed"), sound.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.damage import inflict, kinds_for
from fuzzing.sandbox import guarded
from fuzzing.sources import Sources
from transduce.config import RunConfig, TrainingConfig
from transduce.data import PairStore, collate, open_pairs, plan_batches
from transduce.errors import CheckpointError, ConfigError, DataError, SearchError, TransduceError
from transduce.exchange.foreign_model import ForeignModel
from transduce.exchange.importing import model_of, read_source
from transduce.files import write_manifest
from transduce.inference.engines import make_engine
from transduce.inference.folder import ModelFolder, read_model_folder
from transduce.inference.translation.translator import Translator
from transduce.model import Transformer
from transduce.runs.run_file import read_run_config
from transduce.tasks.prepared import Prepared, open_prepared
from transduce.text import BpeDropout, Tokenizer, Tokenizers, load_tokenizer, normalise
from transduce.training import TrainState, checkpoint_folders
from transduce.training.checkpoint import load_checkpoint
from transduce.training.optimiser import make_optimiser

__all__ = ["loaded_formats"]

LONGEST_MESSAGE = 1000
CASES_PER_CHILD = 20
SENTENCES = ["The dog sleeps.", "", "Ein süßer 🐕 </s> schläft\u2028 nicht; don't!", "xyzzy " * 30]


@dataclass(frozen=True)
class Loaded:
    """One kind of file or folder: how it is loaded, and what must be true of whatever was loaded."""

    source: Path  # a folder; it is copied for each case
    files: tuple[str, ...]  # those that are damaged
    errors: tuple[type[TransduceError], ...]
    load: Callable[[Path], Any]
    check: Callable[[Any], None]
    is_same: Callable[[Any, Any], bool] | None  # None: nothing binds this file to its content
    exempt: tuple[str, ...] | None = ()  # from the manifest; None: there is none


# model folders


def load_model(folder: Path) -> ModelFolder:
    """Read a model folder, its weights too: by the engine that it gets, and by PyTorch."""
    read = read_model_folder(folder, device="cpu")
    make_engine(read.stored)
    assert read.model is read.stored.module
    return read


def is_same_model(one: ModelFolder, other: ModelFolder) -> bool:
    weights, others = one.model.canonical(), other.model.canonical()
    return (
        (one.model.config, one.search, one.direction) == (other.model.config, other.search, other.direction)
        and weights.keys() == others.keys()
        and all(torch.equal(weights[name], others[name]) for name in weights)
        and is_same_tokenizers(one.tokenizers, other.tokenizers)
    )


def is_same_tokenizers(one: Tokenizers, other: Tokenizers) -> bool:
    return one.fingerprint == other.fingerprint and all(
        a.encode_batch(SENTENCES) == b.encode_batch(SENTENCES) for a, b in ((one.src, other.src), (one.tgt, other.tgt))
    )


def is_a_line(text: str) -> bool:
    """Whether a translation is one line of whole characters."""
    return "\n" not in text and "\ufffd" not in text and text.encode("utf-8").decode("utf-8") == text


def check_model(read: ModelFolder) -> None:
    assert all(bool(weight.isfinite().all()) for weight in read.model.parameters())
    assert read.model.config.src_vocab_size == read.tokenizers.src.size
    assert read.model.config.tgt_vocab_size == read.tokenizers.tgt.size == len(read.model.output_weight)
    check_tokenizer(read.tokenizers.src)
    translator = Translator(read.model, read.tokenizers, read.search, direction=read.direction)
    short = read.search.model_copy(update={"max_extra_tokens": min(2, read.search.max_extra_tokens)})
    try:
        translations = list(translator.translate_lines(SENTENCES[:3], search=short))
    except SearchError:
        return  # the right error for weights that are finite, but too great to compute with
    assert len(translations) == 3
    for translation in translations:
        for best in translation.n_best:
            assert isfinite(best.score)
            assert is_a_line(best.text)


# models of other libraries


@dataclass(frozen=True)
class Imported:
    model: Transformer
    foreign: ForeignModel


def load_foreign(source: Path) -> Imported:
    foreign = read_source(source)
    return Imported(model_of(foreign), foreign)


def check_foreign(imported: Imported) -> None:
    tokenizers, model = imported.foreign.tokenizers, imported.model
    assert all(bool(weight.isfinite().all()) for weight in model.parameters())
    assert (model.config.src_vocab_size, model.config.tgt_vocab_size) == (tokenizers.src.size, tokenizers.tgt.size)
    short = imported.foreign.search.model_copy(update={"beam_size": 2, "max_extra_tokens": 2})
    translator = Translator(model, tokenizers, short, direction="en-de")
    try:
        translations = translator.translate(SENTENCES[:3])
    except SearchError:
        return  # as above
    assert len(translations) == 3
    assert all(map(is_a_line, translations))


# tokenizers


def load_both_kinds(folder: Path) -> list[Tokenizer]:
    return [load_tokenizer(path) for path in sorted(folder.glob("*.json"))]


def check_tokenizer(tokenizer: Tokenizer) -> None:
    rows = tokenizer.encode_batch(SENTENCES)
    assert all(4 <= id < tokenizer.size for ids in rows for id in ids)
    assert tokenizer.decode_batch(rows) == SENTENCES
    assert len(tokenizer.pieces(range(tokenizer.size))) == tokenizer.size
    if tokenizer.merges is not None:
        text = normalise(SENTENCES[2])
        [samples] = BpeDropout(tokenizer, p_drop=0.3, seed=1).sample([text], 2)
        assert all(tokenizer.decode(ids) == text for ids in samples)


def check_tokenizers(tokenizers: list[Tokenizer]) -> None:
    for tokenizer in tokenizers:
        check_tokenizer(tokenizer)


# token stores and prepared folders


def is_same_store(one: PairStore, other: PairStore) -> bool:
    rows = np.arange(len(one))
    return one.summary == other.summary and all(
        np.array_equal(a.values_N, b.values_N) and np.array_equal(a.lengths_B, b.lengths_B)
        for a, b in ((one.columns[side].gather(rows), other.columns[side].gather(rows)) for side in ("src", "tgt"))
    )


def check_store(store: PairStore, vocab_size: int) -> None:
    assert len(store) == store.summary.n_examples * store.summary.n_encodings
    assert sum(store.summary.n_examples_of.values()) == store.summary.n_examples
    longest = int(max(store.src_lengths.max(), store.tgt_lengths.max()))
    assert longest <= store.summary.max_length
    plan = plan_batches(store.src_lengths, store.tgt_lengths, max_tokens=max(800, longest), seed=1, epoch=0)
    assert sorted(row for rows in plan for row in rows) == list(range(len(store)))
    for rows in plan[:5]:
        batch = collate(store, rows)
        assert 0 <= int(batch.src_BS.min()) <= int(batch.src_BS.max()) < vocab_size
        assert batch.n_src_tokens == int(store.src_lengths[rows].sum())
        assert 0 <= int(batch.tgt_out_N.min()) <= int(batch.tgt_out_N.max()) < vocab_size


def is_same_prepared(one: Prepared, other: Prepared) -> bool:
    return (
        (one.config, one.text_names, one.fingerprint) == (other.config, other.text_names, other.fingerprint)
        and is_same_tokenizers(one.tokenizers, other.tokenizers)
        and one.text("dev") == other.text("dev")
        and one.text("test") == other.text("test")
        and is_same_store(one.train, other.train)
    )


def check_prepared(prepared: Prepared) -> None:
    check_tokenizer(prepared.tokenizers.src)
    check_store(prepared.train, prepared.tokenizers.tgt.size)
    for split in ("dev", "test"):
        text = prepared.text(split)
        assert (text is not None) == (split in prepared.text_names)
        assert text is None or len(text[0]) == len(text[1])
        assert isinstance(prepared.text_names.get(split, ""), str)


# checkpoints


@dataclass(frozen=True)
class Resumed:
    model: Transformer
    optimiser: torch.optim.Optimizer
    state: TrainState

    def tensors(self) -> dict[str, Any]:
        moments = {
            f"{name}/{key}": value
            for name, weight in self.model.canonical().items()
            for key, value in self.optimiser.state[weight].items()
        }
        return {**self.model.canonical(), **moments}


def checkpoint_loader(config: RunConfig) -> Callable[[Path], Resumed]:
    def load(path: Path) -> Resumed:
        model = Transformer(config.model)
        optimiser = make_optimiser(model, TrainingConfig())
        return Resumed(model, optimiser, load_checkpoint(path, model, optimiser))

    return load


def is_same_checkpoint(one: Resumed, other: Resumed) -> bool:
    tensors, others = one.tensors(), other.tensors()
    return (
        one.state == other.state
        and tensors.keys() == others.keys()
        and all(torch.equal(tensors[name], others[name]) for name in tensors)
    )


def check_checkpoint(resumed: Resumed) -> None:
    fresh = TrainState()
    for field in fields(TrainState):
        value, example = getattr(resumed.state, field.name), getattr(fresh, field.name)
        if isinstance(example, int | float | str) and value is not None:
            expected = float | int if type(example) is float else type(example)
            assert isinstance(value, expected), f"{field.name} is {value!r:.60}"
        if isinstance(value, int | float):
            assert isfinite(value), f"{field.name} is {value!r:.60}"
            assert value >= 0, f"{field.name} is {value!r:.60}"
    for name, value in resumed.tensors().items():
        assert bool(value.isfinite().all()), f"{name} is not finite"
    for weight in resumed.model.parameters():
        moments = resumed.optimiser.state[weight]
        assert {key: value.shape for key, value in moments.items() if key != "step"} == {
            "exp_avg": weight.shape,
            "exp_avg_sq": weight.shape,
        }
        assert {value.dtype for value in moments.values()} == {torch.float32}
        weight.grad = torch.zeros_like(weight)
    resumed.optimiser.step()


def kinds_of_files(sources: Sources) -> dict[str, Loaded]:
    """The eight kinds."""
    config = read_run_config(sources.run)
    tokenizers = Tokenizers.load(sources.run / "store")
    vocab_size = tokenizers.tgt.size
    return {
        "model": Loaded(
            sources.model,
            ("config.json", "model.safetensors", "tokenizer.json", "manifest.json", "README.md"),
            (CheckpointError,),
            load_model,
            check_model,
            is_same_model,
            exempt=("README.md",),
        ),
        "store": Loaded(
            sources.run / "store" / "train",
            ("src.ids.npy", "src.offsets.npy", "tgt.ids.npy", "tgt.offsets.npy", "store.json", "manifest.json"),
            (DataError,),
            lambda folder: open_pairs(folder, tokenizers),
            lambda store: check_store(store, vocab_size),
            is_same_store,
        ),
        "prepared": Loaded(
            sources.run / "store",
            ("prepared.json", "tokenizer.json", "manifest.json", "dev.src", "test.tgt"),
            (DataError, CheckpointError),
            open_prepared,
            check_prepared,
            is_same_prepared,
        ),
        "checkpoint": Loaded(
            checkpoint_folders(sources.run / "checkpoints")[-1],
            ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"),
            (CheckpointError,),
            checkpoint_loader(config),
            check_checkpoint,
            is_same_checkpoint,
        ),
        "tokenizer": Loaded(
            sources.tokenizers,
            ("bpe.json", "wordpiece.json"),
            (CheckpointError,),
            load_both_kinds,
            check_tokenizers,
            None,
            exempt=None,
        ),
        "run": Loaded(
            sources.only_run,
            ("run.json",),
            (CheckpointError, ConfigError),
            read_run_config,
            lambda config: RunConfig.model_validate(config.model_dump()),
            None,
            exempt=None,
        ),
        "opus": Loaded(
            sources.opus,
            (
                "config.json",
                "generation_config.json",
                "model.safetensors",
                "source.spm",
                "target.spm",
                "vocab.json",
                "tokenizer_config.json",
            ),
            (CheckpointError,),
            load_foreign,
            check_foreign,
            None,
            exempt=None,
        ),
        "marian": Loaded(
            sources.marian,
            ("model.npz", "source.spm", "target.spm", "opus.vocab.yml"),
            (CheckpointError,),
            load_foreign,
            check_foreign,
            None,
            exempt=None,
        ),
    }


def loaded_formats(sources: Sources) -> list[Format]:
    """A format for each of the eight kinds."""
    return [
        Format(name, list(_stems(kind)), _player(kind, kind.load(kind.source)), cases_per_child=CASES_PER_CHILD)
        for name, kind in kinds_of_files(sources).items()
    ]


def _stems(kind: Loaded) -> Iterator[str]:
    is_protected = kind.is_same is not None
    for mode in ("as_is", "signed"):
        for file in kind.files:
            if is_protected if mode == "as_is" else file != "manifest.json":
                yield from (f"{mode}/{file}/{damage}" for damage in kinds_for(file))


def _player(kind: Loaded, undamaged: Any) -> Callable[[Case, CaseFolders], str]:
    def play(case: Case, place: CaseFolders) -> str:
        mode, file, damage = case.parts
        folder = place.folder / "source"
        shutil.copytree(kind.source, folder)
        inflict(damage, folder / file, case.draw())
        if mode == "signed" and kind.exempt is not None:
            write_manifest(folder, exempt=kind.exempt)
        with guarded(place), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                loaded = kind.load(folder)
                if mode == "as_is" and kind.is_same is not None:
                    require(kind.is_same(loaded, undamaged), "was loaded, and is another")
                    return "the same"
                kind.check(loaded)
            except kind.errors as error:
                message = str(error)
                is_short = len(message.splitlines()) == 1 and len(message) <= LONGEST_MESSAGE
                require(is_short, "its message is not one line of reasonable length", repr(message[:300]))
                return "refused"
        return "sound"

    return play
