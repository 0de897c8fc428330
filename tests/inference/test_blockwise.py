"""Blockwise parallel decoding: further heads are trained on the tokens after the next one, and change no output."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from transduce.config import GreedySearchConfig, ModelConfig, SearchConfig, TrainingConfig
from transduce.data.collate import collate_pairs
from transduce.inference import Translator
from transduce.loss import LossConfig
from transduce.model import BlockDecoder, MultiHeadOutput, Transformer
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks.objective import PairObjective, further_heads_loss
from transduce.text import Tokenizers, train_bpe

PAIRS = [("the old dog", "der alte Hund"), ("a cat", "eine Katze"), ("he likes it", "er mag es")]


def make(block_size: int, vocab_size: int = 30, **changes: object) -> Transformer:
    torch.manual_seed(2)
    config = ModelConfig(**{
        "n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 32, "d_ff": 48, "n_heads": 2, "d_k": 16, "d_v": 16,
        "p_drop": 0.0, "src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size, "block_size": block_size, **changes,
    })  # fmt: skip
    return Transformer(config).double()


def test_the_losses_of_as_many_updates_as_heads_are_those_of_all_heads() -> None:
    """Each position has another head at each update; together they have every head once."""
    model = make(4)
    batch = collate_pairs([[4, 5], [6], [7, 8, 9]], [[10, 11, 12, 13, 14], [15], []], rows=(0, 1, 2))
    states_ND = model(batch.src_BS, batch.tgt_in_BT)
    losses = [further_heads_loss(model, states_ND, batch, update, LossConfig(eps_ls=0.1)) for update in (5, 6, 7)]
    none = [0, 0, 0]
    targets = [[11, 12, 13], [12, 13, 14], [13, 14, 2], [14, 2, 0], [2, 0, 0], none, [2, 0, 0], none, none]
    all_heads = MultiHeadOutput(model.output, 32, n_heads=4).double()
    assert model.lookahead_heads is not None
    all_heads.w_1, all_heads.w_2 = model.lookahead_heads.w_1, model.lookahead_heads.w_2
    first = torch.zeros(9, 1, dtype=torch.int64)  # the first head has its own loss
    expected = all_heads.loss(states_ND, torch.cat((first, torch.tensor(targets)), dim=1), LossConfig(eps_ls=0.1))
    torch.testing.assert_close(sum(losses), expected.loss_nats)
    model.train()
    whole = PairObjective(model, TrainingConfig(eps_ls=0.1))
    first_head = model.output.loss(states_ND, batch.tgt_out_N, LossConfig(eps_ls=0.1)).loss_nats
    torch.testing.assert_close(whole(batch, 5).loss_nats, first_head)
    torch.testing.assert_close(whole(batch, 5).total_nats, first_head + losses[0])
    whole(batch, 5).total_nats.backward()
    assert all(weight.grad is not None for weight in model.parameters())
    model.eval()
    assert whole(batch, 5).auxiliary_nats is None  # validation is that of the first head


@torch.no_grad()
def test_heads_read_the_state_of_the_last_kept_token() -> None:
    model = make(3).eval()
    decoder, src_BS = BlockDecoder(model), torch.tensor([[4, 5, 2], [6, 2, 0]])
    state = decoder.start(src_BS)
    assert decoder.ahead(state) is None
    tgt_NT = torch.tensor([[1, 7, 8, 9], [1, 10, 11, 12]])
    _, state = decoder.extend(tgt_NT, state, torch.tensor([4, 3]))
    state = state.rewind(torch.tensor([2, 1]))
    assert model.lookahead_heads is not None
    for selected, rows in ((state, [0, 1]), (state.select(torch.tensor([[1]])), [1])):
        logits_NPV = decoder.ahead(selected)
        assert logits_NPV is not None
        assert logits_NPV.shape == (len(rows), 2, 30)
        for row, got_PV in zip(rows, logits_NPV, strict=True):
            states_ND = model(src_BS[row : row + 1], tgt_NT[row : row + 1, :2])
            torch.testing.assert_close(got_PV, model.logits(model.lookahead_heads.ahead(states_ND[-1:]))[0])


def test_blocks_change_no_output_and_need_fewer_passes_once_the_heads_have_learned() -> None:
    tokenizer = train_bpe([text for pair in PAIRS for text in pair], vocab_size=300)
    model = make(4, tokenizer.size).train()
    sides = zip(*PAIRS, strict=True)
    src, tgt = ([tokenizer.encode(text) for text in side] for side in sides)
    batch = collate_pairs(src, tgt, rows=tuple(range(len(PAIRS))))
    objective, optimiser = (
        PairObjective(model, TrainingConfig(eps_ls=0.1)),
        torch.optim.Adam(model.parameters(), lr=3e-3),
    )
    tokens_per_pass = []
    for n_updates in (0, 120):
        model.train()
        for update in range(n_updates):
            optimiser.zero_grad()
            (objective(batch, update).total_nats / batch.n_tgt_tokens).backward()
            optimiser.step()
        translator = Translator(
            model.eval(), Tokenizers(tokenizer, tokenizer), SearchConfig(max_extra_tokens=6), direction="en-de"
        )
        texts = [*(text for text, _ in PAIRS), "a dog", "the cat likes the old dog"]
        one_at_a_time = GreedySearchConfig(max_extra_tokens=6, block_size=1)
        expected = translator.translate(texts, search=one_at_a_time)
        assert translator.passes.passes == 0
        for search in (GreedySearchConfig(max_extra_tokens=6), one_at_a_time.model_copy(update={"block_size": 3})):
            assert translator.translate(texts, search=search) == expected
            assert translator.translate(texts, search=search, max_tokens_per_batch=1) == expected
        tokens_per_pass.append(translator.passes.tokens_per_pass)
    assert expected[:3] == [text for _, text in PAIRS]
    assert 1 <= tokens_per_pass[0] < 1.5
    assert 1.8 < tokens_per_pass[1] <= 4


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_every_precision_has_its_heads(precision: str) -> None:
    tokenizer = train_bpe(["the dog"], vocab_size=300)
    model = make(3, tokenizer.size).float().eval()
    translator = Translator(
        model, Tokenizers(tokenizer, tokenizer), GreedySearchConfig(max_extra_tokens=5), direction="en-de",
        precision=precision,  # type: ignore[arg-type]
    )  # fmt: skip
    one = GreedySearchConfig(max_extra_tokens=5, block_size=1)
    assert translator.translate(["the dog dog"]) == translator.translate(["the dog dog"], search=one)
    assert translator.passes.sentences == 1


def test_heads_are_put_on_a_translator(micro_model: Path, micro_recipe: Path, tmp_path: Path) -> None:
    lines, few = list[str](), tmp_path / "few.tsv"
    few.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS * 5), encoding="utf-8")
    settings = ["data.corpus=files", *(f"data.{split}_tsv='{few}'" for split in ("train", "dev", "test")),
                "model.block_size=3", f"training.init_from='{micro_model}'", f"data.tokenizer_from='{micro_model}'",
                "training.max_updates=2", "training.checkpoint_every_updates=1", "training.average_last=1",
                "training.validate_every_updates=2", "search.kind=greedy"]  # fmt: skip
    result = train(read_recipe(micro_recipe, settings), tmp_path / "run", log=lines.append)
    assert any("drawn at random: further_heads.w_1.0.weight" in line for line in lines)
    assert result.model_folder is not None
    translator = Translator.load(result.model_folder)
    texts = ["The dog sleeps.", "The woman sees the old cat."]
    one = GreedySearchConfig(max_extra_tokens=5, block_size=1)
    alone = translator.translate(texts, search=one, split=False)
    assert translator.passes.sentences == 0
    assert translator.translate(texts, split=False) == alone
    assert translator.passes.sentences == 2
    assert "blocks of 3 tokens" in (result.model_folder / "README.md").read_text(encoding="utf-8")
