"""Restricted attention against full attention with a band mask; nothing quadratic in the length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from said import naming
from transduce.config import LanguageModelConfig, ModelConfig, RecurrentConfig
from transduce.errors import ConfigError, ShapeError
from transduce.inference import Translator
from transduce.model import Transformer, TransformerLM, cost_of
from transduce.model import decoding as decoding_module
from transduce.model.attention import dot_product_attention, fused_attention
from transduce.model.initialisation import initialise
from transduce.model.padding import PaddingInfo
from transduce.model.restricted import band_mask, restricted_attention
from transduce.model.stack import Stack
from transduce.model.stack_config import StackConfig
from transduce.recipes import read_recipe, tiny, with_settings
from transduce.runs import train
from transduce.search import LengthPenalty, beam_search, greedy_search

SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 6, "p_drop": 0.0}


def masked_reference(q: Tensor, k: Tensor, v: Tensor, r: int, is_causal: bool, is_key_BT: Tensor) -> Tensor:
    allow = band_mask(q.shape[2], r, is_causal=is_causal, device=q.device) & is_key_BT.unsqueeze(1)
    return dot_product_attention(q, k, v, allow_BTS=allow | ~allow.any(dim=-1, keepdim=True))[0]


@pytest.mark.parametrize("kernel", ["reference", "fused"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("n", "r"), [(1, 3), (4, 1), (7, 3), (12, 3), (10, 5), (5, 9), (6, 7), (31, 9)])
def test_blocks_equal_a_band_mask(n: int, r: int, is_causal: bool, kernel: str) -> None:
    torch.manual_seed(n * r)
    lengths = [n, max(1, n // 2), max(1, n - 1)]
    is_key_BT = torch.arange(n) < torch.tensor(lengths).unsqueeze(1)
    tensors = [torch.randn(3, 2, n, width, dtype=torch.float64, requires_grad=True) for width in (4, 4, 5)]

    def attend(q: Tensor, k: Tensor, v: Tensor, allow: Tensor) -> Tensor:
        if kernel == "fused":
            return fused_attention(q, k, v, allow_BTS=allow)
        return dot_product_attention(q, k, v, allow_BTS=allow)[0]

    got = restricted_attention(*tensors, r=r, is_causal=is_causal, is_key_BT=is_key_BT, attend=attend)
    expected = masked_reference(*tensors, r, is_causal, is_key_BT)
    is_real = is_key_BT[:, None, :, None]
    torch.testing.assert_close(got * is_real, expected * is_real)
    weights = torch.randn_like(got) * is_real
    gradients = [torch.autograd.grad((each * weights).sum(), tensors) for each in (got, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)
    if is_key_BT.all():
        alone = restricted_attention(*tensors, r=r, is_causal=is_causal, is_key_BT=None, attend=attend)
        torch.testing.assert_close(alone, expected)


def stacks(r: int, *, is_causal: bool, **changes: Any) -> tuple[Stack, Stack]:
    """A restricted stack, and a full one with the same weights."""
    sizes = SIZES | changes
    pair = [
        Stack(StackConfig(2, **sizes, attention=attention, neighbourhood=r), kind="decoder" if is_causal else "encoder")
        for attention in ("restricted", "full")
    ]
    initialise(pair[0])  # the weights of compatibility functions are only made
    pair[1].load_state_dict(pair[0].state_dict())
    return pair[0].double().eval(), pair[1].double().eval()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("compatibility", ["scaled", "additive"])
def test_a_stack_equals_a_full_one_with_a_band_mask(is_causal: bool, compatibility: str) -> None:
    torch.manual_seed(1)
    restricted, full = stacks(5, is_causal=is_causal, compatibility=compatibility)
    padding = PaddingInfo.from_mask(torch.arange(40) < torch.tensor([[40], [17], [3]]))
    x_ND = torch.randn(len(padding.index_N), 16, dtype=torch.float64)
    band_1TT = band_mask(padding.shape_BT[1], 5, is_causal=is_causal, device=x_ND.device)
    key_B1T = padding.allow_B1S()
    assert key_B1T is not None
    allow = band_1TT & key_B1T
    allow |= ~allow.any(dim=-1, keepdim=True)
    for layer in full:
        layer.self_attention.forward = partial(layer.self_attention.forward, allow_BTS=allow)
    expected = full(x_ND, padding)
    got = restricted(x_ND, padding)
    torch.testing.assert_close(got[: padding.n_real], expected[: padding.n_real])
    seen: list[tuple[int, ...]] = []
    hooked = restricted(x_ND, padding, attention_hook=lambda kind, layer, w: seen.append(w.shape))
    torch.testing.assert_close(hooked[: padding.n_real], expected[: padding.n_real])
    assert seen == [(3, 2, 40, 40)] * 2


def language_model(r: int, n_positions: int = 64) -> TransformerLM:
    torch.manual_seed(3)
    config = LanguageModelConfig(
        n_layers=2, **SIZES, vocab_size=12, n_positions=n_positions, attention="restricted", neighbourhood=r
    )
    return TransformerLM.from_config(config).double().eval()


@torch.no_grad()
@pytest.mark.parametrize("r", [1, 4, 7])
def test_cached_decoding_equals_all_at_once_while_old_slots_are_dropped(
    r: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding_module, "MAX_REWOUND", 3)
    monkeypatch.setattr(decoding_module, "INITIAL_CAPACITY", 8)
    model, n = language_model(r), 60
    ids_BT = torch.randint(4, 12, (2, n))
    expected = model.output.logits(model(ids_BT)).view(2, n, -1)
    state = model.start(2)
    _, state = model.extend(ids_BT[:, :25], state)  # in parts
    largest = 0
    for position in range(25, n):
        logits, state = model.step(ids_BT[:, position], state)
        torch.testing.assert_close(logits, expected[:, position])
        largest = max(largest, state.n_cached)
    assert largest <= max(2 * (r + 3), 8 + r + 3)
    # Prompts of different lengths, read in parts, then drafts that are taken back.
    n_new = torch.tensor([40, 13])
    logits, state = model.extend(ids_BT, model.start(2), n_new)
    for row, length in enumerate(n_new.tolist()):
        torch.testing.assert_close(logits[row, :length], expected[row, :length])
    drafts = torch.randint(4, 12, (2, 3))
    _, state = model.extend(drafts, state)
    state = state.rewind(torch.tensor([3, 2]))
    tails = [[*ids_BT[0, :40].tolist(), 5, 6], [*ids_BT[1, :13].tolist(), int(drafts[1, 0]), 7, 8]]
    logits, _ = model.extend(torch.tensor([tails[0][-2:], tails[1][-2:]]), state)
    for row, tail in enumerate(tails):
        whole = model.output.logits(model(torch.tensor([tail])))
        torch.testing.assert_close(logits[row], whole[-2:])
    with pytest.raises(ShapeError, match=naming("3 tokens", "4")):
        state.rewind(torch.tensor([0, 4]))


@torch.no_grad()
def test_beams_are_those_of_full_attention_with_a_band_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same search with a step that recomputes the whole prefix."""
    monkeypatch.setattr(decoding_module, "MAX_REWOUND", 2)
    torch.manual_seed(2)
    config = ModelConfig(n_encoder_layers=1, n_decoder_layers=2, **SIZES, src_vocab_size=14, tgt_vocab_size=14,
                         attention="restricted", neighbourhood=3)  # fmt: skip
    model = Transformer(config).double().eval()
    src_BS = torch.tensor([[4, 5, 6, 7, 8, 9, 10, 2], [11, 12, 2, 0, 0, 0, 0, 0]])

    class Whole:
        def __init__(self, prefixes: list[list[int]], sentences: list[int]) -> None:
            self.prefixes, self.sentences = prefixes, sentences

        def select(self, rows_BW: Tensor) -> Whole:
            rows = rows_BW.flatten().tolist()
            return Whole([self.prefixes[row] for row in rows], [self.sentences[row] for row in rows])

    def step(last_ids_N: Tensor, state: Whole) -> tuple[Tensor, Whole]:
        prefixes = [[*prefix, last] for prefix, last in zip(state.prefixes, last_ids_N.tolist(), strict=True)]
        states_ND = model(src_BS[state.sentences], torch.tensor(prefixes))
        return model.logits(states_ND.view(len(prefixes), -1, 16)[:, -1]), Whole(prefixes, state.sentences)

    options: dict[str, Any] = {
        "max_lengths_B": torch.tensor([25, 18]),
        "bos_id": 1,
        "eos_id": 2,
        "suppressed_ids": (0, 1),
    }
    beams = {"beam_size": 3, "penalty": LengthPenalty(0.6), "n_best": 3}
    fast = beam_search(model.step, model.start(src_BS), **options, **beams)
    slow = beam_search(step, Whole([[], []], [0, 1]), **options, **beams)
    assert [[each.ids for each in n_best] for n_best in fast] == [[each.ids for each in n_best] for n_best in slow]
    assert (
        greedy_search(model.step, model.start(src_BS), **options)[0].ids
        == greedy_search(step, Whole([[], []], [0, 1]), **options)[0].ids
    )


class LargestTensor(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that is computed."""

    n = 0

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        sizes = [each.numel() for each in tree_leaves(out) if isinstance(each, Tensor)]
        self.n = max([self.n, *sizes])
        return out


@pytest.mark.parametrize("kind", ["language model", "translator", "decoding"])
def test_no_tensor_is_quadratic_in_the_length(kind: str) -> None:
    largest = []
    for n in (256, 512, 1024):
        with LargestTensor() as mode:
            if kind == "translator":
                config = ModelConfig(n_encoder_layers=1, n_decoder_layers=1, **SIZES, src_vocab_size=12,
                                     tgt_vocab_size=12, attention="restricted", neighbourhood=9)  # fmt: skip
                states = Transformer(config).encode(torch.randint(4, 12, (1, n))).states_MD
                states.sum().backward()
            elif kind == "language model":
                model = language_model(9, n).train()
                model(torch.randint(4, 12, (1, n))).sum().backward()
            else:
                with torch.no_grad():
                    model = language_model(9, n)
                    model.extend(torch.randint(4, 12, (1, n)), model.start(1))
        largest.append(mode.n)
    growth = largest[2] / largest[1]
    assert growth < 2.2
    assert largest[2] < 1024 * 1024 / 4
    with LargestTensor() as mode, torch.no_grad():  # the counter does see what is quadratic
        full = LanguageModelConfig(n_layers=1, **SIZES, vocab_size=12, n_positions=1024)
        TransformerLM.from_config(full)(torch.randint(4, 12, (1, 1024)))
    assert mode.n >= 1024 * 1024


def test_costs_and_settings() -> None:
    full = ModelConfig(n_encoder_layers=2, n_decoder_layers=3)
    near = full.model_copy(update={"attention": "restricted", "neighbourhood": 9})
    assert cost_of(near, n_tokens=90).parameters == cost_of(full).parameters
    # Of 2 + 3 layers of self-attention and 3 of cross-attention, which stays full.
    ratio = cost_of(near, n_tokens=90).attention_flops_per_token / cost_of(full, n_tokens=90).attention_flops_per_token
    assert ratio == pytest.approx((5 * 9 + 3 * 90) / (8 * 90))
    assert cost_of(near, n_tokens=5) == cost_of(full, n_tokens=5)
    with pytest.raises(ConfigError, match=naming("neighbourhood", "odd", "8")):
        with_settings(tiny(), ["model.attention=restricted", "model.neighbourhood=8"])
    assert LanguageModelConfig(attention="restricted", neighbourhood=8).neighbourhood == 8
    with pytest.raises(ConfigError, match=naming("model.attention", "'full'", "'restricted'", "'local'")):
        with_settings(tiny(), ["model.attention=local"])


def test_another_system_has_its_own_attention() -> None:
    model = with_settings(tiny(), ["model.system=recurrent"]).model
    assert isinstance(model, RecurrentConfig)
    assert model.attention == "additive"


def test_a_translator_is_trained_with_it(micro_recipe: Any, tmp_path: Any) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("the dog\tder Hund\na cat\teine Katze\n" * 9, encoding="utf-8")
    short = ["data.corpus=files", *(f"data.{split}_tsv='{few}'" for split in ("train", "dev", "test")),
             "data.vocab_size=300", "training.max_updates=2", "training.checkpoint_every_updates=1",
             "training.average_last=1", "training.validate_every_updates=2", "model.attention=restricted",
             "model.neighbourhood=5"]  # fmt: skip
    result = train(read_recipe(micro_recipe, short), tmp_path / "run")
    assert result.model_folder is not None
    assert "restricted to 5 positions" in (result.model_folder / "README.md").read_text(encoding="utf-8")
    assert len(Translator.load(result.model_folder).translate(["The dog sleeps."])) == 1
