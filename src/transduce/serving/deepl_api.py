"""What the endpoints of DeepL's API share: the shape of errors, languages of glossaries, and the terms of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from transduce.serving.api import Api, Ask
from transduce.serving.glossaries import Pair
from transduce.serving.http import ApiError
from transduce.serving.languages import LanguageTag
from transduce.serving.routing import LanguageRefused
from transduce.terms import Terms

__all__ = ["DeepLApi"]

MAX_GLOSSARIES = 5  # of a request


class DeepLApi(Api):
    """An API with the errors of DeepL."""

    over_quota = (456, "Quota exceeded")
    error: ClassVar[Any] = {"message": str}

    @classmethod
    def error_body(cls, error: ApiError) -> object:
        """Return an error as DeepL writes it."""
        if isinstance(error, LanguageRefused):
            return {"message": f"Value for '{error.side}_lang' not supported."}
        return {"message": error.message}

    def glossary_pairs(self) -> list[Pair]:
        """Return the pairs of languages that are translated, without regions."""
        return sorted({(_base(source), _base(target)) for source, target in self.state.translators})

    def glossary_pair(self, source: str, target: str) -> Pair:
        """Return the pair of languages of a dictionary. Raises ApiError for one that is not translated."""
        pair, pairs = (_base(source), _base(target)), self.glossary_pairs()
        if pair not in pairs:
            side = "target" if any(pair[0] == each for each, _ in pairs) else "source"
            raise ApiError(400, f"Value for '{side}_lang' not supported.")
        return pair

    async def terms_of(self, ask: Ask[Any], source: str, target: str) -> Terms | None:
        """Return the terms of the glossaries that a translation from ``source`` names; None without.

        Raises ApiError for glossaries that do not exist or are for other languages.
        """
        ids: Sequence[str] = ask.fields.glossary_ids
        if ask.fields.glossary_id:
            if ids:
                raise ApiError(400, "Value for 'glossary_ids' not supported together with 'glossary_id'.")
            ids = [ask.fields.glossary_id]
        if not ids:
            return None
        if len(ids) > MAX_GLOSSARIES:
            raise ApiError(400, f"Value for 'glossary_ids' not supported: more than {MAX_GLOSSARIES}.")
        if not ask.fields.source_lang.strip():
            raise ApiError(400, "Use of a glossary requires the 'source_lang' parameter to be specified.")
        pair = _base(source), _base(target)
        return await asyncio.to_thread(self.state.glossaries.terms, ask.client.name, ids, pair)


def _base(name: str) -> str:
    """Return the code of a language without its script and region; "" for what is no code."""
    tag = LanguageTag.of(name)
    return "" if tag is None else tag.language
