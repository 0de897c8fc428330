"""A translation depends on the sentence alone: not on batch size, order, padding or other sentences."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

import transduce
from said import naming
from small_models import sentences, untrained_translator
from transduce.config import BeamSearchConfig, GreedySearchConfig, ModelConfig, SearchConfig
from transduce.config.decoding import DecodingOptions
from transduce.corpora import generate_pairs
from transduce.errors import CheckpointError, ConfigError
from transduce.files import write_manifest
from transduce.inference import Translator
from transduce.inference.engines import make_engine
from transduce.inference.text_search import TextSearch
from transduce.memories import Memory, write_memory
from transduce.model import Ensemble, Transformer
from transduce.text import EOS_ID, train_bpe


@pytest.fixture(scope="module")
def random_translator() -> Translator:
    return untrained_translator(n_encoder_layers=2)


@pytest.mark.parametrize(
    ("direction", "fits"),
    [("en-pt", True), ("en-pt-BR", True), ("en-pt-PT", True), ("en-US-pt", True), ("en-de", False)],
)
def test_a_memory_serves_its_languages_of_any_region(
    random_translator: Translator, direction: str, fits: bool, tmp_path: Path
) -> None:
    model = Translator(random_translator.engine, random_translator.tokenizers, SearchConfig(), direction=direction)
    write_memory(tmp_path / "a.tm", [[("A cat", "Um gato")]], src_language="en", tgt_language="pt-BR")
    if fits:
        assert model.with_memory(Memory(tmp_path / "a.tm")).translate(["A cat"]) == ["Um gato"]
    else:
        with pytest.raises(ConfigError, match=f"for en-pt-BR, the model translates {direction}"):
            model.with_memory(Memory(tmp_path / "a.tm"))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_translation_does_not_depend_on_its_batch(random_translator: Translator, beam_size: int) -> None:
    texts = sentences(12)
    search = random_translator.search.model_copy(update={"beam_size": beam_size, "n_best": min(beam_size, 4)})
    alone = [next(random_translator.translate_lines([text], search=search)) for text in texts]
    for max_tokens in (20, 100, 10_000):
        together = search.model_copy(update={"max_tokens_per_batch": max_tokens})
        order = list(range(len(texts)))
        random.Random(max_tokens).shuffle(order)
        results = list(random_translator.translate_lines([texts[place] for place in order], search=together))
        for place, translation in zip(order, results, strict=True):
            expected = alone[place].n_best
            assert [best.text for best in translation.n_best] == [best.text for best in expected]
            for ours, theirs in zip(translation.n_best, expected, strict=True):
                assert ours.score == pytest.approx(theirs.score, abs=1e-9)


def test_a_trained_model_in_fp32_gives_the_same_texts_in_any_batch(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    texts = sentences(30, seed=9)
    alone = [translator.translate([text])[0] for text in texts]
    assert translator.translate(texts) == alone
    assert translator.translate(texts[::-1]) == alone[::-1]


def test_greedy_search_without_scores_gives_the_same_texts(random_translator: Translator) -> None:
    greedy, texts = GreedySearchConfig(max_extra_tokens=8), sentences(12)
    scored = list(random_translator.translate_lines(texts, search=greedy))
    assert random_translator.translate(texts, search=greedy) == [translation.text for translation in scored]
    assert all(translation.score < 0 for translation in scored)


def test_chunks_do_not_change_the_stream(random_translator: Translator) -> None:
    texts = [*sentences(9), "", "  ", *sentences(3)]
    whole = [t.text for t in random_translator.translate_lines(iter(texts))]
    assert [t.text for t in random_translator.translate_lines(iter(texts), chunk_lines=4)] == whole
    assert (whole[9], whole[10]) == ("", "  ")
    assert random_translator.translate([]) == []


def test_the_output_is_at_most_input_plus_fifty_tokens(random_translator: Translator) -> None:
    """Section 6.1; EOS counts on both sides."""
    ids = random_translator.tokenizers.src.encode("the dog")
    model = random_translator.model
    ends_never = Transformer(model.config).double()
    ends_never.load_state_dict(model.state_dict())
    with torch.no_grad():  # the EOS row of the tied matrix: no state is similar to it
        ends_never.target.embedding.weight[EOS_ID] = 0
        ends_never.decoder[-1].feed_forward_residual.norm.bias += ends_never.target.embedding.weight[4] * 100
    search_all = TextSearch(make_engine(ends_never.eval()), random_translator.tokenizers.src)
    for search in (SearchConfig(), SearchConfig(beam_size=1), SearchConfig(beam_size=1, max_extra_tokens=3)):
        results = search_all(["the dog"], search)
        assert results is not None
        output = results[0].hypotheses[0]
        assert not output.is_finished
        assert len(output.ids) == len(ids) + 1 + search.max_extra_tokens


def test_greedy_search_becomes_beam_search_where_more_is_asked_for(random_translator: Translator) -> None:
    greedy = GreedySearchConfig(alpha=0.3, max_extra_tokens=8)
    assert DecodingOptions().applied_to(greedy) == greedy
    assert DecodingOptions(beam_size=1, n_best=1, alpha=1).applied_to(greedy) == GreedySearchConfig(
        alpha=1.0, max_extra_tokens=8
    )
    assert DecodingOptions(n_best=3).applied_to(greedy) == BeamSearchConfig(
        beam_size=3, n_best=3, alpha=0.3, max_extra_tokens=8
    )
    assert DecodingOptions(beam_size=2).applied_to(greedy) == BeamSearchConfig(
        beam_size=2, alpha=0.3, max_extra_tokens=8
    )
    with pytest.raises(ConfigError, match="search: n_best must be at most beam_size, got 3 > 1"):
        DecodingOptions(beam_size=1, n_best=3).applied_to(greedy)
    texts = sentences(6)
    beam_of_one = BeamSearchConfig(beam_size=1, alpha=0.3, max_extra_tokens=8)
    one, other = (list(random_translator.translate_lines(texts, search=each)) for each in (greedy, beam_of_one))
    assert [each.n_best for each in one] == [each.n_best for each in other]
    assert 1 <= len(random_translator.translate(texts[:1], search=greedy, n_best=3)[0]) <= 3


def test_a_long_source_is_cut_and_says_so(random_translator: Translator) -> None:
    search, lines = SearchConfig(beam_size=1, max_length=9), ["the dog", "dog " * 2000]
    short, long = random_translator.translate_lines(lines, search=search, split=False)
    assert (short.is_truncated, long.is_truncated) == (False, True)


def test_learned_positions_bound_source_and_output(random_translator: Translator) -> None:
    config = random_translator.model.config.model_copy(update={"positions": "learned", "n_positions": 12})
    torch.manual_seed(4)
    translator = Translator(
        Transformer(config).eval(), random_translator.tokenizers, SearchConfig(beam_size=2), direction="en-de"
    )
    (translation,) = translator.translate_lines(["dog " * 40], split=False)
    assert translation.is_truncated
    (translation,) = translator.translate_lines(["dog " * 40])
    assert (translation.is_truncated, translation.n_segments > 3) == (False, True)
    assert translator.max_source_tokens == 12
    with pytest.warns(UserWarning, match=naming("1 of 2", 12, "texts[1]")):
        translator.translate(["the dog", "dog " * 40], split=False)


def test_the_public_names_work_from_the_package(micro_model: Path) -> None:
    translator = transduce.Translator.load(micro_model)
    assert isinstance(translator.model, transduce.Transformer)
    assert isinstance(translator.model, torch.nn.Module)
    (text,) = translator.translate(["The dog sleeps."])
    assert text == text.strip()


def test_a_single_string_is_not_taken_for_a_list(micro_model: Path) -> None:
    with pytest.raises(TypeError, match=naming("list")):
        Translator.load(micro_model).translate("The dog sleeps.")


def test_an_ensemble_has_the_mean_of_the_probabilities() -> None:
    torch.manual_seed(8)
    config = ModelConfig(
        n_encoder_layers=1, n_decoder_layers=1, d_model=16, d_ff=16, n_heads=2, d_k=8, d_v=8,
        src_vocab_size=20, tgt_vocab_size=20,
    )  # fmt: skip
    models = [Transformer(config).double().eval() for _ in range(3)]
    src, tgt = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]]), torch.tensor([[1, 9, 10], [1, 11, 12]])
    expected = torch.stack([model.logits(model(src, tgt)).softmax(-1) for model in models]).mean(dim=0)
    ensemble = Ensemble(models)
    state = ensemble.start(src)
    for step in range(3):
        log_p, state = ensemble.step(tgt[:, step], state)
        torch.testing.assert_close(log_p.exp(), expected.view(2, 3, 20)[:, step])
        state = state.select(torch.tensor([[0], [1]]))


def test_a_model_together_with_itself_translates_as_it_does_alone(random_translator: Translator) -> None:
    own = random_translator
    twice = Translator(own.model, own.tokenizers, own.search, direction="en-de", others=[own.model])
    for ours, expected in zip(twice.translate_lines(sentences(9)), own.translate_lines(sentences(9)), strict=True):
        assert [best.text for best in ours.n_best] == [best.text for best in expected.n_best]
        assert ours.score == pytest.approx(expected.score, abs=1e-9)


def test_models_that_write_together_share_their_vocabularies(micro_model: Path, own_model: Path) -> None:
    translator = Translator.load(micro_model, own_model, precision="fp32")
    assert translator.translate(["The dog sleeps."]) == Translator.load(micro_model).translate(["The dog sleeps."])
    other = train_bpe([pair.en for pair in generate_pairs("train", n_pairs=500, seed=7)], vocab_size=400)
    other.save(own_model / "tokenizer.json")
    write_manifest(own_model, exempt=("README.md",))
    with pytest.raises(CheckpointError, match=naming(own_model, micro_model, "tokenizers", "direction")):
        Translator.load(micro_model, own_model)
