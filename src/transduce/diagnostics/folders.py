"""The folders that transduce writes: token stores, prepared text, checkpoints and models. ``runs.py`` has the runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from transduce.config import SPLITS
from transduce.data import StoreSummary, open_store
from transduce.diagnostics.finding import Finding, counted, good, guard, note, problem
from transduce.diagnostics.text import examine_two_files
from transduce.tasks import Parser, Translator, open_prepared
from transduce.tasks.model_folder import CARD_FILE, WEIGHTS_FILE, ModelFolder, read_model_config, read_model_folder
from transduce.tasks.preparation import has_manifest
from transduce.training import read_state
from transduce.training.checkpoint import MODEL_FILE, OPTIMISER_FILE, CheckpointTrigger, tensors_in, verify_checkpoint

__all__ = ["examine_checkpoint", "examine_leftovers", "examine_model", "examine_prepared", "examine_store"]

MANY_LEFT_OUT = 0.05  # of the pairs
N_NAMES_SHOWN = 3

# Something short to translate; what comes out is shown, not judged.
SENTENCES = {"en": "A dog sleeps.", "de": "Ein Hund schläft.", "fr": "Un chien dort."}
ANY_LANGUAGE = "1, 2, 3."

WHY: dict[CheckpointTrigger, str] = {
    "schedule": "written at its time",
    "best": "written since validation improved",
    "end": "written at the end of training",
    "stop": "written as the run was stopped",
}


def examine_store(folder: Path) -> Iterator[Finding]:
    """A folder of ids, each file against the manifest, and the ids against its own counts."""
    summary = open_store(folder).summary
    yield good(folder, f"a token store: {_what_a_store_is(summary)}")
    yield from _left_out(folder, summary)


def _what_a_store_is(summary: StoreSummary) -> str:
    encodings = "" if summary.n_encodings == 1 else f" in {summary.n_encodings} encodings each"
    columns = [
        f"{summary.n_values_of[name] + summary.n_rows:,} tokens in {name}"  # end symbols included
        if column.kind == "ids"
        else f"{summary.n_values_of[name]:,} vectors in {name}"
        for name, column in summary.columns.items()
    ]
    return f"{counted(summary.n_pairs, 'pair')}{encodings}, {' and '.join(columns)}"


def _left_out(folder: Path, summary: StoreSummary) -> Iterator[Finding]:
    if summary.n_too_long > MANY_LEFT_OUT * summary.n_read:
        yield note(
            folder,
            f"{summary.n_too_long:,} of {counted(summary.n_read, 'pair')} were left out: they have more than"
            f" {summary.max_length} tokens on a side; raise data.max_length, or split the sentences",
        )


def examine_prepared(folder: Path) -> Iterator[Finding]:
    """All that training reads: tokenizers, stores, and the text of dev and test, whatever else is wrong."""
    yield from guard(folder, _examine_what_was_prepared(folder))
    for split in SPLITS[1:]:
        src, tgt = folder / f"{split}.src", folder / f"{split}.tgt"
        if src.exists() or tgt.exists():
            yield from guard(src, examine_two_files(src, tgt))


def _examine_what_was_prepared(folder: Path) -> Iterator[Finding]:
    prepared = open_prepared(folder)
    sizes = sorted({prepared.tokenizers.src.size, prepared.tokenizers.tgt.size})
    vocabulary = " and ".join(f"{size:,}" for size in sizes)
    yield good(
        folder,
        f"prepared text: {prepared.config.direction} of {' and '.join(prepared.config.weights)}, {vocabulary} symbols,"
        f" {_what_a_store_is(prepared.train.summary)}",
    )
    yield from _left_out(folder / "train", prepared.train.summary)
    if not has_manifest(folder):
        yield note(folder, "there is no manifest, as in earlier versions: whether its text was changed cannot be seen")
    if prepared.dev is None:
        yield note(folder, "there is no dev text: there is no validation, and no best checkpoint")


def examine_checkpoint(folder: Path) -> Iterator[Finding]:
    """Each file against the manifest, and every number."""
    verify_checkpoint(folder)
    state = read_state(folder)
    yield good(
        folder,
        f"a complete checkpoint: {counted(state.update, 'update')}, epoch {state.epoch + 1:,},"
        f" {state.elapsed_s / 60:.1f} minutes; {WHY[state.cause]}",
    )
    for path in (folder / MODEL_FILE, folder / OPTIMISER_FILE):
        if odd := _odd_tensors(tensors_in(path)):
            yield problem(path, f"{odd}; training went astray before: go back to an older checkpoint")


def _odd_tensors(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Those with numbers that are not finite; empty if there are none. One after the other: memory holds but one."""
    names = [name for name, tensor in tensors if not torch.isfinite(tensor).all()]
    if not names:
        return ""
    more = f" and {len(names) - N_NAMES_SHOWN} more" if len(names) > N_NAMES_SHOWN else ""
    noun = "tensor has" if len(names) == 1 else "tensors have"
    return (
        f"{len(names)} {noun} numbers that are not finite (NaN or infinity): {', '.join(names[:N_NAMES_SHOWN])}{more}"
    )


def examine_model(folder: Path) -> Iterator[Finding]:
    """Each file, each weight, and whether it translates."""
    read = read_model_folder(folder, device=torch.device("cpu"))
    config, task = read_model_config(folder)
    yield good(
        folder,
        f"a model folder: {read.direction}, {config.n_encoder_layers} + {config.n_decoder_layers} layers of width"
        f" {config.d_model}, {task.cost(config).parameters:,} parameters",
    )
    if not (folder / CARD_FILE).is_file():
        yield note(folder, f"there is no model card ({CARD_FILE}): nobody will know what it was trained on")
    if odd := _odd_tensors(read.model.named_parameters()):
        yield problem(folder / WEIGHTS_FILE, f"{odd}; average older checkpoints")
        return
    trial = {"translation": _translate, "parsing": _parse}.get(read.task)
    if trial is not None:
        yield from guard(folder, trial(folder, read))


def _parse(folder: Path, read: ModelFolder) -> Iterator[Finding]:
    begun = time.perf_counter()
    tree = Parser(read.model, read.tokenizers, read.search).parse([SENTENCES["en"]])[0]
    yield good(folder, f"it parses: {SENTENCES['en']!r} became {str(tree)!r} in {time.perf_counter() - begun:.2f} s")


def _translate(folder: Path, read: ModelFolder) -> Iterator[Finding]:
    translator = Translator(read.model, read.tokenizers, read.search, direction=read.direction)
    sentence = SENTENCES.get(translator.src_language, ANY_LANGUAGE)
    begun = time.perf_counter()
    translation = translator.translate([sentence])[0]
    took = time.perf_counter() - begun
    if translation:
        yield good(folder, f"it translates: {sentence!r} became {translation!r} in {took:.2f} s")
    else:
        yield note(folder, f"it makes nothing of {sentence!r}: was it trained long enough?")


def examine_leftovers(*folders: Path) -> Iterator[Finding]:
    """What processes that were killed while they wrote have left behind."""
    for folder in filter(Path.is_dir, folders):
        hidden = (path for path in folder.iterdir() if path.name.startswith("."))
        left = sorted(path for path in hidden if path.suffix in (".tmp", ".old"))
        if left:
            n_bytes = sum(path.stat().st_size for top in left for path in (top, *top.rglob("*")) if path.is_file())
            names = ", ".join(path.name for path in left[:N_NAMES_SHOWN])
            yield note(
                folder,
                f"{counted(len(left), 'leftover')} of a process that was killed, or is still writing: {names}"
                f" ({n_bytes / 1e6:,.1f} MB); if nothing is running here, remove them",
            )
