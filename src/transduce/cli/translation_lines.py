"""What ``transduce translate`` writes for a line: its translation, an n-best list, links, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from transduce.cli.output import json_line
from transduce.text.normalise import normalise

if TYPE_CHECKING:
    from transduce.inference import Translation

__all__ = ["output_lines"]


def output_lines(
    number: int, translation: Translation, *, is_n_best: bool, is_json: bool, is_linked: bool, has_memory: bool
) -> Iterator[str]:
    """Yield the output lines for one input line."""
    from transduce.inference.translation.word_links import pharaoh

    if is_json:
        yield json_line(
            {
                "line": number,
                "source": translation.source,
                "translation": translation.text,
                "score": translation.score,
                "warnings": translation.warnings,
                "n_best": [{"translation": best.text, "score": best.score} for best in translation.n_best],
            }
            | ({"alignment": pharaoh(translation.links)} if is_linked else {})
            | ({"memory": [asdict(each) for each in translation.matches]} if has_memory else {})
        )
    elif is_n_best:
        for hypothesis in translation.n_best:
            yield f"{number}\t{hypothesis.score:.4f}\t{normalise(hypothesis.text)}"  # no tab of its own
    elif is_linked:
        yield f"{translation.text}\t{pharaoh(translation.links)}"
    else:
        yield translation.text
