"""Placeholders and accelerators of messages: whether a translation has those of its source, and what can be mended.

A *kind* is how a file names the placeholders of a message, as in the flags of gettext: ``c-format``. One sign is also a
kind: that of its accelerator, which stands before the letter of a key (``_File``). ``any``, where the file names none,
is what looks like a placeholder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import escape
from typing import Literal

from transduce.documents.accelerators import accelerator_of, with_accelerator, without_accelerators
from transduce.documents.document import Segment
from transduce.patterns import compiled_on_use
from transduce.text.changes import with_changes
from transduce.text.verbatim import verbatim_strings

__all__ = [
    "ANY", "KINDS", "Checked", "Family", "Placeholder", "checked", "fault_in", "numbered_placeholders", "placeholders",
]  # fmt: skip

ANY = "any"
Family = Literal["printf", "python", "brace", "qt", "shell"]

KINDS: dict[str, Family] = {
    **dict.fromkeys(
        ("c-format", "objc-format", "php-format", "perl-format", "awk-format", "lua-format", "tcl-format",
         "java-printf-format", "object-pascal-format", "gcc-internal-format", "gfc-internal-format",
         "javascript-format"), "printf",
    ),
    "python-format": "python",
    **dict.fromkeys(("python-brace-format", "perl-brace-format", "csharp-format", "java-format"), "brace"),
    **dict.fromkeys(("qt-format", "qt-plural-format", "kde-format"), "qt"),
    "sh-format": "shell",
}  # fmt: skip

_PERCENT = (
    r"(?P<flags>[-+ #0'I]*+)(?P<width>\*|\d++)?(?:\.(?P<precision>\*|\d++)?)?(?:hh|h|ll|l|L|q|j|z|t)?"
    r"(?P<type>[diouxXeEfFgGaAcsCSpnmr@]|<PRI\w+>)"
)
_PATTERNS = {
    "printf": compiled_on_use(rf"%(?:(?P<key>\d+)\$)?{_PERCENT}|%%"),
    "python": compiled_on_use(rf"%(?:(?P<key>\d+)\$|\((?P<name>[^()\s]+)\))?{_PERCENT}|%%"),
    "brace": compiled_on_use(r"\{\{|\}\}|\{(?P<key>[^{}\s:!]*)(?:[:!][^{}]*)?\}"),
    "qt": compiled_on_use(r"%L?(?P<key>\d{1,2}|n)"),
    "shell": compiled_on_use(r"\$(?:\{(?P<key>\w+)\}|(?P<name>[A-Za-z_]\w*))"),
}
_LITERAL = ("%%", "{{", "}}")
# Types of C that take the same argument.
_SAME_TYPE = {"i": "d", "F": "f", "e": "f", "E": "f", "g": "f", "G": "f", "a": "f", "A": "f", "C": "c", "S": "s"} | {
    "X": "u", "x": "u", "o": "u",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder at its place in a message."""

    start: int
    end: int
    text: str
    key: str  # what tells its argument: a name, or a number
    type: str  # of its argument, where the kind has types
    is_numbered: bool  # by its place among the others, since it names no argument itself


@dataclass(frozen=True, slots=True)
class Checked:
    """A translation that was compared with its source."""

    text: str  # mended
    fault: str = ""  # what is wrong with its placeholders: "lacks %s"; "" if nothing is


def placeholders(text: str, family: Family) -> list[Placeholder]:
    """Return the placeholders of a message; a doubled sign is none.

    >>> [(each.text, each.key, each.type) for each in placeholders("%s: %5.2f %%, %(n)d", "python")]
    [('%s', '1', 's'), ('%5.2f', '2', 'f'), ('%(n)d', 'n', 'd')]
    """
    found = list[Placeholder]()
    n_unnamed = 0
    for match in _PATTERNS[family].finditer(text):
        if match[0] in _LITERAL:
            continue
        groups = match.groupdict()
        key, kind = groups.get("key") or groups.get("name") or "", groups.get("type") or ""
        for star in (groups.get("width"), groups.get("precision")):
            if star == "*" and not key:
                n_unnamed += 1
                found.append(Placeholder(match.start(), match.start(), "*", str(n_unnamed), "*", True))
        is_numbered = not key and kind != "m"  # %m has no argument
        if is_numbered:
            n_unnamed += 1
            key = str(n_unnamed if family != "brace" else n_unnamed - 1)
        found.append(Placeholder(*match.span(), match[0], key or kind, _SAME_TYPE.get(kind, kind), is_numbered))
    return found


def numbered_placeholders(text: str, family: Family) -> list[str]:
    """Return the placeholders of a message with numbers, so that ``checked`` knows them in any order.

    As they are if they name their arguments, or are alone.
    """
    found = placeholders(text, family)
    if len(found) < 2 or not all(
        each.is_numbered and each.type != "*" for each in found
    ):  # a width is an argument, too
        return [each.text for each in found if each.type != "*"]
    if family == "brace":
        return [f"{{{each.key}{each.text[1:]}" for each in found]
    return [f"%{each.key}${each.text[1:]}" for each in found]


def checked(source: str, target: str, kinds: Sequence[str] = ()) -> Checked:
    """Compare the translation of a message with it.

    Mended are spaces, capitals and full-width signs within placeholders, percent signs that begin none, the order of
    unnamed ones (by numbers, where the kind has them), and accelerators.

    >>> checked("%s has %d files", "%d Dateien hat % s", ["c-format"])
    Checked(text='%2$d Dateien hat %1$s', fault='')
    >>> checked("_Open {name}", "Öffnen", ["python-brace-format", "_"]).fault
    'lacks {name}'
    """
    letters = {sign: accelerator_of(source, sign) for sign in kinds if len(sign) == 1}
    text = target
    for sign in letters:
        source, text = without_accelerators(source, sign), without_accelerators(text, sign)
    families = dict.fromkeys(KINDS[kind] for kind in kinds if kind in KINDS)
    text = _with_strings(text, Counter(_strings(source, has_kind=bool(families))))
    for family in families:
        text = _mended(source, text, family)
    faults = list(_faults(source, text, families))
    if faults:
        return Checked(target, ", ".join(faults))
    for sign, letter in letters.items():
        text = with_accelerator(text, sign, like=target, letter=letter)
    return Checked(text)


def fault_in(segment: Segment, target: str) -> str:
    """Return what is wrong with a translation, as ``Unit.put_back`` gives it, where the file has placeholders."""
    return checked(segment.unit.raw, target, segment.placeholders).fault if segment.placeholders else ""


@lru_cache(maxsize=256)  # a message is compared several times
def _strings(text: str, *, has_kind: bool) -> tuple[str, ...]:
    """Return the tags of a message, and, if the file does not name their kind, what looks like placeholders."""
    kinds = ("tag",) if has_kind else ("tag", "placeholder")
    return tuple(each.text for each in verbatim_strings(text) if each.kind in kinds)


def _faults(source: str, target: str, families: Collection[Family]) -> Iterator[str]:
    there, here = (Counter(_strings(text, has_kind=bool(families))) for text in (source, target))
    yield from (f"lacks {each}" for each in there - here)
    yield from (f"has {each} once more" for each in here - there if each in there)
    for family in families:
        theirs, ours = ({each.key: each for each in placeholders(text, family)} for text in (source, target))
        yield from (f"lacks {each.text}" for key, each in theirs.items() if key not in ours)
        yield from (f"has {each.text}, which the source has not" for key, each in ours.items() if key not in theirs)
        for key in theirs.keys() & ours.keys():
            if theirs[key].type != ours[key].type:
                yield f"has {ours[key].text} where the source has {theirs[key].text}"
        has_numbers = {each.is_numbered for each in ours.values() if each.key.isdigit()}
        if family == "printf" and len(has_numbers) > 1:
            yield "has placeholders with and without numbers"
        if family == "python" and any(each.text[1:2].isdigit() and "$" in each.text for each in ours.values()):
            yield "has unnamed placeholders in another order"


def _mended(source: str, target: str, family: Family) -> str:
    """Return a translation with what can be mended of the placeholders of one family."""
    there = Counter(each.text for each in placeholders(source, family) if each.type != "*")
    text = _with_strings(target, there, lambda text: [each.text for each in placeholders(text, family)])
    if family in ("printf", "python"):
        text = _without_stray_signs(text, family, {each.type for each in placeholders(source, family)})
    return _in_order(source, text, family)


def _with_strings(text: str, there: Counter[str], found: Callable[[str], Sequence[str]] | None = None) -> str:
    """Return a text in which strings that it lacks take the place of those that differ in spaces, capitals or width."""
    here = Counter({each: text.count(each) for each in there} if found is None else found(text))
    for lost in (there - here).elements():
        others = "|".join(escape(each) for each in sorted(there, key=len, reverse=True))
        loose = r"\s?".join(f"[{escape(each)}{_full_width(each)}]" for each in lost)
        pattern = compiled_on_use(f"(?P<kept>{others})|(?i:{loose})")
        place = next((match for match in pattern.finditer(text) if match["kept"] is None), None)
        if place is not None:
            text = text[: place.start()] + lost + text[place.end() :]
    return text


def _full_width(character: str) -> str:
    return chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else ""


def _without_stray_signs(text: str, family: Family, types: Collection[str]) -> str:
    """Return a text in which a percent sign that begins no placeholder is doubled.

    One before a space and a letter begins one by the rules of C, but hardly in a translation: "50 % der".
    """
    pieces, position = list[str](), 0
    for match in _PATTERNS[family].finditer(text):
        groups = match.groupdict()
        is_stray = " " in (groups.get("flags") or "") and _SAME_TYPE.get(match["type"], match["type"]) not in types
        if is_stray:
            continue
        pieces += [text[position : match.start()].replace("%", "%%"), match[0]]
        position = match.end()
    return "".join([*pieces, text[position:].replace("%", "%%")])


def _in_order(source: str, target: str, family: Family) -> str:
    """Return a translation whose unnamed placeholders have numbers if, and only if, they stand in another order."""
    theirs, ours = placeholders(source, family), placeholders(target, family)
    if not all(each.is_numbered and each.type != "*" for each in theirs) or len(ours) != len(theirs):
        return target
    if all(each.is_numbered for each in ours):
        if family != "printf" or sorted(each.type for each in theirs) != sorted(each.type for each in ours):
            return target
        if [each.type for each in theirs] == [each.type for each in ours]:
            return target
        left = list(theirs)  # those of one type keep their order
        new = [left.pop(next(at for at, one in enumerate(left) if one.type == each.type)).key for each in ours]
        numbered = ((each.start, each.end, f"%{key}${each.text[1:]}") for key, each in zip(new, ours, strict=True))
        return with_changes(target, numbered)
    if [each.key for each in ours] == [each.key for each in theirs]:
        changed = (each for each in ours if not each.is_numbered)
        return with_changes(target, ((each.start, each.end, _unnumbered(each)) for each in changed))
    return target


def _unnumbered(placeholder: Placeholder) -> str:
    if placeholder.text.startswith("{"):
        return "{" + placeholder.text[1:].removeprefix(placeholder.key)
    return "%" + placeholder.text.partition("$")[2]
