"""Packed weights come back from a file with every bit; a file that is damaged or of something else is refused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.test_native_engine import VARIANTS, native, random_model, requests
from transduce.config import GreedySearchConfig, InferencePrecision
from transduce.errors import ConfigError
from transduce.inference.engine import Engine
from transduce.inference.native.binding import library

pytestmark = pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")


def written(engine: Any, path: Path, key: str = "sha256 of the weights") -> Path:
    error = ctypes.create_string_buffer(300)
    status = library().td_save(engine._model.handle, str(path).encode(), key.encode(), error, len(error))
    assert (status, error.value) == (0, b"")
    return path


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Engine]:
    """The engine of a model, with weights from a file."""

    def mapped(
        path: Path, model: Any, precision: InferencePrecision = "fp32", key: str = "sha256 of the weights"
    ) -> Engine:
        def from_file(config: Any, tensors: Any, n_tensors: int, precision: int, *error: Any) -> Any:
            return library().td_map(config, precision, str(path).encode(), key.encode(), *error)

        with monkeypatch.context() as patched:
            patched.setattr(library(), "td_load", from_file)
            return native(model, precision)

    return mapped


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_a_file_has_all_bits(
    changes: dict[str, Any], precision: InferencePrecision, tmp_path: Path, mapped: Callable[..., Engine]
) -> None:
    model = random_model(**changes)
    packed = native(model, precision)
    again = mapped(written(packed, tmp_path / "packed"), model, precision)
    search = GreedySearchConfig()
    assert again.hypotheses(requests(search), search) == packed.hypotheses(requests(search), search)
    assert written(again, tmp_path / "again").read_bytes() == (tmp_path / "packed").read_bytes()


def test_what_is_damaged_is_refused(tmp_path: Path, mapped: Callable[..., Engine]) -> None:
    model = random_model()
    path = written(native(model), tmp_path / "packed")
    good = path.read_bytes()
    random = np.random.default_rng(5)
    for place in [*range(0, 500, 7), *random.integers(0, len(good), 50).tolist()]:
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        with pytest.raises(ConfigError, match=r"damaged|another"):
            mapped(path, model)
    for size in (0, 1, 100, 511, 512, 600, len(good) - 64, len(good) - 1):
        path.write_bytes(good[:size])
        with pytest.raises(ConfigError, match=r"damaged|read"):
            mapped(path, model)
    path.write_bytes(good + bytes(64))
    with pytest.raises(ConfigError, match="damaged"):
        mapped(path, model)
    with pytest.raises(ConfigError, match="read"):
        mapped(tmp_path / "none", model)


def test_what_is_of_another_model_is_refused(tmp_path: Path, mapped: Callable[..., Engine]) -> None:
    model = random_model()
    path = written(native(model), tmp_path / "packed")
    for other, precision, key in (
        (random_model(), "int8", "sha256 of the weights"),
        (random_model(), "fp32", "sha256 of others"),
        (random_model(activation="gelu"), "fp32", "sha256 of the weights"),
        (random_model(scale_embeddings=False), "fp32", "sha256 of the weights"),
        (random_model(d_ff=97), "fp32", "sha256 of the weights"),
    ):
        with pytest.raises(ConfigError, match="another"):
            mapped(path, other, precision, key)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    engine: Any = native(random_model())
    error = ctypes.create_string_buffer(300)
    for path, key in ((tmp_path / "no folder" / "packed", "key"), (tmp_path / "packed", "k" * 256)):
        assert library().td_save(engine._model.handle, str(path).encode(), key.encode(), error, len(error)) == 1
        assert error.value
