"""The terms and memories of a server, which all requests have, and the terms of single requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from transduce.config import base_language
from transduce.errors import ConfigError
from transduce.inference import Translator
from transduce.memories import Memory, find_memory
from transduce.terms import Term, Terms, read_avoided, read_terms

__all__ = ["NO_LISTS", "TermTranslators", "TranslatorLists"]

MAX_READY, MAX_READY_TERMS = 64, 200_000  # translators with terms of requests, and all these terms
TBX = (".tbx", ".xml")  # lists of terms that name their languages


@dataclass(frozen=True, slots=True)
class TranslatorLists:
    """Files that say how translators of a server translate; those for other languages are not for a translator."""

    terms: Path | None = None
    are_terms_required: bool = False
    memories: Sequence[Path] = ()
    avoid: Path | None = None

    def given_to(self, translator: Translator) -> Translator:
        """Return a translator with its terms and its memory. Raises DataError for a damaged file, and ConfigError."""
        languages = translator.src_language, translator.tgt_language
        terms: Sequence[Term] = ()
        avoided = () if self.avoid is None else read_avoided(self.avoid)
        if self.terms is not None:
            terms = read_terms(self.terms, src_language=languages[0], tgt_language=languages[1])
        if terms or avoided:
            translator = translator.with_terms(Terms(tuple(terms), avoided), are_required=self.are_terms_required)
        for path in self.memories:
            if (memory := _memory_of(path, languages)) is not None:
                return translator.with_memory(memory)
        return translator

    def require_use(self, directions: Sequence[tuple[str, str]]) -> None:
        """Raise ConfigError for a file that is for none of the translators, or perhaps not for all."""
        several = f"does not say its languages, and {len(directions)} directions are served; write a"
        if self.terms is not None and len(directions) != 1 and PurePath(self.terms).suffix.lower() not in TBX:
            raise ConfigError(f"{self.terms} {several} TBX")
        used = dict[tuple[str, str], Path]()
        for path in self.memories:
            if len(directions) != 1 and {*path.suffixes} & {".tsv", ".txt"}:
                raise ConfigError(f"{path} {several} TMX")
            served = {_bases(each) for each in directions if _memory_of(path, each) is not None}
            if not served:
                raise ConfigError(f"{path} is a memory for no direction that is served: {_names(directions)}")
            for languages in served:
                if (other := used.setdefault(languages, path)) is not path:
                    raise ConfigError(f"{other} and {path} are memories for {_names([languages])}; name one")


NO_LISTS = TranslatorLists()


def _memory_of(path: Path, languages: tuple[str, str]) -> Memory | None:
    memory = find_memory(path, src_language=languages[0], tgt_language=languages[1])
    return memory if memory is not None and _bases(memory.languages) == _bases(languages) else None


def _names(directions: Iterable[tuple[str, str]]) -> str:
    return ", ".join(map("-".join, directions))


def _bases(languages: tuple[str, str]) -> tuple[str, str]:
    return base_language(languages[0]), base_language(languages[1])


class TermTranslators:
    """Translators that keep the terms of requests, for a model; the last ones stay ready. Threads may share it."""

    def __init__(self) -> None:
        self._ready: OrderedDict[tuple[Translator, Terms], Translator] = OrderedDict()
        self._lock, self._making = threading.Lock(), threading.Lock()

    def of(self, model: Translator, terms: Terms) -> Translator:
        """Return the translator that keeps ``terms``, and its own besides. Raises ConfigError if it cannot.

        The first may take seconds, in which those that are ready are found by others.
        """
        key = model, terms
        if (found := self._found(key)) is not None:
            return found
        with self._making:
            if (found := self._found(key)) is not None:
                return found
            own = model.terms
            all_terms = Terms((*terms.terms, *own.terms), own.avoided) if own.terms or own.avoided else terms
            made = model.with_terms(all_terms, are_required=True)
            all_terms.found(all_terms.terms[0].source)  # makes its index
            with self._lock:
                self._ready[key] = made
                while len(self._ready) > 1 and (
                    len(self._ready) > MAX_READY or sum(len(each.terms) for _, each in self._ready) > MAX_READY_TERMS
                ):
                    self._ready.popitem(last=False)
            return made

    def _found(self, key: tuple[Translator, Terms]) -> Translator | None:
        with self._lock:
            if key in self._ready:
                self._ready.move_to_end(key)
            return self._ready.get(key)

    def clear(self) -> None:
        """Forget all, as for a new model."""
        with self._lock:
            self._ready.clear()
