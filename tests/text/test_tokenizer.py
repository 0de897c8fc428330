"""Tokenizer files, single and in pairs; ``test_every_tokenizer.py`` tests the contract of every kind."""

from pathlib import Path

import pytest

from edits import Edit, edit_json
from transduce.errors import CheckpointError
from transduce.text import Tokenizer, Tokenizers, load_tokenizer, train_bpe

TEXTS = ["the lowest tower", "the newest tower", "die Männer am Fluß", "die Männer am Tor"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(TEXTS, vocab_size=300)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere\.json\b.*No such file"):
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
    ("edit", "named"),
    [
        (lambda d: d["model"]["merges"].append(["q", "zz"]), "zz"),
        (lambda d: d["model"].update(merges=5), "[Mm]erge"),
        (lambda d: d.update(decoder=None), r"\bdecoder\b"),
        (lambda d: d["decoder"]["decoders"].pop(), r"\bdecoder\b"),
    ],
)
def test_byte_pairs_that_cannot_be_used_are_refused_in_one_line(
    tokenizer: Tokenizer, tmp_path: Path, edit: Edit, named: str
) -> None:
    path = tmp_path / "saved.json"
    tokenizer.save(path)
    edit_json(path, edit)
    with pytest.raises(CheckpointError, match=rf"saved\.json.*({named})") as caught:
        load_tokenizer(path)
    assert "\n" not in str(caught.value)


def test_a_shared_vocabulary_is_one_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    Tokenizers(tokenizer, tokenizer).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


def test_separate_vocabularies_are_two_files(tokenizer: Tokenizer, tmp_path: Path) -> None:
    other = train_bpe(TEXTS[2:], vocab_size=280)
    separate = Tokenizers(tokenizer, other)
    separate.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.src.json", "tokenizer.tgt.json"]
    assert separate.fingerprint != Tokenizers(other, tokenizer).fingerprint
    (tmp_path / "tokenizer.tgt.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.tgt\.json\b.*No such file"):
        Tokenizers.load(tmp_path)


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json\b.*No such file"):
        Tokenizers.load(tmp_path)
