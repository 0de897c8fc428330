"""The report of ``whole_run.py``: rates and memory early and late in a run, the curve of dev perplexity, ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from peers import DIFFERENCES
from systems import OURS

from transduce.metrics import perplexity

__all__ = ["EOLE", "Course", "as_text", "differences", "memory_at", "ratios", "summary", "tokens_per_s", "windows"]

EOLE = "eole"
EOLE_DIFFERENCES = (
    "its own batches of the same token budget, which leave out repeated sources; pre-norm with a norm after each stack "
    "(its decoder has no post-norm); dropout also inside the feed-forward network; label smoothing and Adam as ours; "
    "the loss of a batch is divided by its tokens without EOS"
)

Sample = tuple[float, int, float]  # own seconds, target tokens so far, resident memory in MB


@dataclass(slots=True)
class Course:
    """What a system has done so far in its own time."""

    attention: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    dev: list[tuple[float, float, int]] = field(default_factory=list)  # minutes, nats, tokens
    last: dict[str, Any] = field(default_factory=dict)  # the answer at the end of its last turn
    error: str | None = None

    def add(self, answer: dict[str, Any]) -> None:
        """Add the answer at the end of a turn."""
        self.samples += [(own_s, tokens, memory) for own_s, tokens, memory in answer.pop("samples")]
        self.last = answer


def windows(minutes: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the early and the late window of a run, in minutes: 2 to 4 (earlier in a short run), the last quarter.

    >>> windows(30)
    ((2.0, 4.0), (22.5, 30))
    """
    early_end = min(4.0, minutes / 2)
    return (early_end / 2, early_end), (0.75 * minutes, minutes)


def tokens_per_s(samples: Sequence[Sample], from_s: float, to_s: float) -> float:
    """Return the rate between two times of a system's clock, interpolated between samples.

    >>> tokens_per_s([(0.0, 0, 1.0), (10.0, 1000, 1.0), (20.0, 1500, 1.0)], 5.0, 20.0)
    66.66666666666667
    """
    to_s = min(to_s, samples[-1][0])
    return (_tokens_at(samples, to_s) - _tokens_at(samples, from_s)) / (to_s - from_s)


def _tokens_at(samples: Sequence[Sample], second: float) -> float:
    for (before_s, before, _), (after_s, after, _) in pairwise(samples):
        if before_s <= second <= after_s and after_s > before_s:
            return before + (after - before) * (second - before_s) / (after_s - before_s)
    return samples[-1][1]


def memory_at(samples: Sequence[Sample], second: float) -> float:
    """Return the resident memory (MB) at the first sample from ``second`` on, or at the last.

    >>> memory_at([(0.0, 0, 5.0), (10.0, 9, 7.0)], 3.0)
    7.0
    """
    return next((memory for own_s, _, memory in samples if own_s >= second), samples[-1][2])


def summary(course: Course, minutes: float) -> dict[str, Any]:
    """Return what one system did in ``minutes`` of its own time."""
    about = {"attention": course.attention, **course.about}
    if course.error is not None:
        about["error"] = course.error
    samples, last = course.samples, course.last
    done_s = last.get("own_s", 0.0)
    (early_from, early_to), (late_from, late_to) = windows(minutes)
    if done_s < 60 * late_from:  # cut off, or just begun
        return about | _without_memory(last) | {"dev_perplexity": _curve(course)}
    early = tokens_per_s(samples, 60 * early_from, 60 * early_to)
    late = tokens_per_s(samples, 60 * late_from, 60 * late_to)
    result = about | _without_memory(last)
    if "validation_s" in last:
        training_s = done_s - last["validation_s"] - last["checkpoint_s"]
        result["tokens_per_s_without_validation_and_checkpoints"] = round(last["tgt_tokens"] / training_s, 1)
    return result | {
        "tokens_per_s": round(last["tgt_tokens"] / done_s, 1),
        "tokens_per_s_early": round(early, 1),
        "tokens_per_s_late": round(late, 1),
        "late_over_early": _quotient(late, early),
        "memory_mb": {
            "early": round(memory_at(samples, 60 * early_to)),
            "end": round(samples[-1][2]),
            "peak": round(last["peak_memory_mb"]),
        },
        "dev_perplexity": _curve(course),
    }


def _without_memory(last: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: round(value, 2) if isinstance(value, float) else value
        for key, value in last.items()
        if key != "peak_memory_mb"
    }


def _curve(course: Course) -> list[tuple[float, float]]:
    """Return the dev perplexity at each evaluation: (minutes, perplexity)."""
    return [(round(minutes, 3), round(perplexity(nats, n), 3)) for minutes, nats, n in course.dev]


def ratios(systems: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Return ours divided by the best peer: rates above 1 are faster, memory and perplexity below 1 are less."""
    done = {name: values for name, values in systems.items() if "tokens_per_s" in values}
    ours, peers = done.get(OURS), [values for name, values in done.items() if name != OURS]
    if ours is None or not peers:
        return {}
    rates = ["tgt_tokens", "tokens_per_s_early", "tokens_per_s_late"]
    result = {key: _quotient(ours[key], max(peer[key] for peer in peers)) for key in rates}
    for key in ("peak", "end"):
        least = min(peer["memory_mb"][key] for peer in peers)
        result[f"memory_{key}"] = _quotient(ours["memory_mb"][key], least)
    if all(values["dev_perplexity"] for values in done.values()):
        best = min(peer["dev_perplexity"][-1][1] for peer in peers)
        result["dev_perplexity"] = _quotient(ours["dev_perplexity"][-1][1], best)
    return result


def _quotient(value: float, by: float) -> float | None:
    """Return the rounded quotient; None by zero, as when a short run had no update in a window."""
    return round(value / by, 3) if by else None


def _two_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def as_text(result: Mapping[str, Any]) -> str:
    """Format the result as text."""
    about, (early, late) = result["machine"], windows(result["minutes"])
    lines = [
        f"Whole runs of {result['minutes']:g} minutes each, size {result['size']}, {result['precision']}, batches of "
        f"{result['max_tokens_per_batch']:,} tokens, {result['corpus']}",
        f"{about['cpu']}, {about['cores']} cores, torch {about['versions']['torch']}",
        f"early: minutes {early[0]:g} to {early[1]:g}; late: minutes {late[0]:g} to {late[1]:g}",
        "",
        f"  {'':<22}{'tokens':>12}{'early':>9}{'late':>9}{'late/early':>12}{'memory early':>14}{'end':>10}{'peak':>10}"
        f"{'dev PPL':>10}",
    ]
    for name, values in result["systems"].items():
        if "tokens_per_s" not in values:
            lines.append(f"  {name:<22}{values.get('error', 'was cut off')}")
            continue
        memory, curve = values["memory_mb"], values["dev_perplexity"]
        lines.append(
            f"  {name:<22}{values['tgt_tokens']:>12,}{values['tokens_per_s_early']:>7,.0f}/s"
            f"{values['tokens_per_s_late']:>7,.0f}/s{_two_digits(values['late_over_early']):>12}"
            f"{memory['early']:>11,} MB{memory['end']:>7,} MB{memory['peak']:>7,} MB"
            f"{_two_digits(curve[-1][1] if curve else None):>10}"
        )
    if OURS in result["systems"] and "validations" in result["systems"][OURS]:
        ours = result["systems"][OURS]
        lines.append(
            f"  {OURS} includes {ours['validations']} validations ({ours['validation_s']:.0f} s) and "
            f"{ours['checkpoints']} checkpoints ({ours['checkpoint_s']:.0f} s); the others have none"
        )
    if result["ratio_to_best_tuned_peer"]:
        named = ", ".join(f"{key} {_two_digits(value)}" for key, value in result["ratio_to_best_tuned_peer"].items())
        lines.append(f"  ours relative to the best peer: {named}")
    lines += ["", f"dev perplexity ({result['dev_tokens']:,} tokens, fp32, without dropout) by minute"]
    for name, values in result["systems"].items():
        points = ", ".join(f"{minute:g}: {value:.2f}" for minute, value in values["dev_perplexity"])
        lines.append(f"  {name:<22}{points}")
    return "\n".join([*lines, "", *(f"{name}: {text}" for name, text in result["differences"].items())])


def differences(names: Sequence[str]) -> dict[str, str]:
    """Return how the systems differ from ours, by name."""
    bare = [name.removesuffix("-tuned") for name in names]
    return {name: EOLE_DIFFERENCES if name == EOLE else DIFFERENCES[name] for name in bare}
