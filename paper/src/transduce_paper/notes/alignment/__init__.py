"""From base model to PPO: the notes' pipeline on instructions whose ideal responses are known.

``pipeline`` has the runs, ``judging`` what is measured on them, ``course`` what PPO changes; ``translation`` is
best-of-n for translation, with the runs of ``translation_runs``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import mean
from typing import Any

from transduce_paper.drawing import COLOURS, new_panels, save_svg
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import NO_CELLS, Interval, interval_of_difference
from transduce_paper.notes.alignment.course import draw_rollouts, rollouts_of, samples_table
from transduce_paper.notes.alignment.judging import Judgement, best_of_n_kl, judge, judge_best_of
from transduce_paper.notes.alignment.pipeline import Stage, base, direct_preference, fine_tuned, policy, reward_model
from transduce_paper.notes.alignment.translation import study_translation
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture, sentence
from transduce_paper.run_records import Experiment, RunRecord, about_runs, machines

__all__ = ["make_alignment"]

SEEDS = (1, 2, 3)
BETA = 0.05  # of PPO in the comparison of seeds
PPO_BETAS = (0.2, BETA, 0.01, 0.0)  # seed 1
DPO_BETA = 0.1
DPO_BETAS = (0.3, DPO_BETA, 0.03)  # seed 1
SIZES = (1, 2, 4, 8, 16)  # of best-of-n
N_INSTRUCTIONS = 500

INTRODUCTION = """\
The notes' pipeline: a base model learns to predict the next token, supervised fine-tuning (SFT) teaches it ideal
responses, a reward model learns from rankings of its responses, and PPO maximises that reward, held near the fine-tuned
model by a penalty beta times the KL divergence. Beside it: the best of n responses by the reward model, and DPO on the
same rankings.

The prompts are instructions on sentences of the built-in grammar (negate, put into the past, shorten, answer a
question; docs/alignment.md), with combinations of words that training lacks. Their ideal responses are known, so that
every response has a *quality*: 1 minus its edit distance from the ideal one in words, per word. A program with noise
plays the human who ranks. Policies never see the quality: it shows what the learnt reward is worth.

Models: {size}. {n:,} held-out instructions; one response to each, drawn at temperature 1. {times}. {about_runs}
{machines}."""

COMPARISON = """\
### Three seeds

Everything but the base model is trained anew for each seed. ± is half of the 95 % interval of the difference from SFT,
by Student's t and the standard deviation pooled over the rows. *Wins*: how often a response is better than SFT's; ties
count half. Reward models order {accuracy:.1%} of the held-out pairs as the noisy ranker did (expected calibration error
{calibration:.3f}).

SFT has the paper's label smoothing, which gives every token some probability, so that its draws are worse than its most
probable responses. Of these, {sft_greedy:.1%} are ideal after SFT and {ppo_greedy:.1%} after PPO; of the draws,
{sft_exact:.1%} and {ppo_exact:.1%}."""

CURVE = """\
### How far from the fine-tuned model

{finding} The table is of seed 1; the sentence on best-of-n is of the means over all seeds."""


COURSE = """\
### The course of PPO

Means of each rollout while PPO trains (seed {seed})."""

SAMPLES = """\
Responses before and after PPO at beta {beta:g} (seed {seed}): to the first held-out instructions of each kind, one draw
at temperature 1 each."""


@dataclass(frozen=True, slots=True)
class Point:
    """A policy: its divergence from SFT, its reward and its quality."""

    name: str
    kl: float
    reward: float
    quality: float
    exact: float


def make_alignment(experiments: Experiments) -> Section:
    """Train and judge all stages, or read their records."""
    n, seeds = experiments.pick((N_INSTRUCTIONS, SEEDS), test=(6, SEEDS[:2]))
    stages = {seed: Stage(experiments, seed) for seed in seeds}
    judgements: dict[str, list[Judgement]] = {}
    for stage in stages.values():
        for name, run in (
            ("SFT", fine_tuned(stage)),
            (f"DPO, beta {DPO_BETA:g}", direct_preference(stage, DPO_BETA)),
            (f"PPO, beta {BETA:g}", policy(stage, BETA)),
        ):
            judgements.setdefault(name, []).append(_judged(experiments, stage, run, n))
    bests = {seed: _best_of(experiments, stage, n) for seed, stage in stages.items()}
    gains = _gains(judgements, bests)
    points = _points(experiments, stages[seeds[0]], n, bests[seeds[0]])
    course = {f"beta {beta:g}": rollouts_of(experiments, run) for beta, run in _policies(stages[seeds[0]])}
    records = _records(experiments, stages.values())
    of_translation = study_translation(experiments)
    sft, ppo = "SFT", f"PPO, beta {BETA:g}"
    summary = (
        f"PPO changes the quality of responses by {gains[ppo]} (SFT: {mean(x.quality for x in judgements[sft]):.3f}),"
        f" at a divergence of {mean(x.kl for x in judgements[ppo]):.2f} nats"
    )
    rewards = [record for record in records if "-reward-" in record.name]
    return Section(
        "From base model to PPO",
        (
            INTRODUCTION.format(
                size=f"{records[0].parameters / 1e6:.2f} million parameters",
                n=n,
                times=_times(records),
                about_runs=about_runs(records),
                machines=machines(records),
            ),
            COMPARISON.format(
                accuracy=mean(record.scores["accuracy"] for record in rewards),
                calibration=mean(record.scores["calibration_error"] for record in rewards),
                sft_greedy=mean(each.greedy_exact for each in judgements[sft]),
                ppo_greedy=mean(each.greedy_exact for each in judgements[ppo]),
                sft_exact=mean(each.exact for each in judgements[sft]),
                ppo_exact=mean(each.exact for each in judgements[ppo]),
            ),
            _comparison(judgements, bests, gains),
            CURVE.format(finding=_finding(points, bests, gains[ppo].half_width)),
            _curve(points),
            picture("notes-alignment", "Reward and quality over the divergence from the fine-tuned model"),
            COURSE.format(seed=seeds[0]),
            picture(
                "notes-alignment-course", "Score, KL, length, clipped ratios, value loss and entropy of each rollout"
            ),
            SAMPLES.format(beta=BETA, seed=seeds[0]),
            samples_table(experiments, fine_tuned(stages[seeds[0]]), policy(stages[seeds[0]], BETA)),
            of_translation,
        ),
        finding=sentence(f"{summary}; {of_translation.summary}"),
        question=(
            "what do supervised fine-tuning, a reward model and PPO each add, and when is the reward over-optimised?"
        ),
        summary=summary,
        drawings={
            "notes-alignment": lambda path: _draw(points, path),
            "notes-alignment-course": lambda path: draw_rollouts(course, path),
        },
        claims=() if experiments.scale == "test" else _claims(judgements, gains),
    )


def _judged(experiments: Experiments, stage: Stage, run: Experiment, n: int) -> Judgement:
    def measure(folder: Path) -> list[dict[str, Any]]:
        start, rater = experiments.model_folder(fine_tuned(stage)), experiments.model_folder(reward_model(stage))
        return [asdict(judge(folder, start, rater, n, experiments.device))]

    (values,) = experiments.cached_measurement(run, "judged", measure, settings={"n": n})
    return Judgement(**values)


def _best_of(experiments: Experiments, stage: Stage, n: int) -> dict[int, Point]:
    def measure(folder: Path) -> list[dict[str, Any]]:
        found = judge_best_of(folder, experiments.model_folder(reward_model(stage)), SIZES, n, experiments.device)
        return [
            {"size": size, "quality": quality, "exact": exact, "reward": reward}
            for size, (quality, exact, reward) in found.items()
        ]

    rows = experiments.cached_measurement(
        fine_tuned(stage), "best_of_n", measure, settings={"n": n, "most": max(SIZES)}
    )
    return {
        row["size"]: Point(
            f"best of {row['size']}", best_of_n_kl(row["size"]), row["reward"], row["quality"], row["exact"]
        )
        for row in rows
    }


def _points(experiments: Experiments, stage: Stage, n: int, bests: Mapping[int, Point]) -> list[Point]:
    """Return the policies of one seed, by increasing divergence within each kind."""
    dpo_betas = experiments.pick(DPO_BETAS, test=(DPO_BETA,))
    runs = [
        *((f"DPO, beta {beta:g}", direct_preference(stage, beta)) for beta in dpo_betas),
        *((f"PPO, beta {beta:g}", run) for beta, run in _policies(stage)),
    ]
    points = list(bests.values())
    for name, run in runs:
        found = _judged(experiments, stage, run, n)
        points.append(Point(name, found.kl, found.reward, found.quality, found.exact))
    return points


def _policies(stage: Stage) -> list[tuple[float, Experiment]]:
    """Return the runs of PPO by beta."""
    return [(beta, policy(stage, beta)) for beta in stage.experiments.pick(PPO_BETAS, test=(BETA,))]


def _records(experiments: Experiments, stages: Iterable[Stage]) -> list[RunRecord]:
    """Return the records of all stages: the base model first."""
    stages = list(stages)
    records = [experiments.run(base(stages[0]))]
    for stage in stages:
        runs = fine_tuned(stage), reward_model(stage), direct_preference(stage, DPO_BETA), policy(stage, BETA)
        records += map(experiments.run, runs)
    return records


def _times(records: Sequence[RunRecord]) -> str:
    minutes = {"base": 0.0}
    for kind in ("base", "sft", "reward", "dpo", "ppo"):
        of_kind = [record.minutes for record in records if f"-{kind}-" in record.name]
        minutes[kind] = mean(of_kind)
    return "Minutes of training: " + ", ".join(f"{kind} {each:.1f}" for kind, each in minutes.items())


def _gains(
    judgements: Mapping[str, Sequence[Judgement]], bests: Mapping[int, Mapping[int, Point]]
) -> dict[str, Interval]:
    """Return the difference in quality from SFT."""
    groups = {name: [each.quality for each in of_seeds] for name, of_seeds in judgements.items()}
    for size in SIZES[2:]:
        groups[f"best of {size}"] = [of_seed[size].quality for of_seed in bests.values()]
    return {
        name: interval_of_difference(group, groups["SFT"], list(groups.values()))
        for name, group in groups.items()
        if name != "SFT"
    }


def _comparison(
    judgements: Mapping[str, Sequence[Judgement]],
    bests: Mapping[int, Mapping[int, Point]],
    gains: Mapping[str, Interval],
) -> Table:
    columns = (
        "model", "quality", "difference", "±", "ideal responses", "ideal, greedy", "reward", "KL, nats", "tokens",
        "wins",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for name, of_seeds in judgements.items():
        gain = gains.get(name)
        rows.append(
            (
                name, mean(each.quality for each in of_seeds), *(gain.cells if gain else NO_CELLS),
                mean(each.exact for each in of_seeds), mean(each.greedy_exact for each in of_seeds),
                mean(each.reward for each in of_seeds), mean(each.kl for each in of_seeds),
                mean(each.length for each in of_seeds), mean(each.wins for each in of_seeds),
            )
        )  # fmt: skip
    for size in SIZES[2:]:
        of_size = [of_seed[size] for of_seed in bests.values()]
        rows.append(
            (
                of_size[0].name, mean(each.quality for each in of_size), *gains[of_size[0].name].cells,
                mean(each.exact for each in of_size), None, mean(each.reward for each in of_size), of_size[0].kl, None,
                None,
            )
        )  # fmt: skip
    formats = dict.fromkeys(columns[1:], ".3f") | {"difference": "+.3f", "KL, nats": ".2f", "tokens": ".1f"}
    formats |= {"ideal responses": ".1%", "ideal, greedy": ".1%", "wins": ".1%", "reward": ".2f"}
    return Table("-alignment", columns, tuple(rows), formats=formats)


def _curve(points: Sequence[Point]) -> Table:
    rows = tuple((each.name, each.kl, each.reward, each.quality, each.exact) for each in points)
    columns = ("model", "KL, nats", "reward", "quality", "ideal responses")
    formats = {"KL, nats": ".2f", "reward": ".2f", "quality": ".3f", "ideal responses": ".1%"}
    return Table("-alignment-curve", columns, rows, formats=formats)


def _finding(points: Sequence[Point], bests: Mapping[int, Mapping[int, Point]], margin: float) -> str:
    """Say, of PPO and of best-of-n, whether the reward goes on rising where the quality falls.

    ``margin`` is half of the interval of a difference of means over the seeds; PPO has the other betas of one only.
    """
    of_ppo = _over_optimisation([each for each in points if each.name.startswith("PPO")], margin * sqrt(len(bests)))
    return f"{of_ppo} {_over_optimisation(_means(bests), margin)}"


def _means(bests: Mapping[int, Mapping[int, Point]]) -> list[Point]:
    """Return the points of best-of-n, means over the seeds."""
    by_size = zip(*(of_seed.values() for of_seed in bests.values()), strict=True)
    return [
        replace(
            each[0], reward=mean(one.reward for one in each), quality=mean(one.quality for one in each),
            exact=mean(one.exact for one in each),
        )
        for each in by_size
    ]  # fmt: skip


def _over_optimisation(policies: Sequence[Point], margin: float) -> str:
    best = max(policies, key=lambda each: each.quality)
    farthest = max(policies, key=lambda each: each.kl)
    fall = best.quality - farthest.quality
    if farthest.reward > best.reward and fall > margin:
        return (
            f"From {best.name} to {farthest.name} the reward rises from {best.reward:.2f} to {farthest.reward:.2f} and"
            f" the quality falls from {best.quality:.3f} to {farthest.quality:.3f}, by more than the {margin:.3f} that"
            " seeds explain: the reward is over-optimised."
        )
    return (
        f"No over-optimisation was found up to {farthest.name}: {farthest.kl:.1f} nats away it has a quality of"
        f" {farthest.quality:.3f} (the best: {best.name}, {best.quality:.3f}; seeds explain {margin:.3f})."
    )


def _draw(points: Sequence[Point], path: Path) -> None:
    figure, panels = new_panels(8.0, 3.2, n_columns=2)
    kinds = {kind: [each for each in points if each.name.startswith(kind)] for kind in ("best of", "DPO", "PPO")}
    for panel, name in zip(panels, ("reward", "quality"), strict=True):
        for colour, (kind, of_kind) in zip(COLOURS, kinds.items(), strict=False):
            ordered = sorted(of_kind, key=lambda each: each.kl)
            panel.plot(
                [each.kl for each in ordered],
                [getattr(each, name) for each in ordered],
                marker="o",
                color=colour,
                label=kind.replace("best of", "best of n"),
            )
        panel.set_xlabel("KL from the fine-tuned model, nats")
        panel.set_title(name, loc="left")
    panels[0].legend(frameon=False)
    save_svg(figure, path)


def _claims(judgements: Mapping[str, Sequence[Judgement]], gains: Mapping[str, Interval]) -> tuple[Claim, ...]:
    ppo = f"PPO, beta {BETA:g}"
    greedy = {name: [each.greedy_exact for each in of_seeds] for name, of_seeds in judgements.items()}
    of_greedy = interval_of_difference(greedy[ppo], greedy["SFT"], list(greedy.values()))
    are_better = {gains[ppo].is_above_zero, of_greedy.is_above_zero}
    return (
        Claim(
            "RLHF: a method to align pre-trained LLMs that uses human feedback to enhance their performance",
            "notes",
            agreement(are_better.pop() if len(are_better) == 1 else None),
            f"PPO changes the quality of drawn responses to held-out instructions by {gains[ppo]}, and the share of"
            f" ideal ones among the most probable responses by {of_greedy} ({len(judgements[ppo])} seeds; the ranker is"
            " a program with noise).",
        ),
    )
