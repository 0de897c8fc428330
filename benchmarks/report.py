"""The report of ``train.py``: medians, ranges, ratios and MFU, as JSON and as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from machine import machine
from peers import DIFFERENCES, PEERS
from rates import ratio
from systems import OURS, TUNED

from transduce.config import Precision, TransformerConfig
from transduce.model import cost_of

__all__ = ["Measured", "as_json", "as_text"]


@dataclass(slots=True)
class Measured:
    """The measurements of one precision, by system; one rate per round."""

    tokens_per_s: dict[str, list[float]]
    attention: dict[str, str]
    matrix_flops_per_s: list[float] = field(default_factory=list)  # measured before each turn of a system
    peak_memory_mb: dict[str, float] = field(default_factory=dict)
    n_parameters: dict[str, int] = field(default_factory=dict)


def as_json(measured: Mapping[Precision, Measured], model: TransformerConfig) -> dict[str, Any]:
    """Return all measurements as plain values, with the ratios of the first precision also at the top level."""
    flops_per_token = cost_of(model).flops_per_token
    of_precision = {precision: _as_json(result, flops_per_token) for precision, result in measured.items()}
    matrix_rate = {
        precision: {
            "gflops_per_s": round(median(result.matrix_flops_per_s) / 1e9, 1),
            "range": [round(edge(result.matrix_flops_per_s) / 1e9, 1) for edge in (min, max)],
        }
        for precision, result in measured.items()
    }
    first = next(iter(of_precision.values()))
    ratios = {key: first[key] for key in ("ratio_to_best_peer", "ratio_to_best_tuned_peer")}
    about = {"flops_per_token": flops_per_token, "matrix_rate": matrix_rate, "machine": machine()}
    return {**ratios, **of_precision, **about}


def _as_json(result: Measured, flops_per_token: int) -> dict[str, Any]:
    matrix_flops_per_s = median(result.matrix_flops_per_s)
    systems = {
        name: {
            "tokens_per_s": round(median(rates), 1),
            "range": [round(min(rates), 1), round(max(rates), 1)],
            "mfu": round(median(rates) * flops_per_token / matrix_flops_per_s, 3),
            "peak_memory_mb": round(result.peak_memory_mb[name]),
            "parameters": result.n_parameters[name],
            "attention": result.attention[name],
        }
        for name, rates in result.tokens_per_s.items()
    }
    return {
        "rounds": max(map(len, result.tokens_per_s.values())),
        "systems": systems,
        "ratio_to_best_peer": ratio(result.tokens_per_s, [OURS], PEERS),
        "ratio_to_best_tuned_peer": ratio(result.tokens_per_s, [OURS], TUNED),
        "memory_ratio_to_best_peer": _memory_ratio(result.peak_memory_mb, PEERS),
        "memory_ratio_to_best_tuned_peer": _memory_ratio(result.peak_memory_mb, TUNED),
    }


def _memory_ratio(peak_memory_mb: Mapping[str, float], peers: Collection[str]) -> float | None:
    """Return our memory divided by that of the most economical peer; below 1, ours needs less."""
    of_peers = [peak_memory_mb[name] for name in peers if name in peak_memory_mb]
    return round(peak_memory_mb[OURS] / min(of_peers), 3) if of_peers and OURS in peak_memory_mb else None


def as_text(result: Mapping[str, Any]) -> str:
    """Format the result as text: a table for each precision, and the differences of the systems."""
    about = result["machine"]
    lines = [
        f"Training, size {result['size']}, batches of {result['max_tokens_per_batch']:,} tokens, "
        f"{result['flops_per_token'] / 1e6:,.1f} MFLOP per token",
        f"{about['cpu']}, {about['cores']} cores, torch {about['versions']['torch']}",
    ]
    for precision, matrix in result["matrix_rate"].items():
        lowest, highest = matrix["range"]
        lines += [
            "",
            f"{precision}, {result[precision]['rounds']} rounds of {result['updates_per_round']} updates; "
            f"matrix products: {matrix['gflops_per_s']:,.0f} GFLOP/s ({lowest:,.0f} to {highest:,.0f})",
            *_table(result[precision]),
        ]
    systems = {name.removesuffix("-tuned") for value in result["matrix_rate"] for name in result[value]["systems"]}
    return "\n".join([*lines, "", *(f"{name}: {DIFFERENCES[name]}" for name in DIFFERENCES if name in systems)])


def _table(result: Mapping[str, Any]) -> list[str]:
    systems = result["systems"]
    lines = [f"  {'':<22}{'tokens/s':>10}{'range':>20}{'MFU':>7}{'memory':>10}{'parameters':>13}  attention"]
    for name in sorted(systems, key=lambda name: -systems[name]["tokens_per_s"]):
        of_system = systems[name]
        lowest, highest = of_system["range"]
        span = f"({lowest:,.0f} to {highest:,.0f})"
        lines.append(
            f"  {name:<22}{of_system['tokens_per_s']:>10,.0f}{span:>20}{of_system['mfu']:>7.1%}"
            f"{of_system['peak_memory_mb']:>7,} MB{of_system['parameters']:>13,}  {of_system['attention']}"
        )
    for peer, key in (("default peer", "best_peer"), ("tuned peer", "best_tuned_peer")):
        speed, memory = result[f"ratio_to_{key}"], result[f"memory_ratio_to_{key}"]
        if speed is not None:
            lines.append(f"  ours relative to the best {peer}: {speed:.2f} x tokens per second, {memory:.2f} x memory")
    return lines
