"""Text that Moses has tokenised, as raw text again: what a model learns to write is what people write."""

from __future__ import annotations

from collections.abc import Iterator

from sacremoses import MosesDetokenizer

__all__ = ["detokenised"]


def detokenised(
    pairs: Iterator[tuple[str, str] | None], src_language: str, tgt_language: str
) -> Iterator[tuple[str, str] | None]:
    """The same pairs, punctuation joined to its words and ``&apos;`` an apostrophe; lines that are no pair stay None.

    >>> list(detokenised(iter([("It &apos;s done , he said .", "Es ist getan , sagte er .")]), "en", "de"))
    [("It's done, he said.", 'Es ist getan, sagte er.')]
    """
    src, tgt = MosesDetokenizer(lang=src_language), MosesDetokenizer(lang=tgt_language)
    for pair in pairs:
        yield pair and (src.detokenize(pair[0].split()), tgt.detokenize(pair[1].split()))
