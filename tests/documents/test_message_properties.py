"""Whatever a message says: it is read as it was written, stays the same bytes, and takes translations."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.documents import Reading, pairs_of, read_document
from transduce.documents.placeholders import KINDS, checked, placeholders
from transduce.documents.po_reading import read_entries
from transduce.documents.po_writing import quoted_po
from transduce.documents.tmx import tmx_lines
from transduce.errors import DataError

WORDS = (
    "word Word. 字 é \\ \" ' \n \n\n \t \r \a _File & && ~ % %s %d %1$s %2$d %% %(n)s { } {} {0} {{ }} {n:x} %1 %n $a "
    "${b} - --opt, <b> </b> < &amp; <x/> </g> ]]> <![CDATA[ \ufeff msgid #, #~ 12"
)
PIECES = st.sampled_from([*WORDS.split(" "), "<g id='1'>", " ", "  "])
TEXTS = st.lists(PIECES, max_size=12).map("".join)
FLAGS = st.sampled_from(["", *sorted(set(KINDS))])


def parsed(text: str) -> list[tuple[str, str]]:
    return [(entry.source, entry.forms[0].text) for entry in read_entries(text)]


@given(TEXTS, TEXTS, st.integers(20, 90), st.booleans())
def test_po_is_read_as_it_was_written(source: str, target: str, width: int, is_wrapped: bool) -> None:
    written = [quoted_po(text, f"msg{name}", width=width if is_wrapped else None)
               for name, text in (("id", source), ("str", target))]  # fmt: skip
    assert parsed("\n".join(written)) == [(source, target)]


@given(TEXTS, TEXTS, FLAGS, st.booleans())
def test_any_message_is_kept_and_takes_translations(source: str, target: str, flag: str, is_protected: bool) -> None:
    first = f"#, {flag}\n" if flag else ""
    text = (
        f'{first}{quoted_po(source, "msgid")}\nmsgstr ""\n\nmsgid "x y"\nmsgstr "_Z"\n\n#~ msgid "a"\n#~ msgstr "b"\n'
    )
    document = read_document(text.encode(), "a.po", Reading(is_protected=is_protected, is_trusted=True))
    n = len(document.segments)
    assert document.written([None] * n) == text.encode()
    if n < 2 or any(each.unit.nodes for each in document.segments):
        return
    try:
        result = document.written([*(each.unit.put_back(target) for each in document.segments[:-1]), None]).decode()
    except DataError:  # of its placeholders
        return
    entries = parsed(result)
    assert [entry[0] for entry in entries] == [source, "x y"]
    assert entries[1][1] == "_Z"
    assert entries[0][1].startswith("\n") is source.startswith("\n") or target.startswith(("\n", "\r"))


@given(TEXTS, TEXTS, st.lists(FLAGS.filter(bool), max_size=2))
def test_what_was_checked_is_right(source: str, target: str, kinds: list[str]) -> None:
    result = checked(source, target, kinds)
    if result.fault:
        assert result.text == target
    else:
        assert checked(source, result.text, kinds).fault == ""
        for family in {KINDS[kind] for kind in kinds}:
            theirs, ours = ({each.key for each in placeholders(text, family)} for text in (source, result.text))
            assert theirs == ours


@given(TEXTS, TEXTS)
def test_xliff_is_kept_and_takes_translations(source: str, target: str) -> None:
    unit = f"<trans-unit id='1'><source>{source}</source></trans-unit>"
    text = f"<xliff version='1.2'><file><body>{unit}</body></file></xliff>"
    try:
        document = read_document(text.encode(), "a.xlf")
    except DataError:
        return
    n = len(document.segments)
    assert document.written([None] * n) == text.encode()
    if n and not any(each.unit.nodes for each in document.segments) and "<![CDATA[" not in source:
        written = read_document(document.written([each.unit.put_back(target) for each in document.segments]), "a.xlf")
        assert [each.unit.text for each in written.segments] == [each.unit.text for each in document.segments]


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_tmx_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "property.tmx"
    path.write_text("\n".join(tmx_lines([(*pair, "") for pair in pairs], "en", "de")), encoding="utf-8")
    for pair in pairs_of(path, "en", "de"):
        cleaned = [tuple(" ".join(side.replace("\a", "").split()) for side in each) for each in pairs]
        assert (pair.src, pair.tgt) in cleaned


@pytest.mark.parametrize("piece", [" ", "\\n", "%", "{", "_a", "%s ", "<b>", "- ", "a\\n", '\\"'])
def test_no_message_takes_quadratic_time(piece: str) -> None:
    data = f'#, c-format, python-brace-format\nmsgid "a{piece * 4000}b c"\nmsgstr ""\n'.encode()
    begin = time.perf_counter()
    document = read_document(data, "a.po", Reading(is_protected=True))
    document.written([None] * len(document.segments))
    assert time.perf_counter() - begin < 3
