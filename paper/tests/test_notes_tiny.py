"""The small models of the notes: their batches and their training."""

from __future__ import annotations

import pytest
import torch

from transduce.model import StackConfig, TransformerLM
from transduce_paper.notes.tiny import (
    BATCH_SIZE,
    GrammarText,
    ListedBatches,
    grammar_text,
    language_batch,
    next_token_loss,
    random_batches,
    train,
    trained,
)

SMALL = StackConfig(n_layers=1, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8, p_drop=0.0)


@pytest.fixture(scope="module")
def text() -> GrammarText:
    return grammar_text(n_train=40, n_dev=5, vocab_size=300)


def nats(model: TransformerLM, text: GrammarText) -> float:
    with torch.no_grad():
        loss = next_token_loss(model, language_batch(text.train))
    return float(loss.nll_nats) / loss.n_tokens


def test_language_batch_has_bos_in_inputs_and_eos_in_targets() -> None:
    batch = language_batch([[7, 8, 9], [5]], n_padding=1)
    assert batch.ids_BT.tolist() == [[1, 7, 8, 9, 0], [1, 5, 0, 0, 0]]
    assert batch.targets_N.tolist() == [7, 8, 9, 2, 5, 2]


def test_random_batches_are_reproducible_and_without_replacement(text: GrammarText) -> None:
    first, second = random_batches(text.train, 3), random_batches(text.train, 3)
    assert first.n_batches(0) == 3
    assert first.rows == second.rows
    assert first.rows[0] != first.rows[1]
    numbered = random_batches([[n] for n in range(4, 60)], 2)
    assert all(len({tuple(row) for row in rows}) == BATCH_SIZE for rows in numbered.rows)


def test_a_shard_is_every_nth_row_of_a_batch() -> None:
    batches = ListedBatches([[[5], [6, 7], [8]]])
    assert (batches.n_rows(0, 0), batches.n_tokens(0, 0)) == (3, (7, 7))
    assert batches.batch(0, 0, part=1, n_parts=2).targets_N.tolist() == [6, 7, 2]
    parts = [batches.batch(0, 0, part=part, n_parts=2).targets_N for part in (0, 1)]
    assert sum(map(len, parts)) == len(batches.batch(0, 0).targets_N)


def test_training_lowers_the_loss_and_keeps_the_rng_state(text: GrammarText) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    after_2, after_40 = (trained(text, config=SMALL, n_updates=n, peak_lr=1e-2) for n in (2, 40))
    assert torch.equal(torch.rand(1), expected)
    assert not after_40.training
    assert nats(after_40, text) < nats(after_2, text) - 0.5


def test_validations_are_evenly_spaced_up_to_the_end(text: GrammarText) -> None:
    model = TransformerLM(SMALL, vocab_size=text.tokenizer.size)
    batches = random_batches(text.train, 8)
    validations = train(
        model,
        lambda batch, _: next_token_loss(model, batch),
        batches,
        peak_lr=1e-2,
        dev_nats=lambda: nats(model, text),
        n_validations=4,
    )
    assert [update for update, _ in validations] == [2, 4, 6, 8]
    assert validations[-1][1] == pytest.approx(nats(model, text))
    assert validations[-1][1] < validations[0][1]
