"""Stores with arbitrary columns: ids only, vectors only, three columns."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import transduce.data.arrays as arrays_module
import transduce.data.store as store_module
from said import naming, says
from small_stores import edit_summary, put
from transduce.data import Ids, LeftOut, Vectors, open_pairs, open_store, write_store
from transduce.data.arrays import ArrayFile
from transduce.diagnostics import examine
from transduce.errors import DataError
from transduce.files import write_manifest

pytestmark = pytest.mark.reliability

COLUMNS = {"sound": Vectors(width=3), "words": Ids(vocab_size=10)}
FORMAT_2 = Path(__file__).parents[1] / "formats" / "before_format_numbers" / "run" / "store" / "train"


def spoken(n_rows: int) -> Iterator[dict[str, Any]]:
    """Rows of one to five vectors and one to four ids."""
    random = np.random.default_rng(1)
    for _ in range(n_rows):
        frames = random.normal(size=(random.integers(1, 6), 3))
        yield {"sound": frames, "words": random.integers(3, 10, random.integers(1, 5)).tolist()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_store(tmp_path / "store", {"one": spoken(7), "two": spoken(4)}, COLUMNS)
    return tmp_path / "store"


def test_a_task_that_nobody_knows(tmp_path: Path) -> None:
    """Images with captions: a store written and read by user code."""
    pictures = [
        {"patches": np.full((n_patches, 4), n_patches / 8, np.float32), "caption": list(range(3, 3 + n_patches))}
        for n_patches in (2, 5, 3)
    ]
    columns = {"patches": Vectors(width=4), "caption": Ids(vocab_size=50)}
    write_store(tmp_path / "store", {"drawn": pictures}, columns)

    store = open_store(tmp_path / "store", columns)
    assert store.columns["patches"].lengths_R.tolist() == [2, 5, 3]
    some = store.columns["patches"].gather(np.array([2, 0]))
    assert some.lengths_B.tolist() == [3, 2]
    assert some.values_N.tolist() == [[3 / 8] * 4] * 3 + [[2 / 8] * 4] * 2
    assert store.columns["caption"].row(1).tolist() == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("n_at_a_time", [1, 4, 1 << 22])
@pytest.mark.parametrize("held_bytes", [0, arrays_module.MAX_BYTES_IN_MEMORY])
def test_what_is_read_is_what_was_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, held_bytes: int, n_at_a_time: int
) -> None:
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", held_bytes)
    monkeypatch.setattr(arrays_module, "VALUES_PER_READ", n_at_a_time)
    store = open_store(folder)
    rows = [*spoken(7), *spoken(4)]
    assert len(store) == len(rows)
    assert store.summary.n_examples_of == {"one": 7, "two": 4}
    assert store.summary.columns == COLUMNS
    assert (store.summary.tokenizer_fingerprint, store.summary.max_length) == (None, None)
    for name, column in store.columns.items():
        assert column.lengths_R.tolist() == [len(row[name]) for row in rows]
        assert store.summary.n_values_of[name] == column.lengths_R.sum()
        for place, row in enumerate(rows):
            expected = np.asarray(row[name], np.float32 if name == "sound" else np.uint16)
            assert column.row(place).dtype == expected.dtype
            assert np.array_equal(column.row(place), expected)
        some = column.gather(np.array([10, 0, 0, 3]))
        assert np.array_equal(some.values_N, np.concatenate([column.row(place) for place in (10, 0, 0, 3)]))


def test_rows_are_written_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_store(tmp_path / "whole", {"one": spoken(50)}, COLUMNS)
    monkeypatch.setattr(store_module, "MAX_ROWS_IN_MEMORY", 3)
    write_store(tmp_path / "chunks", {"one": spoken(50)}, COLUMNS)
    assert (tmp_path / "whole" / "manifest.json").read_bytes() == (tmp_path / "chunks" / "manifest.json").read_bytes()


def test_numpy_reads_the_files(folder: Path) -> None:
    names = {"sound.values.npy", "sound.offsets.npy", "words.ids.npy", "words.offsets.npy"}
    assert {path.name for path in folder.iterdir()} == {*names, "store.json", "manifest.json"}
    loaded = {name: np.load(folder / name, allow_pickle=False) for name in names}
    assert {name: array.dtype for name, array in loaded.items()} == {
        "sound.values.npy": np.float32, "sound.offsets.npy": np.int64, "words.ids.npy": np.uint16,
        "words.offsets.npy": np.int64,
    }  # fmt: skip
    assert loaded["sound.values.npy"].shape == (loaded["sound.offsets.npy"][-1], 3)


def test_what_was_left_out_is_told_by_who_makes_the_rows(tmp_path: Path) -> None:
    left_out = LeftOut()

    def rows() -> Iterator[dict[str, list[int]]]:
        for n in (0, 2, 9, 3):
            left_out.n_empty += n == 0
            left_out.n_too_long += n == 9
            if n in (2, 3):
                yield {"words": [5] * n}

    columns = {"words": Ids(vocab_size=10)}
    summary = write_store(
        tmp_path / "store", {"text": rows()}, columns, max_length=4, left_out=left_out, tokenizer_fingerprint="ab" * 32
    )
    assert (summary.n_read, summary.n_examples, summary.n_empty, summary.n_too_long) == (4, 2, 1, 1)
    assert open_store(tmp_path / "store", tokenizer_fingerprint="ab" * 32).summary == summary
    with pytest.raises(DataError, match=naming(tmp_path / "store", "tokenizer", "ab" * 6, "cd" * 6)):
        open_store(tmp_path / "store", tokenizer_fingerprint="cd" * 32)


def test_several_rows_of_one(tmp_path: Path) -> None:
    summary = write_store(tmp_path / "store", {"one": spoken(6), "two": spoken(3)}, COLUMNS, n_encodings=3)
    assert (summary.n_examples_of, summary.n_rows) == ({"one": 2, "two": 1}, 9)
    with pytest.raises(DataError, match=naming("two", 4, "n_encodings", 3)):
        write_store(tmp_path / "odd", {"one": spoken(6), "two": spoken(4)}, COLUMNS, n_encodings=3)
    assert not (tmp_path / "odd").exists()


VECTOR, WORDS = [[0.5, 1.0, 2.0]], [3, 4]


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ({"sound": VECTOR}, ["columns sound,", "store sound, words"]),
        ({"sound": VECTOR, "words": WORDS, "more": WORDS}, ["columns sound, words, more", "store sound, words"]),
        ({"sound": VECTOR, "words": []}, ["column words", "row 2", 0, "1 to 5"]),
        ({"sound": VECTOR, "words": [3] * 6}, ["column words", "row 2", 6, "1 to 5"]),
        ({"sound": VECTOR, "words": [3, 2]}, ["column words", "row 2", "2 to 3", "3 to 9"]),
        ({"sound": VECTOR, "words": [10]}, ["column words", "row 2", "10 to 10", "3 to 9"]),
        ({"sound": VECTOR, "words": [1 << 70]}, ["column words", "row 2", re.compile("too (big|large)")]),
        ({"sound": VECTOR, "words": [3.5]}, ["column words", "row 2", "'float'"]),
        ({"sound": np.zeros((0, 3)), "words": WORDS}, ["column sound", "row 2", 0]),
        (
            {"sound": np.zeros((2, 4)), "words": WORDS},
            ["column sound", "row 2", "(2, 4)", "(length, 3)"],
        ),
        ({"sound": [1.0, 2.0, 3.0], "words": WORDS}, ["column sound", "row 2", "(3,)", "(length, 3)"]),
        (
            {"sound": [[1.0, 2.0, float("nan")]], "words": WORDS},
            ["column sound", "row 2", "finite"],
        ),
        ({"sound": [[1.0, 2.0, 1e300]], "words": WORDS}, ["column sound", "row 2", "finite"]),
        ({"sound": [[1.0], [2.0, 3.0]], "words": WORDS}, ["column sound", "row 2"]),
        ({"sound": np.array([[object()] * 3]), "words": WORDS}, ["column sound", "row 2"]),
    ],
)
def test_rows_that_cannot_be_written_are_named(tmp_path: Path, row: dict[str, Any], facts: list[object]) -> None:
    good = {"sound": VECTOR, "words": WORDS}
    with pytest.raises(DataError, match=naming(*facts)):
        write_store(tmp_path / "store", {"one": [good, good, row, good]}, COLUMNS, max_length=6)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../src", "a.b", "Words", "1st", "a/b", "words\n"])
def test_columns_have_plain_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=naming(tmp_path / "store", "names", repr(name))):
        write_store(tmp_path / "store", {"one": [{name: [5]}]}, {name: Ids(vocab_size=10)})
    with pytest.raises(DataError, match=naming(tmp_path / "store", "names", "none")):
        write_store(tmp_path / "store", {"one": [{}]}, {})


def test_columns_that_are_asked_for_are_there(folder: Path) -> None:
    assert list(open_store(folder, {"words": Ids(vocab_size=10)}).columns) == ["words"]
    assert list(open_store(folder, {"words": Ids(vocab_size=None)}).columns) == ["words"]
    for columns, facts in (
        ({"words": Ids(vocab_size=11)}, ["words", "Ids", "vocab_size=11", "Ids", "vocab_size=10"]),
        ({"words": Vectors(width=3)}, ["words", "Vectors", "Ids"]),
        ({"sound": Vectors(width=4)}, ["sound", "Vectors", "width=4", "Vectors", "width=3"]),
        ({"words": Ids(vocab_size=10), "faces": Vectors(width=3)}, ["faces", "Vectors", "got None"]),
    ):
        with pytest.raises(DataError, match=naming(folder, *facts)):
            open_store(folder, columns)
    with pytest.raises(DataError, match=naming(folder, "src", "Ids", "got None")):
        open_pairs(folder)


def kinds(**columns: object) -> dict[str, object]:
    return {"sound": {"kind": "vectors", "width": 3}, "words": {"kind": "ids", "vocab_size": 10}} | columns


def not_finite(folder: Path) -> None:
    values = np.load(folder / "sound.values.npy")
    values[4, 1] = np.inf
    np.save(folder / "sound.values.npy", values)


@pytest.mark.parametrize(
    ("damage", "facts"),
    [
        (not_finite, ["sound.values.npy", "finite"]),
        (
            put("sound.values.npy", np.zeros((5, 3), np.float32)),
            ["sound.values.npy", "28 vectors", "float32(5, 3)"],
        ),
        (put("sound.values.npy", np.zeros((9, 4), np.float32)), ["sound.values.npy", "28 vectors", "float32(9, 4)"]),
        (put("sound.values.npy", np.zeros(9)), ["sound.values.npy", "28 vectors", "float64(9,)"]),
        (put("words.ids.npy", np.array([1, "a"], dtype=object)), ["words.ids.npy", "29 ids", "object(2,)"]),
        (put("words.ids.npy", np.zeros((2, 2), np.uint16)), ["words.ids.npy", "29 ids", "uint16(2, 2)"]),
        (put("words.ids.npy", np.array([4], dtype=">u2")), ["words.ids.npy", "29 ids", ">u2(1,)"]),
        (put("words.ids.npy", np.zeros(2, [("x" * 300, "<u2")])), ["words.ids.npy", "array file"]),
        (
            edit_summary(columns=kinds(words={"kind": "ids", "vocab_size": 5})),
            ["words.ids.npy", "4 to 9", "3 to 4"],
        ),
        (
            edit_summary(columns=kinds(sound={"kind": "vectors", "width": 1 << 20})),
            ["sound.values.npy", "28 vectors", "float32(28, 3)"],
        ),
        (edit_summary(columns=kinds(words={"kind": "songs"})), ["store.json", "columns.words", "'songs'"]),
        (
            edit_summary(columns=kinds(words={"kind": "ids"})),
            ["store.json", "columns.words.ids.vocab_size", "required"],
        ),
        (edit_summary(columns={}), ["store.json", "columns", "{}"]),
        (
            edit_summary(columns={"../words": {"kind": "ids", "vocab_size": 10}}),
            ["store.json", "columns", "'../words'"],
        ),
        (edit_summary(n_values_of={"sound": 9}), ["store.json", "n_values_of", "columns"]),
        (edit_summary(n_values_of={"sound": 9, "words": 1 << 47}), ["sound.values.npy", "9 vectors", "float32(28, 3)"]),
        (
            edit_summary(n_examples=1 << 40, n_read=1 << 40, n_examples_of={"one": 1 << 40}),
            ["sound.offsets.npy", "1,099,511,627,777 offsets"],
        ),
        (edit_summary(max_length=4), ["words.offsets.npy", 5, 4]),
        (edit_summary(max_length=0), ["store.json", "max_length", 0]),
        (edit_summary(format=1), ["store.json", "format", 1, "2 to 4"]),
        (edit_summary(format=2), ["store.json", "n_pairs", None]),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(
    folder: Path, damage: Callable[[Path], None], facts: list[object]
) -> None:
    damage(folder)
    write_manifest(folder)
    with pytest.raises(DataError, match=naming(folder, *facts)):
        open_store(folder)


def header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x02\x00" + b"\0" * 200,
        header(b"{'descr': '<u2', 'fortran_order': False, 'shape': (2L,), }\n") + b"\5\0\5\0",  # of Python 2
        header(b"{'descr': '<u2', 'fortran_order': False, 'shape': (2,), } \\\n"),
        header(b"{'descr': (), 'fortran_order': False, 'shape': (2,), }\n"),
        header(b"{'descr': '<u2', 'fortran_order': False, 'shape': (-2, -1), }\n") + b"\5\0\5\0",
        header(b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n") + b"\0" * 16,
        header(b"{'descr': '<U0', 'fortran_order': False, 'shape': (2,), }\n"),
        header(b"(" * 250),
        header(b"[" * 60_000),
        header(b"'\\d' is 1\n"),
        header(b"{'descr': 'a5', 'fortran_order': False, 'shape': (2,), }\n"),
        header(b"{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n") + b"\5\0\5",
        header(b"{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n") + b"\5\0\5\0\5",
        header(b"__import__('os').mkdir('witness')\n"),
    ],
)
def test_headers_that_lie_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match=naming(tmp_path / "a.npy", re.compile(r"\b(array file|2 ids)\b"))):
        ArrayFile(tmp_path / "a.npy", (np.uint16,), (2,), "ids")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_vectors_that_are_cut_or_changed_while_they_are_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", 0)
    column = open_store(folder).columns["sound"]
    with (folder / "sound.values.npy").open("r+b") as stream:
        stream.seek(-4, 2)
        stream.write(b"\xff" * 4)
    with pytest.raises(DataError, match=naming(folder / "sound.values.npy", "finite")):
        column.row(10)
    with (folder / "sound.values.npy").open("r+b") as stream:
        stream.truncate(200)
    with pytest.raises(DataError, match=naming(folder / "sound.values.npy", "shorter", "--resume")):
        column.row(10)


def test_offsets_that_change_while_they_are_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", 0)
    column = open_store(folder).columns["words"]
    for begin in (-(1 << 40), (1 << 63) - 1):
        with (folder / "words.offsets.npy").open("r+b") as stream:
            stream.seek(128)
            stream.write(begin.to_bytes(8, "little", signed=True))
        with pytest.raises(DataError, match=naming(folder / "words.ids.npy", "--resume")):
            column.row(0)


def test_the_doctor_knows_it(folder: Path) -> None:
    [finding] = examine([str(folder)])
    assert finding.status == "good"
    n_vectors, n_ids = (open_store(folder).summary.n_values_of[name] for name in ("sound", "words"))
    assert says(str(finding), "11 pairs", f"{n_vectors} vectors in sound", f"{n_ids + 11} tokens in words")
    (folder / "store.json").unlink()
    assert any(says(str(finding), folder, "no", "store.json") for finding in examine([str(folder)]))


def test_stores_of_format_2_are_read(tmp_path: Path) -> None:
    old = json.loads((FORMAT_2 / "store.json").read_bytes())
    store = open_pairs(FORMAT_2)
    assert store.summary.columns == {"src": Ids(vocab_size=None), "tgt": Ids(vocab_size=None)}
    assert (store.src_lengths.sum(), store.tgt_lengths.sum()) == (old["n_src_tokens"], old["n_tgt_tokens"])
    kept = {
        name: value for name, value in old.items() if name not in ("format_version", "n_src_tokens", "n_tgt_tokens")
    }
    kept = {name.replace("n_pairs", "n_examples"): value for name, value in kept.items()}
    assert store.summary.model_dump(include=set(kept)) == kept
    wider = open_store(FORMAT_2, {"src": Ids(vocab_size=60_000)})
    assert wider.columns["src"].kind == Ids(vocab_size=60_000)
    with pytest.raises(DataError, match=naming(FORMAT_2 / "src.ids.npy", "4 to 299", "3 to 49")):
        open_store(FORMAT_2, {"src": Ids(vocab_size=50)})


@pytest.mark.parametrize(
    ("damage", "facts"),
    [
        (edit_summary(format_version=1), ["store.json", "format", 1, "2 to 4"]),
        (edit_summary(format_version="2"), ["store.json", "format", "'2'", "2 to 4"]),
        (edit_summary(format_version=3), ["store.json", "columns", "required"]),
        (edit_summary(format=2), ["store.json", "format_version"]),
        (edit_summary(n_src_tokens=10_000), ["src.ids.npy", "9,700 ids", "uint16(9996,)"]),
        (edit_summary(n_src_tokens=3), ["store.json", "n_values_of.src", -297]),
        (edit_summary(n_src_tokens=True), ["store.json", "n_src_tokens", True]),
        (edit_summary(n_pairs=[0], n_encodings=1 << 60), ["store.json", "n_pairs", "[0]"]),
        (edit_summary(n_pairs=None), ["store.json", "n_pairs", None]),
        (edit_summary(n_tgt_tokens=12_052.0), ["store.json", "n_tgt_tokens", 12052.0]),
        (edit_summary(n_empty=-1), ["store.json", "n_empty", -1]),
        (edit_summary(colour=1), ["store.json", "colour", 1]),
    ],
)
def test_damaged_stores_of_format_2_are_refused(
    tmp_path: Path, damage: Callable[[Path], None], facts: list[object]
) -> None:
    folder = Path(shutil.copytree(FORMAT_2, tmp_path / "store"))
    damage(folder)
    write_manifest(folder)
    with pytest.raises(DataError, match=naming(folder, *facts)):
        open_pairs(folder)


@pytest.mark.parametrize("dtype", ["float16", "uint8"])
def test_vectors_of_other_types(dtype: Literal["float16", "uint8"], tmp_path: Path) -> None:
    kind = Vectors(width=2, dtype=dtype)
    rows = [{"pixels": [[0, 255], [7, 8]]}, {"pixels": np.array([[1, 2]], dtype)}]
    write_store(tmp_path / "store", {"images": rows}, {"pixels": kind})
    column = open_store(tmp_path / "store", {"pixels": kind}).columns["pixels"]
    assert (column.row(0).dtype, column.row(0).tolist()) == (np.dtype(dtype), [[0, 255], [7, 8]])
    size = (tmp_path / "store" / "pixels.values.npy").stat().st_size
    assert size == 128 + 6 * np.dtype(dtype).itemsize
    with pytest.raises(DataError, match="pixels"):
        open_store(tmp_path / "store", {"pixels": Vectors(width=2)})


@pytest.mark.parametrize("value", [256, -1, 0.5, float("nan")])
def test_a_number_that_is_no_byte_is_refused(value: float, tmp_path: Path) -> None:
    rows = [{"pixels": [[0, value]]}]
    with pytest.raises(DataError, match=naming("pixels", 0, 255)):
        write_store(tmp_path / "store", {"images": rows}, {"pixels": Vectors(width=2, dtype="uint8")})
