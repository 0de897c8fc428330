"""The task mask-predict: what is masked, the loss, the model's independence of its batch, a run, the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from said import naming, says
from transduce.config import (
    GreedySearchConfig,
    InferencePrecision,
    MaskPredictSearchConfig,
    ModelConfig,
    TrainingConfig,
)
from transduce.data.collate import collate_pairs
from transduce.errors import CheckpointError, ConfigError
from transduce.inference import Reranker, Translator
from transduce.inference.engine import EngineSettings, ForcedPair
from transduce.inference.engines.torch import make as torch_engine
from transduce.model import MaskedTransformer, Transformer, cost_of, for_inference
from transduce.model.cost import MAX_DIFFERENCE
from transduce.model.inference import has_int8_products
from transduce.model.masked_transformer import MASK_ID
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks.pairs.mask_predict import LENGTH_WEIGHT, MaskedObjective, masked_positions
from transduce.text import EOS_ID, Tokenizers, train_bpe
from transduce.view import attention_of_translation
from transduce.view.translation_attention import recorded_weights

PAIRS = [("the dog", "der Hund"), ("a cat", "eine Katze"), ("the river", "den Fluss"), ("he", "er mag es")]
SEARCH = MaskPredictSearchConfig(n_iterations=4, n_lengths=1, max_extra_tokens=6)


def make(vocab_size: int = 30, **changes: Any) -> MaskedTransformer:
    torch.manual_seed(2)
    config = ModelConfig(**{
        "n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 32, "d_ff": 48, "n_heads": 2, "d_k": 16, "d_v": 16,
        "p_drop": 0.0, "src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size, "decoder": "masked", **changes,
    })  # fmt: skip
    return MaskedTransformer(config).double().eval()


def test_the_number_of_masked_tokens_is_uniform_from_one_and_each_place_is_as_likely() -> None:
    n, length = 8000, 4
    torch.manual_seed(0)
    is_masked = masked_positions(torch.full((n,), length), 6)
    assert not is_masked[:, length:].any()
    counts = is_masked.sum(dim=1)
    for number in range(1, length + 1):
        assert (counts == number).double().mean().item() == pytest.approx(1 / length, abs=0.02)
    for place in range(length):
        assert is_masked[:, place].double().mean().item() == pytest.approx((1 + 2 + 3 + 4) / 4 / length, abs=0.02)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_fast_inference_predicts_what_the_model_does(precision: InferencePrecision) -> None:
    if precision == "int8" and not has_int8_products("cpu"):
        pytest.skip("the processor has no int8 products")
    model = make().float()
    fast = for_inference(model, precision)
    src, ids = torch.tensor([[4, 5, 7, 2], [6, 2, 0, 0]]), torch.tensor([[6, MASK_ID, 7, EOS_ID], [8, EOS_ID, 0, 0]])
    with torch.no_grad():
        expected, found = (each.predict(each.encode(src), ids)[ids != 0].float() for each in (model, fast))
    torch.testing.assert_close(found, expected, atol=1e-5 if precision == "fp32" else 0.05, rtol=1e-4)


def test_the_decoder_sees_both_sides_and_the_source() -> None:
    model, src = make(), torch.tensor([[4, 5, 2]])
    ids = torch.tensor([[6, MASK_ID, 7, EOS_ID]])
    logits = model.predict(model.encode(src), ids)
    for changed_src, changed in (
        (src, [[6, 1, 8, 2]]),
        (src, [[9, 1, 7, 2]]),
        (torch.tensor([[4, 6, 2]]), ids.tolist()),
    ):
        other = model.predict(model.encode(changed_src), torch.tensor(changed))
        assert not torch.allclose(other[0, 1], logits[0, 1])


@torch.no_grad()
def test_predictions_do_not_depend_on_the_batch() -> None:
    model = make()
    src = torch.tensor([[4, 5, 6, 7, 8, 2], [9, 10, 2, 0, 0, 0]])
    ids = torch.tensor([[11, 1, 1, 2, 0], [11, 1, 2, 0, 0], [1, 12, 1, 13, 2], [2, 0, 0, 0, 0]])  # two lengths of each
    together = model.predict(model.encode(src), ids)
    for row, (sentence, length) in enumerate(((src[:1], 4), (src[:1], 3), (src[1:, :3], 5), (src[1:, :3], 1))):
        alone = model.predict(model.encode(sentence), ids[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0])
    lengths = model.likely_lengths(model.encode(src), torch.tensor([5, 2]), torch.tensor([50, 1]), 3)
    one = model.likely_lengths(model.encode(src[:1, :6]), torch.tensor([5]), torch.tensor([50]), 3)
    assert lengths[0].tolist() == one[0].tolist()
    assert lengths[1].tolist() == [1, 0, 0]  # no other length is possible
    far = model.likely_lengths(model.encode(src), torch.tensor([90, 2]), torch.tensor([7, 0]), 3)
    assert far.tolist() == [[7, 0, 0], [1, 0, 0]]  # the nearest
    logits = model.length_logits(model.encode(src))[0]
    assert (lengths[0] - 5 + MAX_DIFFERENCE).tolist() == logits[MAX_DIFFERENCE - 4 : MAX_DIFFERENCE + 46].topk(3)[
        1
    ].add(MAX_DIFFERENCE - 4).tolist()


@torch.no_grad()
def test_a_given_translation_is_read_token_by_token() -> None:
    """Its attention is that of its tokens, and their probability that of the first pass, which has none of them."""
    model = make()
    pairs = [ForcedPair([4, 5, 7, EOS_ID], [8, 9, 10, EOS_ID]), ForcedPair([6, EOS_ID], [11, EOS_ID])]
    scores = torch_engine([model], EngineSettings()).forced_scores(pairs, max_tokens=99, has_attention=True)
    for pair, found in zip(pairs, scores, strict=True):
        src, tgt = torch.tensor([pair.source]), torch.tensor([pair.target])
        [cross_HTS] = recorded_weights(lambda hook, src=src, tgt=tgt: model(src, tgt, attention_hook=hook))["cross"]
        torch.testing.assert_close(found.attention_TS, cross_HTS.mean(0))
        logits = model.predict(model.encode(src), tgt.masked_fill(tgt != EOS_ID, MASK_ID))[0]
        expected = logits.log_softmax(1).gather(1, tgt.T)[:, 0].numpy()
        torch.testing.assert_close(found.log_probs_T, expected)


def test_the_loss_is_that_of_the_masked_tokens_and_of_the_length() -> None:
    model = make()
    batch = collate_pairs([[4, 5], [6]], [[10, 11, 12, 13], [15, 16]], rows=(0, 1))
    objective = MaskedObjective(model, TrainingConfig(eps_ls=0.1))
    loss = objective(batch)
    assert loss.auxiliary_nats is None
    torch.testing.assert_close(loss.nll_nats, objective(batch, 7).nll_nats)  # the masks of dev are fixed
    is_masked = masked_positions(torch.tensor([4, 2]), 5, torch.Generator().manual_seed(0))
    targets = torch.tensor([[10, 11, 12, 13, 2], [15, 16, 2, 0, 0]])
    logits = model.predict(model.encode(batch.src_BS), targets.masked_fill(is_masked, MASK_ID))[is_masked]
    expected = F.cross_entropy(logits, targets[is_masked], label_smoothing=0.1)
    torch.testing.assert_close(loss.loss_nats, expected * 8)  # of 8 target tokens
    assert loss.n_tokens == 8
    model.train()
    total = objective(batch)
    lengths = F.cross_entropy(
        model.length_logits(model.encode(batch.src_BS)).float(), torch.tensor([MAX_DIFFERENCE + 2, MAX_DIFFERENCE + 1])
    )
    torch.testing.assert_close(total.auxiliary_nats, lengths * LENGTH_WEIGHT * 8)
    total.total_nats.backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_it_learns_to_write_and_more_passes_are_not_worse() -> None:
    tokenizer = train_bpe([text for pair in PAIRS for text in pair], vocab_size=300)
    model = make(tokenizer.size).train()
    src, tgt = ([tokenizer.encode(text) for text in side] for side in zip(*PAIRS, strict=True))
    batch = collate_pairs(src, tgt, rows=tuple(range(len(PAIRS))))
    objective = MaskedObjective(model, TrainingConfig(eps_ls=0.0))
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for update in range(200):
        optimiser.zero_grad()
        (objective(batch, update).total_nats / batch.n_tgt_tokens).backward()
        optimiser.step()
    translator = Translator(model.eval(), Tokenizers(tokenizer, tokenizer), SEARCH, direction="en-de")
    texts, expected = ([pair[side] for pair in PAIRS] for side in (0, 1))
    assert translator.translate(texts) == expected
    assert [translator.translate([text], max_tokens_per_batch=1)[0] for text in texts] == expected
    once = SEARCH.model_copy(update={"n_iterations": 1})
    same = [a == b for a, b in zip(translator.translate(texts, search=once), expected, strict=True)]
    assert sum(same) >= 2
    assert translator.passes.passes_per_sentence < 5
    causal = Transformer(model.config)
    for refused in (
        lambda: translator.translate(texts, beam_size=4),
        lambda: translator.translate(texts, search=GreedySearchConfig()),
        lambda: translator.with_draft(translator),
        lambda: translator.translate(texts, prefix="der"),
        lambda: translator.alternatives(texts[0]),
        lambda: Translator(causal, translator.tokenizers, SEARCH, direction="en-de").translate(texts),
        lambda: Translator(model, translator.tokenizers, SEARCH, direction="en-de", others=[model]),
    ):
        with pytest.raises(ConfigError):
            refused()
    with pytest.raises(CheckpointError, match=naming("left to right")):
        attention_of_translation(translator, texts[0])
    reverse = Translator(model, translator.tokenizers, SEARCH, direction="de-en")
    with pytest.raises(CheckpointError, match=naming("left to right")):
        Reranker(translator, reverse, weight=1.0)


def test_the_cost_counts_the_head_of_lengths() -> None:
    model = make(d_model=16)
    assert cost_of(model.config).parameters == sum(each.numel() for each in model.parameters())


def test_a_run_that_starts_from_a_translator(
    transduce: Callable[..., Any], micro_model: Path, micro_recipe: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS * 5), encoding="utf-8")
    settings = ["data.corpus=files", *(f"data.{split}_tsv='{few}'" for split in ("train", "dev", "test")),
                "data.task=mask-predict", "search.kind=mask-predict", "search.n_lengths=2",
                f"training.init_from='{micro_model}'", f"data.tokenizer_from='{micro_model}'", "training.max_updates=4",
                "training.checkpoint_every_updates=2", "training.validate_every_updates=4", "training.average_last=1",
                "training.validation_sentences=4"]  # fmt: skip
    lines: list[str] = []
    result = train(read_recipe(micro_recipe, settings), tmp_path / "run", log=lines.append)
    assert any("drawn at random: length.weight, length.bias" in line for line in lines)
    assert result.model_folder is not None
    text = b"The dog sleeps.\nThe woman sees a cat.\n"
    once, more = (transduce("translate", result.model_folder, "--iterations", n, stdin=text) for n in (1, 3))
    assert once.code == more.code == 0
    assert len(once.out.splitlines()) == len(more.out.splitlines()) == 2
    refused = transduce("translate", micro_model, "--iterations", 3, stdin=text)
    assert (refused.code, says(refused.err, "n_iterations", "'beam'")) == (1, True)
    examined = transduce("doctor", result.model_folder)
    assert examined.code == 0
