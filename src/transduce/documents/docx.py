"""Documents of Word (DOCX): paragraphs of the text, of headers, footers, notes, comments, text boxes and diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from transduce.documents.document import Document, Format, Reading
from transduce.documents.languages import script_of, with_language
from transduce.documents.office_xml import (
    CHART,
    DRAWN,
    add_alternative_text,
    add_drawn,
    content_types,
    has_main,
    office_document,
    run_pieces,
    run_style,
)
from transduce.documents.package import Package
from transduce.documents.package_document import PartKind
from transduce.documents.runs import Group, Marker, Piece, joined
from transduce.documents.xml_tree import Element
from transduce.patterns import compiled_on_use

__all__ = ["FORMATS"]

_MAINS = ("wordprocessingml", "ms-word")
_PARAGRAPHS = ("w:p", "a:p", "wp:docPr")
_GROUPS = frozenset(("w:hyperlink", "w:smartTag", "w:customXml", "w:ins", "w:moveTo", "w:dir", "w:bdo"))
_HIDDEN = frozenset(  # elements of a paragraph that show nothing where they stand
    "w:bookmarkStart w:bookmarkEnd w:commentRangeStart w:commentRangeEnd w:permStart w:permEnd w:del w:moveFrom"
    " w:moveFromRangeStart w:moveFromRangeEnd w:moveToRangeStart w:moveToRangeEnd w:commentReference w:annotationRef"
    " w:customXmlInsRangeStart w:customXmlInsRangeEnd w:customXmlDelRangeStart w:customXmlDelRangeEnd".split()
)
_DROPPED = frozenset(("w:pPr", "w:rPr", "w:proofErr", "w:lastRenderedPageBreak"))  # from translated paragraphs
_NOTES = frozenset(("w:footnoteReference", "w:endnoteReference"))
_CHOICES = ("w:dropDownList", "w:comboBox", "w:date", "w14:checkbox", "w:picture")  # what a field of a form may be
# Properties of runs that make no difference to be seen: languages, records of changes, fine spacing.
_UNSEEN = frozenset(("w:lang", "w:noProof", "w:rPrChange", "w:ins", "w:kern", "w:spacing", "w:w", "w:hint"))
_TEXT_ATTRIBUTES = ' xml:space="preserve"'
_LANGUAGES = {  # of runs, by kind of script
    script: compiled_on_use(rf"""<(?:\w+:)?lang\s[^<>]*?\w:{attribute}=["']([^"']*)""")
    for script, attribute in (("western", "val"), ("asian", "eastAsia"), ("complex", "bidi"))
}
# The properties of paragraphs without their own, up to where the one that turns them stands.
_DEFAULT_PARAGRAPH = compiled_on_use(
    r"<w:pPrDefault>\s*<w:pPr>(?:(?!<w:bidi\b|<w:(?:adjustRightInd|snapToGrid|spacing|ind|contextualSpacing|mirrorIndents"
    r"|suppressOverlap|jc|text\w+|outlineLvl|divId|cnfStyle|rPr|sectPr|pPrChange|pPrDefault)\b|</w:pPr>).)*+(?!<w:bidi\b)",
    re.DOTALL,
)
_NO_DEFAULT = compiled_on_use(r"<w:pPrDefault\s*+/>|<w:pPrDefault>\s*+(?:<w:pPr\s*+/>\s*+)?</w:pPrDefault>")


def _named(text: str, language: str) -> str:
    """Return runs that name a language."""
    return with_language(text, _LANGUAGES[script_of(language)], language)


def _named_styles(text: str, language: str) -> str:
    """Return styles that name a language; paragraphs of one from right to left begin on the right."""
    text = _named(text, language)
    if script_of(language) == "complex":
        text = _NO_DEFAULT.sub("<w:pPrDefault><w:pPr></w:pPr></w:pPrDefault>", text)
        text = _DEFAULT_PARAGRAPH.sub(r"\g<0><w:bidi/>", text)
    return text


def _parts(elements: Iterator[Element], marker: Marker) -> list[Piece | Group]:
    """Return the parts of a paragraph, or of a group in it."""
    parts: list[Piece | Group] = []
    fields: list[tuple[str, str]] = []  # of each part that ends a piece of a field: what it does, and its instruction
    for child in elements:
        if child.name == "w:r" and (base := _ruby_base(child)) is not None:
            opening, closing = Piece("atom", child.start, base.inner), Piece("atom", base.inner_end, child.end)
            parts.append(Group(opening, _parts(base.elements, marker), closing))
            fields.append(("", ""))
        elif child.name == "w:r":
            for part, role in _run_parts(child, marker):
                parts.append(part)
                fields.append(role)
        elif child.name not in _DROPPED:
            parts.append(_part(child, marker))
            fields.append(("", ""))
    return _with_fields(parts, fields)


def _ruby_base(run: Element) -> Element | None:
    """Return the text of a run beside which stands how it is read."""
    contents = [each for each in run.elements if each.name not in _DROPPED]
    return contents[0].child("w:rubyBase") if [each.name for each in contents] == ["w:ruby"] else None


def _part(child: Element, marker: Marker) -> Piece | Group:
    is_link = child.name == "w:fldSimple" and _is_link(child.attributes.get("w:instr", ""))
    if child.name in _GROUPS or is_link:
        content = child
    elif child.name == "w:sdt" and not any((child.child("w:sdtPr") or child).within(_CHOICES, ("w:sdtContent",))):
        content = child.child("w:sdtContent") or child
    else:
        return Piece("atom", child.start, child.end, is_shown=child.name not in _HIDDEN)
    opening = Piece("atom", child.start, content.inner)
    return Group(opening, _parts(content.elements, marker), Piece("atom", content.inner_end, child.end))


def _run_parts(run: Element, marker: Marker) -> Iterator[tuple[Piece, tuple[str, str]]]:
    """Yield the contents of a run, each with what it does for a field."""
    properties = run.child("w:rPr")
    raised = None if properties is None else properties.child("w:vertAlign")
    is_raised = raised is not None and raised.attributes.get("w:val") == "superscript"
    tags, style = run_style(marker, run, properties, _UNSEEN, text_attributes=_TEXT_ATTRIBUTES, is_raised=is_raised)
    for each, piece in run_pieces(run, tags, [each for each in run.elements if each.name not in _DROPPED]):
        role = ("", "")
        match each.name:
            case "w:t" | "w:noBreakHyphen" | "w:softHyphen":
                piece.kind, piece.text, piece.style = "text", _characters(each), style
            case "w:tab" | "w:ptab":
                piece.kind = "break"
            case "w:br" | "w:cr":
                piece.kind = "break" if each.attributes.get("w:type") in ("page", "column") else "line"
            case "w:fldChar":
                role = (each.attributes.get("w:fldCharType", ""), "")
            case "w:instrText":
                role = ("instruction", each.text)
            case _:
                piece.is_note = each.name in _NOTES
                is_floating = any(each.within(("wp:anchor",), ("w:p",)))
                piece.is_shown = each.name not in _HIDDEN and not is_floating
        yield piece, role


def _characters(text: Element) -> str:
    if text.name != "w:t":
        return "\u2011" if text.name == "w:noBreakHyphen" else "\u00ad"
    return text.text if text.attributes.get("xml:space") == "preserve" else text.text.strip()


def _is_link(instruction: str) -> bool:
    """Whether the result of a field is text of the document, and not computed."""
    return instruction.split()[:1] == ["HYPERLINK"]


def _with_fields(parts: Sequence[Piece | Group], roles: Sequence[tuple[str, str]]) -> list[Piece | Group]:
    """Return the parts with each field as an atom, or as a group if it is a link.

    What begins or ends in another paragraph, such as a table of contents, is an atom, and its result is text.
    """
    done: list[Piece | Group] = []
    open_fields: list[tuple[int, int, str]] = []  # where it begins and where its result does, -1; its instruction
    for part, (role, instruction) in zip(parts, roles, strict=True):
        done.append(part)
        if role == "begin":
            open_fields.append((len(done) - 1, -1, ""))
        elif not open_fields:
            continue
        elif role == "instruction":
            begin, result, before = open_fields[-1]
            open_fields[-1] = (begin, result, before + instruction)
        elif role == "separate":
            begin, _, whole = open_fields[-1]
            done[begin:] = [joined(done[begin:])]
            open_fields[-1] = (begin, begin + 1, whole)
        elif role == "end":
            begin, result, whole = open_fields.pop()
            if result >= 0 and _is_link(whole):
                opening, closing = done[begin], done[-1]
                assert isinstance(opening, Piece)
                assert isinstance(closing, Piece)
                done[begin:] = [Group(opening, done[result:-1], closing)]
            else:
                done[begin:] = [joined(done[begin:])]
    return done


def _add(element: Element, marker: Marker) -> None:
    if element.name == "wp:docPr":
        add_alternative_text(element, marker)
        return
    for inner in element.within(_PARAGRAPHS):  # in text boxes
        _add(inner, marker)
    if element.name == "a:p":
        add_drawn(element, marker)
    else:
        marker.add_paragraph(_parts(element.elements, marker))


_TEXT = PartKind(_PARAGRAPHS, _add)
_KINDS = {  # by the end of their type, in the order of reading
    "main+xml": _TEXT,
    "wordprocessingml.header+xml": _TEXT, "footer+xml": _TEXT, "footnotes+xml": _TEXT, "endnotes+xml": _TEXT,
    "wordprocessingml.comments+xml": _TEXT, "document.glossary+xml": _TEXT,
    "drawingml.chart+xml": CHART, "diagramData+xml": DRAWN, "diagramDrawing+xml": DRAWN,
    "drawingml.chartshapes+xml": DRAWN,
}  # fmt: skip


def read(data: bytes, reading: Reading) -> Document:
    """Read a document of Word."""
    package = Package(data)
    types, languages = content_types(package, _MAINS), {"": _named, "wordprocessingml.styles+xml": _named_styles}
    return office_document(package, types, reading, _KINDS, languages)


_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FORMATS = (Format("docx", (".docx", ".docm", ".dotx", ".dotm"), read, _MEDIA_TYPE, has_main(_MAINS), is_archive=True),)
