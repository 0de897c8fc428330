"""Generated images: functions of the seed; what is tested is in no training image."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from said import naming
from transduce.config import SPLITS, DataConfig, Split
from transduce.corpora import ocr_lines
from transduce.corpora.media_lines import MAX_LINE, media_lines, split_of
from transduce.corpora.noise import NOISES, noisy
from transduce.corpora.ocr_digits import OcrDigits, digits_of
from transduce.corpora.ocr_lines import OcrLines, find_font, font_folders, rendered_line
from transduce.errors import DataError

pytest.importorskip("PIL")
FONTS = sorted(path for folder in font_folders() if folder.is_dir() for path in folder.rglob("DejaVu*.ttf"))
needs_fonts = pytest.mark.skipif(len(FONTS) < 2, reason="no fonts on this machine")


def lines_config(**changes: object) -> DataConfig:
    values: dict[str, object] = {
        "task": "image-to-text", "corpus": "ocr-lines", "n_pairs": 12, "language": "both",
        "training_fonts": (str(FONTS[0]),), "test_fonts": (str(FONTS[1]),),
        "training_noise": ("blur", "grain"), "test_noise": ("speckle",),
    }  # fmt: skip
    return DataConfig(**(values | changes))  # type: ignore[arg-type]


def test_lines_are_a_function_of_the_seed_and_belong_to_one_split() -> None:
    lines = {split: list(media_lines(split, n=60, seed=1, languages=["en", "de"])) for split in SPLITS}
    assert lines["train"] == list(media_lines("train", n=60, seed=1, languages=["en", "de"]))
    assert lines["train"] != list(media_lines("train", n=60, seed=2, languages=["en", "de"]))
    assert all(split_of(line) == split for split, of_split in lines.items() for line in of_split)
    everything = [line for of_split in lines.values() for line in of_split]
    assert all(0 < len(line) <= MAX_LINE for line in everything)
    assert {"ä", "7", "$"} <= set("".join(everything))
    assert lines["train"][:20] == list(media_lines("train", n=20, seed=1, languages=["en", "de"]))


def test_many_training_lines_are_short_and_the_test_lines_are_fixed() -> None:
    def share_of_few_words(split: Split) -> float:
        lines = list(media_lines(split, n=150, seed=1, languages=["en", "de"]))
        return sum(len(line.split()) <= 3 for line in lines) / len(lines)

    assert share_of_few_words("train") > share_of_few_words("dev") + 0.2
    lines = "\n".join(media_lines("test", n=100, seed=1, languages=["en", "de"]))
    assert sha256(lines.encode()).hexdigest().startswith("9c353b4046868bd4")  # scores are comparable


@needs_fonts
def test_images_are_a_function_of_the_configuration() -> None:
    for split in SPLITS:
        first, again = (list(islice(OcrLines(lines_config()).made(split), 8)) for _ in range(2))
        assert [(name, text) for name, text, _ in first] == [(name, text) for name, text, _ in again]
        for (_, _, one), (_, _, other) in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)
    parts = [name.partition("/")[0] for name, _, _ in islice(OcrLines(lines_config()).made("test"), 8)]
    assert parts == ["clean", "noisy"] * 4
    assert len(list(OcrLines(lines_config()).texts("train"))) == 12
    without = OcrLines(lines_config(test_noise=(), training_noise=()))
    assert {name.partition("/")[0] for name, _, _ in islice(without.made("test"), 4)} == {"clean"}


@needs_fonts
def test_a_font_that_is_missing_is_named() -> None:
    with pytest.raises(DataError, match=naming("NoSuchFont.ttf", "data.training_fonts")):
        OcrLines(lines_config(training_fonts=("NoSuchFont.ttf",)))
    assert find_font(FONTS[0].name).name == FONTS[0].name


@needs_fonts
def test_all_of_a_line_is_in_its_image() -> None:
    image = rendered_line("lange Zeile, gjpqy", FONTS[0], Random(3))
    assert image.shape[1] > image.shape[0]
    edge = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    assert int(edge.min()) > int(image.min()) + 50  # no ink at the edge


@needs_fonts
def test_noise_that_leaves_a_line_blank_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr_lines, "noisy", lambda pixels, *_: np.full_like(pixels, 200))
    clean, noised = (rendered_line("a line", FONTS[0], Random(3), noise=noise) for noise in ((), ("faint",)))
    np.testing.assert_array_equal(clean, noised)


def test_noise_is_a_function_of_the_generator() -> None:
    page = np.full((20, 30), 230, np.uint8)
    page[5:15, 10:12] = 20
    for kind in NOISES:
        one, again, other = (noisy(page, kind, np.random.default_rng(seed)) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, again)
        assert one.shape == page.shape
        assert (one != page).any() or (other != page).any(), kind


def test_each_digit_is_in_one_split_and_rows_have_their_labels() -> None:
    pytest.importorskip("sklearn")
    sizes = {split: len(digits_of(split)[1]) for split in SPLITS}
    assert sum(sizes.values()) == 1797
    images = {split: {image.tobytes() for image in digits_of(split)[0]} for split in SPLITS}
    assert not images["train"] & images["test"]
    corpus = OcrDigits(DataConfig(task="image-to-text", corpus="ocr-digits", n_pairs=20))
    rows = list(corpus.made("train"))
    assert [text for _, text, _ in rows] == list(corpus.texts("train"))
    assert all(2 <= len(text) <= 8 and text.isdigit() for _, text, _ in rows)
    assert all(pixels.shape[0] == 32 and pixels.shape[1] >= 32 * len(text) for _, text, pixels in rows)


def test_a_folder_of_fonts_is_not_needed_for_paths(tmp_path: Path) -> None:
    path = tmp_path / "own.ttf"
    path.write_bytes(b"no font")
    assert find_font(str(path)) == path
    with pytest.raises(DataError, match=naming(path)):
        rendered_line("a", path, Random(1))
