"""The glossaries of DeepL's API: those of one pair of languages under /v2, those of several under /v3."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.responses import PlainTextResponse

from transduce.serving.api import Ask, endpoint
from transduce.serving.deepl_api import DeepLApi
from transduce.serving.fields import Fields, Values, field
from transduce.serving.glossaries import MAX_GLOSSARY_BYTES, Dictionary, Glossary, Pair
from transduce.serving.glossary_entries import MAX_TERM_BYTES, EntriesFormat, as_tsv, entries_of
from transduce.serving.http import ApiError

__all__ = ["DeepLGlossaries"]

MAX_BODY_BYTES = 2 * MAX_GLOSSARY_BYTES  # JSON and forms write some characters with several
GLOSSARY = {
    "glossary_id": str, "name": str, "ready": bool, "source_lang": str, "target_lang": str, "creation_time": str,
    "entry_count": int,
}  # fmt: skip
DICTIONARY = {"source_lang": str, "target_lang": str, "entry_count": int}
MULTILINGUAL = {"glossary_id": str, "name": str, "creation_time": str, "dictionaries": [DICTIONARY]}
ENTRIES = {"source_lang": str, "target_lang": str, "entries": str, "entries_format": str}
NOT_FOUND = {404: "There is no such glossary"}
KEPT = {456: "There are too many glossaries, or too large ones"}
EXAMPLE = {"source_lang": "EN", "target_lang": "DE", "entries": "dog\tHund", "entries_format": "tsv"}


class EntriesValues(Values):
    """A dictionary in a request."""

    source_lang: str = field(description="Language code", low=1)
    target_lang: str = field(description="Language code", low=1)
    entries: str = field(description="Lines with a source and a target")
    entries_format: EntriesFormat = field("tsv", "How they are separated: by TAB or comma")


class OneFields(Fields):
    """The fields of a request about a glossary."""

    glossary_id: str = field(low=1)


class PairFields(OneFields):
    """The fields of a request about a dictionary of a glossary."""

    source_lang: str = field(description="Language code", low=1)
    target_lang: str = field(description="Language code", low=1)


class CreateFields(Fields, EntriesValues):
    """The fields of POST /v2/glossaries."""

    max_bytes = MAX_BODY_BYTES
    name: str = field(low=1)


class CreateMultilingualFields(Fields):
    """The fields of POST /v3/glossaries."""

    max_bytes = MAX_BODY_BYTES
    name: str = field(low=1)
    dictionaries: list[EntriesValues] = field()


class EditFields(OneFields):
    """The fields of PATCH /v3/glossaries/{glossary_id}."""

    max_bytes = MAX_BODY_BYTES
    name: str = field("", "The new name")
    dictionaries: list[EntriesValues] = field(None, "Entries that are added, or take the place of others")


class ReplaceFields(OneFields, EntriesValues):
    """The fields of PUT /v3/glossaries/{glossary_id}/dictionaries."""

    max_bytes = MAX_BODY_BYTES


class TsvResponse(PlainTextResponse):
    """A table of TAB separated values."""

    media_type = "text/tab-separated-values"


class DeepLGlossaries(DeepLApi):
    """The endpoints."""

    name, tag, prefixes = "deepl", "DeepL", ("/v3/",)

    @endpoint(
        "GET", "/v2/glossary-language-pairs", gives={"supported_languages": [{"source_lang": str, "target_lang": str}]}
    )
    async def language_pairs(self, ask: Ask[Fields]) -> dict[str, Any]:
        """Language pairs of glossaries: all that are translated."""
        return {"supported_languages": [_languages(pair) for pair in self.glossary_pairs()]}

    @endpoint(
        "POST", "/v2/glossaries", gives=GLOSSARY, status=201, statuses=KEPT,
        example={"name": "animals"} | EXAMPLE,
    )  # fmt: skip
    async def create(self, ask: Ask[CreateFields]) -> dict[str, Any]:
        """Keep a glossary of one pair of languages."""
        return _monolingual(await self._added(ask, ask.fields.name, [ask.fields]))

    @endpoint("GET", "/v2/glossaries", gives={"glossaries": [GLOSSARY]})
    async def glossaries(self, ask: Ask[Fields]) -> dict[str, Any]:
        """Glossaries of one pair of languages."""
        found = await asyncio.to_thread(self.state.glossaries.all_of, ask.client.name)
        return {"glossaries": [_monolingual(each) for each in found if len(each.dictionaries) == 1]}

    @endpoint("GET", "/v2/glossaries/{glossary_id}", gives=GLOSSARY, statuses=NOT_FOUND)
    async def glossary(self, ask: Ask[OneFields]) -> dict[str, Any]:
        """A glossary of one pair of languages."""
        return _monolingual(await self._found(ask))

    @endpoint("GET", "/v2/glossaries/{glossary_id}/entries", gives=TsvResponse, statuses=NOT_FOUND)
    async def entries(self, ask: Ask[OneFields]) -> TsvResponse:
        """The entries of a glossary of one pair of languages."""
        _, dictionary = _only(await self._found(ask))
        return TsvResponse(as_tsv(dictionary.entries))

    @endpoint(
        "DELETE", "/v2/glossaries/{glossary_id}", "/v3/glossaries/{glossary_id}", gives=None, status=204,
        statuses=NOT_FOUND,
    )  # fmt: skip
    async def delete(self, ask: Ask[OneFields]) -> None:
        """Delete a glossary; requests that wait still have it."""
        await asyncio.to_thread(self.state.glossaries.remove, ask.client.name, ask.fields.glossary_id)

    @endpoint(
        "POST", "/v3/glossaries", gives=MULTILINGUAL, status=201, statuses=KEPT,
        example={"name": "animals", "dictionaries": [EXAMPLE]},
    )  # fmt: skip
    async def create_multilingual(self, ask: Ask[CreateMultilingualFields]) -> dict[str, Any]:
        """Keep a glossary with a dictionary for each of some pairs of languages."""
        return _multilingual(await self._added(ask, ask.fields.name, ask.fields.dictionaries))

    @endpoint("GET", "/v3/glossaries", gives={"glossaries": [MULTILINGUAL]})
    async def multilingual_glossaries(self, ask: Ask[Fields]) -> dict[str, Any]:
        """All glossaries."""
        found = await asyncio.to_thread(self.state.glossaries.all_of, ask.client.name)
        return {"glossaries": list(map(_multilingual, found))}

    @endpoint("GET", "/v3/glossaries/{glossary_id}", gives=MULTILINGUAL, statuses=NOT_FOUND)
    async def multilingual_glossary(self, ask: Ask[OneFields]) -> dict[str, Any]:
        """A glossary."""
        return _multilingual(await self._found(ask))

    @endpoint(
        "PATCH", "/v3/glossaries/{glossary_id}", gives=MULTILINGUAL, statuses=NOT_FOUND | KEPT,
        example={"name": "pets", "dictionaries": [EXAMPLE]},
    )  # fmt: skip
    async def edit(self, ask: Ask[EditFields]) -> dict[str, Any]:
        """Rename a glossary, or add entries to its dictionaries."""
        asked = ask.fields
        if not asked.name and not asked.dictionaries:
            raise ApiError(400, "Invalid request: missing name or dictionaries")
        merged = await self._dictionaries(asked.dictionaries or ())
        name = _checked_name(asked.name) if asked.name else ""
        changed = await asyncio.to_thread(
            self.state.glossaries.change, ask.client.name, asked.glossary_id, name=name, merged=merged
        )
        return _multilingual(changed)

    @endpoint(
        "GET", "/v3/glossaries/{glossary_id}/entries", gives={"dictionaries": [ENTRIES]}, statuses=NOT_FOUND
    )  # fmt: skip
    async def dictionary_entries(self, ask: Ask[PairFields]) -> dict[str, Any]:
        """The entries of a dictionary."""
        pair = self.glossary_pair(ask.fields.source_lang, ask.fields.target_lang)
        dictionary = (await self._found(ask)).dictionary(pair)
        return {"dictionaries": [_languages(pair) | {"entries": as_tsv(dictionary.entries), "entries_format": "tsv"}]}

    @endpoint(
        "PUT", "/v3/glossaries/{glossary_id}/dictionaries", gives=DICTIONARY, statuses=NOT_FOUND | KEPT,
        example=EXAMPLE,
    )  # fmt: skip
    async def replace_dictionary(self, ask: Ask[ReplaceFields]) -> dict[str, Any]:
        """Put a dictionary in the place of the one for these languages."""
        replaced = await self._dictionaries([ask.fields])
        changed = await asyncio.to_thread(
            self.state.glossaries.change, ask.client.name, ask.fields.glossary_id, replaced=replaced
        )
        [pair] = replaced
        return _dictionary(pair, changed.dictionary(pair))

    @endpoint(
        "DELETE", "/v3/glossaries/{glossary_id}/dictionaries", gives=None, status=204, statuses=NOT_FOUND
    )  # fmt: skip
    async def delete_dictionary(self, ask: Ask[PairFields]) -> None:
        """Delete the dictionary of two languages."""
        pair = self.glossary_pair(ask.fields.source_lang, ask.fields.target_lang)
        await asyncio.to_thread(self.state.glossaries.remove, ask.client.name, ask.fields.glossary_id, pair)

    async def _found(self, ask: Ask[Any]) -> Glossary:
        return await asyncio.to_thread(self.state.glossaries.find, ask.client.name, ask.fields.glossary_id)

    async def _added(self, ask: Ask[Any], name: str, given: Sequence[Any]) -> Glossary:
        if not given:
            raise ApiError(400, "Invalid request: missing dictionaries")
        name, dictionaries = _checked_name(name), await self._dictionaries(given)
        return await asyncio.to_thread(self.state.glossaries.add, ask.client.name, name, dictionaries)

    async def _dictionaries(self, given: Sequence[Any]) -> dict[Pair, dict[str, str]]:
        """Read dictionaries. Raises ApiError for two of the same languages, or ``entries_of``."""
        pairs = [self.glossary_pair(each.source_lang, each.target_lang) for each in given]
        if len({*pairs}) < len(pairs):
            raise ApiError(400, "Invalid request: two dictionaries have the same languages")
        read = [await asyncio.to_thread(entries_of, each.entries, each.entries_format) for each in given]
        return dict(zip(pairs, read, strict=True))


def _checked_name(name: str) -> str:
    if not (name := name.strip()) or not name.isprintable() or len(name.encode()) > MAX_TERM_BYTES:
        raise ApiError(400, f"Invalid request: name should be printable and have 1 to {MAX_TERM_BYTES:,} bytes")
    return name


def _only(glossary: Glossary) -> tuple[Pair, Dictionary]:
    """Return the dictionary of a glossary that has one. Raises ApiError for another."""
    if len(glossary.dictionaries) != 1:
        raise ApiError(404, "Glossary not found: it is not of one pair of languages; /v3 has it")
    [item] = glossary.dictionaries.items()
    return item


def _monolingual(glossary: Glossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id, "name": glossary.name, "ready": True, "creation_time": glossary.created,
        **_dictionary(*_only(glossary)),
    }  # fmt: skip


def _multilingual(glossary: Glossary) -> dict[str, Any]:
    dictionaries = [_dictionary(*each) for each in glossary.dictionaries.items()]
    return {
        "glossary_id": glossary.id, "name": glossary.name, "creation_time": glossary.created,
        "dictionaries": dictionaries,
    }  # fmt: skip


def _dictionary(pair: Pair, dictionary: Dictionary) -> dict[str, Any]:
    return {**_languages(pair), "entry_count": len(dictionary.entries)}


def _languages(pair: Pair) -> dict[str, str]:
    return {"source_lang": pair[0], "target_lang": pair[1]}
