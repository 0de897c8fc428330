"""XLIFF: where translations go, and how they are marked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from transduce.documents import Document, Reading, read_document
from transduce.errors import DataError
from transduce.text import word_spans

ONE = '<xliff version="1.2"><file source-language="en"{}><body>{}</body></file></xliff>'
TWO = '<xliff version="2.0" srcLang="en"{}><file id="f"><unit id="u">{}</unit></file></xliff>'


def document_of(text: str, **reading: object) -> Document:
    return read_document(text.encode(), "a.xlf", Reading(**reading))  # type: ignore[arg-type]


def written(document: Document, targets: Sequence[str], order: Sequence[Sequence[int]] = ()) -> str:
    """Return the file with translations; ``order``: the source words that the words of each target belong to."""
    put = []
    for number, (segment, target) in enumerate(zip(document.segments, targets, strict=True)):
        words = word_spans(target)
        weights = np.eye(len(word_spans(segment.unit.text)), dtype=np.float32)
        put.append(segment.unit.put_back(target, words, weights[list(order[number])] if order else weights))
    return document.written(put, tgt_language="de").decode()


def test_a_target_is_added_behind_its_source_and_marked() -> None:
    unit = "<trans-unit id='1'>\n  <source>Good {}day</source>{}\n  <note>n</note></trans-unit>"
    text = ONE.format("", unit.format('<x id="1"/>', ""))
    new = '\n  <target state="needs-review-translation">Guten <x id="1"/>Tag</target>'
    assert written(document_of(text), ["Guten Tag"]) == ONE.format(
        ' target-language="de"', unit.format('<x id="1"/>', new)
    )
    trusted = written(document_of(text, is_trusted=True), ["Guten Tag"])
    assert trusted == ONE.format(' target-language="de"', unit.format('<x id="1"/>', new)).replace(
        "needs-review-translation", "translated"
    )


def test_codes_that_belong_together_surround_their_words() -> None:
    source = 'The <bpt id="1" rid="7">\\b</bpt>red<ept id="2" rid="7">\\b0</ept> door<ph id="3">!</ph>'
    document = document_of(ONE.format("", f"<trans-unit id='1'><source>{source}</source></trans-unit>"))
    assert [each.unit.text for each in document.segments] == ["The red door"]
    result = written(document, ["La porte rouge"], [(0, 2, 1)])
    assert (
        'La porte <bpt id="1" rid="7">\\b</bpt>rouge<ept id="2" rid="7">\\b0</ept><ph id="3">!</ph></target>' in result
    )


def test_codes_of_version_2() -> None:
    source = (
        'A <sc id="1"/>red<ec startRef="1"/> <pc id="2">old</pc> <mrk id="m" translate="no">Foo</mrk> door<ph id="3"/>'
    )
    document = document_of(TWO.format("", f"<segment><source>{source}</source></segment>"))
    assert document.segments[0].unit.text == "A red old door"
    result = written(document, ["Eine rote alte Tür"])
    assert result == TWO.format(
        ' trgLang="de"',
        f'<segment state="initial"><source>{source}</source><target>'
        'Eine <sc id="1"/>rote<ec startRef="1"/> <pc id="2">alte</pc> <mrk id="m" translate="no">Foo</mrk> '
        'Tür<ph id="3"/></target></segment>',
    )
    assert [each.is_wanted for each in document_of(result, wanted="fuzzy").segments] == [True]


def test_segments_of_version_2_have_states() -> None:
    body = (
        '<segment state="{}"><source>One</source><target>{}</target></segment><ignorable><source> </source></ignorable>'
    )
    text = TWO.format(' trgLang="de"', body.format("final", "Ein"))
    assert [each.is_wanted for each in document_of(text).segments] == [False]
    document = document_of(text, wanted="all")
    assert written(document, ["Eins"]) == TWO.format(' trgLang="de"', body.format("initial", "Eins"))


def test_sentences_of_a_divided_source() -> None:
    marks = "<g id='1'><mrk mtype='seg' mid='{}'>{}</mrk> <mrk mtype='seg' mid='{}'>{}</mrk></g>"
    seg = f"<seg-source>{marks.format(1, 'One dog.', 2, 'Two cats.')}</seg-source>"
    target = f"<target>{marks.format(1, 'Ein Hund.', 2, '')}</target>"
    source = "<source><g id='1'>One dog. Two cats.</g></source>"
    document = document_of(
        ONE.format(' target-language="de"', f"<trans-unit id='1'>{source}{seg}{target}</trans-unit>")
    )
    assert [(each.unit.text, each.target, each.is_wanted) for each in document.segments] == [
        ("One dog.", "Ein Hund.", False), ("Two cats.", "", True),
    ]  # fmt: skip
    result = document.written([None, "Zwei Katzen."], tgt_language="de").decode()
    assert (
        f'<target state="needs-review-translation">{marks.format(1, "Ein Hund.", 2, "Zwei Katzen.")}</target>' in result
    )


def test_what_is_not_translated_stays() -> None:
    units = (
        "<group translate='no'><trans-unit id='1'><source>No one</source></trans-unit></group>"
        "<trans-unit id='2' translate='no'><source>Not this</source></trans-unit>"
        "<trans-unit id='3'><source>Yes</source><target state='needs-review-translation'>Ja</target></trans-unit>"
        "<trans-unit id='4'><source>Copied</source><target state='new'>Copied</target></trans-unit>"
        "<trans-unit id='5'><source>42</source></trans-unit><trans-unit id='6'><source/></trans-unit>"
    )
    wanted = {
        kind: [each.unit.text for each in document_of(ONE.format("", units), wanted=kind).segments if each.is_wanted]
        for kind in ("empty", "fuzzy", "all")
    }
    assert wanted == {"empty": ["Copied"], "fuzzy": ["Yes", "Copied"], "all": ["Yes", "Copied"]}


def test_sections_are_sections_again() -> None:
    text = ONE.format("", "<trans-unit id='1'><source><![CDATA[<p>Good day</p>]]></source></trans-unit>")
    assert "<![CDATA[<p>Guten Tag</p>]]></target>" in written(document_of(text), ["Guten Tag"])


def test_texts_without_a_translation_are_those_of_the_source() -> None:
    source = "<![CDATA[<table><tr><td>Price</td><td>100 €</td><td>Total</td></tr></table>]]>"
    text = ONE.format(' target-language="de"', f"<trans-unit id='1'><source>{source}</source></trans-unit>")
    document = document_of(text, is_trusted=True)
    assert [each.unit.text for each in document.segments] == ["Price", "Total"]
    result = document.written(["Preis", None]).decode()
    assert f'<target state="needs-review-translation">{source.replace("Price", "Preis")}</target>' in result
    result = document.written(["Preis", "Summe"]).decode()
    assert f'<target state="translated">{source.replace("Price", "Preis").replace("Total", "Summe")}</target>' in result


def test_a_sentence_without_a_translation_is_that_of_the_source() -> None:
    marks = "<mrk mtype='seg' mid='1'>{}</mrk> <mrk mtype='seg' mid='2'>{}</mrk>"
    unit = f"<source>One. Two.</source><seg-source>{marks.format('One.', 'Two.')}</seg-source>"
    target = f"<target>{marks.format('', '')}</target>"
    document = document_of(ONE.format(' target-language="de"', f"<trans-unit id='1'>{unit}{target}</trans-unit>"))
    assert marks.format("Eins.", "Two.") in document.written(["Eins.", None]).decode()


MARK = "<mrk mtype='seg' mid='{}'>{}</mrk>"
SENTENCES = f"<source>One. Two.</source><seg-source>{MARK.format(1, 'One.')} {MARK.format(2, 'Two.')}"
SECTION = "<source><![CDATA[<p>One</p><p>Two</p>]]></source>"


@pytest.mark.parametrize(
    ("unit", "pairs"),
    [
        (f"{SENTENCES}</seg-source><target>Eins und zwei.</target>", []),
        (f"{SENTENCES}</seg-source><target>{MARK.format('1+2', 'Eins und zwei.')}</target>", []),
        (f"{SECTION}<target><![CDATA[<p>Eins und zwei</p>]]></target>", []),
        (f"{SECTION}<target><![CDATA[<p>Eins</p><p>Zwei</p>]]></target>", ["Eins", "Zwei"]),
        ("<source><![CDATA[<p>One</p>]]></source><target><![CDATA[<p>E</p><p>S</p>]]></target>", ["E S"]),
        ("<source>and</source><target>&amp;</target>", []),
        ("<source>and</source><target><x id='1'/></target>", []),
    ],
)
@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_any_content_of_a_target_is_a_translation(unit: str, pairs: list[str], version: str) -> None:
    if version == "1.2":
        text = ONE.format(' target-language="de"', f"<trans-unit id='1'>{unit}</trans-unit>")
    else:
        text = TWO.format(' trgLang="de"', f"<segment state='final'>{unit}</segment>")
    segments = document_of(text).segments
    assert [each.is_wanted for each in segments] == [False] * len(segments)
    assert [each.target for each in segments if each.target] == pairs
    assert all(each.is_wanted for each in document_of(text, wanted="all").segments)


@pytest.mark.parametrize("target", ["<target> </target>", "<target/>", "<target><mrk mtype='seg' mid='1'/></target>"])
def test_a_target_without_content_is_none(target: str) -> None:
    text = ONE.format(' target-language="fr"', f"<trans-unit id='1'>{SENTENCES}</seg-source>{target}</trans-unit>")
    assert all(each.is_wanted for each in document_of(text).segments)
    assert "Eins. <" not in document_of(text).written(["Eins.", "Zwei."], tgt_language="de").decode()


@pytest.mark.parametrize(
    ("space", "source", "target"),
    [
        ("preserve", "One.\n\n  Two <x id='1'/>\n", "ONE.\n\n  TWO <x id='1'/>\n"),
        ("preserve", "100&#13;\nOne.&#xA;<g id='1'>Two\nor three</g>", "100&#13;\nONE.&#xA;<g id='1'>TWO OR THREE</g>"),
        ("preserve", "<g id='1'>One.\nTwo.</g>", "<g id='1'>ONE. TWO.</g>"),
        ("preserve", "A sentence of it\nends", "A SENTENCE OF\nIT ENDS"),
        ("default", "A sentence of it&#10;ends", "A SENTENCE OF&#10;IT ENDS"),
        ("default", "\n  One.\n  Two.", "\n  ONE. TWO."),
        ("default", "One.&#10;Two.", "ONE.&#10;TWO."),
        (
            "preserve",
            "One <x id='a_code_with_a_long_name_for_one_word'/>\nTwo",
            "ONE <x id='a_code_with_a_long_name_for_one_word'/>\nTWO",
        ),
    ],
)
def test_lines_are_lines_again(space: str, source: str, target: str) -> None:
    unit = f"<trans-unit id='1' xml:space='{space}'><source>{source}</source></trans-unit>"
    document = document_of(ONE.format(' target-language="de"', unit))
    upper = [" ".join(each.unit.text.split()).upper() for each in document.segments]
    result = written(document, upper)
    assert f">{target}</target>" in result
    assert [each.target for each in document_of(result).segments if "<g" not in target] == upper * ("<g" not in target)


def test_a_section_cannot_hold_its_end() -> None:
    text = ONE.format("", "<trans-unit id='7'><source><![CDATA[Good day]]></source></trans-unit>")
    with pytest.raises(DataError, match=r"7: .*\]\]>"):
        written(document_of(text), ["a ]]>"], [(0, 1, 1)])


def test_markup_that_is_text_is_kept() -> None:
    source = "A &lt;b class=&quot;x&quot;&gt;red&lt;/b&gt; door &amp; %s"
    document = document_of(
        ONE.format("", f"<trans-unit id='1'><source>{source}</source></trans-unit>"), is_protected=True
    )
    assert document.segments[0].unit.text == "A red door &"
    result = written(document, ["Une porte rouge &"], [(0, 2, 1, 3)])
    assert '>Une porte &lt;b class="x"&gt;rouge&lt;/b&gt; &amp; %s</target>' in result


def test_characters_that_the_encoding_lacks_are_references() -> None:
    text = '<?xml version="1.0" encoding="us-ascii"?>' + ONE.format(
        "", "<trans-unit id='1'><source>a b</source></trans-unit>"
    )
    assert "&#228; &lt;</target>" in written(document_of(text), ["ä <"], [(0, 1)])


def test_other_languages_are_refused() -> None:
    text = ONE.format(
        ' target-language="fr"', "<trans-unit id='1'><source>Yes</source><target>Oui</target></trans-unit>"
    )
    with pytest.raises(DataError, match=r"'fr'.*'de'"):
        written(document_of(text, wanted="all"), ["Ja"])
    empty = text.replace("Oui", "")
    assert 'target-language="de"' in written(document_of(empty), ["Ja"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<xliff version='1.2'><file>", "never closed"),
        ("<xliff version='1.2'>\n</file>", "line 2"),
        ("<xliff version='9'/>", "'9'"),
        ("<html/>", "<html>"),
        ("words", "0 root elements"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><xliff/>", "entities"),
        ("<xliff>" + "<g>" * 9999, "deep"),
        ("<?xml version='1.0' encoding='klingon'?><xliff/>", "klingon"),
    ],
)
def test_damage_is_one_line(text: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        document_of(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
