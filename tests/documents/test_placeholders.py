"""Placeholders and accelerators: what is mended, and what is said to be wrong."""

from __future__ import annotations

import pytest

from transduce.documents.message_lines import message_parts
from transduce.documents.placeholders import checked
from transduce.text.markup import Unit


@pytest.mark.parametrize(
    ("kind", "source", "target", "expected"),
    [
        ("c-format", "%d%% of %s", "%d%% von %s", "%d%% von %s"),
        ("c-format", "%d%% of %s", "%d % von %s", "%d %% von %s"),
        ("c-format", "%s of it", "% s davon", "%s davon"),
        ("c-format", "%s of it", "%S davon", "%s davon"),
        ("c-format", "%s of it", "其中的％s", "其中的%s"),
        ("c-format", "%s: %d", "%d in %s", "%2$d in %1$s"),
        ("c-format", "%s: %s", "%2$s in %1$s", "%2$s in %1$s"),
        ("c-format", "%s: %s", "%1$s in %2$s", "%s in %s"),
        ("c-format", "%1$s: %2$s", "%2$s in %1$s", "%2$s in %1$s"),
        ("c-format", "%*d", "%*d", "%*d"),
        ("python-format", "%(n)s: %(k)d", "%(k)d in % (n) s", "%(k)d in %(n)s"),
        ("python-format", "%s: %d", "%1$s in %2$d", "%s in %d"),
        ("python-brace-format", "{a} {{b}}", "{ A } {{b}}", "{a} {{b}}"),
        ("python-brace-format", "{} {}", "{1} {0}", "{1} {0}"),
        ("python-brace-format", "{} {:.2f}", "{0} {1:.2f}", "{} {:.2f}"),
        ("qt-format", "%1 of %L2", "%L2 von %1", "%L2 von %1"),
        ("sh-format", "$HOME or ${x}", "${x} oder $HOME", "${x} oder $HOME"),
        ("", "Hello {{name}}, <b>%{n}</b>", "Hallo {{ name }}, <b>%{n}</b>", "Hallo {{name}}, <b>%{n}</b>"),
        ("_", "_File", "Datei", "_Datei"),
        ("_", "_File", "Da_tei", "Da_tei"),
        ("_", "_File", "_Da_tei", "_Datei"),
        ("_", "Save _As %s...", "%s speichern als", "%s speichern _als"),
        ("&", "&File", "文件", "文件(&F)"),
        ("&", "&File", "文件(&X)...", "文件(&X)..."),
    ],
)
def test_what_is_right_or_mended(kind: str, source: str, target: str, expected: str) -> None:
    result = checked(source, target, [kind] if kind else [])
    assert (result.text, result.fault) == (expected, "")


@pytest.mark.parametrize(
    ("kind", "source", "target", "words"),
    [
        ("c-format", "%d files", "Dateien", "lacks %d"),
        ("c-format", "%d files", "%d Dateien %s", "has %s"),
        ("c-format", "%d files", "%s Dateien", "has %s where the source has %d"),
        ("c-format", "%d of %s", "%2$s %d", "with and without"),
        ("python-format", "%s: %d", "%2$d in %1$s", "order"),
        ("python-brace-format", "{a}", "{b}", "lacks {a}"),
        ("qt-format", "%1 of %2", "%1 von %3", "lacks %2"),
        ("", "a <b>c</b>", "a <b>c", "lacks </b>"),
        ("", "{{a}}", "{{b}}", "lacks {{a}}"),
    ],
)
def test_what_is_wrong(kind: str, source: str, target: str, words: str) -> None:
    result = checked(source, target, [kind] if kind else [])
    assert words in result.fault
    assert result.text == target


def test_placeholders_of_a_unit_have_numbers_so_that_their_order_is_known() -> None:
    [unit] = message_parts("Copy %s to <b>%s</b>", kinds=["c-format"], is_protected=True)
    assert isinstance(unit, Unit)
    assert (unit.text, unit.raw) == ("Copy to", "Copy %s to <b>%s</b>")
    assert [node.opening for node in unit.nodes] == ["%1$s", "<b>"]
    assert [node.opening for node in unit.nodes[1].children] == ["%2$s"]
