"""Images to text, end to end on own files: prepared, trained, used, evaluated, examined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_recipes import SmallRuns

from commands import CommandLine
from said import naming, says
from transduce import Reader
from transduce.config import RunConfig
from transduce.data import open_store
from transduce.diagnostics import examine
from transduce.errors import ConfigError, DataError
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks import open_prepared, prepare
from transduce.view import attention_of_media, attention_page

Image: Any = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def images(small_runs: SmallRuns) -> Path:
    return small_runs["image-to-text"].files


@pytest.fixture(scope="module")
def recipe(small_runs: SmallRuns) -> Path:
    return small_runs["image-to-text"].recipe


@pytest.fixture(scope="module")
def run(small_runs: SmallRuns) -> Path:
    return small_runs["image-to-text"].folder


def flawed(recipe: Path) -> RunConfig:
    """The recipe with a training list that has files that cannot be used."""
    return read_recipe(recipe, [f"data.train_media={recipe.parent / 'files' / 'flawed.tsv'}"])


def test_what_cannot_be_used_is_counted_and_named(recipe: Path, images: Path, tmp_path: Path) -> None:
    told = list[str]()
    prepared = prepare(flawed(recipe).data, tmp_path / "prepared", log=told.append)
    text = "\n".join(told)
    assert says(text, "files: left out", 2, "unreadable", images / "bad.png", images / "missing.png")
    assert says(text, "files: left out", 2, "empty", images / "blank.png", images / "train-1.png")
    assert says(text, "files: left out", 1, "too long", images / "wide.png", 60)
    assert says(text, "train:", 24, "images")
    assert (len(prepared.train), len(prepared.dev or [])) == (24, 4)
    cleaning = json.loads((tmp_path / "prepared" / "prepared.json").read_text())["cleaning"]["files"]
    assert cleaning == {"read": 29, "kept": 24, "left_out": {"unreadable": 2, "empty": 2, "too long": 1}}
    store = open_store(tmp_path / "prepared" / "train")
    features = store.columns["features"].row(0)
    assert (features.dtype, features.shape[1], features.max()) == (np.uint8, 8, 255)
    assert (tmp_path / "prepared" / "train" / "features.values.npy").stat().st_size < 24 * 40 * 8 + 200
    names, texts = prepared.text("test") or ([], [])
    assert [Path(name).name for name in names] == [f"test-{n}.png" for n in range(5)]
    assert all(text.isdigit() for text in texts)


def test_a_file_of_test_that_cannot_be_used_is_an_error(recipe: Path, images: Path, tmp_path: Path) -> None:
    listed = tmp_path / "bad.tsv"
    listed.write_text(f"{images}/bad.png\t1\n{images}/test-1.png\t2\n", encoding="utf-8")
    config = read_recipe(recipe, [f"data.test_media={listed}"])
    with pytest.raises(DataError, match=naming(listed, "test", images / "bad.png")):
        prepare(config.data, tmp_path / "prepared")
    listed.write_text("only a name\n", encoding="utf-8")
    with pytest.raises(DataError, match=naming(f"{listed}:1", "TAB")):
        prepare(config.data, tmp_path / "prepared")
    with pytest.raises(DataError, match=naming("none.tsv")):
        prepare(read_recipe(recipe, ["data.train_media=none.tsv"]).data, tmp_path / "prepared")
    with pytest.raises(ConfigError, match=naming("multi30k", "image-to-text")):
        prepare(read_recipe(recipe, ["data.corpus={multi30k=1, files=1}"]).data, tmp_path / "prepared")


def test_r_drop_reads_each_image_twice(recipe: Path, tmp_path: Path) -> None:
    result = train(read_recipe(recipe, ["training.max_updates=2", "training.r_drop=1.0"]), tmp_path / "run")
    assert result.updates == 2


def test_a_reader_reads_files_and_arrays(run: Path, images: Path) -> None:
    reader = Reader.load(run / "model")
    files = [images / f"test-{n}.png" for n in range(5)]
    together = reader.read(files)
    assert len(together) == 5
    assert [reader.read([file])[0] for file in files] == together
    assert reader.read([np.asarray(Image.open(files[0]))]) == together[:1]
    three = reader.read(files[:2], n_best=3, beam_size=4)
    assert [len(each) for each in three] == [3, 3]
    found = list(reader.find_texts(files, beam_size=2))
    assert [each.source for each in found] == list(map(str, files))
    assert "Reader(1 + 1 layers" in repr(reader)
    with pytest.raises(TypeError, match="read"):
        reader.read("file.png")
    with pytest.raises(DataError, match=naming(images / "bad.png")):
        reader.read([images / "bad.png"])
    with pytest.raises(DataError, match="array"):
        reader.read([np.zeros((8, 9), np.uint8)])
    with pytest.raises(DataError, match=naming("positions", "4,096")):
        reader.read([np.kron(np.eye(8, dtype=np.uint8), np.full((1, 2000), 200, np.uint8))])


def test_read_prints_a_line_for_each_image(transduce: CommandLine, run: Path, images: Path) -> None:
    model, files = run / "model", [images / "test-0.png", images / "test-1.png"]
    plain = transduce("read", model, *files)
    assert (plain.code, plain.out.splitlines()) == (0, Reader.load(model).read(files))
    records = [json.loads(line) for line in transduce("read", model, *files, "--json", "--n-best", 2).out.splitlines()]
    assert [record["file"] for record in records] == list(map(str, files))
    assert records[0].keys() == {"file", "text", "score", "n_best", "warnings"}
    assert len(records[0]["n_best"]) == 2
    listed = transduce("read", model, *files, "--n-best", 2, "--beam", 3).out.splitlines()
    assert [line.split("\t")[0] for line in listed] == ["1", "1", "2", "2"]
    drawn = transduce("read", model, *files, "--sample", "--seed", 3)
    assert drawn.out == transduce("read", model, *files, "--sample", "--seed", 3).out
    refused = transduce("read", model, images / "bad.png")
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert says(refused.err, images / "bad.png")


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_it(
    transduce: CommandLine, run: Path, images: Path
) -> None:
    model, good = run / "model", [images / "test-0.png", images / "test-1.png", images / "test-2.png"]
    texts = Reader.load(model).read(good)
    files = [good[0], images / "bad.png", good[1], images / "none.png", good[2]]
    outcome = transduce("read", model, *files)
    assert outcome.code == 1
    assert outcome.out.splitlines() == [texts[0], "", texts[1], "", texts[2]]
    errors = [line for line in outcome.err.splitlines() if "error" in line]
    assert [says(line, file) for line, file in zip(errors, (files[1], files[3]), strict=True)] == [True, True]
    records = [json.loads(line) for line in transduce("read", model, *files, "--json").out.splitlines()]
    assert ["error" in record for record in records] == [False, True, False, True, False]
    numbers = {line.split("\t")[0] for line in transduce("read", model, *files, "--n-best", 2).out.splitlines()}
    assert numbers == {"1", "3", "5"}


def test_what_is_read_in_part_is_told(transduce: CommandLine, run: Path, images: Path, tmp_path: Path) -> None:
    first, pages, wide = Image.open(images / "test-0.png"), tmp_path / "pages.tif", tmp_path / "wide.png"
    first.save(pages, save_all=True, append_images=[first])
    first.resize((8 * first.width, first.height)).save(wide)
    reader = Reader.load(run / "model")
    [of_pages, of_wide] = reader.find_texts([pages, wide])
    assert of_pages.text == reader.read([images / "test-0.png"])[0]
    assert any(says(warning, pages, "first") for warning in of_pages.warnings)
    assert any(says(warning, wide, "pixels", f"{reader.longest_source:,}") for warning in of_wide.warnings)
    outcome = transduce("read", run / "model", pages, wide, "--json")
    assert [json.loads(line)["warnings"] for line in outcome.out.splitlines()] == [
        list(of_pages.warnings), list(of_wide.warnings),
    ]  # fmt: skip
    assert all(any(says(line, warning) for line in outcome.err.splitlines()) for warning in of_wide.warnings)


def test_a_text_that_is_cut_off_is_told(run: Path, images: Path) -> None:
    reader = Reader.load(run / "model")
    reader._engine.max_positions = 1  # type: ignore[misc]
    [cut] = reader.find_texts([images / "test-0.png"])
    assert any(says(warning, images / "test-0.png", "cut off", 1) for warning in cut.warnings)


def test_pages_in_lists_are_told(recipe: Path, images: Path, tmp_path: Path) -> None:
    first = Image.open(images / "train-2.png")
    first.save(tmp_path / "pages.tif", save_all=True, append_images=[first])
    listed, others = tmp_path / "list.tsv", [f"{images}/train-{n}.png\t{n}\n" for n in (2, 3, 4)]
    listed.write_text(f"{tmp_path}/pages.tif\t12\n{''.join(others)}", encoding="utf-8")
    told = list[str]()
    settings = [f"data.{split}_media={listed}" for split in ("train", "dev")]
    prepare(read_recipe(recipe, settings).data, tmp_path / "prepared", log=told.append)
    assert [says(line, tmp_path / "pages.tif", "first") for line in told].count(True) == 2
    found = list(examine([str(listed)]))
    assert any(each.status == "note" and says(each.message, tmp_path / "pages.tif") for each in found)


def test_evaluate_and_card_have_error_rates(transduce: CommandLine, run: Path, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.txt"
    outcome = transduce("evaluate", run / "model", "--media", images / "test.tsv", "--json", "--out", out)
    scores = json.loads(outcome.out)
    assert scores.keys() == {"character_error_rate", "word_error_rate", "exact", "lines"}
    assert (scores["lines"], len(out.read_text(encoding="utf-8").splitlines())) == (5, 5)
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert f"| character_error_rate | {scores['character_error_rate']['score']:.2f} |" in card
    assert "patches of 4 x 4 pixels" in card
    assert "transduce read" in card
    both = transduce("evaluate", run / "model", "--media", images / "test.tsv", "--src", images / "test.tsv")
    assert (both.code, says(both.err, "--media", "--src")) == (1, True)
    for option in ("--paper-bleu", "--multi30k-bleu", "--split", f"--data={images}"):
        refused = transduce("evaluate", run / "model", "--media", images / "test.tsv", option)
        assert (refused.code, says(refused.err, "--media", option.partition("=")[0])) == (1, True)


def test_media_needs_a_model_of_media(transduce: CommandLine, micro_model: Path, images: Path) -> None:
    outcome = transduce("evaluate", micro_model, "--media", images / "test.tsv")
    assert (outcome.code, says(outcome.err, "images", "translation", "transduce translate")) == (1, True)


def test_the_attention_page_has_the_picture(transduce: CommandLine, run: Path, images: Path, tmp_path: Path) -> None:
    maps = attention_of_media(Reader.load(run / "model"), images / "test-0.png", "12")
    assert maps.picture is not None
    n_positions = len(maps.src_tokens)
    assert (maps.picture.pixels.shape[0], len(maps.picture.boxes)) == (8, n_positions)
    assert maps.cross is not None
    assert maps.cross.shape == (1, 2, 4, n_positions)  # the space before the text, two digits, EOS
    assert maps.src_tokens[:3] == ("0, row 1", "0, row 2", "4, row 1")
    assert '"picture":{"name":"Image"' in attention_page([maps], title="digits")
    path = tmp_path / "page.html"
    outcome = transduce("attention", run / "model", "--src", images / "test-0.png", "--out", path)
    assert (outcome.code, path.exists()) == (0, True)


def test_the_doctor_examines_lists_and_recipes(recipe: Path, run: Path, images: Path, tmp_path: Path) -> None:
    found = list(examine([str(images / "flawed.tsv")]))
    text = "\n".join(each.message for each in found)
    assert [each.status for each in found] == ["problem", "problem", "good"]
    assert says(text, 2, "unreadable", images / "bad.png")
    assert says(text, 2, "empty", images / "blank.png")
    assert says(text, 25, 29, "images")  # a list alone has no limit of the width
    other = tmp_path / "other.toml"
    other.write_text(recipe.read_text().replace("/train.tsv", "/flawed.tsv").replace("/test.tsv", "/flawed.tsv"))
    of_recipe = list(examine([str(other)]))
    assert [each.message for each in of_recipe if each.status == "note"]  # too long
    assert any(says(each.message, "images to text from files") for each in of_recipe)
    assert any(says(each.message, "flawed.tsv", "too") for each in of_recipe if each.status == "problem")
    assert {each.status for each in examine([str(run)])} == {"good"}
    assert {each.status for each in examine([str(run / "store")])} <= {"good", "note"}


def test_a_prepared_folder_is_of_its_settings(recipe: Path, run: Path) -> None:
    prepared = open_prepared(run / "store", expected=read_recipe(recipe).data)
    assert prepared.text_names["test"].endswith("test.tsv")
    with pytest.raises(ConfigError, match=naming("image_height", 8, 16)):
        open_prepared(
            run / "store", expected=read_recipe(recipe, ["data.image_height=16", "model.source_width=16"]).data
        )


def test_a_run_starts_from_another_model(recipe: Path, run: Path, tmp_path: Path) -> None:
    model, told = run / "model", list[str]()
    settings = [f"training.init_from={model}", f"data.tokenizer_from={model}", "training.max_updates=1"]
    result = train(read_recipe(recipe, settings), tmp_path / "run", log=told.append)
    assert result.updates == 1
    assert any(says(line, "took", "weights", model) for line in told)
    assert not any(line.startswith("drawn at random") for line in told)
