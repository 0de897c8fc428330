"""Best-of-n for translation: draws of a translator, chosen by a reward model trained on chrF, judged by sacreBLEU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np

from transduce.inference import (
    RewardModel,
    Translator,
    drawn_segments,
    greedy_unless_sampled,
    rewards_of_translations,
    sampling_like,
    seeds_of_draws,
)
from transduce.metrics import chrf_score, paired_bootstrap, sacrebleu_score, sentence_chrf_scores
from transduce_paper.experiments import Experiments
from transduce_paper.notes.alignment.translation_runs import (
    N_RANKED,
    TEMPERATURES,
    reader_experiment,
    reward_experiment,
    translator_experiment,
)
from transduce_paper.report import Section, Table, sentence
from transduce_paper.run_records import about_runs, machines

__all__ = ["best_of_rows", "study_translation"]

SIZES = (2, 4, 8, 16)
N_CHANCES = 10  # choices by chance, whose scores are averaged
N_RESAMPLES = 1000
BY_REWARD, BY_PROBABILITY, BY_CHANCE, BY_CHRF = "reward model", "own probability", "chance", "chrF (oracle)"
Choices = Sequence[int]  # of each sentence: the draw that is chosen

ABOUT = """\
{finding}

The translator is that of {n_pairs:,} pairs from scratch in the part on pre-training. It drew four translations of each
of {n_ranked:,} of its own training sources, half of them at a temperature of {high:g} and half at {low:g}; they were
ranked by chrF against the reference. The reward model ({parameters:.1f} million parameters; {minutes:.1f} minutes,
after {reader_minutes:.1f} of learning to read pairs) orders {accuracy:.1%} of the pairs of translations of the dev
sources in the same way. Judged on the {n:,} sentences of {text}: n draws of each, and the one that is chosen by the
reward model, by the translator's own probability, by chance ({n_chances} times), or by chrF against the very
reference, which shows what the draws contain. *Words* are relative to the reference. ± of the single
draw and of chance is a standard deviation. The translator knows its training sources, so that the ranked translations
are better than those of new sentences. BLEU: `{signature}`. {about_runs} {machines}."""


def study_translation(experiments: Experiments) -> Section:
    """Train the models, or read their records; judge the choices."""
    sizes = experiments.pick(SIZES, test=SIZES[:2])
    translator = experiments.run(translator_experiment(experiments))
    reward = experiments.run(reward_experiment(experiments))
    reader = experiments.run(reader_experiment(experiments))
    rows = experiments.measurement(
        "alignment-translation",
        "best_of_n",
        lambda: _measured(experiments, sizes),
        settings={
            "weights_of_translator": translator.weights_sha256, "weights_of_reward_model": reward.weights_sha256,
            "most": max(sizes),
        },
    )  # fmt: skip
    summary = _finding(rows)
    about = ABOUT.format(
        finding=sentence(summary),
        n_pairs=translator.config["data"]["max_pairs"],
        n_ranked=N_RANKED,
        high=TEMPERATURES[0],
        low=TEMPERATURES[1],
        parameters=reward.parameters / 1e6,
        minutes=reward.minutes,
        reader_minutes=reader.minutes,
        accuracy=reward.dev_scores["accuracy"],
        n=rows[0]["n_sentences"],
        text=translator.test_text,
        n_chances=N_CHANCES,
        signature=rows[0]["signature"],
        about_runs=about_runs([translator, reader, reward]),
        machines=machines([translator, reader, reward]),
    )
    return Section("Best-of-n for translation", (about, _table(rows)), summary=summary)


def best_of_rows(
    draws: Sequence[Sequence[str]],
    rewards: Sequence[Sequence[float]],
    log_probs: Sequence[Sequence[float]],
    references: Sequence[str],
    sizes: Sequence[int],
) -> list[dict[str, Any]]:
    """Return the scores of a single draw, and of the best of n by each judge.

    ``draws``, ``rewards`` and ``log_probs`` have a sequence for each sentence, with an element for each draw.
    """
    most, random = max(sizes), np.random.default_rng(1)
    chrf = [sentence_chrf_scores(of_one, reference) for of_one, reference in zip(draws, references, strict=True)]
    judges: dict[str, Callable[[int], list[Choices]]] = {
        BY_REWARD: lambda n: [_best(rewards, n)],
        BY_PROBABILITY: lambda n: [_best(log_probs, n)],
        BY_CHANCE: lambda n: [random.integers(n, size=len(draws)).tolist() for _ in range(N_CHANCES)],
        BY_CHRF: lambda n: [_best(chrf, n)],
    }
    rows = [_row("a draw", 1, [[draw] * len(draws) for draw in range(most)], draws, references)]
    for judge, chosen in judges.items():
        of_judge = (most,) if judge == BY_CHANCE else sizes
        rows += [_row(judge, n, chosen(n), draws, references) for n in of_judge]
    return rows


def _best(scores: Sequence[Sequence[float]], n: int) -> Choices:
    """Return the best of the first ``n`` draws of each sentence; of equal ones the first."""
    return [max(range(n), key=of_one.__getitem__) for of_one in scores]


def _row(
    judge: str, n: int, choices: Sequence[Choices], draws: Sequence[Sequence[str]], references: Sequence[str]
) -> dict[str, Any]:
    """Return the mean scores of some choices."""
    texts = [[of_one[draw] for of_one, draw in zip(draws, chosen, strict=True)] for chosen in choices]
    bleus = [sacrebleu_score(each, references) for each in texts]
    return {
        "by": judge,
        "n": n,
        "bleu": mean(each.score for each in bleus),
        "deviation": stdev(each.score for each in bleus) if len(bleus) > 1 else None,
        "chrf": mean(chrf_score(each, references).score for each in texts),
        "words": mean(_n_words(each) for each in texts) / _n_words(references),
        "signature": bleus[0].signature,
        "n_sentences": len(references),
    }


def _n_words(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _measured(experiments: Experiments, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Translate the test sources in all ways."""
    run = translator_experiment(experiments)
    pairs = list(experiments.pairs(run, "test"))[: experiments.pick(None, test=4)]
    sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
    translator = Translator.load(experiments.model_folder(run), device=experiments.device)
    of_rewards = reward_experiment(experiments, needs_text=True)
    rater = RewardModel.load(experiments.model_folder(of_rewards), device=experiments.device)
    searches = {"greedy": greedy_unless_sampled(translator.search), "beam": translator.search}
    searched = {name: translator.translate(sources, search=search, split=False) for name, search in searches.items()}
    rows = [{**_row(name, 1, [[0] * len(texts)], [[text] for text in texts], references), "temperature": None}
            for name, texts in searched.items()]  # fmt: skip
    for temperature in TEMPERATURES:
        experiments.log(f"drawing {max(sizes)} translations of each test sentence at temperature {temperature:g}")
        search = sampling_like(translator.search, seed=1, temperature=temperature)
        segments = list(zip(*drawn_segments(translator, sources, search, seeds_of_draws(1, max(sizes))), strict=True))
        draws = [[each.n_best[0].text for each in of_one] for of_one in segments]
        log_probs = [[each.n_best[0].score for each in of_one] for of_one in segments]
        rewards = rewards_of_translations(rater, sources, draws)
        found = best_of_rows(draws, rewards, log_probs, references, sizes)
        chosen = [of_one[draw] for of_one, draw in zip(draws, _best(rewards, max(sizes)), strict=True)]
        test = paired_bootstrap(searched["greedy"], chosen, references, n_resamples=N_RESAMPLES, seed=1)
        for row in found:
            row["temperature"] = temperature
            if (row["by"], row["n"]) == (BY_REWARD, max(sizes)):
                row["above_greedy"] = [test.difference, *test.interval]
        rows += found
    return rows


def _finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say what the reward model's choice is worth, at the temperature at which it is better."""
    chosen = max((row for row in rows if "above_greedy" in row), key=lambda row: float(row["bleu"]))
    by = {row["by"]: row for row in rows if row["temperature"] in (None, chosen["temperature"])
             and row["n"] in (1, chosen["n"])}  # fmt: skip
    difference, low, high = chosen["above_greedy"]
    draw, greedy = by["a draw"], by["greedy"]
    return (
        f"of {chosen['n']} translations drawn at temperature {chosen['temperature']:g}, the one that a reward model"
        f" chooses has {chosen['chrf']:.2f} chrF and {chosen['bleu']:.2f} BLEU with {chosen['words']:.2f} times the"
        f" words of the reference, a single draw {draw['chrf']:.2f}, {draw['bleu']:.2f} and {draw['words']:.2f};"
        f" greedy search has {greedy['bleu']:.2f} BLEU ({difference:+.2f}, 95 % interval {low:+.2f} to {high:+.2f}),"
        f" beam search {by['beam']['bleu']:.2f}, and the best draw by chrF {by[BY_CHRF]['bleu']:.2f}"
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("translation", "temperature", "n", "BLEU", "±", "chrF", "words")
    cells = tuple(
        (
            row["by"] if row["n"] == 1 else f"best by {row['by']}" if row["by"] != BY_CHANCE else "one by chance",
            row["temperature"], row["n"], row["bleu"], row["deviation"], row["chrf"], row["words"],
        )
        for row in rows
    )  # fmt: skip
    formats = {"temperature": "g", "BLEU": ".2f", "±": ".2f", "chrF": ".2f", "words": ".2f"}
    return Table("-alignment-translation", columns, cells, formats=formats)
