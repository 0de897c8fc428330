"""Warnings and errors of preparation about bad text."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from said import naming, says
from transduce.config import DataConfig
from transduce.corpora import generate_pairs
from transduce.errors import ConfigError, DataError
from transduce.files import write_manifest
from transduce.tasks import tokenizers
from transduce.tasks.preparation import prepare
from transduce.tasks.prepared import open_prepared
from transduce.tasks.tokenizers import tokenizers_of_model
from transduce.text import Tokenizer, Tokenizers, train_bpe, train_characters

Pairs = list[tuple[str, str]]


def grammar(n_pairs: int = 300, split: str = "train") -> Pairs:
    pairs = generate_pairs("dev" if split == "dev" else "train", n_pairs=n_pairs, seed=5)
    return [(pair.en, pair.de) for pair in pairs]


def config_of(folder: Path, *, train: Pairs, dev: Pairs | None = None, **fields: object) -> DataConfig:
    for split, pairs in {"train": train, "dev": dev or []}.items():
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
            if pairs:
                fields[f"{split}_{'src' if side == 0 else 'tgt'}"] = str(folder / f"{split}.{language}")
    return DataConfig(**{"corpus": "files", "vocab_size": 300, **fields})


def logged(config: DataConfig, folder: Path) -> list[str]:
    messages: list[str] = []
    prepare(config, folder, log=messages.append)
    return messages


def warnings(messages: list[str]) -> list[str]:
    return [line.removeprefix("warning: ") for line in messages if line.startswith("warning: ")]


def test_good_text_and_the_built_in_corpus_have_no_warnings(tmp_path: Path) -> None:
    assert warnings(logged(config_of(tmp_path, train=grammar()), tmp_path / "own")) == []
    assert warnings(logged(DataConfig(n_pairs=100, vocab_size=300), tmp_path / "built in")) == []


def test_wrong_files_are_told_before_the_tokenizer_is_learned(tmp_path: Path) -> None:
    train = grammar()
    shifted = list(zip([src for src, _ in train], [*[tgt for _, tgt in train[1:]], "Ende."], strict=True))
    messages = logged(config_of(tmp_path, train=shifted, dev=train[:40]), tmp_path / "out")
    subject = f"{tmp_path / 'train.en'} with train.de"
    assert says(messages[0], re.compile(f"^warning: {subject}"), "N", "N - 1", 1)
    assert says(messages[1], re.compile(f"^warning: {tmp_path / 'dev.en'} with dev.de"), "40 of 40", subject)
    assert messages[2].startswith("tokenizer: ")
    assert len(warnings(messages)) == 2


def test_another_language_and_another_code(tmp_path: Path) -> None:
    messages = warnings(logged(config_of(tmp_path, train=grammar(), direction="cz-de"), tmp_path / "out"))
    assert len(messages) == 1
    assert says(messages[0], "direction = 'cz-de'", "'cz'", "ISO 639-1", "'cs'", "Czech")
    messages = warnings(logged(config_of(tmp_path, train=grammar(), direction="de-en"), tmp_path / "again"))
    assert len(messages) == 1
    assert says(messages[0], re.compile(r"\btrain\.en\b.*\bEnglish \(en\).*\btrain\.de\b.*\bGerman \(de\)"))


@pytest.mark.parametrize("shared", [True, False])
def test_dropped_pairs_are_told_once_and_loudly_where_they_are_many(tmp_path: Path, shared: bool) -> None:
    config = config_of(tmp_path, train=[*grammar(), *[("dog", "")] * 10], shared_vocabulary=shared)
    messages = logged(config, tmp_path / "out")
    files = f"{tmp_path / 'train.en'} {tmp_path / 'train.de'}"
    [warning] = warnings(messages)
    assert says(warning, "files", "3.2%", "empty 10", "301, 302, 303", f"transduce doctor {files}")
    quiet = [line for line in messages if not line.startswith("warning: ")]
    assert sum(says(line, "files", "empty", 10, "301, 302, 303") for line in quiet) == 1
    assert sum(says(line, 310, 300, 10) for line in messages) == 1


def test_text_that_is_mostly_dropped_is_refused(tmp_path: Path) -> None:
    train = [*grammar(100), *[("Berlin", "Berlin")] * 60]
    config = config_of(tmp_path, train=train)
    share = re.compile(r"\b37\.5 ?%")
    first = "identical sides 60", "101, 102, 103"
    doctor = f"transduce doctor {tmp_path / 'train.en'} {tmp_path / 'train.de'}"
    limit, way_out = "data.max_dropped_share = 0.3", "--set data.max_dropped_share=1.0"
    with pytest.raises(DataError, match=naming("files", share, *first, doctor, limit, way_out)):
        prepare(config, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.de", "dev.en", "train.de", "train.en"]
    messages = warnings(logged(config.model_copy(update={"max_dropped_share": 1.0}), tmp_path / "out"))
    assert len(messages) == 1
    assert says(messages[0], "files", share)


def test_duplicates_that_are_dropped_on_request_are_no_loss(tmp_path: Path) -> None:
    config = config_of(tmp_path, train=grammar(100) * 3, drop_duplicates=True)
    assert warnings(logged(config, tmp_path / "out")) == []


def test_the_limit_is_no_property_of_what_was_prepared(tmp_path: Path) -> None:
    config = config_of(tmp_path, train=grammar(100))
    prepared = prepare(config, tmp_path / "out")
    other = config.model_copy(update={"max_dropped_share": 1.0})
    assert open_prepared(tmp_path / "out", expected=other).fingerprint == prepared.fingerprint
    path = tmp_path / "out" / "prepared.json"
    description = json.loads(path.read_text())
    del description["data"]["max_dropped_share"], description["format"]  # as in folders of earlier versions
    path.write_text(json.dumps(description))
    (tmp_path / "out" / "manifest.json").unlink()
    assert open_prepared(tmp_path / "out", expected=config).config == config
    with pytest.raises(ConfigError, match=naming("data.max_length", 256, 9)):
        open_prepared(tmp_path / "out", expected=config.model_copy(update={"max_length": 9}))


def test_utf_16_and_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    config = config_of(tmp_path, train=grammar(10))
    (tmp_path / "train.de").write_text("Der Hund schläft.\n", encoding="utf-16")
    with pytest.raises(DataError, match=naming(tmp_path / "train.de", "iconv -f UTF-16 -t UTF-8")):
        prepare(config, tmp_path / "out")
    (tmp_path / "train.de").write_bytes(b"%PDF-1.7\n")
    with pytest.raises(DataError, match=naming(tmp_path / "train.de", "PDF", "UTF-8")):
        prepare(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_prepared_text_without_its_manifest_is_refused(tmp_path: Path) -> None:
    prepare(config_of(tmp_path, train=grammar(100)), tmp_path / "out")
    for name in ("manifest.json", "train/manifest.json"):
        content = (tmp_path / "out" / name).read_bytes()
        (tmp_path / "out" / name).unlink()
        with pytest.raises(DataError, match=naming((tmp_path / "out" / name).parent, "manifest.json")):
            open_prepared(tmp_path / "out")
        (tmp_path / "out" / name).write_bytes(content)
    open_prepared(tmp_path / "out")


def test_prepared_text_of_a_later_version_is_refused(tmp_path: Path) -> None:
    prepare(config_of(tmp_path, train=grammar(100)), tmp_path / "out")
    path = tmp_path / "out" / "prepared.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 4}))
    write_manifest(tmp_path / "out")
    with pytest.raises(DataError, match=naming("prepared.json", 4, 0, 3)):
        open_prepared(tmp_path / "out")


def test_what_somebody_else_puts_there_meanwhile_stays(tmp_path: Path) -> None:
    """The prepared text is not lost."""
    config, out = config_of(tmp_path, train=grammar(100)), tmp_path / "out"

    def put(line: str) -> None:
        out.mkdir(exist_ok=True)
        (out / "thesis.txt").write_text("precious")

    with pytest.raises(DataError, match=naming(out, "Directory not empty", tmp_path / "out-2")):
        prepare(config, out, log=put)
    assert (out / "thesis.txt").read_text() == "precious"
    assert len(open_prepared(tmp_path / "out-2").train) == 100
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_dev_text_without_its_store_is_refused(tmp_path: Path, micro_run: Path) -> None:
    shutil.copytree(micro_run / "store", tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "dev")
    with pytest.raises(DataError, match=naming(tmp_path / "store" / "dev")):
        open_prepared(tmp_path / "store")


@pytest.mark.parametrize("train", [train_bpe, train_characters])
def test_dropout_needs_a_vocabulary_that_merges_characters(
    train: Callable[..., Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = train(["süße töne"] * 3, vocab_size=300)
    monkeypatch.setattr(tokenizers, "read_tokenizers", lambda folder: Tokenizers(tokenizer, tokenizer))
    config = DataConfig(tokenizer_from="model", bpe_dropout=0.1)
    if train is train_bpe:
        assert tokenizers_of_model(config) is not None
    else:
        with pytest.raises(ConfigError, match="bpe_dropout needs a BPE tokenizer"):
            tokenizers_of_model(config)


@pytest.mark.parametrize(("kind", "vocab_size"), [("bpe", 300), ("wordpiece", 555)])
def test_a_vocabulary_that_characters_fill_is_told(kind: str, vocab_size: int, tmp_path: Path) -> None:
    """Not that no other pair occurs twice: every pair does."""
    characters = "".join(map(chr, range(0x4E00, 0x4E40)))
    pairs = [(f"{characters[:n]} {n}", f"{characters[n:]} {n}") for n in range(10, 30)]
    said = "none is longer than a character"
    config = config_of(
        tmp_path, train=pairs, tokenizer=kind, alphabet="characters", vocab_size=vocab_size, max_length_ratio=99.0
    )
    assert said in "".join(logged(config, tmp_path / "small"))
    assert said not in "".join(logged(config.model_copy(update={"vocab_size": 1000}), tmp_path / "large"))
