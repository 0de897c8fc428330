"""Alignment check: shifts are located, and aligned text has no findings."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from said import says
from transduce.corpora import generate_pairs, line_shifts, read_aligned_files
from transduce.corpora.line_shifts import Alignment, Segment, align

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"

TEXTS = {
    "multi30k": ("multi30k/val.en.xz", "multi30k/val.de.xz"),
    "multi30k, French": ("multi30k/val.en.xz", "multi30k/val.fr.xz"),
    "tatoeba": ("tatoeba/tatoeba-2021-08-07.en-de.en.xz", "tatoeba/tatoeba-2021-08-07.en-de.de.xz"),
    "libreoffice": ("libreoffice_help/dev.en-de.en.xz", "libreoffice_help/dev.en-de.de.xz"),
    "packages": ("debian_ddtp/dev.en-fr.en.xz", "debian_ddtp/dev.en-fr.fr.xz"),
    "news": ("wmt_news/newstest2013.en.xz", "wmt_news/newstest2013.de.xz"),
}

Lines = list[str]


@cache
def sentences() -> list[tuple[str, str]]:
    return [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=2000, seed=3)]


def grammar(n_pairs: int = 400) -> tuple[Lines, Lines]:
    return [en for en, _ in sentences()[:n_pairs]], [de for _, de in sentences()[:n_pairs]]


def text_of(name: str, most: int = 800) -> tuple[Lines, Lines]:
    if name == "grammar":
        return grammar(1000)
    paths = [SHARED_DATA / path for path in TEXTS[name]]
    if not all(path.exists() for path in paths):
        pytest.skip("this corpus is not here")
    pairs = list(read_aligned_files(*paths))[:most]
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def aligned(src: Lines, tgt: Lines) -> Alignment:
    return align(lambda: zip(src, tgt, strict=False))


def without(lines: Lines, place: int, n: int) -> Lines:
    """Remove ``n`` lines in the middle, and append as many at the end."""
    return lines[:place] + lines[place + n :] + ["This is quite another line."] * n


@pytest.mark.parametrize("name", ["grammar", *TEXTS])
def test_good_text_is_good_and_shifted_text_is_not(name: str) -> None:
    src, tgt = text_of(name)
    assert aligned(src, tgt).segments == (Segment(1, 0),)
    assert aligned(tgt, src).segments == (Segment(1, 0),)
    for place, n in ((0, 2), (len(src) // 2, 1), (3 * len(src) // 4, 5)):
        for shift, found in ((-n, aligned(src, without(tgt, place, n))), (n, aligned(without(src, place, n), tgt))):
            assert [segment.shift for segment in found.segments] == ([0, shift] if place else [shift])
            assert abs(found.segments[-1].first_line - (place + 1)) <= (10 if place else 0)


@pytest.mark.parametrize("name", ["grammar", *TEXTS])
def test_shuffled_text_is_no_translation(name: str) -> None:
    src, tgt = text_of(name)
    random.Random(1).shuffle(tgt)
    found = aligned(src, tgt)
    assert found.segments == (Segment(1, None),)
    assert says(str(found.fault("a.en", "a.de")), "a.en", "a.de")
    assert not re.search(r"\d", str(found.fault("a.en", "a.de")))  # no line number


def test_large_text_is_sampled_and_the_place_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_shifts, "MAX_CHUNKS", 25)  # of the 40 that there are
    src, tgt = grammar(2000)
    found = aligned(src, without(tgt, 1503, 2))
    assert [segment.shift for segment in found.segments] == [0, -2]
    assert abs(found.segments[1].first_line - 1504) <= 5


def test_a_lost_block_leaves_a_rest_that_matches_nothing() -> None:
    src, tgt = grammar(2000)
    found = aligned(src, tgt[:1000] + tgt[1200:])
    assert [segment.shift for segment in found.segments] == [0, None]
    assert abs(found.segments[1].first_line - 1001) <= 10
    assert says(str(found.fault("a.en", "a.de")), f"{found.segments[1].first_line:,}", "a.en", "a.de")


def test_a_shift_that_ends_again() -> None:
    src, tgt = grammar(900)
    found = aligned(src, tgt[:300] + tgt[301:600] + ["Noch eine Zeile."] + tgt[600:])
    assert [segment.shift for segment in found.segments] == [0, -1, 0]
    assert says(str(found.fault("a.en", "a.de")), f"{found.segments[1].first_line:,}", "a.en", "a.de", "1 more")


def test_what_repeats_itself_is_not_shifted() -> None:
    for lines in (["the same line"] * 500, [f"line {n % 3}" for n in range(500)], [""] * 500, ["a", "bb b"] * 300):
        assert aligned(lines, lines[:]).segments == (Segment(1, 0),)
        assert aligned(lines, lines[6:] + lines[:6]).segments == (Segment(1, 0),)


def test_little_text_is_left_alone() -> None:
    src, tgt = grammar(40)
    assert aligned(src, tgt).fault("a", "b") is None
    assert aligned(src[:12], tgt[1:13]).fault("a", "b") is None
    assert aligned([], []) == Alignment(0)


def test_lines_that_are_no_pair_keep_their_places() -> None:
    src, tgt = grammar(300)

    def read() -> Iterator[tuple[str, str] | None]:
        for number, pair in enumerate(zip(src, tgt[1:], strict=False)):
            yield None if number % 10 == 3 else pair

    assert align(read).segments == (Segment(1, -1),)


def test_sentences_about_shifts() -> None:
    whole = Alignment(900, (Segment(1, 2),))
    assert whole.fault("a.en", "a.de") == (
        "line N of a.en matches line N + 2 of a.de: a.en lacks 2 lines at its beginning, or a.de has 2 too many"
    )
    assert Alignment(900).fault("a.en", "a.de") is None
