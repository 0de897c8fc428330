"""The API of DeepL, under /v2, as far as models without glossaries and tones have a use for it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from transduce.serving.http import ApiError, Fields, counted, json_response, read_fields, while_connected
from transduce.serving.libretranslate import detected_of, name_of
from transduce.serving.state import ServerState
from transduce.serving.translating import Splitting, TranslatedText, translate_texts, warnings_header
from transduce.text.markup import MarkupRules, html_rules, xml_rules

__all__ = ["DeepL", "error_response"]

UNLIMITED = 10**12  # what DeepL reports of keys without a limit
QUOTA_EXCEEDED = 456
# Varieties that DeepL wants to be told as targets.
VARIETIES = {
    "en": {"EN-GB": "English (British)", "EN-US": "English (American)"},
    "pt": {"PT-PT": "Portuguese (European)", "PT-BR": "Portuguese (Brazilian)"},
    "zh": {"ZH-HANS": "Chinese (simplified)", "ZH-HANT": "Chinese (traditional)"},
}


def error_response(error: ApiError) -> Response:
    """Return an error as DeepL writes it."""
    return json_response({"message": error.message}, error.status, error.headers)


class DeepL:
    """The endpoints."""

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def translate(self, request: Request) -> Response:
        """POST /v2/translate."""
        fields = await read_fields(request)
        client = self.state.client(request, fields)
        texts, _ = fields.texts("text")
        target = _code(fields.text("target_lang"))
        if target not in self.state.targets:
            raise ApiError(400, "Value for 'target_lang' not supported.")
        source = _code(fields.text("source_lang", ""))
        if source and target not in self.state.targets_of(source) and source != target:
            raise ApiError(400, "Value for 'source_lang' not supported.")
        _require_supported(fields)
        rules, splitting = _rules(fields), _splitting(fields)
        n_characters = sum(map(len, texts))
        with counted(client, len(texts), n_characters, over_quota=ApiError(QUOTA_EXCEEDED, "Quota exceeded")):
            sources = [source or (await detected_of(self.state, text, target)).language for text in texts]
            results = await while_connected(request, self._translated(texts, sources, target, rules, splitting))
        translations: list[dict[str, Any]] = [
            {"detected_source_language": language.upper(), "text": result.text, "billed_characters": len(text)}
            for language, result, text in zip(sources, results, texts, strict=True)
        ]
        return json_response({"translations": translations}, headers=warnings_header(results))

    async def _translated(
        self, texts: list[str], sources: list[str], target: str, rules: MarkupRules | None, splitting: Splitting
    ) -> list[TranslatedText]:
        results = [TranslatedText(text) for text in texts]
        for source in dict.fromkeys(sources):
            if source == target:
                continue
            indices = [index for index, each in enumerate(sources) if each == source]
            translated = await translate_texts(
                self.state.translator(source, target), [texts[index] for index in indices],
                rules=rules, splitting=splitting, timeout_s=self.state.request_timeout_s,
            )  # fmt: skip
            for index, result in zip(indices, translated, strict=True):
                results[index] = result
        return results

    async def languages(self, request: Request) -> Response:
        """GET or POST /v2/languages."""
        fields = await read_fields(request)
        self.state.client(request, fields)
        kind = fields.text("type", "source")
        if kind == "source":
            return json_response([{"language": code.upper(), "name": name_of(code)} for code in self.state.sources])
        if kind != "target":
            raise ApiError(400, "Value for 'type' not supported.")
        return json_response(
            [
                {"language": code, "name": name, "supports_formality": False}
                for language in self.state.targets
                for code, name in VARIETIES.get(language, {language.upper(): name_of(language)}).items()
            ]
        )

    async def usage(self, request: Request) -> Response:
        """GET or POST /v2/usage."""
        client = self.state.client(request, await read_fields(request))  # older clients send the key as a field
        limit = client.limits.characters_per_month or UNLIMITED
        return json_response({"character_count": client.characters_used, "character_limit": limit})

    async def glossaries(self, request: Request) -> Response:
        """GET /v2/glossaries: there are none."""
        self.state.client(request)
        return json_response({"glossaries": []})

    async def glossary_languages(self, request: Request) -> Response:
        """GET /v2/glossary-language-pairs: there are none."""
        self.state.client(request)
        return json_response({"supported_languages": []})


def _code(name: str) -> str:
    """Return a language code without the variety: "EN-US" is "en"."""
    return name.strip().lower().partition("-")[0]


def _require_supported(fields: Fields) -> None:
    """Raise ApiError for what would change the translation and is not supported."""
    if fields.text("formality", "default") in ("more", "less"):
        raise ApiError(400, "'formality' is not supported for given 'target_lang'.")
    for name in ("glossary_id", "style_id", "custom_instructions"):
        if name in fields:
            raise ApiError(400, f"'{name}' is not supported.")


def _rules(fields: Fields) -> MarkupRules | None:
    """Return how markup is read; None for plain text."""
    ignored, splitting = fields.names("ignore_tags"), fields.names("splitting_tags")
    match fields.text("tag_handling", ""):
        case "":
            return None
        case "html":
            return html_rules(ignored=ignored, splitting=splitting)
        case "xml":
            return xml_rules(
                ignored=ignored, splitting=splitting, non_splitting=fields.names("non_splitting_tags"),
                finds_outline=fields.flag("outline_detection", True),
            )  # fmt: skip
        case _:
            raise ApiError(400, "Value for 'tag_handling' not supported.")


def _splitting(fields: Fields) -> Splitting:
    given = fields.text("split_sentences", "1") if not isinstance(fields.raw("split_sentences"), bool) else (
        "1" if fields.raw("split_sentences") else "0"
    )  # fmt: skip
    # A line stays whole as far as the model reads so much at once; more of it would lose sentences.
    found: dict[str, Splitting] = {"1": "lines", "0": "lines", "nonewlines": "sentences"}
    if given not in found:
        raise ApiError(400, "Value for 'split_sentences' not supported.")
    return found[given]
