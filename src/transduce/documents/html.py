"""HTML: its texts, also those of attributes. Code, scripts and what says ``translate="no"`` stay."""

from __future__ import annotations

from functools import partial
from html import escape

from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import decoded
from transduce.documents.languages import script_of
from transduce.documents.spliced import Embedded, Part, Region, SplicedText, with_words
from transduce.errors import DataError
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.markup import divide, html_rules, text_tokens, unit_of
from transduce.text.markup_reading import (
    MarkupRules,
    Token,
    attributes,
    attributes_of,
    decoder,
    is_untranslated,
    read_tokens,
    untranslated_whole,
)

__all__ = ["FORMATS", "RULES", "html_parts", "marked_tag", "with_language"]

RULES = html_rules(ignored=("pre", "listing", "xmp", "plaintext"))
_KNOWN = frozenset(
    "!doctype html head title body div p span a b i em strong br hr img h1 h2 h3 h4 h5 h6 ul ol li dl table tr td th "
    "section article main nav header footer form input button label select meta pre code font center blockquote".split()
)
_WITH_TEXT = frozenset(
    "alt title placeholder aria-label aria-description aria-placeholder aria-roledescription aria-valuetext".split()
)
_ELEMENTS_WITH_TEXT = {  # attributes that are texts in some elements only
    "label": ("option", "optgroup", "track", "menu"),
    "summary": ("table",),
}
_BUTTONS = frozenset(("button", "submit", "reset"))
_META_NAMES = frozenset(
    "description keywords application-name apple-mobile-web-app-title twitter:title twitter:description "
    "twitter:image:alt og:title og:description og:site_name og:image:alt".split()
)
_CHARSET = compiled_on_use(
    r"""(?i)<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)"""
)
_N_BYTES_WITH_CHARSET = 4096
# What browsers read under other names: the supersets that people use.
_READ_AS = {
    "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254",
    "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949",
    "utf-16": "utf-8", "utf-16le": "utf-8", "utf-16be": "utf-8",  # it was read to be declared
}  # fmt: skip


def read(data: bytes, reading: Reading) -> Document:
    """Read an HTML document in the encoding of its byte order mark or declaration, else UTF-8 or windows-1252."""
    text, encoding = _decoded(data)
    tags = (token for token in read_tokens(text, RULES) if token.kind != "text")
    if not any(token.name in _KNOWN or token.raw[:9].lower() == "<!doctype" for token in tags):
        raise DataError("it has no HTML tags; name it .txt if it is plain text")
    embedded = Embedded(text)
    parts = html_parts(text, embedded, is_protected=reading.is_protected)
    return SplicedText(parts, encoding, "xmlcharrefreplace", embedded, partial(with_language, rules=RULES))


def _decoded(data: bytes) -> tuple[str, str]:
    match = _CHARSET.search(data[:_N_BYTES_WITH_CHARSET].decode("latin-1"))
    declared = (match[1] or match[2]) if match else None
    if declared is None:
        try:
            return decoded(data)
        except DataError:
            return decoded(data, "cp1252")
    if (superset := _READ_AS.get(declared.lower())) is not None:
        try:
            return decoded(data, superset)
        except DataError:
            pass
    return decoded(data, declared)


def html_parts(markup: str, embedded: Embedded, *, is_protected: bool) -> list[Part]:
    """Divide HTML into its units and what stands between them; texts of attributes are embedded."""
    mark = "\ufeff" * markup.startswith("\ufeff")
    tokens = untranslated_whole(list(read_tokens(markup.removeprefix(mark), RULES)), RULES)
    marked = mark + "".join(marked_tag(token, embedded, is_protected=is_protected) for token in tokens)
    return [with_words(part) for part in divide(marked, RULES, is_protected=is_protected)]


def marked_tag(token: Token, embedded: Embedded, *, is_protected: bool) -> str:
    """Return a token with marks in place of the texts of its attributes."""
    pieces, position = list[str](), 0
    is_tag = token.kind in ("start", "single") and token.name and "</" not in token.raw and "=" in token.raw
    for match in attributes_of(token) if is_tag and not is_untranslated(token) else ():
        group = match.lastindex or 1
        if group > 1 and _is_text(token, match[1].lower()):
            decode = decoder(RULES)
            if not needs_translation(decode(match[group])):
                continue
            unit = unit_of(text_tokens(match[group], is_protected=is_protected, decode=decode), decode, is_escaped=True)
            pieces += (
                token.raw[position : match.start(group)],
                embedded.mark(Region(match[group], [unit], _QUOTED[group])),
            )
            position = match.end(group)
    return "".join([*pieces, token.raw[position:]])


_QUOTED = {  # by the group of ``attributes_of``
    2: lambda text: text.replace('"', "&quot;"),
    3: lambda text: text.replace("'", "&#39;"),
    4: lambda text: f'"{text.replace(chr(34), "&quot;")}"',
}


def _is_text(token: Token, name: str) -> bool:
    """Whether the attribute of a tag is text that people read."""
    match name:
        case "title":
            return token.name not in ("link", "style")
        case "content":
            values = attributes(token)
            return token.name == "meta" and (values.get("name") or values.get("property", "")).lower() in _META_NAMES
        case "value":
            return token.name == "input" and attributes(token).get("type", "").lower() in _BUTTONS
        case _:
            return name in _WITH_TEXT or token.name in _ELEMENTS_WITH_TEXT.get(name, ())


def with_language(markup: str, language: str, rules: MarkupRules) -> str:
    """Return markup whose root names a language, and the direction in which it is written.

    >>> with_language("<html lang=en><p lang=fr>", "de", RULES), with_language("<html>", "ar", RULES)
    ('<html lang="de"><p lang=fr>', '<html lang="ar" dir="rtl">')
    """
    position = 0
    for token in read_tokens(markup, rules):
        if token.kind in ("start", "single") and token.name and (rules.kind == "xml" or token.name == "html"):
            break
        position += len(token.raw)
    else:
        return markup
    direction, names = "rtl" if script_of(language) == "complex" else "ltr", set[str]()
    values = {"lang": language, "xml:lang": language} | ({"dir": direction} if rules.kind == "html" else {})
    root = token.raw
    for match in reversed(list(attributes_of(token))):
        names.add(match[1].lower())
        if (value := values.get(match[1].lower())) is not None:
            root = f'{root[: match.end(1)]}="{escape(value)}"{root[match.end() :]}'
    if rules.kind == "html":
        added = f' lang="{escape(language)}"' * names.isdisjoint(("lang", "xml:lang"))
        added += ' dir="rtl"' * (direction == "rtl" and "dir" not in names)
        root = root[:5] + added + root[5:]
    return markup[:position] + root + markup[position + len(token.raw) :]


FORMATS = (
    Format("html", (".html", ".htm", ".xhtml"), read, "text/html", lambda data: b"<html" in data[:1024].lower()),
)
