"""``transduce rank`` and ``translate --best-of``: from a translator's draws to a reward model that chooses."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
from sacrebleu.metrics import CHRF

from commands import CommandLine
from said import naming, says
from transduce.config import SearchConfig
from transduce.config.decoding import sampling_like
from transduce.corpora.responses import Ranking, read_rankings
from transduce.errors import ConfigError
from transduce.inference import BestOfSamples, RankedCounts, RewardModel, Translator, ranked_translations
from transduce.inference.translation.best_of_samples import rewards_of_translations, seeds_of_draws
from transduce.inference.translation.ranked_translations import ranked_by_chrf
from transduce.recipes import preset, with_settings
from transduce.runs import train

PAIRS = [
    ("The dog sleeps.", "Der Hund schläft."), ("The woman sees the dog.", "Die Frau sieht den Hund."),
    ("The old man reads a book.", "Der alte Mann liest ein Buch."), ("A child sings.", "Ein Kind singt."),
]  # fmt: skip
SMALL = (
    "model.system=language-model", "model.n_layers=1", "model.d_model=16", "model.d_ff=16", "model.n_heads=1",
    "model.n_positions=64", "data.corpus=files", "data.max_length=64", "data.vocab_size=400", "training.max_updates=2",
    "training.max_tokens_per_batch=600", "training.checkpoint_every_updates=1", "training.average_last=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def reward_model(micro_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reward model of the draws of ``micro_model``, from a language model that reads source and target."""
    folder = tmp_path_factory.mktemp("rewards")
    pairs, rankings = folder / "pairs.tsv", folder / "rankings.jsonl"
    pairs.write_text("".join(f"{src}\t{ref}\n" for src, ref in PAIRS), encoding="utf-8")
    translator = Translator.load(micro_model)
    search = sampling_like(translator.search, seed=1)
    ranked = ranked_translations(translator, PAIRS, RankedCounts(), n=3, search=search)
    lines = [json.dumps({"prompt": each.prompt, "responses": each.responses}) for each in ranked]
    rankings.write_text("\n".join(lines), encoding="utf-8")
    files = {"sft": pairs, "reward": rankings}
    start: list[str] = []
    for task, path in files.items():
        own = [f"data.task={task}", *(f"data.{split}_prompts='{path}'" for split in ("train", "dev"))]
        train(with_settings(preset("tiny"), [*SMALL, *own, *start]), folder / task)
        start = [f"{name}='{folder / task / 'model'}'" for name in ("training.init_from", "data.tokenizer_from")]
    return folder / "reward" / "model"


def write_pairs(folder: Path) -> tuple[Path, Path]:
    src, ref = folder / "src.en", folder / "ref.de"
    for path, side in ((src, 0), (ref, 1)):
        path.write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    return src, ref


def test_rankings_fall_in_chrf() -> None:
    texts, reference = ["Die Katze.", "Ein Hund bellt.", "Der Hund schläft", "Ein Hund bellt."], "Der Hund schläft."
    ranked = ranked_by_chrf(texts, reference)
    chrf = [CHRF().sentence_score(text, [reference]).score for text in ranked]
    assert (ranked[0], set(ranked)) == ("Der Hund schläft", set(texts))
    assert all(better > worse for better, worse in pairwise(chrf))


def test_what_is_left_out_of_the_rankings_is_counted(micro_model: Path) -> None:
    translator, counts = Translator.load(micro_model), RankedCounts()
    pairs = [PAIRS[0], ("", "Der Hund."), ("The dog.", " "), ("word " * 3000, "Wort")]
    search = sampling_like(translator.search, seed=1)
    assert [each.prompt for each in ranked_translations(translator, pairs, counts, n=3, search=search)] == [PAIRS[0][0]]
    assert (counts.rankings, counts.empty, counts.too_long) == (1, 2, 1)
    always_alike = sampling_like(translator.search, seed=1, temperature=0.0)
    assert list(ranked_translations(translator, PAIRS, counts, n=3, search=always_alike)) == []
    assert counts.alike == len(PAIRS)


def test_rank_writes_what_a_reward_model_reads(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    src, ref = write_pairs(tmp_path)
    out = tmp_path / "rankings.jsonl"
    asked = ("rank", micro_model, "--src", src, "--ref", ref, "--out", out)
    outcome = transduce(*asked, "--samples", 3, "--seed", 4, "--json")
    counts = json.loads(outcome.out)
    rankings = list(read_rankings(out))
    assert (outcome.code, counts["rankings"], counts["out"]) == (0, len(rankings), str(out))
    assert counts["responses"] == sum(len(each.responses) for each in rankings)
    translator = Translator.load(micro_model)
    draws = [translator.translate([PAIRS[0][0]], search=sampling_like(translator.search, seed=seed), split=False)[0]
             for seed in seeds_of_draws(4, 3)]  # fmt: skip
    assert rankings[0] == Ranking(PAIRS[0][0], ranked_by_chrf(draws, PAIRS[0][1]))
    assert transduce("doctor", out).code == 0
    assert says(transduce(*asked, "--beam", 3).out, out)
    beam = next(read_rankings(out))
    assert set(beam.responses) <= set(translator.translate([PAIRS[0][0]], n_best=3, split=False)[0])


def test_the_highest_reward_is_chosen(
    transduce: CommandLine, micro_model: Path, reward_model: Path, tmp_path: Path
) -> None:
    translator, rater = Translator.load(micro_model), RewardModel.load(reward_model)
    sources = [source for source, _ in PAIRS]
    chosen = BestOfSamples(translator, rater, n=4, seed=2).translate(sources)
    draws = [translator.translate(sources, search=sampling_like(translator.search, seed=seed))
             for seed in seeds_of_draws(2, 4)]  # fmt: skip
    for source, text, candidates in zip(sources, chosen, zip(*draws, strict=True), strict=True):
        rewards = rater.rate([(source, each) for each in candidates])
        assert rater.rate([(source, text)])[0] == pytest.approx(max(rewards), abs=1e-5)
    assert BestOfSamples(translator, rater, n=1, seed=2).translate(sources) == draws[0]
    lines = "".join(f"{source}\n" for source in sources).encode()
    printed = transduce(
        "translate", micro_model, "--best-of", 4, "--reward-model", reward_model, "--seed", 2, stdin=lines
    )
    assert printed.out.splitlines() == chosen
    two = f"{sources[0]} {sources[1]}"  # each sentence has its own draws
    assert BestOfSamples(translator, rater, n=4, seed=2).translate([two, ""]) == [f"{chosen[0]} {chosen[1]}", ""]


def test_what_the_reward_model_cannot_read_is_chosen_last(reward_model: Path) -> None:
    rater = RewardModel.load(reward_model)
    (rewards,) = rewards_of_translations(rater, ["The dog sleeps."], [["Der Hund.", "Wort " * 99, "Der Hund."]])
    assert rewards == [rewards[0], -math.inf, rewards[0]]
    assert rewards[0] == pytest.approx(rater.rate([("The dog sleeps.", "Der Hund.")])[0])


def test_mistakes_are_one_line(transduce: CommandLine, micro_model: Path, reward_model: Path, tmp_path: Path) -> None:
    src, ref = write_pairs(tmp_path)
    rank = ("rank", micro_model, "--src", src, "--ref", ref, "--out")
    best = ("translate", micro_model, "--best-of", 2, "--reward-model", reward_model)
    short = tmp_path / "short.de"
    short.write_text("Ein Hund.\n", encoding="utf-8")
    for arguments, facts in (
        ((*rank, tmp_path / "rankings.tsv"), ("--out", "rankings.jsonl")),
        ((*rank, tmp_path / "r.jsonl", "--beam", 2, "--temperature", 0.5), ("--beam", "--temperature")),
        ((*rank[:5], short, "--out", tmp_path / "r.jsonl"), (src, short, 4, 1)),
        (("translate", micro_model, "--best-of", 2), ("--reward-model",)),
        ((*best, "--beam", 3), ("--best-of", "--beam")),
        ((*best, "--workers", 2, "--draft", micro_model), ("--draft", "--workers")),
        (("translate", micro_model, "--temperature", 0.5), ("--temperature", "--sample", "--best-of")),
        (("translate", micro_model, "--rerank-weight", 2), ("--rerank-weight without --rerank",)),
        (("translate", micro_model, "--draft-tokens", 2), ("--draft-tokens without --draft",)),
        (("translate", micro_model, "--draft-probability", 0.2), ("--draft-probability without --draft",)),
        (("evaluate", micro_model, "--src", src, "--ref", ref, "--rerank-weight", 2), ("--rerank-weight without",)),
        (("translate", micro_model, "--best-of", 2, "--reward-model", micro_model), ("translation", "reward")),
    ):
        outcome = transduce(*arguments, stdin=b"The dog.\n")
        assert outcome.code == 1
        (line,) = outcome.err.splitlines()
        assert says(line, *facts)
    translator, rater = Translator.load(micro_model), RewardModel.load(reward_model)
    with pytest.raises(ConfigError, match=naming("sampling", "beam")):
        BestOfSamples(translator, rater, n=2).translate(["A dog."], search=SearchConfig())
    with pytest.raises(ConfigError, match=naming(0)):
        BestOfSamples(translator, rater, n=0)
