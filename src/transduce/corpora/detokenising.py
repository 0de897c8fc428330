"""Moses detokenisation: corpora that are published tokenised become raw text, so that models learn to write that.

``sacremoses`` is imported lazily, since compiling its tables takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["detokenised"]


def detokenised(
    pairs: Iterator[tuple[str, str] | None], src_language: str, tgt_language: str
) -> Iterator[tuple[str, str] | None]:
    """Yield the pairs detokenised: punctuation joined to words, entities (``&apos;``) resolved. None stays None.

    >>> list(detokenised(iter([("It &apos;s done , he said .", "Es ist getan , sagte er .")]), "en", "de"))
    [("It's done, he said.", 'Es ist getan, sagte er.')]
    """
    from sacremoses import MosesDetokenizer

    src, tgt = MosesDetokenizer(lang=src_language), MosesDetokenizer(lang=tgt_language)
    for pair in pairs:
        yield pair and (src.detokenize(pair[0].split()), tgt.detokenize(pair[1].split()))
