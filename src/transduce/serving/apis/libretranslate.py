"""The API of LibreTranslate, at the root."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any, Literal
from urllib.parse import quote

from transduce.documents import all_formats
from transduce.serving.api import Api, Ask, endpoint
from transduce.serving.detection import Detected
from transduce.serving.documents import DocumentResponse, named, read_document, translated_document
from transduce.serving.fields import Fields, Texts, field
from transduce.serving.http import ApiError, Upload, require_within
from transduce.serving.routing import AUTO, name_of, sources_of, translated
from transduce.serving.translating import MAX_ALTERNATIVES, counted_flags, warnings_header
from transduce.text.markup import rules_of

__all__ = ["LibreTranslate"]

FRONTEND_TIMEOUT_MS = 500  # the client's, after the last key
DETECTED = {"language": str, "confidence": float}  # 0 to 100
LANGUAGE = {"code": str, "name": str}


class DetectFields(Fields):
    """The fields of /detect."""

    takes_others = True
    q: Texts = field()


class TranslateFields(DetectFields):
    """The fields of /translate."""

    source: str = field(description='Language code, or "auto"', low=1)
    target: str = field(description="Language code", low=1)
    format: Literal["text", "html"] = field("text")
    alternatives: int = field(0, low=0, high=MAX_ALTERNATIVES)


class FileFields(Fields):
    """The fields of /translate_file."""

    takes_others = True
    file: Upload = field(description="The document")
    source: str = field(AUTO, 'Language code, or "auto"')
    target: str = field(description="Language code", low=1)


class DownloadFields(Fields):
    """The fields of /download_file."""

    filename: str = field(description="The end of the address that /translate_file has given")


class LibreTranslate(Api):
    """The endpoints."""

    name, tag = "libretranslate", "LibreTranslate"

    @endpoint(
        "POST", "/translate", example={"q": "A cat", "source": "en", "target": "de", "alternatives": 1},
        gives={
            "translatedText": (str, [str]), "detectedLanguage?": (DETECTED, [DETECTED]),
            "alternatives?": ([str], [[str]]),
        },
    )  # fmt: skip
    async def translate(self, ask: Ask[TranslateFields]) -> dict[str, Any]:
        """Translate text or HTML."""
        texts, n_alternatives = ask.fields.q, ask.fields.alternatives
        with ask.counted(len(texts), sum(map(len, texts))):
            detected, target = await sources_of(self.state, texts, ask.fields.source, ask.fields.target)
            sources, rules = [each.language for each in detected], rules_of(ask.fields.format)
            results = await ask.done(
                translated(self.state, texts, sources, target, rules=rules, n_alternatives=n_alternatives)
            )
        ask.headers.update(warnings_header(counted_flags(results)))
        answer: dict[str, list[Any]] = {"translatedText": [each.text for each in results]}
        if ask.fields.source.lower() == AUTO:
            answer["detectedLanguage"] = list(map(asdict, detected))
        if n_alternatives:
            answer["alternatives"] = [list(each.alternatives) for each in results]
        return answer if texts.is_list else {name: values[0] for name, values in answer.items()}

    @endpoint("POST", "/translate_file", gives={"translatedFileUrl": str}, statuses={413: "The document is too large"})
    async def translate_file(self, ask: Ask[FileFields]) -> dict[str, str]:
        """Translate a document, such as docx; the answer says where the translation can be fetched for an hour."""
        fields, store = ask.fields, self.state.documents
        with store.working():
            sent = await ask.done(read_document(self.state, fields.file, fields.source, fields.target, ask.client))
            with ask.counted(1, sent.n_characters, is_document=True):
                result = await ask.done(translated_document(self.state, sent))
        name = named(sent.name, sent.target)
        key = await asyncio.to_thread(store.keep, result.data, name)
        ask.headers.update(warnings_header(result.report.warnings))
        url = ask.request.url.replace(path=f"{self.prefix}/download_file/{key}.{quote(name)}", query="")
        return {"translatedFileUrl": str(url)}

    @endpoint(
        "GET", "/download_file/{filename}", gives=DocumentResponse, is_open=True,
        statuses={404: "There is no such file"},
    )  # fmt: skip
    async def download_file(self, ask: Ask[DownloadFields]) -> DocumentResponse:
        """A translated document."""
        kept = self.state.documents.find(ask.fields.filename.partition(".")[0])
        if kept is None:
            raise ApiError(404, "There is no such file, or not any more")
        return DocumentResponse(kept)

    @endpoint("POST", "/detect", gives=[DETECTED], example={"q": "A cat"})
    async def detect(self, ask: Ask[DetectFields]) -> list[dict[str, Any]]:
        """Recognise the language of a text."""
        texts = ask.fields.q
        require_within(ask.client, len(texts), sum(map(len, texts)))
        ranked = await asyncio.to_thread(self.state.detector.rank, " ".join(texts))
        if not ranked:  # there are no letters; clients take the first answer
            ranked = [Detected(code, 0.0) for code in self.state.languages[:1]]
        return list(map(asdict, ranked))

    @endpoint("GET", "/languages", gives=[LANGUAGE | {"targets": [str]}])
    async def languages(self) -> list[dict[str, Any]]:
        """Languages."""
        codes = self.state.languages
        return [{"code": code, "name": name_of(code), "targets": self.state.targets_of(code)} for code in codes]

    @endpoint(
        "GET", "/frontend/settings",
        gives={
            "apiKeys": bool, "keyRequired": bool, "charLimit": int, "frontendTimeout": int,
            "language": {"source?": LANGUAGE, "target?": LANGUAGE}, "suggestions": bool, "filesTranslation": bool,
            "supportedFilesFormat": [str],
        },
    )  # fmt: skip
    async def settings(self) -> dict[str, Any]:
        """Settings for front ends."""
        access = self.state.access
        limits = None if access.anonymous is None else access.anonymous.limits
        endings = [ending for each in all_formats() for ending in each.endings]
        sides = zip(("source", "target"), next(iter(self.state.translators), ()), strict=False)
        return {
            "apiKeys": access.has_keys, "keyRequired": access.anonymous is None,
            "charLimit": -1 if limits is None else limits.characters, "frontendTimeout": FRONTEND_TIMEOUT_MS,
            "language": {side: {"code": code, "name": name_of(code)} for side, code in sides},
            "suggestions": False, "filesTranslation": True, "supportedFilesFormat": endings,
        }  # fmt: skip
