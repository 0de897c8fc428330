"""Medians, ranges and ratios of the measured rates of several systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import median

__all__ = ["ratio", "summary", "table"]

Rates = Mapping[str, Sequence[float]]  # by system; one rate per round, higher is better


def summary(rates: Sequence[float], unit: str) -> dict[str, float]:
    """Return the median and the range over the rounds.

    >>> summary([30.0, 10.0, 20.0], "lines_per_s")
    {'lines_per_s': 20.0, 'lowest': 10.0, 'highest': 30.0}
    """
    return {unit: _round(median(rates)), "lowest": _round(min(rates)), "highest": _round(max(rates))}


def ratio(rates: Rates, ours: Collection[str], peers: Collection[str]) -> float | None:
    """Return our best median divided by the best of the peers; above 1, ours is faster. None without peers.

    >>> ratio({"a": [2.0], "b": [4.0], "c": [8.0]}, ["a", "b"], ["c"])
    0.5
    """
    medians = {name: median(values) for name, values in rates.items()}
    of_ours, of_peers = ([medians[name] for name in names if name in medians] for names in (ours, peers))
    return round(max(of_ours) / max(of_peers), 3) if of_ours and of_peers else None


def table(title: str, rates: Rates, unit: str, notes: Mapping[str, str] | None = None) -> str:
    """Return a text table: one system per line, fastest first, with its range and its ratio to the fastest."""
    medians = {name: median(values) for name, values in rates.items()}
    best = max(medians.values())
    lines = [f"{title} ({unit})"]
    for name in sorted(medians, key=medians.__getitem__, reverse=True):
        span = f"{min(rates[name]):,.0f} to {max(rates[name]):,.0f}"
        note = (notes or {}).get(name, "")
        lines.append(f"  {name:<28}{medians[name]:>12,.0f}  {medians[name] / best:>5.2f}  ({span})  {note}".rstrip())
    return "\n".join(lines)


def _round(rate: float) -> float:
    return float(f"{rate:.4g}")
