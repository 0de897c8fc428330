"""Images of every kind as columns of ink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from said import naming
from transduce.errors import DataError
from transduce.media import columns_of_image, read_image, reader_of

Image: Any = pytest.importorskip("PIL.Image")


def page(height: int = 32, width: int = 40) -> Any:
    """A black bar, from column 8 to 11, on white."""
    grey = np.full((height, width), 255, np.uint8)
    grey[:, 8:12] = 0
    return Image.fromarray(grey)


def test_columns_are_ink_from_left_to_right_and_top_to_bottom() -> None:
    grey = np.full((4, 6), 200, np.uint8)
    grey[1, 2] = 0  # the second row, the third column
    columns = columns_of_image(grey, height=4)
    assert columns.shape == (6, 4)
    assert columns.dtype == np.uint8
    expected = np.zeros((6, 4))
    expected[2, 1] = 255
    np.testing.assert_array_equal(columns, expected)


def test_an_image_is_scaled_to_the_height() -> None:
    columns = columns_of_image(np.asarray(page(64, 80)), height=32)
    assert columns.shape == (40, 32)
    assert columns[5].min() == 255  # half of column 11
    assert columns[20].max() == 0


def test_light_text_on_a_dark_ground_is_the_same() -> None:
    grey = np.asarray(page())
    np.testing.assert_array_equal(columns_of_image(grey, height=32), columns_of_image(255 - grey, height=32))
    faint = (grey // 2 + 60).astype(np.uint8)
    np.testing.assert_array_equal(columns_of_image(grey, height=32), columns_of_image(faint, height=32))


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA", "P", "LA", "I;16", "CMYK"])
def test_images_of_all_modes(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("image.tif" if mode in ("I;16", "CMYK") else "image.png")
    image = page()
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image).astype(np.uint16) * 256)
    elif mode == "LA":
        image.putalpha(255)
    else:
        image = image.convert(mode)
    image.save(path)
    columns = reader_of("image", width=32).read(path)
    assert columns.shape == (40, 32)
    assert (columns[8:12].min(), columns[20:].max()) == (255, 0)


def test_what_is_transparent_is_paper(tmp_path: Path) -> None:
    image = Image.new("RGBA", (20, 10), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (4, 0, 6, 10))
    image.save(tmp_path / "a.png")
    grey = read_image(tmp_path / "a.png")
    assert (grey[0, 0], grey[0, 4]) == (255, 0)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    reader = reader_of("image", width=32)
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nnonsense")
    (tmp_path / "empty.png").write_bytes(b"")
    Image.new("L", (9, 9), 255).save(tmp_path / "blank.png")
    whole = tmp_path / "whole.png"
    page().save(whole)
    (tmp_path / "cut.png").write_bytes(whole.read_bytes()[:60])
    for name in ("bad.png", "empty.png", "blank.png", "cut.png", "none.png"):
        with pytest.raises(DataError, match=naming(str(tmp_path / name))):
            reader.read(tmp_path / name)
    with pytest.raises(DataError, match=r"folder|directory"):
        reader.read(tmp_path)


def test_wide_images_are_too_long_for_training() -> None:
    reader = reader_of("image", width=32, max_columns=39)
    columns = reader.features(np.asarray(page()))
    assert "40" in (reader.too_long(columns) or "")
    assert reader_of("image", width=32, max_columns=40).too_long(columns) is None
