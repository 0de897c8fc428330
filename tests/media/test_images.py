"""Images of every kind as columns of ink."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from said import naming, says
from transduce.errors import DataError
from transduce.media import columns_of_image, read_image, reader_of
from transduce.media.images import FORMATS

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


@pytest.mark.parametrize("ending", ["png", "jpg", "tif", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_upright(orientation: int, ending: str, tmp_path: Path) -> None:
    upright = Image.fromarray(np.kron(np.arange(6, dtype=np.uint8).reshape(2, 3) * 50, np.ones((16, 16), np.uint8)))
    turns = [None, 0, 3, 1, 5, 2, 6, 4]  # of Image.Transpose: what undoes each orientation
    turn = turns[orientation - 1]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{ending}"
    quality = {"lossless": True} if ending == "webp" else {"quality": 100} if ending == "jpg" else {}
    (upright if turn is None else upright.transpose(turn)).save(path, exif=exif, **quality)
    np.testing.assert_allclose(read_image(path).astype(int), np.asarray(upright).astype(int), atol=6)


def test_a_damaged_orientation_is_ignored(tmp_path: Path) -> None:
    for number, exif in enumerate((b"Exif\0\0garbage", b"Exif\0\0II*\0\x08\0\0\0\xff\xff", b"")):
        path = tmp_path / f"{number}.jpg"
        page().save(path, exif=exif, quality=95)
        assert read_image(path).shape == (32, 40)


@pytest.mark.parametrize("colour", [255, 250, 235, 200, 128, 60, 0])
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_text_of_any_colour_on_a_transparent_ground_is_read(colour: int, mode: str, tmp_path: Path) -> None:
    image = Image.new("RGBA", (40, 32), (7, 7, 7, 0))
    image.paste((colour, colour, colour, 255), (8, 0, 12, 32))
    path = tmp_path / "a.png"
    image.convert(mode).save(path)
    np.testing.assert_array_equal(
        reader_of("image", width=32).read(path), columns_of_image(np.asarray(page()), height=32)
    )


@pytest.mark.parametrize("ground", [(255, 255, 255), (20, 20, 20), (120, 180, 90)])
@pytest.mark.parametrize("difference", [5, 12, 40])
def test_low_contrast_is_read(ground: tuple[int, int, int], difference: int, tmp_path: Path) -> None:
    sign = -1 if ground[0] > 128 else 1
    image = Image.new("RGB", (40, 32), ground)
    image.paste(tuple(value + sign * difference for value in ground), (8, 0, 12, 32))
    image.save(tmp_path / "a.png")
    columns = reader_of("image", width=32).read(tmp_path / "a.png")
    np.testing.assert_array_equal(columns, columns_of_image(np.asarray(page()), height=32))


def test_colours_of_equal_brightness_are_read(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 32), (200, 100, 100))
    image.paste((100, 151, 100), (8, 0, 12, 32))
    assert np.ptp(np.asarray(image.convert("L"))) < 4
    image.save(tmp_path / "a.png")
    columns = reader_of("image", width=32).read(tmp_path / "a.png")
    assert (columns[8:12].min(), columns[20:].max()) == (255, 0)


@pytest.mark.parametrize("ending", ["tif", "gif", "png", "webp"])
def test_further_pages_are_told(ending: str, tmp_path: Path) -> None:
    second = Image.fromarray(255 - np.asarray(page())[:, ::-1])
    path, told = tmp_path / f"a.{ending}", list[str]()
    page().save(path, save_all=True, append_images=[second], lossless=True)
    columns = reader_of("image", width=32).read(path, told.append)
    np.testing.assert_array_equal(columns, reader_of("image", width=32).features(np.asarray(page())))
    assert len(told) == 1
    assert says(told[0], path, "first")
    page().save(tmp_path / f"one.{ending}")
    reader_of("image", width=32).read(tmp_path / f"one.{ending}", told.append)
    assert len(told) == 1


# A page of PostScript, a metafile, and an image within an IPTC record, which Pillow would hand to other decoders.
PROGRAMS = {
    "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n",
    "dos-eps": b"\xc5\xd0\xd3\xc6\x1e\0\0\0\x50\0\0\0"
    + bytes(18)
    + b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "wmf": b"\xd7\xcd\xc6\x9a\0\0" + bytes(2) + b"\x10\0\x10\0" + b"\x48\0" + bytes(4) + b"\0\0\x01\0\t\0" + bytes(40),
    "iptc": b"\x1c\x03\x3c\0\2\1\0\x1c\x03\x14\0\1\x0a\x1c\x03\x1e\0\1\x0a\x1c\x08\x0a\0\x09%!PS-Adob",
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_no_decoder_starts_another_program(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a program was started: {arguments}")

    for name in ("Popen", "run", "call", "check_call", "check_output"):
        monkeypatch.setattr(subprocess, name, refuse)
    monkeypatch.setattr(os, "system", refuse)
    path = tmp_path / "a.png"
    path.write_bytes(PROGRAMS[kind])
    with pytest.raises(DataError, match=naming(path, "PNG", "TIFF")):
        read_image(path)


def test_the_formats_are_those_that_need_nothing_else() -> None:
    """Each is decoded by its plugin alone: it imports no module that starts programs, and opens no other image."""
    Image.init()
    plugins = {Image.OPEN[name][0].__module__ for name in FORMATS if name in Image.OPEN}
    assert len(plugins) >= 9
    for plugin in plugins:
        source = Path(sys.modules[plugin].__file__ or "").read_text()
        code = re.sub(r"#.*", "", source.split("def _save")[0].split("def load_djpeg")[0])
        assert not re.search(r"subprocess\.|os\.system|Image\.open\(", code), plugin


def test_pipes_and_folders_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path, word in ((tmp_path / "pipe.png", "pipe"), (tmp_path, "folder"), (tmp_path / ("n" * 300), "long")):
        for kind in ("image", "audio"):
            with pytest.raises(DataError, match=re.compile(word)):
                reader_of(kind, width=32).read(path)  # type: ignore[arg-type]


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


def test_a_flat_image_is_refused_before_it_is_scaled_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "rule.png"
    stripes = np.zeros((1, 3_000_000), np.uint8)
    stripes[:, ::2] = 255
    Image.fromarray(stripes).save(path)
    with pytest.raises(DataError, match=r"rule\.png is 3,000,000 pixels wide and only 1 high; cut"):
        reader_of("image", width=32).read(path)
