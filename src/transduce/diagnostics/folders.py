"""Diagnostics of token stores, prepared text and checkpoints; ``models.py`` and ``runs.py`` examine their folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from transduce.config import SPLITS, DataConfig, ParallelCorpora
from transduce.corpora import CleaningRules
from transduce.data import StoreSummary, open_store
from transduce.findings.finding import Finding, counted, good, guard, note, problem
from transduce.findings.text import examine_two_files
from transduce.model.weights_file import tensors_in
from transduce.tasks import open_prepared
from transduce.tasks.prepared import Prepared, has_manifest
from transduce.training import read_state
from transduce.training.checkpoint import MODEL_FILE, OPTIMISER_FILE, CheckpointTrigger, verify_checkpoint

__all__ = ["examine_checkpoint", "examine_leftovers", "examine_prepared", "examine_store"]

MANY_LEFT_OUT = 0.05  # fraction of the pairs
N_NAMES_SHOWN = 3

WHY: dict[CheckpointTrigger, str] = {
    "schedule": "written on schedule",
    "best": "written because validation improved",
    "end": "written at the end of training",
    "stop": "written when the run was interrupted",
}


def examine_store(folder: Path) -> Iterator[Finding]:
    """Examine a token store: its files against the manifest, its ids against its counts."""
    summary = open_store(folder).summary
    yield good(folder, f"a token store: {_describe_store(summary)}")
    yield from _left_out(folder, summary)


def _describe_store(summary: StoreSummary) -> str:
    encodings = "" if summary.n_encodings == 1 else f" in {summary.n_encodings} encodings each"
    columns = [
        f"{summary.n_values_of[name] + summary.n_rows:,} tokens in {name}"  # EOS included
        if column.kind == "ids"
        else f"{summary.n_values_of[name]:,} vectors in {name}"
        for name, column in summary.columns.items()
    ]
    return f"{counted(summary.n_examples, 'pair')}{encodings}, {' and '.join(columns)}"


def _left_out(folder: Path, summary: StoreSummary) -> Iterator[Finding]:
    if summary.n_too_long > MANY_LEFT_OUT * summary.n_read:
        yield note(
            folder,
            f"{summary.n_too_long:,} of {counted(summary.n_read, 'pair')} were dropped: they have more than"
            f" {summary.max_length} tokens on a side; raise data.max_length, or split the sentences",
        )


def examine_prepared(folder: Path) -> Iterator[Finding]:
    """Examine prepared text: tokenizers, stores, and the text of dev and test."""
    data: DataConfig | None = None

    def opened() -> Iterator[Finding]:
        nonlocal data
        prepared = open_prepared(folder)
        data = prepared.config
        yield from _examine_tokenizers_and_stores(folder, prepared)

    yield from guard(folder, opened())
    rules = languages = None
    if isinstance(data, ParallelCorpora):
        rules, languages = CleaningRules.of(data), (data.src_language, data.tgt_language)
    for split in SPLITS[1:]:
        src, tgt = folder / f"{split}.src", folder / f"{split}.tgt"
        if src.exists() or tgt.exists():  # is_tokenised: as its preparation has told
            found = examine_two_files(src, tgt, rules=rules, languages=languages, is_tokenised=True)
            yield from guard(src, found)


def _examine_tokenizers_and_stores(folder: Path, prepared: Prepared) -> Iterator[Finding]:
    sizes = sorted({prepared.tokenizers.src.size, prepared.tokenizers.tgt.size})
    vocabulary = " and ".join(f"{size:,}" for size in sizes)
    yield good(
        folder,
        f"prepared text: {prepared.config.direction} of {' and '.join(prepared.config.weights)}, {vocabulary} tokens"
        f" in the vocabulary, {_describe_store(prepared.train.summary)}",
    )
    yield from _left_out(folder / "train", prepared.train.summary)
    if not has_manifest(folder):
        yield note(folder, "no manifest, as in earlier versions: changes to its text cannot be detected")
    for corpus, store in prepared.also_dev.items():  # raises if one is damaged
        yield good(folder, f"further dev text of {corpus}: {_describe_store(store.summary)}")
    if prepared.dev is None:
        yield note(folder, "no dev text: there is no validation and no best checkpoint")


def examine_checkpoint(folder: Path) -> Iterator[Finding]:
    """Examine a checkpoint: its files against the manifest, its tensors for non-finite numbers."""
    verify_checkpoint(folder)
    state = read_state(folder)
    yield good(
        folder,
        f"a complete checkpoint: {counted(state.update, 'update')}, epoch {state.epoch + 1:,},"
        f" {state.elapsed_s / 60:.1f} minutes; {WHY[state.cause]}",
    )
    for path in (folder / MODEL_FILE, folder / OPTIMISER_FILE):
        if nonfinite := _nonfinite_tensors(tensors_in(path)):
            yield problem(path, f"{nonfinite}; training had diverged before: go back to an older checkpoint")


def _nonfinite_tensors(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Describe the tensors with non-finite numbers, or return ""; the iterable need not fit into memory."""
    names = [name for name, tensor in tensors if not torch.isfinite(tensor).all()]
    if not names:
        return ""
    more = f" and {len(names) - N_NAMES_SHOWN} more" if len(names) > N_NAMES_SHOWN else ""
    noun = "tensor has" if len(names) == 1 else "tensors have"
    return f"{len(names)} {noun} non-finite numbers (NaN or infinity): {', '.join(names[:N_NAMES_SHOWN])}{more}"


def examine_leftovers(*folders: Path) -> Iterator[Finding]:
    """Report temporary files and folders of interrupted writes."""
    for folder in filter(Path.is_dir, folders):
        hidden = (path for path in folder.iterdir() if path.name.startswith("."))
        leftovers = sorted(path for path in hidden if path.suffix in (".tmp", ".old"))
        if leftovers:
            n_bytes = sum(path.stat().st_size for top in leftovers for path in (top, *top.rglob("*")) if path.is_file())
            names = ", ".join(path.name for path in leftovers[:N_NAMES_SHOWN])
            yield note(
                folder,
                f"{counted(len(leftovers), 'leftover')} of a process that was killed or is still writing: {names}"
                f" ({n_bytes / 1e6:,.1f} MB); if no process is running here, remove them",
            )
