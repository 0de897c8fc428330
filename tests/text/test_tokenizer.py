import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transduce.errors import CheckpointError, DataError
from transduce.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    SPECIAL_SYMBOLS,
    UNK_ID,
    Tokenizer,
    Tokenizers,
    load_tokenizer,
    train_bpe,
    train_wordpiece,
)

TEXTS = ["the lowest tower", "the newest tower", "die Männer am Fluß", "die Männer am Tor"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(TEXTS, vocab_size=300)


@pytest.fixture
def saved(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    return path


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    description = json.loads(path.read_bytes())
    edit(description)
    path.write_text(json.dumps(description), encoding="utf-8")


def test_special_symbols_stand_at_their_ids() -> None:
    assert [SPECIAL_SYMBOLS[id] for id in (PAD_ID, BOS_ID, EOS_ID, UNK_ID)] == ["<pad>", "<s>", "</s>", "<unk>"]


def test_batch_is_the_single_encoding(tokenizer: Tokenizer) -> None:
    texts = ["the towers", "", "ein Tor", "日本 </s>"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch([]) == []
    assert tokenizer.decode_batch(tokenizer.encode_batch(texts)) == texts


def test_decode_skips_special_ids_and_takes_arrays(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("the tower")
    assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID, UNK_ID]) == "the tower"
    assert tokenizer.decode(np.array(ids, dtype=np.uint16)) == "the tower"
    assert tokenizer.decode([]) == ""


def test_decode_of_half_a_character_is_a_replacement_character(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("日")
    assert tokenizer.decode(ids[:-1]) == "\ufffd"


def test_ids_beyond_the_vocabulary_are_refused(tokenizer: Tokenizer) -> None:
    for stranger in (-1, tokenizer.size):
        with pytest.raises(DataError, match=f"id {stranger} is not in the vocabulary; ids go from 0 to"):
            tokenizer.decode([5, stranger])
        with pytest.raises(DataError, match=f"id {stranger} "):
            tokenizer.pieces([stranger])


def test_pieces_can_be_read(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces([BOS_ID, *tokenizer.encode("the tower"), EOS_ID]) == ["<s>", "▁the", "▁tower", "</s>"]
    assert tokenizer.pieces(tokenizer.encode("die Männer")) == ["▁die", "▁Männer"]
    assert tokenizer.pieces(tokenizer.encode("日")) == ["▁", "\\xe6", "\\x97", "\\xa5"]


@pytest.mark.parametrize("train", [train_bpe, train_wordpiece])
def test_words_begin_with_the_space_before_them(train: Callable[..., Tokenizer]) -> None:
    tokenizer = train(["low lower low"], vocab_size=530)
    beginnings = set(tokenizer.word_beginnings)
    for text, n_words in (("low lower slow", 3), ("don't", 1), ("日 low-low", 2)):
        ids = tokenizer.encode(text)
        assert ids[0] in beginnings
        assert sum(id in beginnings for id in ids) == n_words


def test_a_saved_tokenizer_is_the_same(tokenizer: Tokenizer, saved: Path) -> None:
    loaded = load_tokenizer(saved)
    assert (loaded.fingerprint, loaded.size) == (tokenizer.fingerprint, tokenizer.size)
    assert loaded.encode("the newest Fluß") == tokenizer.encode("the newest Fluß")


def test_fingerprint_tells_vocabularies_apart_and_not_layout(tokenizer: Tokenizer, saved: Path) -> None:
    assert train_bpe(TEXTS, vocab_size=270).fingerprint != tokenizer.fingerprint
    saved.write_text(json.dumps(json.loads(saved.read_bytes()), indent=4), encoding="utf-8")
    assert load_tokenizer(saved).fingerprint == tokenizer.fingerprint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere\.json cannot be read: No such file"):
        load_tokenizer(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\x00", b"{}", b'{"model": 3}', b'{"model": {"vocab": []}}']
)
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json") as caught:
        load_tokenizer(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d["model"].update(type="Unigram"), "holds a Unigram model"),
        (lambda d: d["model"].update(continuing_subword_prefix="[a"), "sets continuing_subword_prefix"),
        (lambda d: d["model"].update(dropout=0.1), "sets dropout"),
        (lambda d: d.update(added_tokens=[{"id": 0, "content": "<pad>"}]), "adds tokens beside its vocabulary"),
        (lambda d: d["model"]["vocab"].update({"<pad>": 2, "</s>": 0}), "at ids 0 to 3"),
        (lambda d: d["model"]["vocab"].pop("<unk>"), "at ids 0 to 3"),
        (lambda d: d["model"]["vocab"].update({"zz": 7}), "each id once"),
        (lambda d: d["model"]["vocab"].update({"zz": 5_000}), "each id once"),
        (lambda d: d["model"]["vocab"].update({"zz": "7"}), "each id once"),
        (lambda d: d["model"]["vocab"].update({"zz": [7]}), "each id once"),
        (lambda d: d["model"]["merges"].append(["q", "zz"]), "is not a tokenizer that can be used"),
        (lambda d: d["model"].update(merges=5), "is not a tokenizer that can be used"),
        (lambda d: d.update(version="9.0"), "has another version than transduce writes"),
        (lambda d: d.update(decoder={"type": "nonsense"}), "has another decoder"),
        (lambda d: d.update(decoder=None), "has another decoder"),
        (lambda d: d.update(normalizer={"type": "Lowercase"}), "has another normalizer"),
        (lambda d: d.update(truncation={"max_length": 0}), "has another truncation"),
    ],
)
def test_a_tokenizer_of_another_system_is_refused(
    saved: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    change(saved, edit)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_tokenizer(saved)
    assert "\n" not in str(caught.value)
    assert str(saved) in str(caught.value)


def test_a_shared_vocabulary_is_one_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    shared = Tokenizers(tokenizer, tokenizer)
    shared.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    loaded = Tokenizers.load(tmp_path)
    assert loaded.is_shared
    assert loaded.fingerprint == shared.fingerprint


def test_separate_vocabularies_are_two_files(tokenizer: Tokenizer, tmp_path: Path) -> None:
    other = train_bpe(TEXTS[2:], vocab_size=280)
    separate = Tokenizers(tokenizer, other)
    separate.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.src.json", "tokenizer.tgt.json"]
    loaded = Tokenizers.load(tmp_path)
    assert not loaded.is_shared
    assert (loaded.src.fingerprint, loaded.tgt.fingerprint) == (tokenizer.fingerprint, other.fingerprint)
    assert loaded.fingerprint == separate.fingerprint != Tokenizers(other, tokenizer).fingerprint
    (tmp_path / "tokenizer.tgt.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.tgt\.json cannot be read"):
        Tokenizers.load(tmp_path)


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json cannot be read"):
        Tokenizers.load(tmp_path)
