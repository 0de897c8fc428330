"""Lines of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from transduce.cli.output import say

__all__ = ["piped_lines", "typed_lines"]


def piped_lines() -> Iterator[str]:
    """The lines of stdin, split at line feeds only. Bytes that are not UTF-8 become U+FFFD, with a warning."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
        line = line.removeprefix("\ufeff") if number == 1 else line
        if "\ufffd" in line and "\ufffd".encode() not in raw:
            say(f"warning: line {number} is not UTF-8; the bytes in question are replaced")
        yield line


def typed_lines(prompt: str) -> Iterator[str]:
    """Lines from a person at a terminal, until end of file."""
    say("type a sentence and press Enter; Ctrl-D ends")
    while True:
        try:
            print(f"{prompt}> ", end="", file=sys.stderr, flush=True)  # stdout may be a file
            yield input()
        except EOFError:
            say("")
            return
