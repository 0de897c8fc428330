"""Which hypothesis becomes the translation."""

from __future__ import annotations

import time

import pytest

from transduce.inference.translation.hypotheses import Candidate, Fault, HypothesisCheck, best_candidates
from transduce.inference.translation.parts import ScoredText
from transduce.inference.translation.word_loops import is_repetitive, without_loops
from transduce.text import MaskRules

CHECK = HypothesisCheck(MaskRules("en", "de"))

LOOPS = [
    ("behind", "derrière derrière derrière derrière"),
    ("only", "Nur nur nur"),
    ("behind", "Prends derrière, derrière, derrière, derrière!"),
    ("You eat.", "Essen Sie für für für für Sie."),
    ("The cat sleeps here.", "die Katze die Katze die Katze schläft"),
    ("One", "und so weiter und so weiter und so weiter"),
    ("Take it.", "Neh" + "menehm" * 6),
    ("wonderful", "wunder" + "a" * 12),
    ("good", "很好很好很好很好"),
    ("I", "我我我我我我"),
    ("No, no, no, no!", "Nein, nein, nein, nein, nein!"),
    ("a b a b a b", "x y x y x y x y"),
    ("Stop!!!", "Halt!!!!!!!!"),
    ("Wait", "Warte, ????"),
]
NO_LOOPS = [
    ("No, no, no!", "Nein, nein, nein!"),
    ("bye", "Tschüss, tschüss"),
    ("very good", "sehr, sehr, sehr gut"),
    ("very, very good", "sehr, sehr gut"),
    ("Ha ha ha ha", "Ha ha ha ha"),
    ("-----", "-----"),
    ("Wait.....", "Warte....."),
    ("1000000 people", "1000000 Leute"),
    ("Mississippi", "Mississippi"),
    ("Chapter 1 ........ 5", "Kapitel 1 ........ 5"),
    ("Wait…", "Warte..."),
    ("Aaaaaaaah!", "Aaaaaaaaah!"),
    ("goodbye", "再见再见"),
    ("Haha", "哈哈哈"),
    ("0 0 0 0 0", "0 0 0 0 0"),
    ("The dog sees the cat and the bird and the tree.", "Der Hund sieht die Katze und den Vogel und den Baum."),
    ("", ""),
]


@pytest.mark.parametrize(("source", "target"), LOOPS)
def test_a_loop_is_recognised(source: str, target: str) -> None:
    assert is_repetitive(source, target)
    assert CHECK.fault(source, target) is Fault.REPEATS


@pytest.mark.parametrize(
    ("source", "target"), [*LOOPS, ("x", "a b " * 9 + "c c c c c a b a b a b"), ("x", "a.a.a,a.a")]
)
def test_of_a_loop_only_what_may_be_is_kept(source: str, target: str) -> None:
    shorter = without_loops(source, target)
    assert shorter and not is_repetitive(source, shorter)  # noqa: PT018
    letters = iter(target)
    assert all(letter in letters for letter in shorter)  # something was left out, nothing changed


@pytest.mark.parametrize(("source", "target"), NO_LOOPS)
def test_what_the_source_repeats_may_be_repeated(source: str, target: str) -> None:
    assert not is_repetitive(source, target)
    assert without_loops(source, target) == target


@pytest.mark.parametrize("text", ["a " * 10_000, "ab" * 10_000, "x y z " * 3000, "我" * 20_000, "ab, " * 5000])
def test_the_check_takes_linear_time(text: str) -> None:
    started = time.monotonic()
    assert is_repetitive("source", text)
    assert len(without_loops("source", text)) < 100
    assert time.monotonic() - started < 5  # about 0.2


def candidate(text: str, fault: Fault, *, is_repaired: bool = False, is_finished: bool = True) -> Candidate:
    return Candidate(ScoredText(text, -1.0), fault, is_repaired, is_finished)


@pytest.mark.parametrize(
    ("faults", "kept"),
    [
        ("NONE NONE LACKS_STRINGS", "01"),
        ("LACKS_STRINGS REPEATS NONE HAS_NO_WORD", "2"),
        ("HAS_NO_WORD REPEATS LACKS_STRINGS LACKS_STRINGS", "23"),
        ("HAS_NO_WORD REPEATS", "1"),
        ("HAS_NO_WORD", "0"),
        ("", ""),
    ],
)
def test_those_with_the_least_fault_are_kept_in_order(faults: str, kept: str) -> None:
    found = best_candidates(candidate(str(n), Fault[name]) for n, name in enumerate(faults.split()))
    assert "".join(each.best.text for each in found) == kept


def test_equal_texts_are_kept_once() -> None:
    found = best_candidates(candidate(text, Fault.NONE) for text in ("a", "b", "a", "b", "c"))
    assert [each.best.text for each in found] == ["a", "b", "c"]


def test_faults_are_of_texts() -> None:
    assert CHECK.fault("The dog.", "Der Hund.") is Fault.NONE
    assert CHECK.fault("The dog.", ".") is CHECK.fault("The dog.", "") is Fault.HAS_NO_WORD
    assert CHECK.fault("Since 2024", "Seit 2402") is Fault.LACKS_STRINGS
    assert CHECK.fault("See {name} now", "Siehe jetzt") is Fault.LACKS_STRINGS
    assert CHECK.fault("five", "5") is Fault.NONE


def test_what_is_lost_is_mended_and_told() -> None:
    best, flags = CHECK.mended(candidate("Seit 2402.", Fault.LACKS_STRINGS), "Since 2024.")
    assert "2024" in best.text
    assert flags == {"mended"}
    best, flags = CHECK.mended(candidate("Der Hund", Fault.NONE), "The dog")
    assert (best.text, flags) == ("Der Hund", set())
    assert CHECK.mended(candidate("x", Fault.NONE, is_repaired=True), "x")[1] == {"mended"}
    assert CHECK.mended(candidate("x", Fault.NONE, is_finished=False), "x")[1] == {"output-cut"}
    assert CHECK.mended(candidate("a a a", Fault.REPEATS, is_finished=False), "x")[1] == {"repeated", "output-cut"}
    assert CHECK.mended(candidate("-", Fault.HAS_NO_WORD), "x") == (ScoredText("", -1.0), {"untranslated"})


@pytest.mark.parametrize(
    ("source", "target", "mended"),
    [
        ("KDE 2.2 is old: see kde.org for KDE 2.2.", "KDE 2.2 kde.org.", "KDE 2.2 kde.org 2.2."),
        ("Heal at most 8 points", "Heile 8- 8 8 8 8 dunkt", "Heile 8- 8 8 dunkt"),
        ("Versions 1.1-1 and 1.2-1 work", "Alles geht", "Alles 1.1-1 geht 1.2-1"),
    ],
)
def test_what_is_put_in_makes_no_loop(source: str, target: str, mended: str) -> None:
    best, _ = CHECK.mended(candidate(target, CHECK.fault(source, target)), source)
    assert best.text == mended
    assert CHECK.fault(source, mended) is Fault.NONE
