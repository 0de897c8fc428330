"""Translations as workers reply them: JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from transduce.inference.translation.parts import ScoredText, Translation
from transduce.memories import Match
from transduce.text.pieces import Tag

__all__ = ["pack_translations", "unpack_translations"]


def pack_translations(translations: Iterable[Translation]) -> bytes:
    """Return a reply with these translations."""
    return json.dumps([asdict(each) for each in translations]).encode()


def unpack_translations(reply: bytes) -> list[Translation]:
    """Return the translations of a reply, each equal to what was packed."""
    return [_translation(values) for values in json.loads(reply)]


def _translation(values: dict[str, Any]) -> Translation:
    records: dict[str, Any] = {
        "n_best": [ScoredText(**each) for each in values["n_best"]],
        "links": map(tuple, values["links"]),
        "matches": [Match(**each) for each in values["matches"]],
        "words": map(tuple, values["words"]),
        "pieces": [each if isinstance(each, str) else Tag(**each) for each in values["pieces"]],
        "warnings": values["warnings"],
    }
    return Translation(**values | {name: tuple(each) for name, each in records.items()})
