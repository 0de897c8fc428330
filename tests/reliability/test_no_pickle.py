"""No pickle is ever read or written: a model, store or run from an untrusted source cannot execute code."""

from __future__ import annotations

import ast
import io
import json
import os
import pickle
import pickletools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transduce
from commands import CommandLine
from transduce.data import open_pairs
from transduce.errors import TransduceError
from transduce.files import write_manifest
from transduce.inference import Translator
from transduce.model import Transformer
from transduce.recipes import read_recipe
from transduce.runs.run_file import read_run_config
from transduce.tasks.prepared import open_prepared
from transduce.text import load_tokenizer
from transduce.training import average_weights, checkpoint_folders, make_optimiser
from transduce.training.checkpoint import load_checkpoint

pytestmark = pytest.mark.reliability

Load = Callable[[Path], object]


class Malice:
    """Unpickling this object creates a folder, the witness."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.witness),)


def by_torch(malice: Malice, *, is_zip: bool) -> bytes:
    stream = io.BytesIO()
    torch.save({"weight": malice}, stream, _use_new_zipfile_serialization=is_zip)
    return stream.getvalue()


def by_numpy(malice: Malice, save: Callable[..., None]) -> bytes:
    stream = io.BytesIO()
    save(stream, np.array([malice, 1], dtype=object))
    return stream.getvalue()


def in_a_header(malice: Malice) -> bytes:
    """An array file, or so it begins."""
    header = pickle.dumps(malice)
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def unpickle_torch(content: bytes) -> object:
    return torch.load(io.BytesIO(content), weights_only=False)


def unpickle_numpy(content: bytes) -> object:
    loaded = np.load(io.BytesIO(content), allow_pickle=True)
    return loaded if isinstance(loaded, np.ndarray) else loaded["arr_0"]


# How each is made, and how it would be unpickled.
PAYLOADS: dict[str, tuple[Callable[[Malice], bytes], Callable[[bytes], object]]] = {
    "pickle, text": (lambda malice: pickle.dumps(malice, 0), pickle.loads),
    "pickle": (pickle.dumps, pickle.loads),
    "torch": (lambda malice: by_torch(malice, is_zip=True), unpickle_torch),
    "torch, legacy": (lambda malice: by_torch(malice, is_zip=False), unpickle_torch),
    "npy of objects": (lambda malice: by_numpy(malice, np.save), unpickle_numpy),
    "npz of objects": (lambda malice: by_numpy(malice, np.savez), unpickle_numpy),
    "npy header": (in_a_header, lambda content: pickle.loads(content[10:])),
}


@pytest.fixture(params=PAYLOADS)
def payload(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[bytes]:
    """Bytes that are dangerous, as is shown first, to be refused by the test; at its end there is no witness."""
    make, unpickle = PAYLOADS[request.param]
    witness = tmp_path / "witness"
    content = make(Malice(witness))
    unpickle(content)
    witness.rmdir()
    yield content
    assert not witness.exists()


def refuses(load: Load, path: Path) -> None:
    with pytest.raises(TransduceError) as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 1


def each_file_is_refused(source: Path, copy: Path, payload: bytes, load: Load, *, exempt: tuple[str, ...] = ()) -> None:
    """In place of each file of a folder, under the manifest that was there and under one that fits."""
    names = sorted(path.name for path in source.iterdir() if path.is_file() and path.name not in exempt)
    assert "manifest.json" in names
    for name in names:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        (copy / name).write_bytes(payload)
        refuses(load, copy)
        if name != "manifest.json":
            write_manifest(copy, exempt=exempt)
            refuses(load, copy)


def test_model_folders(micro_model: Path, tmp_path: Path, payload: bytes) -> None:
    each_file_is_refused(micro_model, tmp_path / "model", payload, Translator.load, exempt=("README.md",))
    card = Path(shutil.copytree(micro_model, tmp_path / "with card")) / "README.md"
    card.write_bytes(payload)  # never read by transduce
    Translator.load(card.parent)


def test_checkpoints(micro_run: Path, tmp_path: Path, payload: bytes) -> None:
    config = read_run_config(micro_run)
    model = Transformer(config.model)

    def load(path: Path) -> None:
        load_checkpoint(path, model, make_optimiser(model, config.training))

    newest = checkpoint_folders(micro_run / "checkpoints")[-1]
    each_file_is_refused(newest, tmp_path / "checkpoint", payload, load)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.copytree(newest, tmp_path / "checkpoint")
    (tmp_path / "checkpoint" / "model.safetensors").write_bytes(payload)
    write_manifest(tmp_path / "checkpoint")
    refuses(lambda path: average_weights([path]), tmp_path / "checkpoint")


def test_token_stores(micro_run: Path, tmp_path: Path, payload: bytes) -> None:
    each_file_is_refused(micro_run / "store" / "train", tmp_path / "store", payload, open_pairs)


def test_prepared_folders(micro_run: Path, tmp_path: Path, payload: bytes) -> None:
    def load(folder: Path) -> None:
        prepared = open_prepared(folder)
        prepared.text("dev"), prepared.text("test")

    each_file_is_refused(micro_run / "store", tmp_path / "prepared", payload, load)


def test_files_by_themselves(tmp_path: Path, payload: bytes) -> None:
    for name, load in {
        "run.json": lambda path: read_run_config(path.parent),
        "tokenizer.json": load_tokenizer,
        "recipe.toml": read_recipe,
    }.items():
        (tmp_path / name).write_bytes(payload)
        refuses(load, tmp_path / name)


def test_the_verbs(transduce: CommandLine, micro_run: Path, micro_model: Path, tmp_path: Path, payload: bytes) -> None:
    bad, recipe = tmp_path / "bad", tmp_path / "recipe.toml"
    bad.write_bytes(payload)
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{bad}"\ntrain_tgt = "{bad}"\n')
    model = Path(shutil.copytree(micro_model, tmp_path / "model"))
    (model / "model.safetensors").write_bytes(payload)
    write_manifest(model, exempt=("README.md",))
    for arguments in (
        ["translate", model],
        ["attention", model, "--src", "one", "--out", tmp_path / "page.html"],
        ["prepare", bad, "--out", tmp_path / "prepared"],
        ["prepare", recipe, "--out", tmp_path / "prepared"],
        ["train", bad, "--out", tmp_path / "run"],
        ["train", recipe, "--out", tmp_path / "run"],
    ):
        outcome = transduce(*arguments)
        assert outcome.code == 1, (arguments, outcome)
        assert outcome.err.count("error: ") == 1
    is_text = payload.isascii()  # and has as good a score as any
    for arguments in (["score", "--ref", bad, bad], ["evaluate", micro_model, "--src", bad, "--ref", bad]):
        assert transduce(*arguments).code == (0 if is_text else 1)
    outcome = transduce("translate", micro_model, stdin=payload)  # ordinary text, or named as what it is
    if outcome.code:
        assert (outcome.code, outcome.out, outcome.err.count("error: stdin is ")) == (1, "", 1)
    else:
        assert outcome.out.count("\n") == len(io.BytesIO(payload).readlines())


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl", "store/prepared.json", "checkpoints"])
def test_a_run_that_goes_on(transduce: CommandLine, own_run: Path, payload: bytes, name: str) -> None:
    paths = [own_run / name]
    if name == "checkpoints":
        paths = [path / "state.json" for path in checkpoint_folders(own_run / name)]
    for path in paths:
        path.write_bytes(payload + b"\n" + payload)  # of a last line that is broken, a killed process is suspected
    outcome = transduce("train", "--resume", "--out", own_run, "--set", "training.max_updates=31", "--device", "cpu")
    assert outcome.code == 1, outcome
    assert outcome.err.count("error: ") == 1


def test_everything_that_a_run_writes_is_another_format(micro_run: Path) -> None:
    paths = [path for path in micro_run.rglob("*") if path.is_file()]
    assert len(paths) > 20
    for path in paths:
        content = path.read_bytes()
        with pytest.raises(Exception):  # noqa: B017  (pickletools has no error of its own)
            list(pickletools.genops(content))
        match path.suffix:
            case ".json":
                json.loads(content)
            case ".jsonl":
                assert all(isinstance(json.loads(line), dict) for line in content.splitlines())
            case ".safetensors":
                assert isinstance(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]), dict)
            case ".npy":
                assert np.load(path, allow_pickle=False).dtype.kind in "ui"
            case ".md" | ".src" | ".tgt":
                content.decode("utf-8")
            case _:  # the event files are protocol buffers, of TensorBoard's own
                assert path.parent.name == "tensorboard", path


MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CALLS = {
    "torch.load", "torch.save", "torch.jit.load", "torch.package", "np.load", "numpy.load", "np.savez",
    "pd.read_pickle", "torch.hub.load", "torch.hub.load_state_dict_from_url",
}  # fmt: skip
NAMES = {  # whatever the object: torch.distributed pickles what is no tensor
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "send_object_list",
    "recv_object_list", "weights_only", "allow_pickle", "dcp", "FileSystemWriter",
}  # fmt: skip


def pickling(tree: ast.AST) -> Iterator[str]:
    """What in a source file would pickle or unpickle."""
    for node in ast.walk(tree):
        found: set[str] = set()
        match node:
            case ast.Import(names=aliases):
                found = {alias.name.split(".")[0] for alias in aliases} & MODULES
                found |= {alias.name for alias in aliases if alias.name.startswith("torch.distributed.checkpoint")}
            case ast.ImportFrom(module=str(module), names=aliases):
                found = ({module.split(".")[0]} & MODULES) | ({alias.name for alias in aliases} & NAMES)
                found |= {f"{module}.{alias.name}" for alias in aliases} & CALLS
                if module.startswith("torch.distributed.checkpoint"):
                    found.add(module)
            case ast.Attribute() | ast.Name():
                found = ({ast.unparse(node)} & CALLS) | ({ast.unparse(node).split(".")[-1]} & NAMES)
            case ast.keyword(arg=str(name)):
                found = {name} & NAMES
        for name in sorted(found):
            yield f"{getattr(node, 'lineno', '?')}: {name}"


# Importing other libraries' models reads their files, by readers that refuse everything but arrays (tests/exchange).
RESTRICTED_READERS = {
    "exchange/marian_npz.py": "np.load(path, allow_pickle=False)",
    "exchange/opus_folder.py": "torch.load(path, map_location='cpu', weights_only=True)",
}


def test_nothing_in_the_source_pickles() -> None:
    root = Path(transduce.__file__).parent
    found: dict[str, list[str]] = {}
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if names := [what.partition(": ")[2] for what in pickling(tree)]:
            found[str(path.relative_to(root))] = names
            calls = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            assert RESTRICTED_READERS.get(str(path.relative_to(root))) in calls
    assert {path: len(names) for path, names in found.items()} == dict.fromkeys(RESTRICTED_READERS, 2)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "np.load('x', allow_pickle=False)",
        "read(path, allow_pickle=True)",
        "dist.all_gather_object(a, b)",
        "import torch.distributed.checkpoint as dcp",
        "from torch.distributed import broadcast_object_list",
    ],
)
def test_what_pickles_is_found(source: str) -> None:
    assert list(pickling(ast.parse(source)))
