"""The Transformer's wiring: which inputs affect which outputs, and decoding steps against teacher forcing."""

from __future__ import annotations

import pytest
import torch

from said import naming
from transduce.config import ModelConfig
from transduce.errors import ConfigError, ShapeError
from transduce.model import Transformer
from transduce.model.embedding import SinusoidalPositions, sinusoid
from transduce.model.padding import PaddingInfo
from transduce.model.transformer import FrontEndMaker
from transduce.model.word_positions import WordPositionFrontEnd

CONFIG = ModelConfig(
    n_encoder_layers=2, n_decoder_layers=2, d_model=16, d_ff=32, n_heads=4, d_k=4, d_v=6,
    src_vocab_size=20, tgt_vocab_size=20,
)  # fmt: skip
VARIANTS = [
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"positions": "words"},
    {"embeddings": "separate", "tgt_vocab_size": 23},
]


def random_model(**changes: object) -> Transformer:
    torch.manual_seed(11)
    config = CONFIG.model_copy(update=changes)
    makers: dict[str, FrontEndMaker] = {}
    if config.positions == "words":
        makers["source"] = lambda embedding: WordPositionFrontEnd(embedding, [4, 6, 8, 10], p_drop=config.p_drop)
        makers["target"] = lambda embedding: WordPositionFrontEnd(embedding, [5, 7, 9, 12], p_drop=config.p_drop)
    return Transformer(config, **makers).double().eval()


@pytest.mark.parametrize("changes", VARIANTS)
def test_step_by_step_equals_all_at_once(changes: dict[str, object]) -> None:
    model = random_model(**changes)
    src = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
    tgt = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])
    at_once = model.logits(model(src, tgt)).view(2, 4, -1)
    state = model.start(src)
    for position in range(4):
        logits, state = model.step(tgt[:, position], state)
        torch.testing.assert_close(logits, at_once[:, position], rtol=1e-10, atol=1e-10)


def test_positions_of_words() -> None:
    """Half of the dimensions encode the position, half the number of words so far, by the formula of section 3.5."""
    model = random_model(positions="words", p_drop=0.0)
    got, padding = model.source(torch.tensor([[3, 4, 5, 6, 2], [4, 3, 2, 0, 0]]))
    half = sinusoid(8, 8)
    positions, words, real = [0, 1, 2, 3, 4, 0, 1, 2], [0, 1, 1, 2, 2, 1, 1, 1], [3, 4, 5, 6, 2, 4, 3, 2]
    expected = 4.0 * model.source.embedding.weight[real] + torch.cat((half[positions], half[words]), dim=1)
    torch.testing.assert_close(got[: padding.n_real], expected, rtol=1e-6, atol=1e-6)
    assert not {name for name in model.state_dict() if "words" in name or "positions" in name}


@torch.no_grad()
def test_words_are_counted_past_the_end_of_the_first_table() -> None:
    """A source with more words than the initial table of sinusoids has rows, then one more position."""
    n = SinusoidalPositions.INITIAL_POSITIONS + 3
    model, fresh = random_model(positions="words"), random_model(positions="words")
    src = torch.full((1, n), 4)  # each id begins a word
    state = model.start(src)
    for _ in range(2):
        _, state = model.step(torch.tensor([5]), state)
    assert state.positions.n_words().tolist() == [[2]]
    words = sinusoid(n + 1, 8)[[n]].to(model.source.positions.table_PD)
    torch.testing.assert_close(model.source.positions(torch.tensor([n]), n + 1), words, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(fresh.encode(src[:, :9]).states_MD, model.encode(src[:, :9]).states_MD)


def test_words_are_not_counted_before_they_are_known() -> None:
    with pytest.raises(ConfigError, match=naming("positions = 'words'")):
        Transformer(CONFIG.model_copy(update={"positions": "words"}))


@pytest.mark.parametrize("positions", ["sinusoidal", "words"])
@torch.no_grad()
def test_beams_reordered_and_sentences_retired_equal_fresh_ones(positions: str) -> None:
    """Rows keep their own prefix through select, from whatever beam or sentence they come."""
    model = random_model(positions=positions)
    src = torch.tensor([[4, 5, 6, 2], [8, 9, 2, 0], [10, 2, 0, 0]])
    state = model.start(src)
    _, state = model.step(torch.tensor([1, 1, 1]), state)
    state = state.select(torch.tensor([[0, 0], [1, 1], [2, 2]]))
    _, state = model.step(torch.tensor([4, 5, 6, 7, 8, 9]), state)
    buffer = state.layers[0].self_k_BHCK
    state = state.select(torch.tensor([[1, 0], [5, 4]]))  # the second sentence leaves, beams are reordered
    selected = state.layers[0].self_k_BHCK
    assert buffer is not None
    assert selected is not None
    assert (len(selected), selected.data_ptr()) == (2, buffer.data_ptr())  # no second buffer
    logits, _ = model.step(torch.tensor([11, 12, 13, 14]), state)

    histories = [(0, [1, 5, 11]), (0, [1, 4, 12]), (2, [1, 9, 13]), (2, [1, 8, 14])]
    for row, (sentence, history) in enumerate(histories):
        alone = src[sentence][src[sentence] != 0].unsqueeze(0)
        expected = model.logits(model(alone, torch.tensor([history])))[-1]
        torch.testing.assert_close(logits[row], expected, rtol=1e-10, atol=1e-10)


def test_encoder_states_are_not_copied_for_each_beam() -> None:
    state = random_model().start(torch.tensor([[4, 5, 2]]))
    wide = state.select(torch.tensor([[0, 0, 0, 0]]))
    assert wide.layers[0].cross_k_BHSK is state.layers[0].cross_k_BHSK
    assert wide.n_beams == 4


def test_no_position_sees_a_later_one() -> None:
    """Section 3.2.3: the gradient of position t with respect to later inputs is exactly zero."""
    model = random_model()
    memory = model.encode(torch.tensor([[4, 5, 2]]))
    embedded: list[torch.Tensor] = []

    def watch(module: torch.nn.Module, inputs: object, output: torch.Tensor) -> torch.Tensor:
        embedded.append(output.detach().clone().requires_grad_())
        return embedded[-1]

    handle = model.target.embedding.register_forward_hook(watch)
    states = model.decode(memory, torch.tensor([[1, 4, 5, 6]]))
    handle.remove()
    for position in range(4):
        (gradient,) = torch.autograd.grad(states[position, 0], embedded[-1], retain_graph=True)
        assert (gradient[position + 1 :] == 0).all()
        assert (gradient[: position + 1] != 0).any(dim=1).all()


def test_padding_must_stand_on_the_right_and_rows_must_not_be_empty() -> None:
    with pytest.raises(ShapeError, match=naming("padding", "right")):
        PaddingInfo.from_mask(torch.tensor([[True, False, True]]))
    with pytest.raises(ShapeError, match=naming("row", "no token")):
        PaddingInfo.from_mask(torch.tensor([[True, True], [False, False]]))


@torch.no_grad()
def test_learned_positions_are_counted_for_each_row() -> None:
    """Drafts of a short row do not count on top of a long one."""
    model, src = random_model(positions="learned", n_positions=4), torch.tensor([[5, 2], [6, 2]])
    ids = torch.tensor([[1, 5, 6], [1, 0, 0]])
    _, state = model.extend(ids, model.start(src), torch.tensor([3, 1]))
    logits, _ = model.extend(torch.tensor([[7, 0, 0], [7, 8, 9]]), state, torch.tensor([1, 3]))
    for row, target in enumerate(([1, 5, 6, 7], [1, 7, 8, 9])):
        expected = model.logits(model(src[row : row + 1], torch.tensor([target])))
        torch.testing.assert_close(logits[row, : 3 if row else 1], expected[-3 if row else -1 :])


def test_learned_positions_end() -> None:
    model = random_model(positions="learned", n_positions=4)
    with pytest.raises(ShapeError, match=naming("5 tokens", "4 positions", "n_positions", "positions = 'sinusoidal'")):
        model.encode(torch.tensor([[4, 5, 6, 7, 2]]))


def test_sinusoids_go_on_past_the_table() -> None:
    n = SinusoidalPositions.INITIAL_POSITIONS + 3
    positions = SinusoidalPositions(16)
    torch.testing.assert_close(positions(torch.arange(n), n), sinusoid(n, 16).float())
    torch.testing.assert_close(positions(torch.arange(4), 4), sinusoid(4, 16).float())


def test_the_attention_hook_receives_all_weights() -> None:
    model = random_model()
    seen: list[tuple[str, int, tuple[int, ...]]] = []
    src, tgt = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6]])
    states = model(src, tgt, attention_hook=lambda kind, layer, w: seen.append((kind, layer, tuple(w.shape))))
    assert seen == [
        ("encoder", 0, (1, 4, 3, 3)), ("encoder", 1, (1, 4, 3, 3)),
        ("decoder", 0, (1, 4, 2, 2)), ("cross", 0, (1, 4, 2, 3)),
        ("decoder", 1, (1, 4, 2, 2)), ("cross", 1, (1, 4, 2, 3)),
    ]  # fmt: skip
    torch.testing.assert_close(states, model(src, tgt))


@pytest.mark.parametrize("name", ["p_drop", "p_drop_attention", "p_drop_relu"])
def test_each_dropout_acts_in_training_and_only_there(name: str) -> None:
    src, tgt = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6, 7]])
    model = random_model(p_drop=0.0)
    dropped = random_model(**{"p_drop": 0.0, name: 0.5})
    torch.testing.assert_close(model(src, tgt), dropped(src, tgt))
    dropped.train()
    assert not torch.allclose(model(src, tgt), dropped(src, tgt))


def test_initial_scores_and_embeddings_have_the_intended_size() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=5000, tgt_vocab_size=5000))
    assert model.target.embedding.weight.std().item() == pytest.approx(512**-0.5, rel=0.02)
    states = model.eval()(torch.randint(4, 5000, (4, 20)), torch.randint(4, 5000, (4, 20)))
    assert 0.5 < model.logits(states).std().item() < 2.0
    bound = (6 / (512 + 2048)) ** 0.5
    weight = model.encoder[0].feed_forward.w_1.weight
    assert bound * 0.98 < weight.abs().max().item() <= bound
