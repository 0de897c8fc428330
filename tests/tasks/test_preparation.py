"""What preparation tells of text that is wrong, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from transduce.config import DataConfig
from transduce.corpora import generate_pairs
from transduce.errors import ConfigError, DataError
from transduce.files import write_manifest
from transduce.tasks.preparation import open_prepared, prepare

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
    return DataConfig.model_validate({"corpus": "files", "vocab_size": 300, **fields})


def told_of(config: DataConfig, folder: Path) -> list[str]:
    told: list[str] = []
    prepare(config, folder, tell=told.append)
    return told


def warnings(told: list[str]) -> list[str]:
    return [line.removeprefix("warning: ") for line in told if line.startswith("warning: ")]


def test_good_text_and_the_built_in_corpus_have_no_warnings(tmp_path: Path) -> None:
    assert warnings(told_of(config_of(tmp_path, train=grammar()), tmp_path / "own")) == []
    assert warnings(told_of(DataConfig(n_pairs=100, vocab_size=300), tmp_path / "built in")) == []


def test_wrong_files_are_told_before_the_tokenizer_is_learned(tmp_path: Path) -> None:
    train = grammar()
    shifted = list(zip([src for src, _ in train], [*[tgt for _, tgt in train[1:]], "Ende."], strict=True))
    told = told_of(config_of(tmp_path, train=shifted, dev=train[:40]), tmp_path / "out")
    subject = f"{tmp_path / 'train.en'} with train.de"
    assert told[0] == (
        f"warning: {subject}: line N of train.en matches line N - 1 of train.de: train.de lacks 1 line at its"
        " beginning, or train.en has 1 too many"
    )
    assert told[1].startswith(f"warning: {tmp_path / 'dev.en'} with dev.de: 40 of 40 lines are in {subject}, too: ")
    assert told[2].startswith("tokenizer: ")
    assert len(warnings(told)) == 2


def test_another_language_and_another_code(tmp_path: Path) -> None:
    told = warnings(told_of(config_of(tmp_path, train=grammar(), direction="cz-de"), tmp_path / "out"))
    assert told == ["direction = 'cz-de': 'cz' is no language code of ISO 639-1; did you mean 'cs', Czech?"]
    told = warnings(told_of(config_of(tmp_path, train=grammar(), direction="de-en"), tmp_path / "again"))
    assert len(told) == 1
    assert "the sides are swapped: train.en looks like English (en) and train.de like German (de)" in told[0]


@pytest.mark.parametrize("shared", [True, False])
def test_dropped_pairs_are_told_once_and_loudly_where_they_are_many(tmp_path: Path, shared: bool) -> None:
    config = config_of(tmp_path, train=[*grammar(), *[("dog", "")] * 10], shared_vocabulary=shared)
    told = told_of(config, tmp_path / "out")
    files = f"{tmp_path / 'train.en'} {tmp_path / 'train.de'}"
    assert warnings(told) == [
        "files: cleaning drops 3.2% of the training pairs: empty 10 (first at lines 301, 302, 303): take blank lines"
        f" out of both files, or find what was lost; look at them with: transduce doctor {files}"
    ]
    assert told.count("files: dropped 10: empty (first at lines 301, 302, 303)") == 1
    assert sum("read 310 pairs, kept 300, dropped 10" in line for line in told) == 1


def test_text_that_is_mostly_dropped_is_refused(tmp_path: Path) -> None:
    train = [*grammar(100), *[("Berlin", "Berlin")] * 60]
    config = config_of(tmp_path, train=train)
    message = (
        r"files: cleaning drops 37\.5% of the training pairs: identical sides 60 \(first at lines 101, 102, 103\): .*;"
        r" look at them with: transduce doctor .*train\.en .*train\.de; that is more than"
        r" data\.max_dropped_share = 0\.3 allows; to train all the same: --set data\.max_dropped_share=1\.0$"
    )
    with pytest.raises(DataError, match=message):
        prepare(config, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.de", "dev.en", "train.de", "train.en"]
    told = warnings(told_of(config.model_copy(update={"max_dropped_share": 1.0}), tmp_path / "out"))
    assert len(told) == 1
    assert told[0].startswith("files: cleaning drops 37.5%")


def test_duplicates_that_are_dropped_on_request_are_no_loss(tmp_path: Path) -> None:
    config = config_of(tmp_path, train=grammar(100) * 3, drop_duplicates=True)
    assert warnings(told_of(config, tmp_path / "out")) == []


def test_the_limit_is_no_property_of_what_was_prepared(tmp_path: Path) -> None:
    config = config_of(tmp_path, train=grammar(100))
    prepared = prepare(config, tmp_path / "out")
    other = config.model_copy(update={"max_dropped_share": 1.0})
    assert open_prepared(tmp_path / "out", expected=other).fingerprint == prepared.fingerprint
    path = tmp_path / "out" / "prepared.json"
    description = json.loads(path.read_text())
    del description["data"]["max_dropped_share"], description["format"]  # as folders of earlier versions
    path.write_text(json.dumps(description))
    (tmp_path / "out" / "manifest.json").unlink()
    assert open_prepared(tmp_path / "out", expected=config).config == config
    with pytest.raises(ConfigError, match=r"was prepared with data\.max_length = 256, this run has 9"):
        open_prepared(tmp_path / "out", expected=config.model_copy(update={"max_length": 9}))


def test_utf_16_and_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    config = config_of(tmp_path, train=grammar(10))
    (tmp_path / "train.de").write_text("Der Hund schläft.\n", encoding="utf-16")
    message = f"{tmp_path / 'train.de'} is UTF-16; convert it, as in: iconv -f UTF-16 -t UTF-8"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        prepare(config, tmp_path / "out")
    (tmp_path / "train.de").write_bytes(b"%PDF-1.7\n")
    with pytest.raises(DataError, match=r"train\.de is a PDF; save it as plain text in UTF-8, a sentence a line$"):
        prepare(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_prepared_text_without_its_manifest_is_refused(tmp_path: Path) -> None:
    prepare(config_of(tmp_path, train=grammar(100)), tmp_path / "out")
    for name in ("manifest.json", "train/manifest.json"):
        content = (tmp_path / "out" / name).read_bytes()
        (tmp_path / "out" / name).unlink()
        with pytest.raises(
            DataError, match=r"has no manifest\.json; it is not complete; bring the file back from a copy"
        ):
            open_prepared(tmp_path / "out")
        (tmp_path / "out" / name).write_bytes(content)
    open_prepared(tmp_path / "out")


def test_prepared_text_of_a_later_version_is_refused(tmp_path: Path) -> None:
    prepare(config_of(tmp_path, train=grammar(100)), tmp_path / "out")
    path = tmp_path / "out" / "prepared.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3}))
    write_manifest(tmp_path / "out")
    with pytest.raises(
        DataError, match=r"prepared\.json has format 3, this version reads formats 0 to 2; prepare it anew"
    ):
        open_prepared(tmp_path / "out")


def test_what_somebody_else_puts_there_meanwhile_stays(tmp_path: Path) -> None:
    """And what was prepared is not lost."""
    config, out = config_of(tmp_path, train=grammar(100)), tmp_path / "out"

    def put(line: str) -> None:
        out.mkdir(exist_ok=True)
        (out / "thesis.txt").write_text("precious")

    with pytest.raises(DataError, match=r"out cannot be written: Directory not empty; .* is complete in .*out-2$"):
        prepare(config, out, tell=put)
    assert (out / "thesis.txt").read_text() == "precious"
    assert len(open_prepared(tmp_path / "out-2").train) == 100
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_dev_text_without_its_store_is_refused(tmp_path: Path, micro_run: Path) -> None:
    shutil.copytree(micro_run / "store", tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "dev")
    with pytest.raises(DataError, match=r"dev is not a folder"):
        open_prepared(tmp_path / "store")
