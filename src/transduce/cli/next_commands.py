"""The commands that come next, printed when a verb is done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.config import DataConfig

__all__ = ["command", "uses_of", "uses_of_trained"]

FILES = {"read": " IMAGE", "transcribe": " AUDIO"}  # what these verbs need beside a model


def command(*words: str | Path) -> str:
    """Return a command line of ``transduce``.

    >>> command("translate", Path("my model"))
    "transduce translate 'my model'"
    """
    return shlex.join(["transduce", *map(str, words)])


def uses_of(model: Path, memories: Sequence[Path] = (), *, first: str = "next") -> list[str]:
    """Return how a translator is used; ``memories`` are files of translations."""
    memory = shlex.quote(str(memories[0])) if memories else "OLD.tmx"
    return [
        f"{first}: {command('translate', model)}",
        "      with --in FILE --out NEW: a text, a document, a folder (transduce help documents)",
        f"      with --memory {memory}: your translations; opened at once if transduce memory build has read them",
        "      with --terms TERMS.tsv: your terms (transduce help terms)",
        f"  or: {command('serve', model)}",
    ]


def uses_of_trained(model: Path, data: DataConfig) -> list[str]:
    """Return how a model that was trained with these settings is used."""
    from transduce.tasks import task_named

    if data.task == "translation":
        return uses_of(model)
    verb = task_named(data.task).use(data).verb
    return [f"next: transduce {verb} {shlex.quote(str(model))}{FILES.get(verb, '')}"]
