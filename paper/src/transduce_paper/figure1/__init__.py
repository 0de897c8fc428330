"""Figure 1: the architecture, drawn from a built model, with checks of section 3's statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.files import write_text
from transduce.model import CrossAttention, Dropout, SelfAttention, Transformer, cost_of
from transduce.recipes import base, tiny
from transduce.text import BOS_ID, EOS_ID
from transduce_paper.experiments import Experiments
from transduce_paper.figure1.architecture import (
    Architecture,
    Call,
    ForwardPass,
    attention_kind,
    read_architecture,
    record_forward_pass,
    shape_of,
    within,
)
from transduce_paper.figure1.drawing import architecture_svg
from transduce_paper.figure1.wiring import Check, check_wiring
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request

__all__ = ["make_figure1"]

SOURCE = "The law will never be perfect , but its application should be just ."  # as in figures 4 and 5
TARGET = "Kein Gesetz wird vollkommen sein , aber seine Anwendung sollte gerecht sein ."
FIRST_WORD_ID = 4  # after the special tokens


def make_figure1(experiments: Experiments, request: Request) -> Report:
    """Build the base model; report its parts, the shapes of one sentence, and checks of section 3."""
    config = experiments.pick(base().model, test=tiny().model.with_vocabulary(50, 50))
    assert isinstance(config, TransformerConfig)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = Transformer(config).eval()
    source = request.sentence or SOURCE
    src_1S, tgt_1T = _ids(source, config, ends_with=[EOS_ID]), _ids(TARGET, config, begins_with=[BOS_ID])
    recorded = record_forward_pass(model, src_1S, tgt_1T)
    architecture = read_architecture(model, recorded)
    svg = architecture_svg(architecture, title="The Transformer as built")
    checks = check_wiring(model, recorded, src_1S, tgt_1T)
    return Report(
        "Figure 1: the architecture of the Transformer",
        (
            picture("figure1", "Encoder and decoder with the weights and shapes of every part"),
            how_to_reproduce(
                "figure1",
                scale=experiments.scale,
                seeds="seed 1 (random weights, no training)",
                hardware="any CPU: only rounding errors depend on it",
            ),
            *_about_parts(architecture, config),
            *_about_shapes(recorded, source),
            *_about_wiring(checks),
        ),
        drawings={"figure1": lambda path: write_text(path, svg)},
        claims=tuple(
            Claim(
                check.claim,
                f"section {check.section}",
                agreement(check.holds),
                check.measured,
                "by construction",
                is_quoted=False,
            )
            for check in checks
        ),
        finding=_verdict(checks, architecture),
        name="figure1",
    )


def _verdict(checks: Sequence[Check], architecture: Architecture) -> str:
    n_failed = sum(not check.holds for check in checks)
    count = f"All {len(checks)}" if n_failed == 0 else f"{len(checks) - n_failed} of {len(checks)}"
    return (
        f"{count} statements of section 3 that we check hold for the model as built; it has"
        f" {architecture.n_parameters:,} parameters."
    )


def _ids(
    sentence: str, config: TransformerConfig, *, begins_with: Sequence[int] = (), ends_with: Sequence[int] = ()
) -> Tensor:
    """Return made-up ids, one per word; shapes and checks do not depend on them."""
    n_words = config.src_vocab_size - FIRST_WORD_ID
    words = [FIRST_WORD_ID + number % n_words for number in range(len(sentence.split()))]
    return torch.tensor([[*begins_with, *words, *ends_with]])


def _about_parts(architecture: Architecture, config: TransformerConfig) -> tuple[str | Table, ...]:
    rows: list[tuple[Cell, ...]] = []
    for side, stack in (("encoder", architecture.encoder), ("decoder", architecture.decoder)):
        for sublayer in stack.sublayers:
            part = f"{side}: {sublayer.title}, with residual and norm"
            rows.append((part, stack.n_layers, ", ".join(sublayer.weights), sublayer.n_parameters))
    in_layers = sum(stack.n_layers * stack.n_parameters for stack in (architecture.encoder, architecture.decoder))
    outside = architecture.n_parameters - in_layers
    rows.append(("embeddings, softmax and everything else outside layers", 1, architecture.output, outside))
    rows.append(("all", None, "", architecture.n_parameters))
    columns = ("part", "times", "weights (out, in)", "parameters")
    return (
        f"""\
## Parts

The picture is drawn from a model, not by hand. Hooks record the module calls of a forward pass of one sentence: their
nesting, order and shapes. A model with pre-norm, untied embeddings or learned positions would be drawn as such.
The sizes are {config.n_encoder_layers} + {config.n_decoder_layers} layers, d_model {config.d_model}, d_ff
{config.d_ff}, {config.n_heads} heads and a vocabulary of {config.tgt_vocab_size:,} tokens ("about 37000" in section
5.1); the formula of `transduce model` counts {cost_of(config).parameters:,} parameters.""",
        Table("-parameters", columns, tuple(rows), formats={"parameters": ","}),
    )


def _about_shapes(recorded: ForwardPass, source: str) -> tuple[str | Table, ...]:
    n_source, n_target = len(recorded.memory_SD), len(recorded.states_TD)
    matrix = f"({recorded.logits_TV.shape[1]}, {recorded.states_TD.shape[1]})"
    logits = "logits", matrix, shape_of(recorded.states_TD), shape_of(recorded.logits_TV)
    rows = (*_shapes(recorded.encoder, recorded), *_shapes(recorded.decoder, recorded), logits)
    return (
        f"""\
## Shapes

"{source}" and a translation, one token per word, with EOS of the source and BOS of the target: S = {n_source}, T =
{n_target}. States are unpadded, (positions, d_model); only attention works on padded batches. All layers of a stack
have the same shapes, so only the first is shown.""",
        Table("-shapes", ("module", "weights", "reads", "gives"), rows),
    )


def _shapes(calls: Sequence[Call], recorded: ForwardPass) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each module without children and each attention of the first layers, in order of execution."""
    for call in within(calls):
        match call.module:
            case _ if _is_past_first_layer(call):
                continue
            case Dropout() | nn.Identity():
                continue
            case SelfAttention() | CrossAttention():
                yield from _shapes_of_attention(call, recorded)
            case _ if not call.inside and "attention." not in call.path:
                yield _row(call)


def _shapes_of_attention(call: Call, recorded: ForwardPass) -> Iterator[tuple[Cell, ...]]:
    *projections, w_o = call.inside
    for projection in projections:
        yield _row(projection)
    yield f"{call.path}: softmax(Q K^T / sqrt(d_k))", "", "", shape_of(recorded.weights[attention_kind(call), 0])
    yield _row(w_o)


def _row(call: Call) -> tuple[Cell, ...]:
    weights = ", ".join(shape_of(weight) for weight in call.module.parameters())
    return call.path, weights, ", ".join(map(shape_of, call.inputs)), shape_of(call.output)


def _is_past_first_layer(call: Call) -> bool:
    stack, number, *_ = (*call.path.split("."), "")
    return stack in ("encoder", "decoder") and number not in ("", "0")


def _about_wiring(checks: Sequence[Check]) -> tuple[str | Table, ...]:
    n_failed = sum(not check.holds for check in checks)
    verdict = f"All {len(checks)} hold." if n_failed == 0 else f"{n_failed} of {len(checks)} DO NOT HOLD."
    rows = tuple((check.section, check.claim, check.measured, "yes" if check.holds else "NO") for check in checks)
    return (
        f"""\
## Statements of section 3

Each statement is checked on the model during a forward pass; one that did not hold would be marked "NO". {verdict}""",
        Table("-wiring", ("section", "the paper", "found", "holds"), rows),
    )
