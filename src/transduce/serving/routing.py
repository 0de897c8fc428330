"""From the languages of a request to the models that translate its texts; what is in the target language stays."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

from transduce.corpora.languages import english_name
from transduce.serving.detection import Detected, UnservedLanguage
from transduce.serving.http import ApiError
from transduce.serving.languages import LanguageTag, served_codes
from transduce.serving.state import ServerState
from transduce.serving.translating import TranslatedText, translate_texts

__all__ = ["AUTO", "LanguageRefused", "name_of", "sources_of", "stays", "target_of", "translated"]

AUTO = "auto"


def name_of(code: str) -> str:
    """Return the English name of a language, or the code of an unknown one."""
    return english_name(code) or code


class LanguageRefused(ApiError):
    """A language that is not translated here."""

    def __init__(self, side: Literal["source", "target"], message: str) -> None:
        super().__init__(400, message)
        self.side = side


async def sources_of(state: ServerState, texts: Sequence[str], source: str, target: str) -> tuple[list[Detected], str]:
    """Return the source language of each text, given or ("auto", "") recognised, and the code of the target.

    Raises LanguageRefused, and ApiError for a text that is clearly in another language.
    """
    if source.lower() in (AUTO, ""):
        target = target_of(state, target)
        return await _recognised(state, texts, target), target
    source, target = _direction_of(state, source, target)
    return [Detected(source, 100.0)] * len(texts), target


def target_of(state: ServerState, target: str) -> str:
    """Return the code of a target language. Raises LanguageRefused."""
    found = served_codes(target, state.targets)
    if not found:
        raise LanguageRefused("target", f"{_brief(target)} is not supported")
    return found[0]


def _direction_of(state: ServerState, source: str, target: str) -> tuple[str, str]:
    """Return the codes of a direction that is translated, or twice that of one language."""
    sources, targets = (served_codes(name, state.languages) for name in (source, target))
    for pair in product(sources, targets):
        if pair in state.translators:
            return pair
    same = [code for code in sources if code in targets]
    if same and _is_written_alike(source, target):
        return same[0], same[0]
    if not targets:
        raise LanguageRefused("target", f"{_brief(target)} is not supported")
    if not sources:
        raise LanguageRefused("source", f"{_brief(source)} is not supported")
    raise LanguageRefused("source", f"{_brief(target)} is not available as a target language from {_brief(source)}")


async def _recognised(state: ServerState, texts: Sequence[str], target: str) -> list[Detected]:
    """Return the language of each text, among those that are translated into ``target`` and that one."""
    sources = [source for source, other in state.translators if other == target]

    try:
        return await asyncio.to_thread(lambda: [state.detector.source_of(text, sources, target) for text in texts])
    except UnservedLanguage as error:
        raise ApiError(
            400, f"Invalid request: a text looks like {name_of(error.language)}, which is not translated into "
            f"{name_of(target)} here; name the source language if it is another",
        ) from error  # fmt: skip


def stays(state: ServerState, source: str, target: str) -> bool:
    """Whether a text stays as it is: it is in the target language, and no model works within that, as in correction."""
    return source == target and (source, target) not in state.translators


async def translated(
    state: ServerState, texts: Sequence[str], sources: Sequence[str], target: str, **options: Any
) -> list[TranslatedText]:
    """Translate texts of several source languages, with the options of ``translate_texts``; raises as it does.

    Those in the target language stay as they are, unless a model works within it. All have the time of one request.
    """
    deadline = time.monotonic() + state.request_timeout_s
    indices_of = defaultdict[str, list[int]](list)
    for index, source in enumerate(sources):
        indices_of[source].append(index)
    results = [TranslatedText(text) for text in texts]
    for source, indices in indices_of.items():
        if stays(state, source, target):
            continue
        found = await translate_texts(
            state.translators[source, target], [texts[index] for index in indices], deadline=deadline, **options
        )
        for index, result in zip(indices, found, strict=True):
            results[index] = result
    return results


def _is_written_alike(one: str, other: str) -> bool:
    """Whether two codes of a language do not name different scripts."""
    scripts = {tag.script for tag in map(LanguageTag.of, (one, other)) if tag is not None}
    return len(scripts - {""}) <= 1


def _brief(code: str) -> str:
    """Return a language code for a message: whatever is none is not repeated."""
    return code if len(code) <= 10 and code.isascii() and code.replace("-", "").isalnum() else "this language"
