"""How a translation begins, and which sentence of a text each part of it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from transduce.text import split_sentences

__all__ = ["NO_PREFIX", "Prefix", "parts_of_prefix"]


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a translation."""

    text: str = ""  # if a space ends it, so does its last word
    is_whole: bool = False  # it is the whole translation


NO_PREFIX = Prefix()


def parts_of_prefix(prefix: str, language: str, n_sentences: int) -> list[Prefix]:
    """Divide the prefix of a text among its sentences: a sentence each, the rest for the last that has any.

    >>> [(each.text, each.is_whole) for each in parts_of_prefix("Ja. Er ", "de", 3)]
    [('Ja.', True), ('Er ', False), ('', False)]
    """
    if not prefix or not n_sentences:
        return [NO_PREFIX] * n_sentences
    sentences = split_sentences(prefix, language) if n_sentences > 1 else []
    if len(sentences) < 2:
        return [Prefix(prefix), *[NO_PREFIX] * (n_sentences - 1)]
    tail = prefix.lstrip()[len(sentences[0].text) :].lstrip()
    return [Prefix(sentences[0].text, is_whole=True), *parts_of_prefix(tail, language, n_sentences - 1)]
