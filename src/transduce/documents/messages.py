"""The texts of a program's message: lines, HTML, or a message of ICU with texts for its cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transduce.documents.document import Reading
from transduce.documents.spliced import Embedded, Part, Region, with_words
from transduce.patterns import compiled_on_use
from transduce.text.markup import Unit, divide_string, html_rules, text_tokens, unit_of
from transduce.text.markup_reading import Token, read_tokens

__all__ = ["message_parts"]

_ARGUMENT = compiled_on_use(r"\{\s*[\w.-]+\s*,\s*(plural|selectordinal|select)\s*,\s*(?:offset:\s*\d+\s*)?")
_CASE = compiled_on_use(r"\s*(=\d+|[\w-]+)\s*\{")
_PIECE = compiled_on_use(r"''|'[{}|#<][^']*(?:''[^']*)*'?|[^'{}#<]+|[#{}'<]")  # of a message, quoted or not
_SIMPLE_ARGUMENT = compiled_on_use(r"\{[^{}]*\}")
MAX_DEPTH = 10  # of cases within cases


def message_parts(text: str, embedded: Embedded, reading: Reading) -> list[Part]:
    """Divide a message into its texts and what stands between them.

    In a message of ICU such as ``{count, plural, one {# file} other {# files}}`` the texts are those of the cases.
    """
    if _ARGUMENT.search(text):
        try:
            return _Message(text, embedded, reading).parts()
        except _NoMessageError:
            pass
    return [with_words(part) for part in divide_string(text, is_protected=reading.is_protected)]


class _NoMessageError(Exception):
    """A text is no message of ICU."""


class _Message:
    """A reader of one message."""

    def __init__(self, text: str, embedded: Embedded, reading: Reading) -> None:
        self._text, self._embedded, self._reading, self._position = text, embedded, reading, 0

    def parts(self) -> list[Part]:
        """Return the parts of the whole message."""
        tokens = self._pattern(0, is_plural=False)
        if self._position < len(self._text):
            raise _NoMessageError
        return [self._unit(tokens)]

    def _pattern(self, depth: int, *, is_plural: bool) -> list[Token]:
        """Read text and arguments up to a closing brace."""
        tokens = list[Token]()
        while self._position < len(self._text) and self._text[self._position] != "}":
            if depth > MAX_DEPTH:
                raise _NoMessageError
            if argument := _ARGUMENT.match(self._text, self._position):
                tokens.append(
                    Token("single", "".join(self._cases(argument[0], depth, is_plural=argument[1] != "select")))
                )
            elif simple := _SIMPLE_ARGUMENT.match(self._text, self._position):
                tokens.append(Token("single", simple[0]))
                self._position = simple.end()
            else:
                piece = _PIECE.match(self._text, self._position)
                if piece is None or piece[0] == "{":
                    raise _NoMessageError
                self._position = piece.end()
                is_quoted = len(piece[0]) > 2 and piece[0].startswith("'")
                is_single = is_quoted or (piece[0] == "#" and is_plural)
                tokens.append(Token("single" if is_single else "text", piece[0]))
        return tokens

    def _cases(self, argument: str, depth: int, *, is_plural: bool) -> Iterator[str]:
        """Yield an argument with marks in place of the texts of its cases."""
        yield argument
        self._position += len(argument)
        while case := _CASE.match(self._text, self._position):
            yield case[0]
            start = self._position = case.end()
            part = self._unit(self._pattern(depth + 1, is_plural=is_plural))
            raw = self._text[start : self._position]
            yield part if isinstance(part, str) else self._embedded.mark(Region(raw, [part]))
            yield self._brace()
        yield self._brace()

    def _brace(self) -> str:
        """Read a closing brace, with space before it."""
        end = self._text.find("}", self._position) + 1
        brace = self._text[self._position : end]
        if not end or brace.strip() != "}":
            raise _NoMessageError
        self._position = end
        return brace

    def _unit(self, pieces: Sequence[Token]) -> str | Unit:
        """Return text and arguments as a unit, in which tags of HTML are tags."""
        tokens, text = list[Token](), ""
        for piece in [*pieces, Token("single", "")]:
            if piece.kind == "text":
                text += piece.raw
                continue
            for token in read_tokens(text, html_rules()):
                is_protected = self._reading.is_protected
                tokens += text_tokens(token.raw, is_protected=is_protected) if token.kind == "text" else [token]
            tokens += [piece] * bool(piece.raw)
            text = ""
        unit = unit_of(
            tokens, lambda text: text.replace("''", "'"), is_escaped=False, escape=lambda text: text.replace("'", "''")
        )
        return with_words(unit)
