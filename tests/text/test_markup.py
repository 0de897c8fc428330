"""Tags are taken out and put back, each exactly once, wherever the words go."""

from __future__ import annotations

import random
import re
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import word_spans
from transduce.text.markup import MarkupRules, Unit, divide, html_rules, plain_unit, xml_rules


def translated(markup: str, rules: MarkupRules, translations: dict[str, tuple[str, list[int]]]) -> str:
    """Translate by hand: of each unit the text, and the source word of each target word."""
    parts = []
    for part in divide(markup, rules):
        if isinstance(part, str):
            parts.append(part)
            continue
        target, sources = translations[part.text]
        weights = np.eye(len(word_spans(part.text)), dtype=np.float32)[sources]
        parts.append(part.put_back(target, word_spans(target), weights))
    return "".join(parts)


@pytest.mark.parametrize(
    ("markup", "target", "expected", "n_guessed"),
    [
        ("a <b>dog</b> sleeps", "ein Hund schläft.", "<b>ein Hund schläft.</b>", 1),  # alone: around the whole
        ("<i>a dog</i> sees <b>a <u>cat</u></b>", "ein Hund sieht eine Katze",
         "<i>ein Hund</i> sieht <b><u>eine Katze</u></b>", 3),  # beside others: by position
        ("<b>all words</b>", "alle Wörter", "<b>alle Wörter</b>", 0),
        ("a dog <img> sleeps", "ein Hund schläft", "ein Hund schläft <img>", 0),
    ],
)  # fmt: skip
def test_without_an_alignment_places_are_guessed(markup: str, target: str, expected: str, n_guessed: int) -> None:
    [unit] = divide(markup, html_rules())
    assert isinstance(unit, Unit)
    n_source, words = len(word_spans(unit.text)), word_spans(target)
    uniform = np.full((len(words), n_source), 1 / n_source, np.float32)
    assert unit.placed(target, words, uniform) == (expected, n_guessed)
    assert unit.lost_tags(expected) == []
    assert unit.lost_tags(expected.replace("<b>", "", 1)) == (["<b>"] if "<b>" in expected else [])


@pytest.mark.parametrize(
    ("markup", "target", "sources", "expected"),
    [
        # The words change their order, and the tags follow.
        ("I have <b>seen</b> it.", "Ich habe es gesehen.", [0, 1, 3, 2, 4], "Ich habe es <b>gesehen</b>."),
        ("a <b>big <i>red</i> car</b> stops", "hält ein großes rotes Auto",
         [4, 0, 1, 2, 3], "hält ein <b>großes <i>rotes</i> Auto</b>"),
        ("<b>all of it</b>", "alles davon", [0, 2], "<b>alles davon</b>"),
        ("one <b>two</b> <i>three</i>", "drei zwei eins", [2, 1, 0], "<i>drei</i> <b>zwei</b> eins"),
        # A single tag stays beside its word.
        ("press <img src=a.png> now", "jetzt drücken", [1, 0], "jetzt drücken <img src=a.png>"),
        ("<img src=a.png> press now", "jetzt drücken", [1, 0], "<img src=a.png> jetzt drücken"),
        ("<ruby>so<rp>(</rp><rt>wie</rt><rp>)</rp></ruby> it", "so es", [0, 1],
         "<ruby>so<rp>(</rp><rt>wie</rt><rp>)</rp></ruby> es"),
        ("see <code>x.y</code>.", "siehe.", [0, 1], "siehe <code>x.y</code>."),
        # A pair around signs stays with them, and so does one around the number of a note.
        ("the dog sleeps <a href='#top'>↑</a>.", "der Hund schläft.", [0, 1, 2, 3],
         "der Hund schläft <a href='#top'>↑</a>."),
        ("the dog<sup>*</sup> sleeps.", "der Hund schläft.", [0, 1, 2, 3], "der Hund<sup>*</sup> schläft."),
        ("sleeps<sup><a href=#f>[1]</a></sup> the dog", "der Hund schläft", [1, 2, 0],
         "der Hund schläft<sup><a href=#f>[1]</a></sup>"),
        ("Acme<b>&reg;</b> <i>–</i> good", "Acme gut", [0, 1], "Acme<b>&reg;</b> <i>–</i> gut"),
        ("<span>👍</span> good <b>»</b>", "gut", [0], "<span>👍</span> gut <b>»</b>"),
        # One around punctuation surrounds an equal mark, or nothing.
        ("wait<b>!</b> he said", "er sagt: warte!", [2, 3, 3, 0, 1], "er sagt: warte<b>!</b>"),
        ("wait<b>!</b> he said", "er sagt warte", [2, 3, 0], "<b></b> er sagt warte"),
        ("<a href=#n>[1]</a> see here", "siehe hier [1]", [3, 4, 0, 1, 2], "siehe hier <a href=#n>[1]</a>"),
        ("it has <b>1,500</b> dogs", "es hat Hunde 1.500", [0, 1, 3, 2], "es hat Hunde <b>1.500</b>"),
        ("it has <b>2</b> dogs", "es hat zwei Hunde", [0, 1, 2, 3], "es hat <b>zwei</b> Hunde"),
        ("it has <b>2</b> dogs", "es hat Hunde", [0, 1, 3], "es hat <b></b> Hunde"),
        # A string that is copied is one word, and the same word wherever attention is.
        ("see <b>https://x-y.org/a?b</b> and {c}", "{c} und siehe https://x-y.org/a?b", [0, 0, 0, 0],
         "{c} und siehe <b>https://x-y.org/a?b</b>"),
        ("see https://x-y.org/<b>a</b>?b", "siehe https://x-y.org/a?b", [0, 1], "siehe <b>https://x-y.org/a?b</b>"),
        ("यह <b>किताब</b> है", "this is a book", [0, 2, 1, 1], "this is <b>a book</b>"),
        # Tags of i18next.
        ("read <0>this</0> <1/>now", "dies lies jetzt", [1, 0, 2], "<0>dies</0> lies <1/>jetzt"),
        # Bad nesting and lonely tags survive.
        ("x <b>y <i>z</b></i>", "x y z", [0, 1, 2], "x <b>y <i>z</b></i>"),
        ("a </b> c", "a c", [0, 1], "a </b> c"),
        # Entities are text.
        ("Tom &amp; <b>Jerry</b>", "Tom & Jerry", [0, 1, 2], "Tom &amp; <b>Jerry</b>"),
        ("", "", [], ""),
    ],
)  # fmt: skip
def test_tags_follow_their_words(markup: str, target: str, sources: list[int], expected: str) -> None:
    [text] = [part.text for part in divide(markup, html_rules()) if isinstance(part, Unit)] or [""]
    assert translated(markup, html_rules(), {text: (target, sources)}) == expected


def test_blocks_are_translated_apart() -> None:
    markup = "<ul>\n<li>One <b>two</b>\n<li translate=no>Three</li>\n</ul><script>if (a < b) x</script><p>Four<br>five"
    parts = divide(markup, html_rules())
    assert [part.text for part in parts if isinstance(part, Unit)] == ["One two", "Four", "five"]
    assert "".join(part if isinstance(part, str) else part.raw for part in parts) == markup


def test_what_is_not_translated_stays_as_it_is() -> None:
    kept = "<span translate='no'>Not <b>this</b> &copy;</span>"
    [unit] = divide(f"Read {kept} and <CODE>x &lt; 1</CODE> now", html_rules())
    assert isinstance(unit, Unit)
    assert re.sub(" +", " ", unit.text) == "Read and now"
    assert unit.put_back("Lies und jetzt", word_spans("Lies und jetzt"), np.eye(3, dtype=np.float32)) == (
        f"Lies {kept} und <CODE>x &lt; 1</CODE> jetzt"
    )


@pytest.mark.parametrize(
    ("markup", "texts"),
    [
        ("<pre>  one line.\n\n\ttwo\n</pre>", ["one line.", "two"]),
        (
            "<pre>one <b>two\nthree</b>\r\nfour\rfive</pre> six\nseven",
            ["one two", "three", "four", "five", "six\nseven"],
        ),
        ("<PRE><span>one\n</span>two</PRE>", ["one", "two"]),
        ("<pre><code>one\ntwo</code></pre>", []),
        ("<textarea>One.\nTwo.</textarea>", ["One.", "Two."]),
        ("one<br>two<br/>three\nfour", ["one", "two", "three\nfour"]),
        ("<pre>one\ntwo", ["one\ntwo"]),  # without an end it is no element
    ],
)
def test_a_line_end_of_preformatted_text_is_one(markup: str, texts: list[str]) -> None:
    parts = divide(markup, html_rules())
    assert [part.text for part in parts if isinstance(part, Unit)] == texts
    kept = [
        part if isinstance(part, str) else part.put_back(part.text, [], np.zeros((0, 0), np.float32)) for part in parts
    ]
    assert "".join(part if isinstance(part, str) else part.raw for part in parts) == markup
    assert "".join(kept).count("\n") == markup.count("\n")


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<s><![CDATA[one & two < 3]]></s>", "<s><![CDATA[ONE & TWO < 3]]></s>"),
        ("<s>one <![CDATA[two]]> three</s>", "<s>ONE <![CDATA[TWO]]> THREE</s>"),
        ("<s><![CDATA[<p>one &amp; <b>two</b></p>]]></s>", "<s><![CDATA[<p>ONE &amp; <b>TWO</b></p>]]></s>"),
        ("<s><![CDATA[one\n  two]]></s>", "<s><![CDATA[ONE\n  TWO]]></s>"),
        ("<s><![CDATA[]]><x><![CDATA[ ]]></x></s>", "<s><![CDATA[]]><x><![CDATA[ ]]></x></s>"),
        ("<s xml:space='preserve'>one\n two</s>", "<s xml:space='preserve'>ONE\n TWO</s>"),
    ],
)
def test_sections_of_xml_are_text(markup: str, expected: str) -> None:
    result = ""
    for part in divide(markup, xml_rules()):
        if isinstance(part, str):
            result += part
        else:
            words = word_spans(part.text)
            result += part.put_back(part.text.upper(), words, np.eye(len(words), dtype=np.float32))
    assert result == expected


def test_what_is_taken_out_leaves_a_sentence() -> None:
    """No space where none would be without it, and words on its sides stay apart."""
    texts = {
        "one <img> two": "one two", "one <img>.": "one.", "one<img>two": "one two",
        "one<wbr>two<!-- x -->three": "onetwothree", "one <img>": "one",
        "one <!-- x --> <img>, two": "one, two", "東<img>京": "東京", "one <b>two</b><i>three</i>": "one two three",
        "&#xFEFF;one &shy;t&zwnj;wo\u200e": "one two", "می\u200cخواهم": "می\u200cخواهم",
    }  # fmt: skip
    for markup, text in texts.items():
        [unit] = [part for part in divide(markup, html_rules()) if isinstance(part, Unit)]
        assert unit.text == text


def test_xml_names_are_case_sensitive_and_may_be_ignored() -> None:
    rules = xml_rules(ignored=["x"])
    [unit] = divide('Save <x id="1">{0}</x> in <X>this</X> <x id="2"></x>', rules)
    assert isinstance(unit, Unit)
    assert re.sub(" +", " ", unit.text) == "Save in this"
    target = "In diesem speichern"
    result = unit.put_back(target, word_spans(target), np.eye(3, dtype=np.float32)[[1, 2, 0]])
    assert result.count('<x id="1">{0}</x>') == 1
    assert result.count("<X>diesem</X>") == 1


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (xml_rules(), ["One two", "Three"]),
        (xml_rules(finds_outline=False), ["One two Three"]),
        (xml_rules(finds_outline=False, splitting=["g"]), ["One", "two", "Three"]),
        (xml_rules(non_splitting=["t"]), ["One two Three"]),
    ],
)
def test_the_outline_of_xml(rules: MarkupRules, expected: list[str]) -> None:
    markup = "<d><t>One <g>two</g></t><t>Three</t></d>"
    parts = divide(markup, rules)
    assert [re.sub(" +", " ", part.text) for part in parts if isinstance(part, Unit)] == expected
    again = "".join(part if isinstance(part, str) else part.raw for part in parts)
    assert again == markup


def test_addresses_stay_in_plain_text() -> None:
    unit = plain_unit("Mail a@b.org, see https://x.org/a?b&c or {name} 👍🏽.", is_protected=True)
    assert unit.text == "Mail, see or."
    target = "Schreib, siehe oder."
    result = unit.put_back(target, word_spans(target), np.eye(5, dtype=np.float32))
    assert result == "Schreib a@b.org, siehe https://x.org/a?b&c oder {name} 👍🏽."
    for kept in ("README.txt", "<0>", "</b>", "/usr/bin", "❤\ufe0f"):
        unit = plain_unit(f"see {kept} now", is_protected=True)
        assert unit.text == "see now"
        assert unit.put_back("siehe jetzt", [(0, 5), (6, 11)], np.eye(2, dtype=np.float32)) == f"siehe {kept} jetzt"


def test_signs_of_markup_in_a_plain_translation_are_signs() -> None:
    unit, target = plain_unit("and", is_protected=False), "R&D <3"
    assert unit.put_back(target, word_spans(target), np.eye(2, dtype=np.float32)[:, :1]) == target


TAGS = ["<b>", "</b>", "<i>", "</i>", "<br>", "<!-- c -->", "<x id='1'/>", "<a href='?a&b'>", "</a>", "<p>", "</p>",
        "<code>", "</code>", "<", ">", "&amp;", "&nbsp;", "<?p?>", "<![CDATA[ x < y ]]>", "<span translate=no>",
        "</span>", "https://a.org", "{0}", "<b", "'", '"', "<sup>1</sup>",
        "<b>↑</b>", "<i>*", "<b>!</b>", "<0>", "</0>", "<pre>", "</pre>", f"<img src='{'A' * 3000}'>", "<a x=y/>",
        "<i class=notranslate>", "&#00;", "&#xFEFF;", "<![CDATA[one <b>two</b>]]>"]  # fmt: skip
markups = st.lists(st.sampled_from([*TAGS, "one", "two ", " three", ".", " ", "東京", "\n"]), max_size=24).map("".join)


@given(markups, st.integers(0, 1000), st.sampled_from([html_rules(), xml_rules(ignored=["x"])]), st.booleans())
def test_every_tag_comes_back_exactly_once(markup: str, seed: int, rules: MarkupRules, is_protected: bool) -> None:
    """Whatever the translation and the attention; and the words come back unchanged."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for part in divide(markup, rules, is_protected=is_protected):
        if isinstance(part, str):
            continue
        target = " ".join(draw.choices(["ein", "zwei,", "drei.", "(vier)", "京都"], k=draw.randint(0, 6)))
        words = word_spans(target)
        weights = rng.random((len(words), len(word_spans(part.text)))).astype(np.float32)
        result = part.put_back(target, words, weights)
        assert "".join(result.split()).startswith("".join(part.before.split()))
        without = result
        for node, n in sorted(_nodes(part).items(), key=lambda each: -len(each[0])):
            assert result.count(node) >= n
            without = without.replace(node, "", n)
        assert "".join(without.replace("&#160;", "").split()) == "".join(target.split())
        assert Counter(re.findall("<(b|i)>|</(b|i)>", result)) == Counter(re.findall("<(b|i)>|</(b|i)>", _raw(part)))


elements = st.recursive(
    st.sampled_from(["one ", " two", "three", ".", " ↑ ", "5 ", "<img>", "https://x.org/a ", "<b>*</b>"]),
    lambda inner: st.tuples(st.sampled_from(["b", "i", "0", "sup"]), st.lists(inner, max_size=3)).map(
        lambda each: f"<{each[0]}>{''.join(each[1])}</{each[0]}>"
    ),
    max_leaves=12,
)


@given(st.lists(elements, max_size=4).map("".join), st.integers(0, 1000))
def test_tags_are_nested_as_in_the_source(markup: str, seed: int) -> None:
    """Each pair is within the pairs that it was in, and no tag stands within a word that is copied."""
    numbers = iter(range(1000))
    markup = re.sub("<(b|i|sup)>", lambda match: f"<{match[1]} id={next(numbers)}>", markup)
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for part in divide(markup, html_rules()):
        if isinstance(part, str):
            continue
        target = " ".join(draw.choices(["ein", "zwei,", "https://x.org/a", "5", "."], k=draw.randint(0, 6)))
        words = word_spans(target)
        weights = rng.random((len(words), len(word_spans(part.text)))).astype(np.float32)
        result = part.put_back(target, words, weights)
        assert parents(result) == parents(part.raw)
        assert result.count("https://x.org/a") >= target.count("https://x.org/a")


def parents(markup: str) -> dict[str, str]:
    """Return the tag that each tag with a number is in; all are balanced."""
    found, stack = dict[str, str](), [""]
    for tag in re.findall("<[^>]+>", markup):
        if tag.startswith("</"):
            assert stack.pop().split()[0].strip("<>") == tag.strip("</>")
        elif tag != "<img>":
            found[tag] = stack[-1]
            stack.append(tag)
    assert stack == [""]
    return {tag: parent for tag, parent in found.items() if "id=" in tag}


def _nodes(unit: Unit) -> Counter[str]:
    found, nodes = Counter[str](), list(unit.nodes)
    while nodes:
        node = nodes.pop()
        found[node.opening] += 1
        found[node.closing] += 1
        nodes += node.children
    del found[""]
    return found


def _raw(unit: Unit) -> str:
    return "".join(tag * n for tag, n in _nodes(unit).items())


@given(markups, st.sampled_from([html_rules(), xml_rules()]), st.booleans())
def test_nothing_is_lost_in_dividing(markup: str, rules: MarkupRules, is_protected: bool) -> None:
    parts = divide(markup, rules, is_protected=is_protected)
    assert "".join(part if isinstance(part, str) else part.raw for part in parts) == markup


@pytest.mark.parametrize(
    "piece", ["<!--", "<a b='", "<b>", "</b>", "<![CDATA[", "<script>", "&lt;", "<", '<a "', "<b><i></b>"]
)
def test_hostile_markup_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    for part in divide(piece * (60_000 // len(piece)) + "x", html_rules()):
        if isinstance(part, Unit):
            whole = [(0, len(part.text))]
            part.put_back("eins zwei", [(0, 4), (5, 9)], np.ones((2, 1), np.float32), source_words=whole)
    assert time.process_time() - started < 5


def test_entities_of_letters_and_signs_are_no_placeholders() -> None:
    markup = "Caf&eacute;s &amp; bars don&#8217;t &lt;close&gt;&copyx;"
    [unit] = divide(markup, html_rules(), is_protected=True)
    assert isinstance(unit, Unit)
    assert unit.text.startswith("Cafés & bars don’t")
    assert [node.opening for node in unit.nodes] == ["&lt;", "&gt;"]


def test_a_mark_beside_a_pair_with_all_words_stays_outside() -> None:
    [unit] = divide("<b>Hello world</b>.", html_rules())
    assert isinstance(unit, Unit)
    target = "Hallo Welt."
    weights_XY = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3]], np.float32)
    assert unit.placed(target, word_spans(target), weights_XY) == ("<b>Hallo Welt</b>.", 0)


def test_a_full_stop_follows_a_tag_without_a_space() -> None:
    [unit] = divide("They stand with <code>x</code> behind.", html_rules())
    assert isinstance(unit, Unit)
    target = "Sie stehen."
    weights_XY = np.eye(5, dtype=np.float32)[[0, 1, 4]]
    assert unit.put_back(target, word_spans(target), weights_XY) == "Sie stehen <code>x</code>."
