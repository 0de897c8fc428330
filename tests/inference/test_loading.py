"""Loading a model folder: what it leaves alone, and what it gives."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn

from said import naming
from transduce.config import ModelConfig
from transduce.errors import CheckpointError
from transduce.inference import Translator
from transduce.inference.folder import read_model_folder
from transduce.model import EncoderDecoder, ShapesOnly, make_model
from transduce.model.weights import assign_weights, weights_of
from transduce.model.weights_file import are_finite, read_tensors

SIZES = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 16, "src_vocab_size": 11, "tgt_vocab_size": 11}

PROGRAM = """
import sys
import torch
from transduce.cli.main import run
from transduce.inference import Translator

def check(what):
    slow = {"torch._dynamo", "torch._inductor", "sympy", "sacremoses", "joblib", "PIL", "soundfile", "sklearn"}
    slow &= sys.modules.keys()
    assert not slow, (what, slow)

model, text = sys.argv[1:]
before = torch.random.get_rng_state()
translator = Translator.load(model)
assert torch.equal(torch.random.get_rng_state(), before), "loading draws"
translator.translate(["a dog"])
check("Translator")
assert run(["translate", model, "--in", text]) == 0
assert not {"rich", "transduce.tasks", "transduce.training", "transduce.runs"} & sys.modules.keys()
check("translate")
assert run(["evaluate", model, "--src", text, "--ref", text]) == 0
check("evaluate")
assert run(["model", model]) == 0
check("model")
"""


def test_slow_modules_are_not_imported(micro_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a dog\n", encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, micro_model, text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_weights_are_those_of_the_file(micro_model: Path) -> None:
    expected = read_tensors(micro_model / "model.safetensors")
    model = read_model_folder(micro_model, device=torch.device("cpu")).model
    weights = model.canonical()
    assert weights.keys() == expected.keys()
    for name, weight in weights.items():
        assert torch.equal(weight, expected[name])
        assert (type(weight), weight.requires_grad, weight.dtype) == (nn.Parameter, True, torch.float32)


def test_several_threads_load_at_once(micro_model: Path) -> None:
    texts = ["the dog sees the cat", "a tree"]
    expected = Translator.load(micro_model).translate(texts)
    with ThreadPoolExecutor(4) as pool:
        translators = list(pool.map(Translator.load, [micro_model] * 8))
    for translator in translators:
        assert translator.translate(texts) == expected


@pytest.mark.parametrize("embeddings", ["three-way", "target", "separate"])
@pytest.mark.parametrize("system", ["transformer", "recurrent", "last-state", "convs2s", "bytenet"])
def test_a_model_with_assigned_weights_is_the_model(system: str, embeddings: str) -> None:
    config = ModelConfig(**SIZES, system=system, embeddings=embeddings)
    torch.manual_seed(2)
    expected = make_model(config).eval()
    with ShapesOnly():
        model = make_model(config)
    weights = {name: weight.double() for name, weight in weights_of(expected).items()}  # become those of the model
    assign_weights(model, weights, where=Path("model"))
    assert weights_of(model).keys() == weights.keys()  # tied weights are tied: they appear once
    src_BS, tgt_BT = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 7], [1, 8]])
    assert torch.equal(logits(model.eval(), src_BS, tgt_BT), logits(expected, src_BS, tgt_BT))


@torch.no_grad()
def logits(model: EncoderDecoder, src_BS: torch.Tensor, tgt_BT: torch.Tensor) -> torch.Tensor:
    return model.logits(model(src_BS, tgt_BT))


def test_weights_that_do_not_fit_are_refused() -> None:
    def built() -> nn.Module:
        with ShapesOnly():
            return nn.Sequential(nn.Linear(2, 3))

    where, weights = Path("model"), {"0.weight": torch.ones(3, 2), "0.bias": torch.ones(3)}
    model = built()
    assign_weights(model, weights, where=where)
    assert model(torch.ones(2)).tolist() == [3.0, 3.0, 3.0]
    for wrong, facts in (
        ({"0.weight": torch.ones(3, 2)}, ("lacks", "0.bias")),
        (weights | {"1": torch.ones(1)}, ("unknown", "1")),
        (weights | {"0.bias": torch.ones(2)}, ("0.bias", "(2,)", "(3,)")),
        (weights | {"0.bias": torch.ones(3, dtype=torch.int64)}, ("0.bias", "torch.int64")),
    ):
        with pytest.raises(CheckpointError, match=naming(where, *facts)):
            assign_weights(built(), wrong, where=where)
    with ShapesOnly():
        model = nn.Sequential(nn.Linear(2, 3))
        model.register_buffer("table", torch.empty(3))
    with pytest.raises(CheckpointError, match=naming(where, "table", "torch.empty")):
        assign_weights(model, weights, where=where)


def test_values_are_finite_though_their_sum_is_not() -> None:
    large = torch.finfo(torch.float32).max
    assert are_finite(torch.full((5,), large))
    assert are_finite(torch.full((5,), 60_000.0, dtype=torch.float16))
    assert are_finite(torch.empty(0))
    for values in ([torch.inf], [torch.inf, -torch.inf], [torch.nan, 1.0], [-torch.inf, large, large]):
        assert not are_finite(torch.tensor(values))
