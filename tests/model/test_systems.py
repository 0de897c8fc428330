"""One suite for all systems of Table 2: the interface that training and search rely on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from said import naming
from transduce.config import InferencePrecision, ModelConfig, SearchConfig
from transduce.data import pad_rows
from transduce.errors import CheckpointError, ConfigError, ShapeError
from transduce.inference import Translator
from transduce.model import (
    AuxiliaryLosses,
    EncoderDecoder,
    cost_of,
    describe,
    for_inference,
    has_int8_products,
    make_model,
)
from transduce.model.experts import MixtureOfExperts, balance_loss
from transduce.model.layers import FeedForward
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.text import Tokenizers, train_bpe
from transduce.view import attention_of_translation

SMALL: dict[str, Any] = {
    "n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8,
    "p_drop": 0.0, "src_vocab_size": 20, "tgt_vocab_size": 20,
}  # fmt: skip
SYSTEMS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "mixture of experts": {"n_experts": 4},
    "biases, gelu": {"attention_bias": True, "output_bias": True, "activation": "gelu", "norm_eps": 1e-5},
    "unscaled dot products": {"compatibility": "dot"},
    "additive compatibility": {"compatibility": "additive"},
    "bilinear compatibility": {"compatibility": "bilinear"},
    "restricted attention": {"attention": "restricted", "neighbourhood": 3},
    "further heads": {"block_size": 3},
    "recurrent": {"system": "recurrent"},
    "recurrent, GRU": {"system": "recurrent", "cell": "gru"},
    "recurrent, plain": {"system": "recurrent", "cell": "rnn"},
    "recurrent without attention": {"system": "recurrent", "attention": "none"},
    "last-state": {"system": "last-state"},
    "last-state, GRU": {"system": "last-state", "cell": "gru"},
    "convs2s": {"system": "convs2s"},
    "bytenet": {"system": "bytenet"},
}
SRC = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [2, 0, 0, 0, 0]])
TGT = torch.tensor([[1, 10, 11, 12], [1, 13, 0, 0], [1, 14, 15, 0]])
each_system = pytest.mark.parametrize("name", SYSTEMS)


def make(name: str, **changes: Any) -> EncoderDecoder:
    torch.manual_seed(1)
    known = type(ModelConfig(**SYSTEMS[name])).model_fields
    fields = {key: value for key, value in (SMALL | SYSTEMS[name] | changes).items() if key in known}
    return make_model(ModelConfig(**fields)).double().eval()


def log_p(model: EncoderDecoder, src: Tensor, tgt: Tensor) -> Tensor:
    return model.logits(model(src, tgt)).log_softmax(dim=-1)


@each_system
def test_states_of_real_positions_in_order_whatever_stands_beside(name: str) -> None:
    model = make(name)
    states = model(SRC, TGT)
    assert states.shape == (4 + 2 + 3, 16)
    rows = [model(SRC[row : row + 1, :n_src], TGT[row : row + 1, :n_tgt]) for row, n_src, n_tgt in
            ((0, 5, 4), (1, 3, 2), (2, 1, 3))]  # fmt: skip
    torch.testing.assert_close(states, torch.cat(rows))


@each_system
def test_no_position_sees_what_comes_after_it(name: str) -> None:
    model = make(name)
    other = TGT[:1].clone()
    other[0, 3] = 17
    states, changed = model(SRC[:1], TGT[:1]), model(SRC[:1], other)
    torch.testing.assert_close(changed[:3], states[:3])
    assert not torch.allclose(changed[3], states[3])


@each_system
def test_the_source_is_read(name: str) -> None:
    model = make(name)
    other = SRC[:1].clone()
    other[0, 0] = 17
    assert not torch.allclose(model(SRC[:1], TGT[:1])[-1], model(other, TGT[:1])[-1])


@each_system
@torch.no_grad()
def test_steps_give_what_the_whole_gives(name: str) -> None:
    model = make(name)
    src, tgt = SRC[:2], torch.tensor([[1, 10, 11, 12], [1, 13, 14, 15]])
    expected = log_p(model, src, tgt).view(2, 4, -1)
    state = model.start(src)
    for position in range(4):
        logits, state = model.step(tgt[:, position], state)
        torch.testing.assert_close(logits.log_softmax(-1), expected[:, position])
    # Beams differ, are reordered, and sentences leave.
    state = model.start(src).select(torch.tensor([[0, 0], [1, 1]]))
    _, state = model.step(torch.tensor([1, 1, 1, 1]), state)
    _, state = model.step(torch.tensor([10, 11, 12, 13]), state)
    logits, _ = model.step(torch.tensor([5, 6]), state.select(torch.tensor([[3, 2]])))
    for row, prefix in enumerate(([1, 13, 5], [1, 12, 6])):
        expected_V = log_p(model, src[1:], torch.tensor([prefix]))[-1]
        torch.testing.assert_close(logits[row].log_softmax(-1), expected_V)


@each_system
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@torch.no_grad()
def test_every_precision_of_inference(name: str, precision: InferencePrecision) -> None:
    if precision == "int8" and not has_int8_products("cpu"):
        pytest.skip("int8 products")
    model = make(name).float()
    fast = for_inference(model, precision)
    expected, got = (each.step(TGT[:, 0], each.start(SRC))[0].float() for each in (model, fast))
    torch.testing.assert_close(got, expected, atol=1e-4 if precision == "fp32" else 0.1, rtol=0.1)


@each_system
@torch.no_grad()
def test_several_tokens_a_row_are_read_at_once_and_taken_back(name: str) -> None:
    """Rows of different lengths: prefixes, then drafts of which some are rejected, then one token each."""
    model = make(name)
    src = SRC[:2].repeat_interleave(2, dim=0)
    prefixes = [[1, 10, 11], [1], [1, 13], [1, 14, 15]]

    def expected(row: int, ids: list[int]) -> Tensor:
        return log_p(model, src[row : row + 1], torch.tensor([ids]))

    state = model.start(SRC[:2]).select(torch.tensor([[0, 0], [1, 1]]))
    logits, state = model.extend(pad_rows(prefixes), state, torch.tensor([3, 1, 2, 3]))
    for row, ids in enumerate(prefixes):
        torch.testing.assert_close(logits[row, : len(ids)].log_softmax(-1), expected(row, ids))
    drafts = torch.tensor([[5, 6], [7, 8], [9, 10], [11, 12]])
    logits, state = model.extend(drafts, state)
    for row, ids in enumerate(prefixes):
        whole = expected(row, [*ids, *drafts[row].tolist()])
        torch.testing.assert_close(logits[row].log_softmax(-1), whole[-2:])
    state = state.rewind(torch.tensor([2, 1, 0, 2])).select(torch.tensor([[1, 0], [2, 3]]))
    logits, state = model.step(torch.tensor([4, 5, 6, 7]), state)
    histories = [(1, [1, 7, 4]), (0, [1, 10, 11, 5]), (2, [1, 13, 9, 10, 6]), (3, [1, 14, 15, 7])]
    for index, (row, ids) in enumerate(histories):
        torch.testing.assert_close(logits[index].log_softmax(-1), expected(row, ids)[-1])
    logits, _ = model.step(
        torch.tensor([8]), state.select(torch.tensor([[3]]))
    )  # one row, some slots are not in its prefix
    torch.testing.assert_close(logits[0].log_softmax(-1), expected(3, [1, 14, 15, 7, 8])[-1])


@each_system
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_all_weights_learn_a_batch_by_heart(name: str, precision: str) -> None:
    model = make(name, n_encoder_layers=1, n_decoder_layers=1).float().train()
    targets = torch.tensor([10, 11, 12, 2, 13, 2, 14, 15, 2])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(30):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            states = model(SRC, TGT)
            loss = model.output.loss(states, targets).loss_nats
        optimiser.zero_grad()
        loss.backward()
        unused = [key for key, weight in model.named_parameters() if weight.grad is None]
        assert all("experts" in key or "lookahead_heads" in key for key in unused), unused  # these have their own loss
        optimiser.step()
        losses.append(loss.item() / 9)
    assert losses[-1] < 0.3 < 2 < losses[0]


@each_system
def test_its_cost_is_what_is_built(name: str) -> None:
    model = make(name)
    cost = cost_of(model.config)
    assert cost.parameters == sum(weight.numel() for weight in model.parameters())
    assert cost.parameters - cost.parameters_without_embeddings == 20 * 16  # one table for all
    # The vectors v of additive compatibility, (H, 1, K), are applied to pairs of positions: a cost of attention.
    is_matrix = {weight: weight.ndim > 1 and weight.shape[1:-1] != (1,) for weight in model.parameters()}
    matrices = sum(weight.numel() for weight in model.parameters() if is_matrix[weight])
    inactive = {
        "mixture of experts": 4 * 2 * (2 * 16 * 24),  # layers x inactive experts x their matrices
        # Of two further heads one reads each position; then the output matrix is used once more.
        "further heads": 2 * 16 * 16 - 20 * 16,
    }.get(name, 0)
    assert cost.flops_per_token == 6 * (matrices - inactive)
    assert type(model).__name__ in describe(model)


@each_system
def test_copies_for_inference_say_the_same(name: str) -> None:
    model = make(name).float()
    fast = for_inference(model, "fp32")
    with torch.no_grad():
        torch.testing.assert_close(log_p(fast, SRC, TGT), log_p(model, SRC, TGT), atol=1e-5, rtol=1e-4)


@each_system
def test_translations_depend_on_the_sentence_alone(name: str) -> None:
    sentences = [
        "the old dog sleeps", "a cat", "the river sees a tall tree and a house", "no", "the child likes the dog",
    ]  # fmt: skip
    tokenizer = train_bpe(sentences, vocab_size=300)
    sizes = {"src_vocab_size": tokenizer.size, "tgt_vocab_size": tokenizer.size}
    translator = Translator(
        make(name, **sizes), Tokenizers(tokenizer, tokenizer), SearchConfig(max_extra_tokens=4), direction="en-de"
    )
    alone = [next(translator.translate_lines([sentence])) for sentence in sentences]
    together = list(translator.translate_lines(sentences))
    assert [each.text for each in together] == [each.text for each in alone]
    assert [each.score for each in together] == pytest.approx([each.score for each in alone], abs=1e-9)


@pytest.mark.merge
@pytest.mark.parametrize("name", ["recurrent", "mixture of experts"])
def test_other_systems_are_trained_and_kept_as_the_transformer_is(
    name: str, micro_recipe: Path, tmp_path: Path
) -> None:
    settings = ["training.max_updates=4", "training.validation_bleu=false", "training.n_accumulate=2"]
    settings += [f"model.{key}={value}" for key, value in SYSTEMS[name].items()]
    train(read_recipe(micro_recipe, settings), tmp_path / "run")
    translator = Translator.load(tmp_path / "run" / "model")
    assert len(translator.translate(["The dog sleeps."])) == 1
    maps = attention_of_translation(translator, "The dog sleeps.", "Der Hund schläft.")
    assert set(maps.by_kind) == ({"cross"} if name == "recurrent" else {"encoder", "decoder", "cross"})
    np.testing.assert_allclose(maps.cross.sum(axis=-1), 1.0, rtol=1e-5)


def test_a_system_without_attention_has_no_page(micro_recipe: Path, tmp_path: Path) -> None:
    settings = ["training.max_updates=2", "training.validation_bleu=false", "model.system=last-state"]
    train(read_recipe(micro_recipe, settings), tmp_path / "run")
    with pytest.raises(CheckpointError, match=naming("attention", "system = 'last-state'")):
        attention_of_translation(Translator.load(tmp_path / "run" / "model"), "The dog sleeps.")


def test_a_mixture_is_the_gated_sum_of_its_best_experts() -> None:
    torch.manual_seed(1)
    config = ModelConfig(**SMALL | {"n_experts": 4})
    mixture = MixtureOfExperts(config, FeedForward).double().eval()
    x_ND = torch.randn(7, 16, dtype=torch.float64)
    for x_D, out_D in zip(x_ND, mixture(x_ND), strict=True):
        scores = mixture.gate(x_D)
        best = sorted(range(4), key=lambda expert: -scores[expert].item())[:2]
        gates = scores[best].softmax(0)
        expected = sum(gate * mixture.experts[expert](x_D) for gate, expert in zip(gates, best, strict=True))
        torch.testing.assert_close(out_D, expected, atol=1e-6, rtol=1e-5)  # gates are in fp32
    assert mixture(x_ND.view(7, 1, 16)).shape == (7, 1, 16)
    with pytest.raises(ShapeError, match=naming("n_active_experts 2", "n_experts 1")):
        MixtureOfExperts(ModelConfig(**SMALL), FeedForward)


def test_the_balance_loss_is_collected() -> None:
    even, one = torch.full((8, 4), 0.25), torch.eye(4)[[0] * 8]
    assert balance_loss(even, torch.arange(8).unsqueeze(1) % 4).item() == pytest.approx(1.0)
    assert balance_loss(one, torch.zeros(8, 1, dtype=torch.long)).item() == pytest.approx(4.0)
    torch.manual_seed(1)
    mixture = MixtureOfExperts(ModelConfig(**SMALL | {"n_experts": 4}), FeedForward)
    x_ND = torch.randn(50, 16)
    auxiliary = AuxiliaryLosses()
    mixture.train()(x_ND, auxiliary)
    mixture(x_ND)  # no collector: nothing is kept
    (loss,) = auxiliary.losses
    assert auxiliary.total() is loss
    assert 0.01 * 50 * 0.9 < loss.item() < 0.01 * 50 * 4
    loss.backward()
    assert mixture.gate.weight.grad is not None


def test_what_does_not_go_together_is_refused(micro_recipe: Path) -> None:
    with pytest.raises(ConfigError, match=naming("model.n_experts", "model.system", "'transformer'", "'bytenet'")):
        read_recipe(micro_recipe, ["model.system=bytenet", "model.n_experts=2"])
    with pytest.raises(ConfigError, match=naming("--set", "n_active_experts 5", "n_experts 4")):
        read_recipe(micro_recipe, ["model.n_experts=4", "model.n_active_experts=5"])
    with pytest.raises(ConfigError, match=naming("--set", "model.kernel_width", "odd", 4)):
        read_recipe(micro_recipe, ["model.system=convs2s", "model.kernel_width=4"])
