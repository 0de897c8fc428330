"""Documents that clients send: they are translated in groups of texts, between which other requests have their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath, PureWindowsPath
from typing import TypeVar
from urllib.parse import quote

from starlette.responses import StreamingResponse

from transduce.documents import all_formats
from transduce.errors import ConfigError, DataError
from transduce.inference.translation.document_translation import (
    DocumentOptions,
    DocumentReport,
    DocumentTranslation,
    Recall,
    TranslatedDocument,
)
from transduce.inference.translation.parts import Flag
from transduce.inference.translation.remembered import recalled
from transduce.serving.access import Client
from transduce.serving.batching import DeadlineExceeded, QueueFull, TooLong
from transduce.serving.document_store import KeptDocument
from transduce.serving.http import ApiError, Upload
from transduce.serving.models import ServedTranslator
from transduce.serving.routing import sources_of, stays
from transduce.serving.state import ServerState
from transduce.serving.translating import TranslatedText, translate_texts
from transduce.terms import Terms
from transduce.text.chunks import chunks
from transduce.text.markup import Unit

__all__ = ["DocumentResponse", "SentDocument", "named", "read_document", "translated_document"]

GROUP_TEXTS, GROUP_CHARACTERS = 64, 10_000  # that are queued together
DETECTED_CHARACTERS = 5000  # by which the language of a document is recognised
MAX_NAME = 100  # characters of the name of a result
MAX_REASON = 300  # characters of what is wrong with a document

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SentDocument:
    """A document of a client, and what is to be done with it."""

    data: bytes
    name: str
    source: str
    target: str
    work: DocumentTranslation | None  # None if it stays as it is
    n_characters: int


async def read_document(state: ServerState, upload: Upload, source: str, target: str, client: Client) -> SentDocument:
    """Read a document, for which ``state.documents`` has room.

    Raises ApiError for one that cannot be read or is too large, LanguageRefused.
    """
    limits = client.limits
    if len(upload.data) > limits.document_bytes:
        raise ApiError(413, f"The document is larger than {limits.document_bytes:,} bytes")
    read = await _to_its_end(partial(_read, upload, target, is_protected=False))
    texts = [each.text for each in read.units]
    n_characters, most = sum(map(len, texts)), limits.most_document_characters
    if n_characters > most:
        raise ApiError(413, f"The document has {n_characters:,} characters, the limit is {most:,}")
    sample = " ".join(texts[: DETECTED_CHARACTERS // 2])[:DETECTED_CHARACTERS]
    [detected], target = await sources_of(state, [sample], source, target)
    if stays(state, detected.language, target):
        return SentDocument(upload.data, upload.name, detected.language, target, None, 0)
    model = state.translators[detected.language, target].model
    recall = None if model.memory is None else partial(recalled, model.memory)
    work = await _to_its_end(partial(_read, upload, target, is_protected=not model.has_masks, recall=recall))
    return SentDocument(upload.data, upload.name, detected.language, target, work, n_characters)


async def _to_its_end(work: Callable[[], T]) -> T:
    """Do work in another thread; its room is free when it is done, not when its client goes away."""
    done = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(done)
    finally:
        await asyncio.wait([done])


def _read(upload: Upload, target: str, *, is_protected: bool, recall: Recall | None = None) -> DocumentTranslation:
    options: DocumentOptions = {} if recall is None else {"recall": recall}
    try:
        return DocumentTranslation.of(
            upload.data, upload.name, tgt_language=target, is_protected=is_protected, **options
        )
    except (DataError, ConfigError) as error:
        raise ApiError(400, f"Invalid request: {str(error)[:MAX_REASON]}") from error


async def translated_document(
    state: ServerState, sent: SentDocument, *, terms: Terms | None = None
) -> TranslatedDocument:
    """Translate a document, with ``terms`` as in ``translate_texts``.

    Raises ApiError if it takes too long or cannot hold its translations.
    """
    if sent.work is None:
        kept = DocumentReport(sent.name, "", 0, 0, 0, {}, {}, ())
        return TranslatedDocument(sent.data, kept)
    served, work = state.translators[sent.source, sent.target], sent.work
    done: list[tuple[str, tuple[Flag, ...]]] = []
    deadline = time.monotonic() + state.document_timeout_s
    for group in chunks(work.units, GROUP_TEXTS, lambda unit: len(unit.raw), max_characters=GROUP_CHARACTERS):
        results = await _of_group(served, group, deadline, terms)
        done += [(each.text, each.warnings) for each in results]
    try:
        return await _to_its_end(partial(work.finished, done))
    except DataError as error:
        raise ApiError(400, f"The document cannot be written: {str(error)[:MAX_REASON]}") from error


async def _of_group(
    served: ServedTranslator, group: Sequence[Unit], deadline: float, terms: Terms | None
) -> list[TranslatedText]:
    """Translate some texts; while the queue is full, wait. Raises ApiError after the deadline."""
    while time.monotonic() < deadline:
        try:
            return await translate_texts(served, group, terms=terms, deadline=deadline)
        except QueueFull as error:
            await asyncio.sleep(min(error.retry_after_s, max(0.0, deadline - time.monotonic())))
        except (DeadlineExceeded, TooLong):
            break
    raise ApiError(503, "The document was not translated in time; send smaller parts, or all later", retry_after_s=30)


def named(name: str, target: str) -> str:
    """Return the name of a translated document, without what may mean something to a browser or a file system.

    >>> named("C:\\\\texts\\\\my report.v2.docx", "de"), named("../.html", "de"), named("", "de")
    ('my report.v2.de.docx', 'document.de.html', 'document.de')
    """
    base = PurePath(PureWindowsPath(name).name).name
    base = "".join(each for each in base if each.isalnum() or each in " ._-")[-MAX_NAME:].strip(" ")
    stem, dot, ending = base.rpartition(".")
    if not dot:
        stem, ending = base, ""
    return f"{stem.strip('. ') or 'document'}.{target}{dot}{ending}"


class DocumentResponse(StreamingResponse):
    """A document, which a browser saves and never shows as a page of this server."""

    media_type = "application/octet-stream"

    def __init__(self, kept: KeptDocument) -> None:
        ending, quoted = PurePath(kept.name).suffix.lower(), quote(kept.name)
        kind = next((each.media_type for each in all_formats() if ending in each.endings), self.media_type)
        name = f'filename="{kept.name}"' if quoted == kept.name else f"filename*=utf-8''{quoted}"
        headers = {
            "Content-Disposition": f"attachment; {name}", "Content-Length": str(kept.n_bytes),
            "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox", "Cache-Control": "no-store",
        }  # fmt: skip
        super().__init__(kept.blocks(), headers=headers, media_type=kind)
