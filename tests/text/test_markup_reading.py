"""Tags of any form are read as tags, text as text, in linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.markup import MarkupRules, Unit, divide, html_rules, xml_rules
from transduce.text.markup_reading import decoder, read_tokens

LONG = "A" * 100_000


def kinds(markup: str, rules: MarkupRules | None = None) -> list[tuple[str, str]]:
    return [(token.kind, token.raw) for token in read_tokens(markup, rules or html_rules())]


@pytest.mark.parametrize(
    "tag",
    [
        f'<img src="data:image/png;base64,{LONG}">', f"<p style='{LONG}'>", f"<a href={LONG}>", f"<a {LONG}>",
        '<a title="x > y">', "<a title='\"' id=\"'\">", "<a title=it's>", "<a href=https://x.org/?a=b&c=d/>",
        '<a\n\thref = "x"\n>', "<a =b>", "<a b=>", '<p class="a" title="He said "hi" there">', '<a b="unclosed>',
        "<0>", "</0>", "<12 />", "<x:y-z.1>", "<A>", "<!-- <b> -->", "<!DOCTYPE html>", "<?xml version='1.0'?>",
    ],
    ids=lambda tag: tag[:30],
)  # fmt: skip
def test_a_tag_is_one(tag: str) -> None:
    assert [raw for _, raw in kinds(f"one {tag} two")] == ["one ", tag, " two"]


@pytest.mark.parametrize(
    "text", ["1 < 2 > 1", "I <3 you > me", "a<", "</", "< b>", "<é>", "<0 and x>", "<b <", "x <!-- y"]
)
def test_what_is_no_tag_is_text(text: str) -> None:
    assert kinds(text) == [("text", text)]


def test_a_slash_at_the_end_of_a_value_closes_nothing() -> None:
    assert [kind for kind, _ in kinds("<a href=https://x.org/>x</a>")] == ["start", "text", "end"]
    assert [kind for kind, _ in kinds('<x id="1"/><y/><z a />')] == ["single"] * 3


@pytest.mark.parametrize(
    "attribute",
    ["translate=no", "translate='no'", 'TRANSLATE = "No"', "class=notranslate", "class='a notranslate b'",
     'id=x class="notranslate"', "CLASS=NOTRANSLATE"],
)  # fmt: skip
def test_what_is_marked_is_not_translated(attribute: str) -> None:
    [unit] = divide(f"one <span {attribute}>two</span> three", html_rules())
    assert isinstance(unit, Unit)
    assert unit.text == "one three"


@pytest.mark.parametrize(
    "attribute",
    ["translate=yes", "class=notranslate-x", "class='my-notranslate'", "title='translate=no'", "data-translate=no",
     "title='class=notranslate'", "class=translate"],
)  # fmt: skip
def test_what_only_looks_marked_is_translated(attribute: str) -> None:
    [unit] = divide(f"one <span {attribute}>two</span> three", html_rules())
    assert isinstance(unit, Unit)
    assert unit.text == "one two three"


@pytest.mark.parametrize("rules", [html_rules(), xml_rules()], ids=["html", "xml"])
@pytest.mark.parametrize(
    ("entity", "character"),
    [("&amp;", "&"), ("&#65;", "A"), ("&#x1F600;", "😀"), (f"&#{'0' * 5000}65;", "A"), (f"&#x{'0' * 5000}41;", "A"),
     *((entity, entity) for entity in (f"&#{'1' * 4301};", f"&#{'1' * 4301}", f"&#x{'1' * 5000};", "&#0;", "&#xD800;",
                                       "&#x110000;", "&#;", "&#x;", "&", "&;", "&xyzzy;"))],
    ids=lambda text: text[:10],
)  # fmt: skip
def test_an_entity_is_a_character_or_text(rules: MarkupRules, entity: str, character: str) -> None:
    assert decoder(rules)(f"x{entity}y") == f"x{character}y"


def test_entities_are_decoded_once() -> None:
    assert decoder(html_rules())("&amp;lt; &#38;lt; &copy &notit;") == "&lt; &lt; © ¬it;"
    assert decoder(xml_rules())("&amp;lt; &copy;") == "&lt; &copy;"


@pytest.mark.parametrize(
    ("piece", "n_characters"),
    [
        *((piece, 60_000) for piece in (
            '<a ="<a x"', "<a b=", "<a b='", '<a b="', "<a \"'", "<0", "<![CDATA[", "]]>", "&#1", "&#", "<a  ", "<a = ",
        )),
        # Of many tags: there a step takes longer.
        *((piece, 6_000) for piece in (
            "<0>", "<a href=x/>", "<b>*</b>", "<b><i>↑", "<pre>x\n", "<p class=notranslate>",
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rules", [html_rules(), xml_rules()], ids=["html", "xml"])
def test_hostile_markup_takes_linear_time(piece: str, n_characters: int, rules: MarkupRules) -> None:
    """The time of a quadratic algorithm is several seconds."""
    started = time.process_time()
    divide(piece * (n_characters // len(piece)) + "x", rules)
    assert time.process_time() - started < 2  # about 0.1


@given(st.text("<>/ab0 =\"'!-[]?&#;\n", max_size=40))
def test_nothing_is_lost(markup: str) -> None:
    for rules in (html_rules(), xml_rules()):
        assert "".join(token.raw for token in read_tokens(markup, rules)) == markup
