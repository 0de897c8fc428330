"""The API of DeepL, under /v2, as far as models without glossaries and tones have a use for it; and /v1/translate."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from transduce.config import base_language
from transduce.serving.http import ApiError, Fields, counted, json_response, read_fields, while_connected
from transduce.serving.routing import direction_of, languages_of, name_of, target_of, translated
from transduce.serving.state import ServerState
from transduce.serving.translating import Splitting, warnings_header
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
TAKEN = (
    "text", "source_lang", "target_lang", "tag_handling", "ignore_tags", "splitting_tags", "non_splitting_tags",
    "outline_detection", "split_sentences", "auth_key", "api_key",
)  # fmt: skip
# Checked, but without effect here: clients send them with every request, and DeepL itself treats them as wishes.
WITHOUT_EFFECT = {
    "formality": ("default", "prefer_more", "prefer_less"),  # for models without tones, DeepL translates by default
    "model_type": ("latency_optimized", "quality_optimized", "prefer_quality_optimized"),  # there is one model
    "tag_handling_version": ("v1", "v2"),
}
FLAGS_WITHOUT_EFFECT = ("preserve_formatting", "show_billed_characters", "enable_beta_languages")
CONTEXT = "context"  # each sentence is translated by itself
REFUSED = (
    "glossary_id", "style_id", "custom_instructions", "translation_memory_id", "translation_memory_threshold",
)  # fmt: skip


def error_response(error: ApiError) -> Response:
    """Return an error as DeepL writes it."""
    return json_response({"message": error.message}, error.status, error.headers)


class DeepL:
    """The endpoints."""

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def translate(self, request: Request) -> Response:
        """GET or POST /v2/translate and /v1/translate."""
        fields = await read_fields(request)
        client = self.state.client(request, fields)
        texts, _ = fields.texts("text")
        _require_supported(fields)
        rules, splitting = _rules(fields), _splitting(fields)
        n_characters = sum(map(len, texts))
        with counted(client, len(texts), n_characters, over_quota=ApiError(QUOTA_EXCEEDED, "Quota exceeded")):
            sources, target = await self._languages(fields, texts)
            work = translated(self.state, texts, sources, target, rules=rules, splitting=splitting)
            results = await while_connected(request, work)
        translations: list[dict[str, Any]] = [
            {
                "detected_source_language": base_language(language).upper(),
                "text": result.text,
                "billed_characters": len(text),
            }
            for language, result, text in zip(sources, results, texts, strict=True)
        ]
        return json_response({"translations": translations}, headers=warnings_header(results))

    async def _languages(self, fields: Fields, texts: list[str]) -> tuple[list[str], str]:
        """Return the source language of each text, and the target language. Raises ApiError."""
        source, wanted = fields.text("source_lang", "").strip(), fields.filled("target_lang")
        try:
            target = target_of(self.state, wanted)
        except ApiError as error:
            raise ApiError(400, "Value for 'target_lang' not supported.") from error
        if not source:
            return [each.language for each in await languages_of(self.state, texts, target)], target
        try:
            source, target = direction_of(self.state, source, wanted)
        except ApiError as error:
            raise ApiError(400, "Value for 'source_lang' not supported.") from error
        return [source] * len(texts), target

    async def languages(self, request: Request) -> Response:
        """GET or POST /v2/languages."""
        fields = await read_fields(request)
        self.state.client(request, fields)
        kind = fields.text("type", "source")
        if kind == "source":
            sources = dict.fromkeys(map(base_language, self.state.sources))
            return json_response([{"language": code.upper(), "name": name_of(code)} for code in sources])
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


def _require_supported(fields: Fields) -> None:
    """Raise ApiError for what would change the translation and is not supported, and for values that are none."""
    fields.require_known((*TAKEN, *WITHOUT_EFFECT, *FLAGS_WITHOUT_EFFECT, CONTEXT, *REFUSED))
    if fields.text("formality", "") in ("more", "less"):
        raise ApiError(400, "'formality' is not supported for given 'target_lang'.")
    for name, values in WITHOUT_EFFECT.items():
        if fields.filled(name, values[0]) not in values:
            raise ApiError(400, f"Value for '{name}' not supported.")
    for name in FLAGS_WITHOUT_EFFECT:
        fields.flag(name, False)
    fields.text(CONTEXT, "")
    for name in REFUSED:
        if fields.raw(name) not in (None, "", [], [""]):
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
    raw = fields.raw("split_sentences")
    given = str(int(raw)) if isinstance(raw, int) else fields.filled("split_sentences", "1")
    # A line stays whole as far as the model reads so much at once; more of it would lose sentences.
    found: dict[str, Splitting] = {"1": "lines", "0": "lines", "nonewlines": "sentences"}
    if given not in found:
        raise ApiError(400, "Value for 'split_sentences' not supported.")
    return found[given]
