"""``transduce help``."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from transduce.errors import ConfigError, quoted

__all__ = ["help"]


def _known() -> list[str]:
    """Return what a shell completes."""
    from transduce.cli.topics import TOPICS
    from transduce.cli.verbs import VERBS

    return sorted({*TOPICS, *VERBS})


def help(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME",
            help="A verb or a topic. Default: all verbs.",
            autocompletion=_known,
            show_default=False,
        ),
    ] = None,
) -> int:
    """Explain a verb or a topic; without either, show all of them.

    Examples:
        transduce help translate
        transduce help own-text
    """
    from transduce.cli.main import run
    from transduce.cli.topics import TOPICS
    from transduce.cli.verbs import ELSEWHERE, VERBS, added_verbs

    if not words:
        return run(["--help"])
    topic = "-".join(words)
    is_verb = words[0] in {*VERBS, *ELSEWHERE, *added_verbs()}
    if topic in TOPICS:
        print(TOPICS[topic])
    elif not is_verb:
        from transduce.config import nearest_name

        raise ConfigError(f"no verb or topic is called {quoted(topic)}; {nearest_name(topic, TOPICS, VERBS)}")
    return run([*words, "--help"]) if is_verb else 0
