"""Messages of programs as units: their lines, placeholders and accelerators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from transduce.documents.accelerators import accelerator_of, without_accelerators
from transduce.documents.placeholders import KINDS, Family, numbered_placeholders, placeholders
from transduce.documents.wrapping import width_of, wrap
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.markup import Unit, unit_of
from transduce.text.markup_reading import Token
from transduce.text.verbatim import address_spans

__all__ = ["is_wrapped", "joined_message", "message_parts", "protected_tokens"]

PLACEHOLDER = "%"  # the name of such a token
LONG_LINE = 50  # characters; a longer line was wrapped, unless it ends a sentence
_LINE_END = compiled_on_use(r"(\r\n|\n|\r)")
_WRAPPED_AFTER = compiled_on_use(r"[^\s.!?:;]$")
_WRAPPED_BEFORE = compiled_on_use(r"[\w\"'(<%{„“«]")
_OPTION = compiled_on_use(r"\s*+-{1,2}[\w?#]\S*+(?:[ ,]++-{1,2}[\w?#]\S*+)*(?: [A-Z<\[]\S*+)?(?:\s{2,}|\t+|$)")
_INDENTATION = compiled_on_use(r"\s*(?:[*•·]\s+|-\s+)?")
_TAG = compiled_on_use(r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*[^/<>]|\s*)>")


def message_parts(text: str, *, kinds: Sequence[str] = (), is_protected: bool = False) -> list[str | Unit]:
    """Divide a message into units and what stands between them: line ends, indentation, options of programs.

    A sentence may go over several lines. ``is_protected`` is that of ``Reading``, ``kinds`` are those of
    ``placeholders``: an accelerator is not part of a unit's text.

    >>> [each if isinstance(each, str) else each.text for each in message_parts("Options:\\n  -v   say more\\n")]
    ['Options:', '\\n', '  -v   ', 'say more', '\\n']
    """
    lines = _LINE_END.split(text)  # every second one is a line end
    parts, index = list[str | Unit](), 0
    while index < len(lines):
        line = lines[index]
        head = _OPTION.match(line) or _INDENTATION.match(line)
        assert head is not None  # it matches the empty string
        pieces = [line[head.end() :]]
        while index + 2 < len(lines) and is_wrapped(lines[index], lines[index + 2]):
            pieces += lines[index + 1 : index + 3]
            index += 2
        parts += [head[0], _unit_or_text(pieces, text, kinds, is_protected), *lines[index + 1 : index + 2]]
        index += 2
    return [part for part in parts if part != ""]


def joined_message(parts: Sequence[str | Unit], targets: Sequence[str | None]) -> str:
    """Return a message with the translations of its units, those of wrapped lines wrapped as wide as these.

    A unit without a translation stays.
    """
    rest = iter(targets)
    return "".join(part if isinstance(part, str) else _wrapped_like(part.raw, next(rest)) for part in parts)


def _wrapped_like(source: str, target: str | None) -> str:
    lines = _LINE_END.split(source)
    if target is None or len(lines) == 1:
        return source if target is None else target
    between = " " * lines[0].endswith(" ") + lines[1]
    stripped = target.strip()
    wrapped = between.join(line.rstrip() for line in wrap(stripped, max(map(width_of, lines[::2]))))
    start = target.index(stripped)
    return target[:start] + wrapped + target[start + len(stripped) :]


def is_wrapped(line: str, following: str) -> bool:
    """Whether a sentence goes on in the next line."""
    if not (_WRAPPED_AFTER.search(line) and _WRAPPED_BEFORE.match(following)):
        return False
    return len(line) >= LONG_LINE or following[0].islower()


def _unit_or_text(pieces: Sequence[str], message: str, kinds: Sequence[str], is_protected: bool) -> str | Unit:
    """Return lines and the line ends between them as a unit; as text if there is nothing to translate."""
    raw = "".join(pieces)
    if not needs_translation(raw):
        return raw
    signs = [kind for kind in kinds if len(kind) == 1 and accelerator_of(raw, kind)]
    families = list(dict.fromkeys(KINDS[kind] for kind in kinds if kind in KINDS))
    text = " ".join([*(line.rstrip(" ") for line in pieces[:-1:2]), pieces[-1]])
    for sign in signs:
        raw, text = without_accelerators(raw, sign), without_accelerators(text, sign)
    tokens = list(protected_tokens(text, families)) if is_protected else [Token("text", text)]
    if is_protected and len(families) == 1:
        numbered = numbered_placeholders(message, families[0])
        if len(numbered) == sum(token.name == PLACEHOLDER for token in tokens):
            rest = iter(numbered)
            tokens = [replace(each, raw=next(rest)) if each.name == PLACEHOLDER else each for each in tokens]
    return replace(unit_of(tokens, str, is_escaped=False), raw=raw)


def protected_tokens(text: str, families: Sequence[Family] = ()) -> Iterator[Token]:
    """Yield a text with its placeholders, tags and addresses apart; tags of one name may surround words."""
    found = {each.start: each.end for family in families for each in placeholders(text, family) if each.type != "*"}
    position = 0
    for start, end in sorted({**dict(address_spans(text)), **found}.items()):
        if start < position:
            continue
        if position < start:
            yield Token("text", text[position:start])
        tag = _TAG.fullmatch(text, start, end)
        if tag is None:
            yield Token("single", text[start:end], PLACEHOLDER if start in found else "")
        else:
            yield Token("end" if tag[1] else "start", text[start:end], tag[2])
        position = end
    if position < len(text):
        yield Token("text", text[position:])
