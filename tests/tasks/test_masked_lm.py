"""Masked language models and models of missing spans, from text to filled gaps: trained, scored."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from small_recipes import SmallRuns

from run_records import records
from said import naming
from transduce import LanguageModel
from transduce.config import LanguageModelConfig, ModelConfig, SearchConfig
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.masked import MaskedLanguageModel
from transduce.inference.language_models.spans import SpanLanguageModel
from transduce.model import Transformer, TransformerLM
from transduce.text import BOS_ID, LANGUAGE_MODEL_TOKENS, byte_tokenizer

TASKS = ("masked-lm", "span-corruption")


@pytest.fixture(scope="module")
def runs(small_runs: SmallRuns) -> dict[str, Path]:
    return {task: small_runs[task].folder for task in TASKS}


@pytest.fixture(scope="module")
def masked(runs: dict[str, Path]) -> MaskedLanguageModel:
    return MaskedLanguageModel.load(runs["masked-lm"] / "model")


@pytest.fixture(scope="module")
def spans(runs: dict[str, Path]) -> SpanLanguageModel:
    return SpanLanguageModel.load(runs["span-corruption"] / "model")


@pytest.mark.parametrize("task", TASKS)
def test_it_learns_and_validates(runs: dict[str, Path], task: str) -> None:
    first, last = records(runs[task], "validation")
    assert last["nll_nats"] < first["nll_nats"] < math.log(400) + 1


def test_the_class_follows_from_the_task(runs: dict[str, Path]) -> None:
    kinds = {task: type(LanguageModel.load(runs[task] / "model")) for task in TASKS}
    assert kinds == {"masked-lm": MaskedLanguageModel, "span-corruption": SpanLanguageModel}
    with pytest.raises(CheckpointError, match="masked-lm, not a causal language model"):
        CausalLanguageModel.load(runs["masked-lm"] / "model")


def test_a_gap_is_filled_by_the_most_probable_token(masked: MaskedLanguageModel) -> None:
    (filled,) = masked.fill(["The old <mask> sees a cat."], n_best=3)
    ids = [BOS_ID, *masked.codec.encode(["The old"])[:-1], masked.mask_id]
    ids += masked.codec.encode(["sees a cat."])
    with torch.no_grad():
        states = masked.model(torch.tensor([ids]))
        probabilities = masked.model.output.logits(states)[ids.index(masked.mask_id)].double()
    probabilities[masked.no_text] = -math.inf
    best = probabilities.softmax(0).topk(3)
    assert [each.token for each in filled.fills[0]] == masked.tokenizer.pieces(best.indices.tolist())
    assert [each.probability for each in filled.fills[0]] == pytest.approx(best.values.tolist())
    filled_ids = [int(best.indices[0]) if id == masked.mask_id else id for id in ids]
    assert f"{filled.text}\n" == masked.codec.decode(filled_ids)


def test_the_masked_model_sees_both_sides() -> None:
    torch.manual_seed(1)
    config = LanguageModelConfig(
        n_layers=2, d_model=16, d_ff=24, n_heads=2, d_k=8, d_v=8, vocab_size=30, is_causal=False
    )
    model = TransformerLM.from_config(config).eval()
    ids = torch.randint(4, 30, (1, 12))
    for changed_position in (0, 11):
        changed = ids.clone()
        changed[0, changed_position] = 4 + (ids[0, changed_position] - 3) % 26
        assert not torch.allclose(model(ids)[5], model(changed)[5])


def test_pseudo_likelihood_masks_each_token_in_turn(masked: MaskedLanguageModel) -> None:
    text = "The old dog sees a cat.\nThe cat sees a dog.\nA bird sings in the garden.\nThe old dog sleeps.\n"
    (log_probs,) = masked.log_probs([text])
    ids = [BOS_ID, *masked.codec.encode(text.removesuffix("\n").split("\n"))]
    assert len(log_probs) == len(ids) - 1 > 32  # longer than the window
    assert all(value < 0 for value in log_probs)
    with torch.no_grad():
        for position in (1, 20, len(ids) - 1):
            start = min(max(0, position - 16), len(ids) - 32)
            window = ids[start : start + 32]
            window[position - start] = masked.mask_id
            logits = masked.model.output.logits(masked.model(torch.tensor([window])))[position - start]
            expected = float(logits.double().log_softmax(0)[ids[position]])
            assert log_probs[position - 1] == pytest.approx(expected, abs=1e-4)
    score = masked.score([text.removesuffix("\n").split("\n")])
    assert (score.tokens, score.bytes) == (len(ids) - 1, len(text))
    assert score.nats == pytest.approx(-sum(log_probs))


def test_spans_of_any_length_are_written(spans: SpanLanguageModel) -> None:
    filled = spans.fill(["The old <mask> sees <mask> cat.", "no gap"], n_best=3)
    assert [len(each.fills) for each in filled] == [2, 0]
    assert filled[1].text == "no gap"
    assert filled[0].text.startswith("The old")
    assert filled[0].text.endswith("cat.")
    assert "<extra_id" not in filled[0].text
    for gap in filled[0].fills:
        shares = [each.probability for each in gap]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1 + 1e-9
    more = spans.fill(["The old <mask> sees <mask> cat."], n_best=9)
    assert more[0].text == filled[0].text  # whatever n_best is
    many = spans.fill(["<mask> " * 15], n_best=2)  # outputs of very small probability
    assert len(many[0].fills) == 15


def test_a_text_longer_than_the_positions_is_refused() -> None:
    torch.manual_seed(1)
    tokenizer = byte_tokenizer(extra_tokens=LANGUAGE_MODEL_TOKENS)
    config = ModelConfig(
        n_encoder_layers=1, n_decoder_layers=1, d_model=16, d_ff=16, n_heads=2, d_k=8, d_v=8, positions="learned",
        n_positions=12, src_vocab_size=tokenizer.size, tgt_vocab_size=tokenizer.size,
    )  # fmt: skip
    model = SpanLanguageModel(Transformer(config), tokenizer, SearchConfig(), max_length=12)
    assert model.fill(["a <mask>"])
    with pytest.raises(DataError, match=naming(12)):
        model.fill(["a longer text with a <mask>"])


def test_what_is_refused(runs: dict[str, Path], masked: MaskedLanguageModel, spans: SpanLanguageModel) -> None:
    with pytest.raises(DataError, match=naming("window", 32)):
        masked.fill(["a very long text " * 20])
    with pytest.raises(DataError, match=naming(100, 99)):
        spans.fill(["<mask>" * 100])
    with pytest.raises(TypeError, match="list"):
        masked.fill("a text")  # type: ignore[arg-type]
    for model in (masked, spans):
        with pytest.raises(ConfigError, match="does not continue text"):
            model.generate(["a"])
    with pytest.raises(ConfigError, match="span-corruption"):
        spans.log_probs(["a"])
