"""The API of DeepL, under /v2, as far as models without tones have a use for it; and /v1/translate."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import PurePath
from typing import Any, Literal

from transduce.config import base_language
from transduce.serving.api import Ask, endpoint
from transduce.serving.deepl_api import DeepLApi
from transduce.serving.document_jobs import DocumentJob, DocumentJobs
from transduce.serving.documents import DocumentResponse, SentDocument, named, read_document, translated_document
from transduce.serving.fields import Fields, Names, Texts, field
from transduce.serving.http import ApiError, Upload
from transduce.serving.routing import name_of, sources_of, target_of, translated
from transduce.serving.state import ServerState
from transduce.serving.translating import Splitting, counted_flags, warnings_header
from transduce.terms import Terms
from transduce.text.markup import MarkupRules, html_rules, xml_rules

__all__ = ["DeepL"]

SECONDS_REMAINING = 2  # that clients are told to wait, which cannot be known
UNLIMITED = 10**12  # what DeepL reports of keys without a limit
# Varieties that DeepL wants to be told as targets.
VARIETIES = {
    "en": {"EN-GB": "English (British)", "EN-US": "English (American)"},
    "pt": {"PT-PT": "Portuguese (European)", "PT-BR": "Portuguese (Brazilian)"},
    "zh": {"ZH-HANS": "Chinese (simplified)", "ZH-HANT": "Chinese (traditional)"},
}
# A line stays whole as far as the model reads so much at once; more of it would lose sentences.
SPLITTINGS: dict[str, Splitting] = {"1": "lines", "0": "lines", "nonewlines": "sentences"}


class TranslationFields(Fields):
    """The fields of any translation. Those without effect are checked: clients send them with every request."""

    target_lang: str = field(description="Language code", low=1)
    source_lang: str = field("", "Language code; recognised if absent")
    glossary_id: str = field("", "A glossary, whose terms must be kept; source_lang is needed then")
    glossary_ids: Names = field("", "Up to five instead")
    formality: Literal["default", "prefer_more", "prefer_less"] = field(
        "default", "Without effect: models have no tones. more and less are refused"
    )
    enable_beta_languages: bool = field(False, "Without effect")
    style_id: None = field(None, "Refused")
    translation_memory_id: None = field(None, "Refused")
    translation_memory_threshold: None = field(None, "Refused")


class TranslateFields(TranslationFields):
    """The fields of /v2/translate."""

    text: Texts = field()
    tag_handling: Literal["", "xml", "html"] = field("", "How tags are read; absent for plain text")
    ignore_tags: Names = field("", "Elements that are not translated")
    splitting_tags: Names = field("", "Elements that divide sentences")
    non_splitting_tags: Names = field("", "Elements that do not")
    outline_detection: bool = field(True, "Whether elements that divide sentences are found")
    split_sentences: Literal["0", "1", "nonewlines"] = field(
        "1", "Where texts are divided: nowhere, at line ends and sentences, at sentences"
    )
    model_type: Literal["latency_optimized", "quality_optimized", "prefer_quality_optimized"] = field(
        "latency_optimized", "Without effect: there is one model"
    )
    context: str = field("", "Without effect: each sentence is translated by itself")
    preserve_formatting: bool = field(False, "Without effect")
    show_billed_characters: bool = field(False, "Without effect: they are always shown")
    tag_handling_version: Literal["v1", "v2"] = field("v1", "Without effect")
    custom_instructions: None = field(None, "Refused")


class LanguagesFields(Fields):
    """The fields of /v2/languages."""

    type: Literal["source", "target"] = field("source")


class DocumentFields(TranslationFields):
    """The fields of /v2/document."""

    file: Upload = field(description="The document")
    filename: str = field("", "Its name, if the file has none")
    output_format: str = field("", "The ending of its name: documents keep their format")


class HandleFields(Fields):
    """The fields of /v2/document/{document_id} and its result."""

    document_id: str = field(low=1)
    document_key: str = field(low=1)


class DeepL(DeepLApi):
    """The endpoints."""

    name, tag, prefixes = "deepl", "DeepL", ("/v1/", "/v2/")

    def __init__(self, state: ServerState, prefix: str) -> None:
        """``prefix`` is that of ``Api``."""
        super().__init__(state, prefix)
        self.jobs = DocumentJobs()

    @endpoint(
        "GET POST", "/v2/translate", "/v1/translate", example={"text": ["A cat"], "target_lang": "DE"},
        gives={"translations": [{"detected_source_language": str, "text": str, "billed_characters": int}]},
        statuses={404: "There is no such glossary"},
    )  # fmt: skip
    async def translate(self, ask: Ask[TranslateFields]) -> dict[str, Any]:
        """Translate texts, also with tags."""
        asked, texts = ask.fields, ask.fields.text
        with ask.counted(len(texts), sum(map(len, texts))):
            target_of(self.state, asked.target_lang)  # also where the text is in this language
            detected, target = await sources_of(self.state, texts, asked.source_lang.strip(), asked.target_lang)
            sources, splitting = [each.language for each in detected], SPLITTINGS[asked.split_sentences]
            terms = await self.terms_of(ask, sources[0], target) if sources else None
            work = translated(self.state, texts, sources, target, rules=_rules(asked), splitting=splitting, terms=terms)
            results = await ask.done(work)
        ask.headers.update(warnings_header(counted_flags(results)))
        translations = [
            {
                "detected_source_language": base_language(language).upper(), "text": result.text,
                "billed_characters": len(text),
            }
            for language, result, text in zip(sources, results, texts, strict=True)
        ]  # fmt: skip
        return {"translations": translations}

    @endpoint(
        "GET POST", "/v2/languages", example={"type": "target"},
        gives=[{"language": str, "name": str, "supports_formality?": bool}],
    )  # fmt: skip
    async def languages(self, ask: Ask[LanguagesFields]) -> list[dict[str, Any]]:
        """Languages."""
        if ask.fields.type == "source":
            sources = dict.fromkeys(map(base_language, self.state.sources))
            return [{"language": code.upper(), "name": name_of(code)} for code in sources]
        return [
            {"language": code, "name": name, "supports_formality": False}
            for language in self.state.targets
            for code, name in VARIETIES.get(language, {language.upper(): name_of(language)}).items()
        ]

    @endpoint("GET POST", "/v2/usage", gives={"character_count": int, "character_limit": int})
    async def usage(self, ask: Ask[Fields]) -> dict[str, int]:
        """Characters of this month."""
        limit = ask.client.limits.characters_per_month or UNLIMITED
        return {"character_count": ask.client.characters_used, "character_limit": limit}

    @endpoint(
        "POST", "/v2/document", gives={"document_id": str, "document_key": str},
        statuses={404: "There is no such glossary", 413: "The document is too large"},
    )  # fmt: skip
    async def document(self, ask: Ask[DocumentFields]) -> dict[str, str]:
        """Take a document, such as docx, which is translated afterwards."""
        asked, source = ask.fields, ask.fields.source_lang.strip()
        file = Upload(asked.filename or asked.file.name, asked.file.data)
        if asked.output_format and asked.output_format.lower() != PurePath(file.name).suffix[1:].lower():
            raise ApiError(400, "Value for 'output_format' not supported.")
        with ExitStack() as room:
            room.enter_context(self.state.documents.working())
            sent = await ask.done(read_document(self.state, file, source, asked.target_lang, ask.client))
            terms = await self.terms_of(ask, sent.source, sent.target)
            if not ask.client.has_quota(sent.n_characters):
                raise ApiError(*self.over_quota)
            job = self.jobs.begin(self._translated(ask, sent, terms), on_done=room.pop_all().close)
        return {"document_id": job.id, "document_key": job.key}

    async def _translated(self, ask: Ask[DocumentFields], sent: SentDocument, terms: Terms | None) -> tuple[str, int]:
        """Translate a document; return its key in the store, and its characters."""
        with ask.counted(1, sent.n_characters, is_document=True):
            result = await translated_document(self.state, sent, terms=terms)
        key = await asyncio.to_thread(self.state.documents.keep, result.data, named(sent.name, sent.target))
        return key, sent.n_characters

    @endpoint(
        "GET POST", "/v2/document/{document_id}", statuses={404: "There is no such document"},
        gives={
            "document_id": str, "status": str, "seconds_remaining?": int, "billed_characters?": int,
            "error_message?": str,
        },
    )  # fmt: skip
    async def document_status(self, ask: Ask[HandleFields]) -> dict[str, Any]:
        """How far a document is: translating, done or error."""
        job = self._job(ask)
        answer: dict[str, Any] = {"document_id": job.id, "status": job.status}
        if job.status == "done":
            answer["billed_characters"] = job.result[1]
        elif job.status == "error":
            answer["error_message"] = job.error.message
        else:
            answer["seconds_remaining"] = SECONDS_REMAINING
        return answer

    @endpoint(
        "GET POST", "/v2/document/{document_id}/result", gives=DocumentResponse,
        statuses={404: "There is no such document", 503: "It is not translated yet"},
    )  # fmt: skip
    async def document_result(self, ask: Ask[HandleFields]) -> DocumentResponse:
        """A translated document."""
        job = self._job(ask)
        if job.status == "translating":
            raise ApiError(503, "The document is not translated yet", retry_after_s=SECONDS_REMAINING)
        kept = self.state.documents.find(job.result[0]) if job.status == "done" else None
        if kept is None:
            raise ApiError(404, "There is no such document, or not any more")
        return DocumentResponse(kept)

    def _job(self, ask: Ask[HandleFields]) -> DocumentJob:
        job = self.jobs.find(ask.fields.document_id, ask.fields.document_key)
        if job is None:
            raise ApiError(404, "There is no such document, or not any more")
        return job


def _rules(asked: TranslateFields) -> MarkupRules | None:
    """Return how markup is read; None for plain text."""
    ignored, splitting = asked.ignore_tags, asked.splitting_tags
    match asked.tag_handling:
        case "":
            return None
        case "html":
            return html_rules(ignored=ignored, splitting=splitting)
        case "xml":
            return xml_rules(
                ignored=ignored, splitting=splitting, non_splitting=asked.non_splitting_tags,
                finds_outline=asked.outline_detection,
            )  # fmt: skip
