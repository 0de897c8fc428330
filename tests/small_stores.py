"""Small stores of documents, and of prompts with responses, as preparation writes them; and damage to a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from transduce.data import Ids, LeftOut, StoreSummary, write_store
from transduce.data.documents import TEXT, document_rows
from transduce.data.responses import PROMPT, RESPONSES, response_rows
from transduce.text import Tokenizer
from transduce.text.documents import DocumentCodec


def write_documents(folder: Path, documents: Iterable[Sequence[str]], tokenizer: Tokenizer) -> StoreSummary:
    """Write a store of documents of one corpus."""
    codec, left_out = DocumentCodec(tokenizer), LeftOut()
    rows = (row for lines in documents for row in document_rows(lines, codec, left_out))
    return write_store(folder, {"mine": rows}, {TEXT: Ids(vocab_size=tokenizer.size)}, left_out=left_out)


def write_responses(
    folder: Path, rankings: Iterable[tuple[Sequence[int], Sequence[Sequence[int]]]], tokenizer: Tokenizer
) -> StoreSummary:
    """Write a store of the ids of prompts with their responses."""
    ids, left_out = Ids(vocab_size=tokenizer.size), LeftOut()
    rows = (row for each in rankings for row in response_rows(*each, max_length=20, left_out=left_out))
    fingerprint = tokenizer.fingerprint
    return write_store(folder, {"mine": rows}, {PROMPT: ids, RESPONSES: ids}, tokenizer_fingerprint=fingerprint)


def put(name: str, values: object) -> Callable[[Path], None]:
    """Return what writes another array into a store."""
    return lambda folder: np.save(folder / name, np.asarray(values))


def edit_summary(**changes: object) -> Callable[[Path], None]:
    """Return what changes the description of a store."""

    def edit(folder: Path) -> None:
        values = json.loads((folder / "store.json").read_bytes()) | changes
        (folder / "store.json").write_text(json.dumps(values), encoding="utf-8")

    return edit
