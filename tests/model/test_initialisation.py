"""Building a model without its initialisation: shapes without values."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
import torch
from torch import nn

from transduce.config import ModelConfig
from transduce.model import ShapesOnly, make_model

SYSTEMS: list[dict[str, Any]] = [
    *({"system": system} for system in ("transformer", "recurrent", "last-state", "convs2s", "bytenet")),
    {"positions": "learned"},
    {"norm": "pre", "embeddings": "separate"},
    {"n_experts": 3},
    {"compatibility": "additive"},
    {"compatibility": "bilinear"},
]


def config_of(fields: dict[str, Any]) -> ModelConfig:
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 2, "d_model": 16, "src_vocab_size": 11, "tgt_vocab_size": 11}
    return ModelConfig(**sizes, **fields)


@pytest.mark.parametrize("fields", SYSTEMS)
def test_shapes_are_those_of_a_model_and_nothing_is_drawn(fields: dict[str, Any]) -> None:
    expected = make_model(config_of(fields))
    before = torch.random.get_rng_state()
    with ShapesOnly():
        model = make_model(config_of(fields))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(weight.is_meta for weight in model.parameters())
    shapes, expected_shapes = ({n: w.shape for n, w in each.canonical().items()} for each in (model, expected))
    assert shapes == expected_shapes
    buffers, expected_buffers = dict(model.named_buffers()), dict(expected.named_buffers())
    assert buffers.keys() == expected_buffers.keys()
    for name, buffer in buffers.items():
        assert torch.equal(buffer, expected_buffers[name])


def test_other_threads_draw_meanwhile() -> None:
    layers = list[nn.Linear]()
    with ShapesOnly():
        thread = Thread(target=lambda: layers.append(nn.Linear(2, 3)))
        thread.start()
        thread.join()
        layers.append(nn.Linear(2, 3))
    layers.append(nn.Linear(2, 3))
    assert [layer.weight.is_meta for layer in layers] == [False, True, False]
    assert len(layers[0].weight.unique()) > 1
