"""Cached measurements: arrays and tables survive the round trip, other keys are measured again, damage is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from messages import naming, says
from transduce.config import RunConfig
from transduce.errors import DataError
from transduce_paper import Experiment, Experiments
from transduce_paper.measurement_cache import (
    MAX_ARRAY_BYTES,
    MeasuredArrays,
    read_arrays,
    read_tables,
    validated,
    write_arrays,
    write_tables,
)

KEY = {"weights_sha256": "ab", "settings": {"n": 3}}
DTYPES = ("float16", "float32", "int64", "bool")
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def arrays_of(seed: int, shapes: list[tuple[int, ...]]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        f"a{number}": (8 * random.random(shape)).astype(DTYPES[number % len(DTYPES)])
        for number, shape in enumerate(shapes)
    }


@given(st.integers(0, 2**31), st.lists(SHAPES, max_size=5), st.dictionaries(st.text(), st.text() | st.integers()))
def test_arrays_and_values_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shapes: list[tuple[int, ...]], values: dict
) -> None:
    path = tmp_path_factory.mktemp("cache") / "run.maps.json"
    arrays = arrays_of(seed, shapes)
    write_arrays(path, KEY, MeasuredArrays(values, arrays))
    again = read_arrays(path, KEY)
    assert again is not None
    assert again.values == values
    assert list(again.arrays) == list(arrays)
    for name, array in arrays.items():
        assert again.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(again.arrays[name], array)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The JSON file of two cached arrays."""
    path = tmp_path / "run.maps.json"
    write_arrays(path, KEY, MeasuredArrays({"words": ["a", "cat"]}, {"cross": np.eye(3), "encoder": np.ones((2, 2))}))
    return path


def test_arrays_are_files_beside_their_json(cache: Path) -> None:
    assert sorted(each.name for each in cache.parent.iterdir()) == [
        "run.maps.cross.npy", "run.maps.encoder.npy", "run.maps.json",
    ]  # fmt: skip
    np.testing.assert_array_equal(np.load(cache.parent / "run.maps.cross.npy", allow_pickle=False), np.eye(3))


@pytest.mark.parametrize("other", [{**KEY, "weights_sha256": "cd"}, {**KEY, "settings": {"n": 4}}])
def test_another_key_finds_nothing(cache: Path, other: dict) -> None:
    assert read_arrays(cache, other) is None
    assert read_arrays(cache.with_name("missing.json"), KEY) is None
    tables = cache.with_name("tables.json")
    write_tables(tables, "heads", KEY, [{"head": 1}])
    assert read_tables(tables, "heads", KEY) == [{"head": 1}]
    assert read_tables(tables, "heads", other) is None


def changed(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("damage", "facts"),
    [
        (lambda path: path.with_suffix(".cross.npy").unlink(), ("run.maps.cross.npy", "run.maps.json")),
        (lambda path: path.with_suffix(".cross.npy").write_bytes(b""), ("run.maps.cross.npy", "run.maps.json")),
        (lambda path: shutil.copy(path.with_suffix(".cross.npy"), path.with_suffix(".encoder.npy")),
         ("run.maps.encoder.npy", "run.maps.json")),
        (lambda path: path.write_text("{"), ("run.maps.json", "JSON")),
        (lambda path: changed(path, format=2), ("run.maps.json", 2, 1)),
        (lambda path: changed(path, values=[]), ("run.maps.json", "values")),
        (lambda path: changed(path, arrays={"../../cross": ""}), ("run.maps.json", "arrays")),
    ],
)  # fmt: skip
def test_damage_is_named(cache: Path, damage: Callable[[Path], object], facts: tuple) -> None:
    damage(cache)
    with pytest.raises(DataError, match=naming(*facts)):
        read_arrays(cache, KEY)


def test_pickled_objects_are_not_read(cache: Path) -> None:
    path = cache.with_suffix(".cross.npy")
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    changed(cache, arrays={"cross": sha256(path.read_bytes()).hexdigest()})
    with pytest.raises(DataError, match=naming("run.maps.json")):
        read_arrays(cache, KEY)


def test_arrays_above_the_limit_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.maps.json"
    header = 128  # bytes of the header of a .npy file
    write_arrays(path, KEY, MeasuredArrays({}, {"a": np.zeros(MAX_ARRAY_BYTES - header, dtype="int8")}))
    with pytest.raises(DataError, match=naming("1,000,001", "1,000,000")):
        write_arrays(
            path.with_name("other.json"), KEY, MeasuredArrays({}, {"a": np.zeros(MAX_ARRAY_BYTES - header + 1, "int8")})
        )
    assert not list(tmp_path.glob("other*"))


def test_validated_names_the_first_wrong_field() -> None:
    kind = TypeAdapter(list[dict[str, int]])
    assert validated(kind, [{"a": 1}], where="x.json") == [{"a": 1}]
    with pytest.raises(DataError, match=naming("x.json", "0.a")):
        validated(kind, [{"a": "one"}], where="x.json")


def test_an_experiment_measures_arrays_once_for_each_setting(micro_config: RunConfig, tmp_path: Path) -> None:
    log: list[str] = []
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu", log=log.append)
    experiment = Experiment("base-seed1", micro_config)
    folders: list[Path] = []

    def measure(model_folder: Path) -> MeasuredArrays:
        folders.append(model_folder)
        return MeasuredArrays({"n": len(folders)}, {"eye": np.eye(2, dtype=np.float16)})

    first = experiments.cached_arrays(experiment, "maps", measure, settings={"text": "a"})
    assert folders == [experiments.model_folder(experiment)]
    shutil.rmtree(experiments.run_folder(experiment))
    again = experiments.cached_arrays(experiment, "maps", measure, settings={"text": "a"})
    assert (len(folders), again.values) == (1, first.values)
    np.testing.assert_array_equal(again.arrays["eye"], first.arrays["eye"])
    log.clear()
    assert experiments.cached_arrays(experiment, "maps", measure, settings={"text": "b"}).values == {"n": 2}
    assert any(says(line, "base-seed1", "model") for line in log)  # only now the model is trained again
