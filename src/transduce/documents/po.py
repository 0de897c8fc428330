"""PO files, the messages of gettext: ``.po`` with translations, ``.pot`` without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from transduce.config import base_language, canonical_code
from transduce.documents.accelerators import SIGNS, accelerator_of, usual_sign, without_accelerators
from transduce.documents.document import Document, Format, Reading, Segment
from transduce.documents.encodings import encoded
from transduce.documents.message_lines import joined_message, message_parts
from transduce.documents.placeholders import ANY, KINDS, checked
from transduce.documents.plural_forms import PluralForms, plural_forms_of, read_plural_forms
from transduce.documents.po_reading import Entry, decoded_po, header_values, read_entries
from transduce.documents.po_writing import quoted_po, width_of_lines, with_values
from transduce.errors import DataError
from transduce.text.changes import Change, with_changes
from transduce.text.markup import Unit

__all__ = ["FORMATS", "PoDocument", "read"]


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a message: all that it has, its singular, or its plural."""

    source: str
    parts: tuple[str | Unit, ...]
    is_plural: bool = False

    @property
    def units(self) -> list[Unit]:
        """What is translated of it."""
        return [part for part in self.parts if isinstance(part, Unit)]


@dataclass(frozen=True, slots=True)
class _Message:
    """An entry with its texts."""

    entry: Entry
    kinds: tuple[str, ...]
    texts: tuple[_Text, ...]

    def numbers(self, text: _Text, forms: PluralForms | None) -> list[int]:
        """Return the numbers of the translations that a text gives.

        The singular gives that of n = 1, also where other numbers have the same form, unless "one file" is said without
        the placeholder that these need.
        """
        if self.entry.plural is None:
            return [0]
        n_forms, one = (forms.n, forms.form_of_one) if forms else (max(2, *(each + 1 for each in self.entry.forms)), 0)
        if n_forms == 1 or (forms and not forms.is_one_alone and self._says_one):
            return list(range(n_forms)) if text.is_plural else []
        return [number for number in range(n_forms) if (number != one) == text.is_plural]

    @property
    def _says_one(self) -> bool:
        singular, plural = self.texts
        return checked(plural.source, singular.source, self.kinds).fault != ""


class PoDocument:
    """The messages of a PO file."""

    def __init__(self, text: str, encoding: str, reading: Reading) -> None:
        self._text, self._encoding, self._reading = text, encoding, reading
        entries = read_entries(text)
        first = next((entry for entry in entries if entry.is_header), None)
        self._header = first if first is not None and 0 in first.forms else None
        self._values = defaultdict(str, header_values(self._header.forms[0].text) if self._header else {})
        self._forms = read_plural_forms(self._values["plural-forms"])
        others = [entry for entry in entries if not entry.is_header]
        self._has_targets = any(form.text for entry in others for form in entry.forms.values())
        own = self._values["x-accelerator-marker"]
        sign = own if own and own in SIGNS else usual_sign(entry.source for entry in others)
        self._messages = [self._message(entry, sign) for entry in others]

    def _message(self, entry: Entry, sign: str) -> _Message:
        kinds = [flag for flag in entry.flags if flag in KINDS]
        if accelerator_of(entry.source, sign):
            kinds.append(sign)
        texts = [self._text_of(entry.source, kinds, is_plural=False)]
        if entry.plural is not None:
            texts.append(self._text_of(entry.plural.text, kinds, is_plural=True))
        return _Message(entry, tuple(kinds), tuple(texts))

    def _text_of(self, source: str, kinds: Sequence[str], *, is_plural: bool) -> _Text:
        parts = message_parts(source, kinds=kinds, is_protected=self._reading.is_protected)
        return _Text(source, tuple(parts), is_plural)

    @cached_property
    def language(self) -> str:
        """The language of the translations, as the header has it; "" if it has none."""
        return canonical_code(self._values["language"]) or ""

    @cached_property
    def segments(self) -> list[Segment]:
        """The texts of the messages; of one with a plural those of both."""
        return [segment for message in self._messages for text in message.texts for segment in self._of(message, text)]

    def _of(self, message: _Message, text: _Text) -> Iterator[Segment]:
        entry = message.entry
        numbers = message.numbers(text, self._forms)
        targets = [entry.forms[number].text if number in entry.forms else "" for number in numbers]
        is_asked = self._reading.wanted == "all" or (self._reading.wanted == "fuzzy" and entry.is_fuzzy)
        is_wanted = bool(numbers) and (is_asked or not all(targets))
        context = entry.context.text if entry.context else ""
        there = _targets_of(text, next(filter(None, targets), ""), message.kinds)
        for unit, target in zip(text.units, there, strict=True):
            yield Segment(unit, f"line {entry.line:,}", target, is_wanted, context, message.kinds or (ANY,))

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the file with translations; ``fuzzy`` unless they are trusted."""
        rest = iter(targets)
        given = [[[next(rest) for _ in text.units] for text in message.texts] for message in self._messages]
        assert next(rest, rest) is rest, "more translations than units"
        if all(target is None for target in targets):
            return encoded(self._text, self._encoding)
        code = canonical_code(tgt_language) or tgt_language
        is_of_another = bool(code and self.language and base_language(self.language) != base_language(code))
        if is_of_another and self._has_targets:
            raise DataError(f"its translations are in {self.language!r}, not in {code!r}; give it without them")
        is_new = is_of_another or self._forms is None
        forms = (plural_forms_of(code) if is_new and code else None) or self._forms
        changes = list(self._header_changes("" if self.language and not is_of_another else code, forms))
        for message, of_message in zip(self._messages, given, strict=True):
            changes += self._changes(message, of_message, forms)
        return encoded(with_changes(self._text, changes), self._encoding)

    def _changes(
        self, message: _Message, given: Sequence[Sequence[str | None]], forms: PluralForms | None
    ) -> Iterator[Change]:
        """Yield what changes in an entry. Where some forms are translated, only the others are changed.

        gettext reads no entry with an empty form: where some texts or lines have translations, the source stands in
        for those that have none.
        """
        entry = message.entry
        new, missing = dict[int, str](), dict[int, str]()
        for text, targets in zip(message.texts, given, strict=True):
            numbers = message.numbers(text, forms)
            empty = [number for number in numbers if number not in entry.forms or not entry.forms[number].text]
            if all(target is None for target in targets):
                missing |= dict.fromkeys(empty, text.source)
            elif empty or None not in targets:
                target = self._target(message, text, targets)
                new |= dict.fromkeys(empty if empty and self._reading.wanted == "empty" else numbers, target)
        if not new:
            return
        new |= missing
        lines = list[str]()
        for number in sorted({*entry.forms, *new}):
            keyword = "msgstr" if entry.plural is None else f"msgstr[{number}]"
            if number in new:
                lines.append(quoted_po(new[number], keyword, width=self._width, line_end=self._line_end))
            elif forms is None or number < forms.n or entry.forms[number].text:
                lines.append(f"{keyword} {self._text[entry.forms[number].span]}")
        yield entry.forms_at, entry.end, self._line_end.join(lines)
        if self._reading.is_trusted:
            yield from self._without_fuzzy(entry)
        elif not entry.is_fuzzy:
            at = next(iter(entry.flag_lines), None)
            line = f"#, fuzzy{self._line_end}"
            yield (entry.flags_before, entry.flags_before, line) if at is None else (at, at, " fuzzy,")

    def _target(self, message: _Message, text: _Text, targets: Sequence[str | None]) -> str:
        """Return the translation of a text. Raises DataError for wrong placeholders."""
        result = checked(text.source, joined_message(text.parts, targets), message.kinds)
        if result.fault:
            raise DataError(f"line {message.entry.line:,}: the translation {result.fault}")
        return result.text

    def _without_fuzzy(self, entry: Entry) -> Iterator[Change]:
        for at, flags in entry.flag_lines.items():
            if "fuzzy" in flags:
                others = ", ".join(flag for flag in flags if flag != "fuzzy")
                end = self._text.find("\n", at) + 1
                yield (at, end, f" {others}{self._line_end}") if others else (at - len("#,"), end, "")

    def _header_changes(self, code: str, forms: PluralForms | None) -> Iterator[Change]:
        """Yield what changes in the header: what a template leaves open. ``code``: a language that it has to name."""
        if self._header is None:
            return
        entry, values = self._header, {"Language": code.replace("-", "_")} if code else {}
        has_plurals = any(message.entry.plural for message in self._messages) or bool(self._values["plural-forms"])
        if forms is not None and forms is not self._forms and has_plurals:
            values["Plural-Forms"] = forms.header
        if "charset=CHARSET" in (kind := self._values["content-type"]):
            values["Content-Type"] = kind.replace("CHARSET", "UTF-8")
        form = entry.forms[0]
        written = with_values(self._text[form.span], values, self._line_end)
        if written != self._text[form.span]:
            yield form.start, form.end, written
        yield from self._without_fuzzy(entry)  # gettext does not read an unsure header

    @cached_property
    def _line_end(self) -> str:
        return "\r\n" if "\r\n" in self._text else "\n"

    @cached_property
    def _width(self) -> int | None:
        return width_of_lines(self._text)


def _targets_of(text: _Text, target: str, kinds: Sequence[str]) -> list[str]:
    """Return the translation of each unit of a text, as far as the lines of both agree."""
    for sign in (kind for kind in kinds if len(kind) == 1):
        target = without_accelerators(target, sign)
    found = [part.text for part in message_parts(target) if isinstance(part, Unit)]
    if len(found) == len(text.units):
        return found
    return [" ".join(target.split("\n")).strip()] if len(text.units) == 1 else [""] * len(text.units)


def read(data: bytes, reading: Reading) -> Document:
    """Read a PO file in the encoding that its header names."""
    return PoDocument(*decoded_po(data), reading)


FORMATS = (Format("po", (".po", ".pot"), read, "text/x-gettext-translation"),)
