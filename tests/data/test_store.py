import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import transduce.data.arrays as arrays_module
import transduce.data.pairs as pairs_module
from said import naming
from small_stores import edit_summary, put
from transduce.data import PairSampling, PairStore, open_pairs, write_pairs
from transduce.errors import DataError
from transduce.files import write_manifest
from transduce.text import Tokenizer, Tokenizers, normalise, train_bpe

pytestmark = pytest.mark.reliability

TEXTS = ["a dog runs", "ein Hund läuft", "two dogs run", "zwei Hunde laufen"] * 2
PAIRS = [("a dog runs", "ein Hund läuft"), ("two  dogs\u00a0run ", "zwei Hunde laufen"), ("a </s> dog", "日本")]


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    tokenizer = train_bpe(TEXTS, vocab_size=280)
    return Tokenizers(tokenizer, tokenizer)


@pytest.fixture
def folder(tokenizers: Tokenizers, tmp_path: Path) -> Path:
    write_pairs(tmp_path / "store", {"text": PAIRS}, tokenizers, max_length=30)
    return tmp_path / "store"


def test_what_is_read_is_what_was_written(folder: Path, tokenizers: Tokenizers) -> None:
    store = open_pairs(folder, tokenizers)
    assert len(store) == len(PAIRS)
    for row, (src, tgt) in enumerate(PAIRS):
        src_ids, tgt_ids = store.pair(row)
        assert tokenizers.src.decode(src_ids) == normalise(src)
        assert tokenizers.tgt.decode(tgt_ids) == normalise(tgt)
        assert (store.src_lengths[row], store.tgt_lengths[row]) == (len(src_ids) + 1, len(tgt_ids) + 1)
    assert store.src_lengths.dtype == store.tgt_lengths.dtype == np.int32
    assert store.summary.n_values_of["src"] + len(store) == store.src_lengths.sum()
    assert store.summary.n_values_of["tgt"] + len(store) == store.tgt_lengths.sum()


def test_counts_of_what_is_left_out_add_up(tokenizers: Tokenizers, tmp_path: Path) -> None:
    pairs = [*PAIRS, ("", "leer"), ("empty", " \u2028"), ("", ""), ("a dog", "Hund " * 40), ("dog " * 40, "Hund")]
    summary = write_pairs(tmp_path / "store", {"text": pairs}, tokenizers, max_length=30)
    assert (summary.n_read, summary.n_examples, summary.n_empty, summary.n_too_long) == (8, 3, 3, 2)
    assert open_pairs(tmp_path / "store").summary == summary


def test_max_length_counts_the_end_symbol(tokenizers: Tokenizers, tmp_path: Path) -> None:
    n_src, n_tgt = (len(tokenizers.src.encode(text)) for text in ("dogs", "Hunde laufen zwei"))
    pairs = [("dogs", "Hunde laufen zwei"), ("a", "a")]
    assert n_tgt > n_src
    assert write_pairs(tmp_path / "fits", {"text": pairs}, tokenizers, max_length=n_tgt + 1).n_too_long == 0
    assert write_pairs(tmp_path / "long target", {"text": pairs}, tokenizers, max_length=n_tgt).n_too_long == 1
    swapped = [(tgt, src) for src, tgt in pairs]
    assert write_pairs(tmp_path / "long source", {"text": swapped}, tokenizers, max_length=n_tgt).n_too_long == 1


def test_chunks_leave_no_trace(tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [*PAIRS, ("", "leer"), *PAIRS, ("dog " * 40, "Hund"), *PAIRS]
    write_pairs(tmp_path / "whole", {"text": iter(pairs)}, tokenizers, max_length=30)
    monkeypatch.setattr(pairs_module, "PAIRS_PER_CHUNK", 2)
    write_pairs(tmp_path / "chunks", {"text": iter(pairs)}, tokenizers, max_length=30)
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in ("whole", "chunks")]
    assert manifests[0] == manifests[1]


def test_pairs_are_read_as_a_stream(tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "PAIRS_PER_CHUNK", 2)
    n_given = 0
    n_given_when_encoded: list[int] = []
    encode_packed = Tokenizer.encode_packed

    def watch(self: Tokenizer, texts: list[str], *, max_tokens: int | None = None) -> list[bytes]:
        n_given_when_encoded.append(n_given)
        return encode_packed(self, texts, max_tokens=max_tokens)

    def stream() -> Iterator[tuple[str, str]]:
        nonlocal n_given
        for pair in PAIRS * 2:
            n_given += 1
            yield pair

    monkeypatch.setattr(Tokenizer, "encode_packed", watch)
    write_pairs(tmp_path / "store", {"text": stream()}, tokenizers, max_length=30)
    assert n_given_when_encoded == [2, 2, 4, 4, 6, 6]


def test_corpora_stand_one_after_the_other(tokenizers: Tokenizers, tmp_path: Path) -> None:
    corpora = {"one": PAIRS, "empty": [], "two": [("", "leer"), *PAIRS[:1]]}
    summary = write_pairs(tmp_path / "store", corpora, tokenizers, max_length=30)
    assert summary.n_examples_of == {"one": 3, "empty": 0, "two": 1}
    store = open_pairs(tmp_path / "store")
    assert store.summary == summary
    assert [row.tolist() for row in store.pair(3)] == [row.tolist() for row in store.pair(0)]


def test_dropout_stores_several_spellings_of_the_same_text(
    tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(name: str, *, seed: int) -> PairStore:
        dropout = PairSampling(p_drop=0.5, n_encodings=6, seed=seed)
        write_pairs(tmp_path / name, {"text": PAIRS}, tokenizers, max_length=40, sampling=dropout)
        return open_pairs(tmp_path / name, tokenizers)

    store = write("store", seed=1)
    assert (store.summary.n_examples, store.summary.n_encodings, len(store)) == (3, 6, 18)
    assert store.summary.n_values_of["tgt"] + len(store) == store.tgt_lengths.sum()
    for pair, (src, tgt) in enumerate(PAIRS):
        rows = [store.pair(6 * pair + encoding) for encoding in range(6)]
        assert {tokenizers.src.decode(src_ids) for src_ids, _ in rows} == {normalise(src)}
        assert {tokenizers.tgt.decode(tgt_ids) for _, tgt_ids in rows} == {normalise(tgt)}
    spellings = {tuple(store.pair(row)[0]) for row in range(6)}
    assert len(spellings) > 1
    monkeypatch.setattr(pairs_module, "PAIRS_PER_CHUNK", 1)
    write("again", seed=1)
    write("other", seed=2)
    first, again, other = ((tmp_path / name / "manifest.json").read_bytes() for name in ("store", "again", "other"))
    assert first == again != other  # depends on the seed, not on chunks


def test_a_draw_that_is_too_long_is_the_plain_encoding(tokenizers: Tokenizers, tmp_path: Path) -> None:
    plain = tokenizers.tgt.encode("zwei Hunde laufen")
    dropout = PairSampling(p_drop=1.0, n_encodings=2, seed=1)
    pairs = [("two", "zwei Hunde laufen")]
    write_pairs(tmp_path / "store", {"text": pairs}, tokenizers, max_length=len(plain) + 1, sampling=dropout)
    store = open_pairs(tmp_path / "store")
    assert [store.pair(row)[1].tolist() for row in range(2)] == [plain, plain]


def test_ids_take_two_bytes_or_four(
    tokenizers: Tokenizers, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow, _ = open_pairs(folder).pair(0)
    monkeypatch.setattr(tokenizers.src, "size", (1 << 16) + 1)
    write_pairs(tmp_path / "wide", {"text": PAIRS}, tokenizers, max_length=30)
    wide, _ = open_pairs(tmp_path / "wide").pair(0)
    assert (narrow.itemsize, wide.itemsize) == (2, 4)
    assert narrow.tolist() == wide.tolist()


def test_nothing_kept_is_an_error_and_leaves_no_folder(tokenizers: Tokenizers, tmp_path: Path) -> None:
    pairs = [("", "leer"), ("dog " * 40, "Hund")]
    with pytest.raises(DataError, match=naming(2, "1 are empty", "1 longer", "max_length", 30)):
        write_pairs(tmp_path / "store", {"text": pairs}, tokenizers, max_length=30)
    with pytest.raises(DataError, match=naming(0, "0 are empty", "0 longer", "max_length", 30)):
        write_pairs(tmp_path / "store", {"text": []}, tokenizers, max_length=30)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_stream_leaves_no_folder(tokenizers: Tokenizers, tmp_path: Path) -> None:
    def stream() -> Iterator[tuple[str, str]]:
        yield PAIRS[0]
        raise DataError("train.en:2 is not UTF-8")

    with pytest.raises(DataError, match=naming("train.en:2")):
        write_pairs(tmp_path / "store", {"text": stream()}, tokenizers, max_length=30)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_not_written_over_an_older_one(folder: Path, tokenizers: Tokenizers) -> None:
    with pytest.raises(DataError, match=naming(folder, "exists")):
        write_pairs(folder, {"text": PAIRS[:1]}, tokenizers, max_length=30)
    assert len(open_pairs(folder)) == len(PAIRS)


def test_a_store_of_another_tokenizer_is_refused(folder: Path, tokenizers: Tokenizers) -> None:
    other = Tokenizers(tokenizers.src, train_bpe(TEXTS, vocab_size=270))
    expected = naming(folder, "tokenizer", tokenizers.fingerprint[:12], other.fingerprint[:12])
    with pytest.raises(DataError, match=expected):
        open_pairs(folder, other)


@pytest.mark.parametrize("name", ["src.ids.npy", "src.offsets.npy", "tgt.ids.npy", "tgt.offsets.npy", "store.json"])
def test_damaged_files_are_named(folder: Path, name: str) -> None:
    path = folder / name
    content = path.read_bytes()

    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    with pytest.raises(DataError, match=naming(path, "corrupt")):
        open_pairs(folder)
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match=naming(path, len(content) - 1, len(content))):
        open_pairs(folder)
    path.unlink()
    with pytest.raises(DataError, match=naming(folder, "no", name)):
        open_pairs(folder)


def test_no_store_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming(tmp_path / "nowhere", "folder")):
        open_pairs(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("damage", "facts"),
    [
        (put("src.ids.npy", np.arange(5, dtype=np.uint16)), ["src.ids.npy", "17 ids", "uint16(5,)"]),
        (put("src.ids.npy", np.arange(5.0)), ["src.ids.npy", "17 ids", "float64(5,)"]),
        (put("tgt.offsets.npy", [0, 5]), ["tgt.offsets.npy", "4 offsets", "int64(2,)"]),
        (lambda folder: (folder / "src.ids.npy").write_bytes(b"not an array"), ["src.ids.npy", "array file"]),
        (edit_summary(format=99), ["store.json", "format", 99, "2 to 4"]),
        (edit_summary(n_read="3"), ["store.json", "n_read", "'3'"]),
        (edit_summary(n_read=True), ["store.json", "n_read", True]),
        (edit_summary(colour=1), ["store.json", "colour", 1]),
        (edit_summary(n_examples_of={"text": 2}), ["store.json", "n_examples_of", "n_examples"]),
        (edit_summary(n_encodings=2), ["src.offsets.npy", "7 offsets", "int64(4,)"]),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(
    folder: Path, damage: Callable[[Path], None], facts: list[object]
) -> None:
    damage(folder)
    write_manifest(folder)
    with pytest.raises(DataError, match=naming(folder, *facts)):
        open_pairs(folder)


@pytest.mark.parametrize("stranger", [0, 2, 1000])
def test_ids_outside_the_vocabulary_are_refused(folder: Path, tokenizers: Tokenizers, stranger: int) -> None:
    ids = np.load(folder / "src.ids.npy")
    ids[3] = stranger
    np.save(folder / "src.ids.npy", ids)
    write_manifest(folder)
    with pytest.raises(
        DataError,
        match=naming(folder / "src.ids.npy", f"{ids.min()} to {ids.max()}", f"3 to {tokenizers.src.size - 1}"),
    ):
        open_pairs(folder, tokenizers)


@pytest.mark.parametrize("n_at_a_time", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("held_bytes", [0, arrays_module.MAX_BYTES_IN_MEMORY])
def test_small_and_large_stores_are_read_alike(
    folder: Path, tokenizers: Tokenizers, monkeypatch: pytest.MonkeyPatch, held_bytes: int, n_at_a_time: int
) -> None:
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", held_bytes)
    monkeypatch.setattr(arrays_module, "VALUES_PER_READ", n_at_a_time)
    store = open_pairs(folder, tokenizers)
    src, tgt = (store.columns[side].gather(np.array([2, 0, 0, 1])) for side in ("src", "tgt"))
    for side, ids, offsets in (
        (src, np.load(folder / "src.ids.npy"), np.load(folder / "src.offsets.npy")),
        (tgt, np.load(folder / "tgt.ids.npy"), np.load(folder / "tgt.offsets.npy")),
    ):
        rows = [ids[offsets[row] : offsets[row + 1]] for row in (2, 0, 0, 1)]
        assert side.values_N.dtype == ids.dtype
        assert side.values_N.tolist() == np.concatenate(rows).tolist()
        assert side.lengths_B.tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("held_bytes", [0, arrays_module.MAX_BYTES_IN_MEMORY])
def test_a_store_that_is_cut_while_it_is_open_is_no_signal(
    folder: Path, tokenizers: Tokenizers, monkeypatch: pytest.MonkeyPatch, held_bytes: int
) -> None:
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", held_bytes)
    store = open_pairs(folder, tokenizers)
    before = [ids.tolist() for ids in store.pair(2)]
    for name in ("src.ids.npy", "src.offsets.npy", "tgt.ids.npy", "tgt.offsets.npy"):
        os.truncate(folder / name, 0)
    if held_bytes:
        assert [ids.tolist() for ids in store.pair(2)] == before
    else:
        with pytest.raises(DataError, match=naming(folder / "src.offsets.npy", "shorter", "--resume")):
            store.columns["src"].gather(np.array([2]))


def test_ids_that_change_while_a_store_is_open_are_looked_at(
    folder: Path, tokenizers: Tokenizers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", 0)
    store = open_pairs(folder, tokenizers)
    before = [ids.tolist() for ids in store.pair(0)]
    (folder / "src.ids.npy").rename(folder / "away")
    (folder / "src.ids.npy").write_bytes(b"other")  # a renamed open file keeps its content
    assert [ids.tolist() for ids in store.pair(0)] == before
    with (folder / "away").open("r+b") as stream:
        stream.seek(-2, os.SEEK_END)
        stream.write(b"\xff\xff")
    with pytest.raises(DataError, match=naming("src.ids.npy", "to 65535", f"3 to {tokenizers.src.size - 1}")):
        store.pair(2)


def test_a_store_without_its_manifest_is_refused(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    with pytest.raises(DataError, match=naming(folder, "no", "manifest.json")):
        open_pairs(folder)


@pytest.mark.parametrize("name", ["src.ids.npy", "tgt.offsets.npy", "store.json", "manifest.json"])
def test_files_of_a_store_are_no_links(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(DataError, match=naming(folder / name, "link")):
        open_pairs(folder)


@pytest.mark.parametrize("n_at_a_time", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "offsets",
    [[0, 9, 5, 20], [1, 2, 3, 4], [0, 5, 5, 20], [0, 1 << 62, 5, 20], [0, -(1 << 62), 1 << 62, 20], [0, 1, 2, 3]],
)
def test_offsets_that_do_not_rise_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, offsets: list[int], n_at_a_time: int
) -> None:
    monkeypatch.setattr(arrays_module, "VALUES_PER_READ", n_at_a_time)
    put("tgt.offsets.npy", offsets)(folder)
    write_manifest(folder)
    with pytest.raises(DataError, match=naming(folder / "tgt.offsets.npy", "0 to 21")):
        open_pairs(folder)
