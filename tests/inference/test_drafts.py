"""A translator with a draft writes what it writes alone: greedy the same text, sampled the same distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from said import naming
from small_models import sentences, untrained_translator
from transduce.config import GreedySearchConfig, SampledSearchConfig, SearchConfig
from transduce.config.decoding import greedy_unless_sampled, sampling_like
from transduce.errors import ConfigError
from transduce.inference import Translator
from transduce.inference.engine import Constraints, Request
from transduce.inference.run_search import run_search
from transduce.model import Ensemble
from transduce.model.shortlist import Shortlist
from transduce.search import DraftLength, ModelDrafter, PassCounts
from transduce.text import EOS_ID

GREEDY = GreedySearchConfig(max_extra_tokens=8)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return untrained_translator(seed=4)


@pytest.fixture(scope="module")
def small() -> Translator:
    return untrained_translator(seed=5, n_decoder_layers=1, d_model=16)


def nearly(translator: Translator, noise: float = 0.02) -> Translator:
    """A translator that mostly agrees: its weights are a little off."""
    other = untrained_translator(seed=4)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in other.model.parameters():
            weight += noise * weight.std() * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    return Translator(other.model, translator.tokenizers, translator.search, direction="en-de")


def test_in_float64_the_texts_are_those_of_greedy_search(translator: Translator, small: Translator) -> None:
    n_drafted, texts = 4, [*sentences(6), ""]
    alone = translator.translate(texts, search=GREEDY)
    passes = []
    for draft in (small, nearly(translator), translator):
        with_draft = translator.with_draft(draft, n_drafted=n_drafted, min_probability=0)
        for max_tokens in (10, 10_000):
            assert with_draft.translate(texts, max_tokens_per_batch=max_tokens) == alone
        assert with_draft.passes.sentences == 12
        passes.append(with_draft.passes.tokens_per_pass)
    assert passes == sorted(passes)
    assert passes[0] >= 1
    assert 1 + 0.8 * n_drafted < passes[2] <= 1 + n_drafted
    assert translator.translate(texts, draft=small) == alone


def test_an_ensemble_has_drafts_too(translator: Translator, small: Translator) -> None:
    other = untrained_translator(seed=6)
    ensemble = Translator(translator.model, translator.tokenizers, GREEDY, direction="en-de", others=[other.model])
    texts = sentences(6)
    assert ensemble.translate(texts, draft=small) == ensemble.translate(texts)


def test_a_shortlist_of_the_draft_changes_no_text(translator: Translator) -> None:
    size = translator.tokenizers.src.size
    candidates_VR = np.random.default_rng(3).integers(4, size, (size, 40), np.int32)
    short = Translator(
        nearly(translator).model, translator.tokenizers, GREEDY, direction="en-de",
        shortlist=Shortlist(candidates_VR, np.arange(4, size, 3, dtype=np.int32)),
    )  # fmt: skip
    texts, drafted = sentences(8), translator.with_draft(short)
    assert drafted.translate(texts) == translator.translate(texts, search=GREEDY)
    assert 1 < drafted.passes.tokens_per_pass < 4
    sampled = sampling_like(GREEDY, seed=3)
    assert drafted.translate(texts, search=sampled) == [drafted.translate([text], search=sampled)[0] for text in texts]
    with pytest.raises(ConfigError, match=naming("shortlist")):
        short.with_draft(translator)


@pytest.mark.merge
def test_a_draft_has_the_engine_of_its_translator() -> None:
    one, two, small = (untrained_translator(seed=seed, dtype=torch.float32) for seed in (4, 5, 6))
    ensemble = Translator(one.model, one.tokenizers, GREEDY, direction="en-de", others=[two.model])
    in_float64 = untrained_translator(seed=4)
    texts = sentences(6)
    for translator in (one, ensemble, in_float64):
        for draft in (small, in_float64):
            drafted = translator.with_draft(draft)
            assert drafted.translate(texts) == translator.translate(texts, search=GREEDY)
            assert drafted.passes.sentences == 6
    with pytest.raises(ConfigError, match=naming("draft", "beam of 4")):
        one.with_draft(small).translate(texts, search=SearchConfig())


@pytest.mark.parametrize("n_positions", [32, 36, 60])
def test_drafts_of_other_sentences_need_no_positions(n_positions: int) -> None:
    """Sentences of different lengths, up to the last position; the draft's positions suffice, or do not."""
    translator, draft = (
        untrained_translator(seed=seed, positions="learned", n_positions=n_positions) for seed in (4, 4)
    )
    with torch.no_grad():
        for parameter in draft.model.parameters():
            parameter += 0.01 * parameter.std() * torch.randn_like(parameter)
    search = GREEDY.model_copy(update={"max_extra_tokens": 20})
    texts = ["cat " * n for n in range(1, 12)]
    drafted = translator.with_draft(draft, min_probability=0)
    assert drafted.translate(texts, search=search) == translator.translate(texts, search=search)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_draft_with_few_positions_is_left_out_for_long_sentences(dtype: torch.dtype) -> None:
    translator, short = (
        untrained_translator(seed=4, dtype=dtype),
        untrained_translator(seed=7, dtype=dtype, positions="learned", n_positions=20),
    )
    texts = ["the dog", "the old dog sees the young cat " * 4]
    assert translator.with_draft(short).translate(texts, split=False, max_tokens_per_batch=1) == translator.translate(
        texts, search=greedy_unless_sampled(translator.search), split=False
    )


@torch.no_grad()
def test_tokens_drawn_with_a_draft_have_the_distribution_of_the_model(translator: Translator) -> None:
    """The first two tokens of many draws; Pearson's chi-square against the softmax, rare pairs together."""
    n, model, small = 1200, translator.model, nearly(translator, 0.2)
    source = [*translator.tokenizers.src.encode("the old dog"), EOS_ID]
    src_BS = torch.tensor([source] * n)
    drafter = ModelDrafter(small.model.extend, small.model.start(src_BS), length=DraftLength(2, 0.3), eos_id=EOS_ID)
    generators = [torch.Generator().manual_seed(seed) for seed in range(n)]
    counts, search = PassCounts(), SampledSearchConfig(top_k=4)
    outputs = run_search(
        model, src_BS, torch.full((n,), 2), search, drafter=drafter, generators=generators, counts=counts
    )
    assert 0.2 < counts.accepted / counts.drafted < 0.9

    def probabilities(prefix: list[int]) -> dict[int, float]:
        logits = model.logits(model(src_BS[:1], torch.tensor([[1, *prefix]])))[-1]
        logits[[0, 1]] = -torch.inf
        best = logits.topk(4)
        return dict(zip(best.indices.tolist(), best.values.softmax(0).tolist(), strict=True))

    expected: dict[tuple[int, ...], float] = {}
    for first, p in probabilities([]).items():
        if first == EOS_ID:
            expected[first,] = p
            continue
        expected |= {(first, second): p * q for second, q in probabilities([first]).items()}
    written = [(*best.ids, EOS_ID) if best.is_finished else best.ids for (best,) in outputs]
    assert set(written) <= expected.keys()
    common = {ids: p for ids, p in expected.items() if n * p >= 10}
    rest = 1 - sum(common.values())
    groups = [(sum(ids == each for each in written), n * p) for ids, p in common.items()]
    if rest > 1e-9:
        groups.append((sum(each not in common for each in written), n * rest))
    chi_square = sum((found - wanted) ** 2 / wanted for found, wanted in groups)
    assert 10 <= len(groups) <= 17
    assert chi_square < 39.3  # the 99.9 % quantile with 16 degrees of freedom


def test_samples_follow_from_the_seed_and_the_sentence(translator: Translator, small: Translator) -> None:
    texts = sentences(12)
    first, again, other = (
        translator.translate(texts, search=sampling_like(translator.search, seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))
    assert translator.translate(texts[::-1], search=sampling_like(GREEDY, seed=1)) == first[::-1]
    assert translator.translate(texts, search=sampling_like(GREEDY, seed=1), max_tokens_per_batch=1) == first
    drafted = translator.translate(texts, search=sampling_like(GREEDY, seed=1), draft=small)
    assert drafted == translator.translate(texts[::-1], search=sampling_like(GREEDY, seed=1), draft=small)[::-1]


def test_what_does_not_go_with_a_draft_is_refused(translator: Translator, small: Translator) -> None:
    with pytest.raises(ConfigError, match=naming("draft", "beam of 4")):
        translator.translate(["the dog"], beam_size=4, draft=small)
    with pytest.raises(ConfigError, match=naming("at least 1", "0")):
        translator.with_draft(small, n_drafted=0)
    with pytest.raises(ConfigError, match=naming("from 0 to 1", "-0.1")):
        translator.with_draft(small, min_probability=-0.1)
    with pytest.raises(ConfigError, match=naming("direction")):
        translator.with_draft(Translator(small.model, small.tokenizers, GREEDY, direction="de-en"))
    with pytest.raises(ConfigError, match=naming("'sampling'", "beam_size 3")):
        translator.translate(["the dog"], search=SampledSearchConfig(), beam_size=3)
    request = Request(9, [5, EOS_ID], constraints=Constraints(prefix=[5]))
    with pytest.raises(ConfigError, match=naming("constraints")):
        translator.engine.hypotheses([request], SampledSearchConfig())


def test_an_ensemble_can_be_rewound() -> None:
    models = [untrained_translator(seed=seed).model for seed in (1, 2)]
    ensemble, src_BS = Ensemble(models), torch.tensor([[5, 6, 2]])
    ids_1T = torch.tensor([[1, 7, 8, 9]])
    expected, _ = ensemble.extend(ids_1T, ensemble.start(src_BS))
    _, state = ensemble.extend(ids_1T[:, :3], ensemble.start(src_BS))
    got, _ = ensemble.extend(ids_1T[:, 1:], state.rewind(torch.tensor([2])))
    torch.testing.assert_close(got, expected[:, 1:])


def test_command_line(transduce, micro_model: Path) -> None:  # type: ignore[no-untyped-def]
    lines = b"The dog sleeps.\nThe woman sees a cat.\n\nThe old man hears the child.\n"
    greedy = transduce("translate", micro_model, "--beam", 1, stdin=lines)
    nothing = transduce("translate", micro_model, "--draft", micro_model)
    assert (nothing.code, nothing.out, "nan" in nothing.err) == (0, "", False)
    drafted = transduce("translate", micro_model, "--draft", micro_model, "--draft-tokens", 3, stdin=lines)
    assert (drafted.code, drafted.out) == (0, greedy.out)
    options = ("--sample", "--seed", 7, "--draft", micro_model)
    sampled, again = (transduce("translate", micro_model, *options, stdin=lines) for _ in range(2))
    assert sampled.out == again.out != greedy.out
    for options, facts in (
        (("--draft", micro_model, "--beam", 4), ("--draft", "--beam 4")),
        (("--draft", micro_model, "--n-best", 2), ("--draft", "--n-best 2")),
        (("--sample", "--beam", 4), ("--sample", "--beam 4")),
        (("--sample", "--rerank", micro_model), ("--rerank", "--sample")),
        (("--draft", micro_model.parent), (micro_model.parent,)),
    ):
        refused = transduce("translate", micro_model, *options, stdin=lines)
        assert refused.code == 1
        assert len(refused.err.splitlines()) == 1
        assert all(str(fact) in refused.err for fact in facts)
