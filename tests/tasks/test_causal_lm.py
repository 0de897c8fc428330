"""Causal language models from text to generated text: trained, scored, continued."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from run_records import records
from said import naming
from transduce import LanguageModel
from transduce.config import LanguageModelConfig
from transduce.diagnostics import examine
from transduce.errors import CheckpointError, ConfigError, DataError, SearchError
from transduce.inference import Translator
from transduce.inference.language_models.causal import CausalLanguageModel, _Shown
from transduce.model import TransformerLM
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.search.sampling import Sampling
from transduce.text import EOS_ID, LANGUAGE_MODEL_TOKENS, train_bpe, train_characters

RECIPE = """
preset = "tiny"
[model]
system = "language-model"
n_layers = 2
d_model = 32
d_ff = 64
n_heads = 2
d_k = 16
d_v = 16
p_drop = 0.1
norm = "pre"
n_positions = 24
[data]
task = "causal-lm"
corpus = "grammar"
language = "en"
n_pairs = 300
tokenizer = "characters"
vocab_size = 500
[training]
max_updates = 20
max_tokens_per_batch = 400
warmup_steps = 10
lr_factor = 0.3
eps_ls = 0.0
validate_every_updates = 10
checkpoint_every_updates = 10
log_every_updates = 5
average_last = 1
"""
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lm") / "lm.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(recipe: Path) -> Path:
    train(read_recipe(recipe), recipe.parent / "run")
    return recipe.parent / "run"


@pytest.fixture(scope="module")
def model(run: Path) -> LanguageModel:
    return LanguageModel.load(run / "model")


def test_it_learns_and_validates(run: Path) -> None:
    first, *_, last = records(run, "update")
    assert last["nll_nats"] < first["nll_nats"]
    validation = records(run, "validation")[-1]
    # Bits per byte follow from nats per token: a text of ASCII has a token for each byte, the space before each line,
    # and the end.
    assert validation["bits_per_byte"] == pytest.approx(validation["nll_nats"] / math.log(2), rel=0.05)
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "bits per byte" in card
    assert "1 documents" in card
    assert "a window of 24 tokens" in card
    assert "transduce generate" in card


def test_prompts_give_together_what_they_give_alone(model: LanguageModel) -> None:
    prompts = ["", "The", "The old dog sees a ca", "One line\nand", "A\n"]
    for sampling in (GREEDY, Sampling(0.8, top_k=12, top_p=0.9)):
        together = model.generate(prompts, max_tokens=60, sampling=sampling, seed=4)
        alone = [
            model.generate([prompt], max_tokens=60, sampling=sampling, seed=4, first_number=number)[0]
            for number, prompt in enumerate(prompts)
        ]
        assert [each.text for each in together] == [each.text for each in alone]
        assert [each.log_prob for each in together] == pytest.approx([each.log_prob for each in alone], abs=1e-3)


def test_the_seed_decides(model: LanguageModel) -> None:
    one, again, other = (model.generate(["The "], max_tokens=30, seed=seed)[0].text for seed in (1, 1, 2))
    assert one == again != other


def test_generation_with_a_cache_is_recomputation(model: LanguageModel) -> None:
    """Within the window, each greedy token is the best of a whole forward pass."""
    (continued,) = model.generate(["The"], max_tokens=15, sampling=GREEDY)
    prompt = model._encoded("The")
    ids = list(prompt.ids)
    with torch.no_grad():
        for _ in range(continued.tokens):
            logits = model.model.output.logits(model.model(torch.tensor([ids])))[-1:]
            logits[:, model._suppressed_ids()] = -torch.inf
            ids.append(int(logits.argmax()))
    assert model._text_after(prompt, ids[len(prompt.ids) :]) == continued.text


def test_a_beam_finds_at_least_what_greedy_search_finds(model: LanguageModel) -> None:
    prompts = ["The", "A dog"]
    greedy = model.generate(prompts, max_tokens=12, sampling=GREEDY)
    one, four = (model.generate(prompts, max_tokens=12, beam_size=size) for size in (1, 4))
    assert [each.text for each in one] == [each.text for each in greedy]
    for found, best in zip(four, one, strict=True):
        prompt = model._encoded(found.prompt).ids
        ids = [*prompt, *model.tokenizer.encode_continuation(found.text)]
        assert found.log_prob >= best.log_prob - 1e-5
        if not found.is_ended:  # its log-probability is that of its tokens after the prompt
            with torch.no_grad():
                logits = model.model.output.logits(model.model(torch.tensor([ids[:-1]])))
            log_probs = logits.double().log_softmax(1)[torch.arange(len(ids) - 1), ids[1:]]
            assert found.log_prob == pytest.approx(float(log_probs[len(prompt) - 1 :].sum()), abs=1e-3)
    assert model.generate(["The"], max_tokens=500, beam_size=2)[0].tokens <= model.max_length


def test_text_is_passed_on_as_it_is_drawn(model: LanguageModel) -> None:
    pieces: list[str] = []
    (whole,) = model.generate(["The"], max_tokens=40, seed=3, on_text=pieces.append)
    assert "".join(pieces) == whole.text
    assert len(pieces) > 10
    shown = _Shown(pieces.append)
    pieces.clear()
    for text in ("a", "aé", "aé", "aé日"):
        shown.add(text)
    assert pieces == ["a", "é", "日"]


def test_a_space_at_the_end_of_a_prompt_begins_a_word(model: LanguageModel) -> None:
    """Over characters it is a token; over subwords it belongs to the token that comes next."""
    (inside, outside) = (model._encoded(text).ids for text in ("The", "The "))
    assert outside == [*inside, model.tokenizer.space_id]
    torch.manual_seed(1)
    tokenizer = train_bpe(["the dogs see the cats ."] * 3, vocab_size=400, extra_tokens=LANGUAGE_MODEL_TOKENS)
    config = LanguageModelConfig(
        n_layers=1, d_model=16, d_ff=16, n_heads=2, d_k=8, d_v=8, vocab_size=tokenizer.size, n_positions=24
    )
    subwords = CausalLanguageModel(TransformerLM.from_config(config), tokenizer, max_length=24)
    starts = set(tokenizer.word_start_ids)
    for seed in range(5):
        for options in ({"seed": seed}, {"beam_size": 2 + seed}):
            (with_space,) = subwords.generate(["the dogs "], max_tokens=3, **options)
            whole = subwords.tokenizer.encode(f"the dogs {with_space.text}")
            first = whole[len(subwords.tokenizer.encode("the dogs"))]
            assert first in starts, with_space
            assert not with_space.text.startswith(" ") or tokenizer.pieces([first]) == ["▁"]


def test_no_token_outside_of_text_is_generated(model: LanguageModel) -> None:
    texts = [each.text for each in model.generate(["a"] * 8, max_tokens=40, sampling=Sampling(temperature=5.0), seed=9)]
    assert not any(token in text for text in texts for token in LANGUAGE_MODEL_TOKENS)


def test_probabilities_of_a_document(model: LanguageModel) -> None:
    (log_probs,) = model.log_probs(["The dog\n"])
    ids = model.codec.encode(["The dog"])
    assert len(log_probs) == len(ids) + 1  # and the end
    assert all(value < 0 for value in log_probs)
    score = model.score([["The dog"]])
    assert score.nats == pytest.approx(-sum(log_probs))
    assert (score.tokens, score.bytes) == (len(ids) + 1, 8)
    assert score.perplexity == pytest.approx(math.exp(score.nats / score.tokens))


@pytest.mark.parametrize("stride", [1, 23, 24, 25, 48, 10**9, 0, -1])
def test_a_window_slides_by_at_most_its_length(model: LanguageModel, stride: int) -> None:
    is_refused = stride not in range(1, 25)
    for lines in (["The dog"], ["the old dog sees a cat in the garden"] * 3):  # shorter and longer than the window
        with pytest.raises(ConfigError, match=naming("stride", f"{stride:,}", 1, 24)) if is_refused else nullcontext():
            assert model.score([lines], stride=stride).nats > 0


def test_a_long_document_is_scored_by_a_sliding_window(model: LanguageModel) -> None:
    lines = ["the old dog sees a cat in the garden"] * 3
    by_one, by_half, apart = (model.score([lines], stride=stride).nats for stride in (1, None, 24))
    ids = [1, *model.codec.encode(lines), EOS_ID]
    with torch.no_grad():  # by definition, for a stride of 1
        nats = 0.0
        for position in range(len(ids) - 1):
            window = torch.tensor([ids[max(0, position - 23) : position + 1]])
            nats -= float(model.model.output.logits(model.model(window)).double().log_softmax(1)[-1, ids[position + 1]])
    assert by_one == pytest.approx(nats, rel=1e-5)
    assert len({round(each, 3) for each in (by_one, by_half, apart)}) == 3


def test_no_position_sees_its_future() -> None:
    torch.manual_seed(1)
    config = LanguageModelConfig(n_layers=2, d_model=16, d_ff=24, n_heads=2, d_k=8, d_v=8, vocab_size=30)
    model = TransformerLM.from_config(config).eval()
    ids = torch.randint(4, 30, (1, 12))
    changed = ids.clone()
    changed[0, 8:] = torch.randint(4, 30, (4,))
    one, other = model(ids), model(changed)
    assert torch.equal(one[:8], other[:8])
    assert not torch.allclose(one[8:], other[8:])


def test_what_is_refused(run: Path, model: LanguageModel) -> None:
    with pytest.raises(DataError, match=naming("window", 24)):
        model.generate(["a very long prompt that does not fit"])
    with pytest.raises(SearchError, match="beam"):
        model.generate(["a"], beam_size=2, sampling=GREEDY)
    with pytest.raises(SearchError, match="max_tokens"):
        model.generate(["a"], max_tokens=0)
    with pytest.raises(TypeError, match="list"):
        model.generate("a prompt")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no words"):
        model.score([])
    with pytest.raises(CheckpointError, match="causal-lm"):
        Translator.load(run / "model")


def test_the_recipe_of_characters_is_nanogpts() -> None:
    config = read_recipe(Path("lm-characters"))
    model = config.model
    assert isinstance(model, LanguageModelConfig)
    assert (model.n_layers, model.n_heads, model.d_model, model.n_positions) == (4, 4, 128, 64)
    assert (config.training.max_tokens_per_batch, config.training.max_updates) == (12 * 64, 2000)
    tokenizer = train_characters(["ab"], vocab_size=1000, extra_tokens=LANGUAGE_MODEL_TOKENS)
    assert tokenizer.mask_and_sentinel_ids == list(range(tokenizer.size - 101, tokenizer.size))


def test_the_doctor_reads_its_recipes(recipe: Path, tmp_path: Path) -> None:
    assert {finding.status for finding in examine([str(recipe)])} == {"good"}
    own = tmp_path / "own.toml"
    text = tmp_path / "text"
    text.write_text("one\n\ntwo\n", encoding="utf-8")
    own.write_text(
        RECIPE.replace('corpus = "grammar"\nlanguage = "en"', f'corpus = "files"\ntrain_text = "{text}"'),
        encoding="utf-8",
    )
    found = list(examine([str(own)]))
    assert {finding.status for finding in found} == {"good", "note"}  # there is no dev text
    assert any("2 documents" in str(finding) for finding in found)
    text.write_text("\n", encoding="utf-8")
    assert "problem" in {finding.status for finding in examine([str(own)])}
