"""Figure 1: the drawing shows the model as built, and each check fails for a model built differently."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from messages import naming, says
from transduce.config import ModelConfig
from transduce.errors import ShapeError
from transduce.model import EncoderOutput, FeedForward, TokenEmbedding, TokenFrontEnd, Transformer, cost_of
from transduce_paper import ARTEFACTS, Experiments, Request, write_report
from transduce_paper.figure1.architecture import Architecture, leaves, read_architecture, record_forward_pass
from transduce_paper.figure1.drawing import architecture_svg
from transduce_paper.figure1.wiring import check_wiring

SRC, TGT = torch.tensor([[4, 5, 6, 7, 8, 2]]), torch.tensor([[1, 9, 10, 11, 12]])


def built(**changes: Any) -> Transformer:
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 16, "d_ff": 24, "n_heads": 4, "d_k": 3, "d_v": 5}
    torch.manual_seed(1)
    return Transformer(ModelConfig(**(sizes | {"src_vocab_size": 20, "tgt_vocab_size": 20} | changes))).eval()


def read(model: Transformer) -> Architecture:
    return read_architecture(model, record_forward_pass(model, SRC, TGT))


def failed(model: Transformer) -> set[str]:
    """Return the first four words of each claim that does not hold."""
    checks = check_wiring(model, record_forward_pass(model, SRC, TGT), SRC, TGT)
    assert len(checks) == 14
    return {" ".join(check.claim.split()[:4]) for check in checks if not check.holds}


# ---- wiring


def test_all_checks_hold_for_the_paper_model() -> None:
    assert failed(built()) == set()


MASK = "Each position in the"
LEAK = "The predictions for position"
CONVOLUTIONS = "Another way of describing"


def with_leak(model: Transformer) -> None:
    network = model.decoder[1].feed_forward
    forward = network.forward
    network.forward = lambda x, *others: forward(x) + x.mean(dim=0)  # type: ignore[assignment]


def with_gelu(model: Transformer) -> None:
    network = model.encoder[0].feed_forward
    network.forward = lambda x, *others: network.w_2(F.gelu(network.w_1(x)))  # type: ignore[assignment]


def with_causal_encoder(model: Transformer) -> None:
    model.encoder[1].self_attention.is_causal = True


def with_wrong_memory(model: Transformer) -> None:
    attention = model.decoder[0].cross_attention
    forward = attention.forward
    attention.forward = lambda x, padding, memory, hook=None: forward(  # type: ignore[assignment]
        x, padding, EncoderOutput(memory.states_MD + 1, memory.padding), hook=hook
    )


def without_attention(model: Transformer) -> None:
    layer = model.decoder[2]
    layer.forward = lambda x, *others, **named: layer.feed_forward_residual(x, layer.feed_forward)  # type: ignore


def with_biases(model: Transformer) -> None:
    for layer in model.decoder:
        layer.self_attention.w_o = nn.Linear(20, 16)


def with_shared_layers(model: Transformer) -> None:
    model.encoder.layers[1] = model.encoder[0]


@pytest.mark.parametrize(
    ("fault", "claims"),
    [
        (with_leak, {LEAK, "FFN(x) = max(0, x", CONVOLUTIONS}),
        (with_gelu, {"FFN(x) = max(0, x", CONVOLUTIONS}),
        (with_causal_encoder, {MASK}),
        (with_wrong_memory, {"In encoder-decoder attention queries"}),
        (with_biases, {"The projections of attention"}),
        (with_shared_layers, {"Each stack is of"}),
    ],
)
def test_a_faulty_model_fails_the_matching_check(fault: Callable[[Transformer], None], claims: set[str]) -> None:
    model = built()
    fault(model)
    assert failed(model) == claims


def test_a_layer_without_attention_fails() -> None:
    model = built()
    without_attention(model)
    assert {"A layer has self-attention,", "Attention is used in"} <= failed(model)


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"norm": "pre"}, {"The output of each"}),
        ({"embeddings": "target"}, {"The two embeddings and"}),
        ({"embeddings": "separate"}, {"The two embeddings and"}),
        ({"positions": "learned"}, {"Sinusoids are added to"}),
    ],
)
def test_departures_from_the_paper_fail_the_matching_check(changes: dict[str, Any], claims: set[str]) -> None:
    assert failed(built(**changes)) == claims


def test_a_decoder_without_causal_mask_fails() -> None:
    model = built()
    for layer in model.decoder:
        layer.self_attention.is_causal = False
    assert failed(model) == {MASK, LEAK}
    assert [sublayer.title for sublayer in read(model).decoder.sublayers][:2] == ["Multi-Head Attention"] * 2


def test_unscaled_embeddings_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenEmbedding, "forward", lambda self, ids: F.embedding(ids, self.weight))
    assert failed(built()) == {"In the embedding layers"}


# ---- architecture


def test_the_architecture_of_the_paper() -> None:
    architecture = read(built())
    assert (architecture.encoder.n_layers, architecture.decoder.n_layers, architecture.d_model) == (2, 3, 16)
    titles = [sublayer.title for sublayer in (*architecture.encoder.sublayers, *architecture.decoder.sublayers)]
    assert titles == [
        "Multi-Head Attention",
        "Feed Forward",
        "Masked Multi-Head Attention",
        "Multi-Head Attention",
        "Feed Forward",
    ]
    assert [sublayer.is_cross for sublayer in architecture.decoder.sublayers] == [False, True, False]
    assert {sublayer.norm for sublayer in architecture.decoder.sublayers} == {"after"}
    cross = architecture.decoder.sublayers[1]
    assert cross.weights == ("w_q (12, 16)", "w_kv (32, 16)", "w_o (16, 20)")
    assert cross.heads == "4 heads, d_k = 3, d_v = 5"
    assert architecture.tied == ("input", "output", "linear")
    assert architecture.n_parameters == cost_of(built().config).parameters
    layers = (
        architecture.encoder.n_layers * architecture.encoder.n_parameters
        + architecture.decoder.n_layers * architecture.decoder.n_parameters
    )
    assert architecture.n_parameters == layers + 20 * 16
    assert architecture.encoder.n_parameters == sum(
        sublayer.n_parameters for sublayer in architecture.encoder.sublayers
    )


def test_architecture_of_a_pre_norm_model() -> None:
    architecture = read(built(norm="pre", embeddings="separate", positions="learned", n_positions=30))
    assert {sublayer.norm for sublayer in (*architecture.encoder.sublayers, *architecture.decoder.sublayers)} == {
        "before"
    }
    assert architecture.encoder.has_last_norm
    assert architecture.tied == ()
    assert architecture.decoder.positions == "learned (30, 16)"


def test_layers_that_differ_are_refused() -> None:
    model = built()
    model.encoder[1].feed_forward = FeedForward(replace(model.encoder.config, d_ff=7))
    with pytest.raises(ShapeError, match=naming("figure 1", "2 kinds")):
        read(model)


def test_other_positions_are_refused() -> None:
    class OtherFrontEnd(TokenFrontEnd):
        pass

    model = built()
    model.source.__class__ = OtherFrontEnd
    with pytest.raises(ShapeError, match=naming("figure 1", "positions", "TokenFrontEnd", "OtherFrontEnd")):
        read(model)


def test_recorded_calls_have_the_names_of_their_side() -> None:
    recorded = record_forward_pass(built(), SRC, TGT)
    assert [call.path for call in leaves(recorded.encoder)][:2] == ["src_positions", "src_embedding"]
    assert [call.path for call in leaves(recorded.decoder)][:2] == ["tgt_positions", "tgt_embedding"]
    assert all(call.output.shape[0] == SRC.shape[1] for call in leaves(recorded.encoder))


def test_hooks_are_removed() -> None:
    model = built()
    record_forward_pass(model, SRC, TGT)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


# ---- the drawing


def words(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_drawing_shows_the_architecture() -> None:
    drawn = words(architecture_svg(read(built()), title="A title & more"))
    for expected in ("A title & more", "2 ×", "3 ×", "Masked Multi-Head", "w_q (12, 16)", "4 heads, d_k = 3, d_v = 5"):
        assert expected in drawn
    assert drawn.count("Add & Norm") == 5
    assert drawn.count("table (20, 16)") == 2
    assert "one matrix" in drawn
    assert "tied to the embedding" in drawn
    other = words(architecture_svg(read(built(norm="pre", embeddings="separate", positions="learned")), title=""))
    assert "Add & Norm" not in other
    assert (other.count("Norm"), other.count("Add")) == (7, 5)
    assert "one matrix" not in other
    assert "separate matrix" in other


def test_elements_lie_within_the_view_box() -> None:
    for changes in ({}, {"norm": "pre"}):
        root = ElementTree.fromstring(architecture_svg(read(built(**changes)), title=""))
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        for element in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y = float(element.get("x", 0)), float(element.get("y", 0))
            assert left <= x <= left + width - float(element.attrib["width"])
            assert top <= y <= top + height - float(element.attrib["height"])
        for element in root.iter("{http://www.w3.org/2000/svg}text"):
            assert top < float(element.attrib["y"]) < top + height


def test_short_report(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    report = ARTEFACTS["figure1"](experiments, Request(sentence="Two words"))
    paths = write_report(report, tmp_path / "out")
    assert [path.name for path in paths] == [
        "figure1.md",
        "figure1-parameters.csv",
        "figure1-shapes.csv",
        "figure1-wiring.csv",
        "figure1.svg",
    ]
    wiring = report.table("-wiring")
    assert wiring.column("holds") == ["yes"] * 14
    assert says(paths[0].read_text(encoding="utf-8"), 14, "hold")
    with paths[1].open(encoding="utf-8", newline="") as lines:
        *parts, total = csv.DictReader(lines)
    assert sum(int(part["times"]) * int(part["parameters"]) for part in parts) == int(total["parameters"])
    with paths[2].open(encoding="utf-8", newline="") as lines:
        gives = {row["module"]: row["gives"] for row in csv.DictReader(lines)}
    assert gives["src_embedding"] == "(3, 128)"
    assert gives["encoder.0.self_attention: softmax(Q K^T / sqrt(d_k))"] == "(4, 3, 3)"
    assert gives["decoder.0.cross_attention: softmax(Q K^T / sqrt(d_k))"] == "(4, 14, 3)"
    assert gives["logits"] == "(14, 50)"
    assert not any(name.startswith(("encoder.1", "decoder.1")) for name in gives)
