"""Time and memory of restricted and full attention against the length of a sequence."""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median
from typing import Any, Literal

import torch

from transduce.config import LanguageModelConfig
from transduce.model import TransformerLM
from transduce.training import PeakMemory
from transduce_paper.experiments import Experiments
from transduce_paper.growth import exponent
from transduce_paper.machine import machine_description
from transduce_paper.report import Claim, Section, Table, agreement

__all__ = ["lengths_section"]

Attention = Literal["full", "restricted"]

R, N_LAYERS, D_MODEL, VOCABULARY = 65, 2, 256, 500
LENGTHS: Mapping[Attention, tuple[int, ...]] = {
    "restricted": (4096, 8192, 16_384, 32_768),
    "full": (1024, 2048, 4096, 8192),
}
TEST_LENGTHS: Mapping[Attention, tuple[int, ...]] = {"restricted": (64, 128), "full": (64, 128)}
N_ROUNDS = 3
AIMED_EXPONENT = 1.1


def lengths_section(experiments: Experiments) -> Section:
    """Measure the gradient of one sequence, or read the measurement."""
    lengths, d_model, n_rounds = experiments.pick((LENGTHS, D_MODEL, N_ROUNDS), test=(TEST_LENGTHS, 16, 1))
    rows = experiments.measurement(
        "future",
        "lengths",
        lambda: [
            _measured(experiments, attention, n, d_model=d_model, n_rounds=n_rounds)
            for attention, of_attention in lengths.items()
            for n in of_attention
        ],
        settings={"r": R, "layers": N_LAYERS, "d_model": d_model, "lengths": str(lengths)},
    )
    exponents = {
        (attention, what): exponent(
            [row["n"] for row in rows if row["attention"] == attention],
            [row[what] for row in rows if row["attention"] == attention],
        )
        for attention in lengths
        for what in ("seconds", "megabytes")
    }
    summary = "; ".join(
        f"{attention}: time n^{exponents[attention, 'seconds']:.2f}, memory n^{exponents[attention, 'megabytes']:.2f}"
        for attention in lengths
    )
    introduction = (
        f"The gradient of one sequence of n tokens in a causal model of"
        f" {N_LAYERS} layers, d_model {d_model}, r = {R}, in fp32 on {rows[0]['machine']}; the fastest"
        f" kernel of each. Memory is the peak of all tensors. Growth: {summary}. Longer sequences, in processes of"
        " their own, and decoding: `benchmarks/long_sequences.py`."
    )
    cells = tuple(
        (row["attention"], row["n"], row["seconds"], row["n"] / row["seconds"], row["megabytes"]) for row in rows
    )
    formats = {"n": ",", "seconds": ".2f", "tokens a second": ",.0f", "megabytes": ",.0f"}
    columns = ("attention", "n", "seconds", "tokens a second", "megabytes")
    near = exponents["restricted", "seconds"], exponents["restricted", "megabytes"]
    claim = Claim(
        "To improve computational performance for tasks involving very long sequences, self-attention could be"
        " restricted to considering only a neighborhood of size r",
        "section 4",
        agreement(max(near) <= AIMED_EXPONENT),
        f"From {rows[0]['n']:,} tokens on, time grows as n^{near[0]:.2f} and memory as n^{near[1]:.2f}.",
    )
    table = Table("-lengths", columns, cells, formats=formats)
    return Section("Restricted attention: time and memory", (introduction, table), claims=(claim,))


def _measured(experiments: Experiments, attention: Attention, n: int, *, d_model: int, n_rounds: int) -> dict[str, Any]:
    """Return time and memory of the gradient of one sequence."""
    experiments.log(f"{attention} attention over {n:,} tokens")
    torch.manual_seed(1)
    config = LanguageModelConfig(
        n_layers=N_LAYERS, d_model=d_model, d_ff=4 * d_model, n_heads=max(1, d_model // 64), d_k=min(64, d_model),
        d_v=min(64, d_model), p_drop=0.0, vocab_size=VOCABULARY, n_positions=n, attention=attention, neighbourhood=R,
    )  # fmt: skip
    model = TransformerLM.from_config(config).to(experiments.device)
    ids_1T = torch.randint(4, VOCABULARY, (1, n), device=experiments.device)

    def gradient() -> None:
        model.zero_grad(set_to_none=True)
        loss = model.output.loss(model(ids_1T)[:-1], ids_1T[0, 1:]).loss_nats
        loss.backward()  # type: ignore[no-untyped-call]
        float(loss.detach())  # waits for the device

    with PeakMemory() as peak:
        gradient()
    seconds = []
    for _ in range(n_rounds):
        start = time.perf_counter()
        gradient()
        seconds.append(time.perf_counter() - start)
    machine = f"{machine_description(experiments.device)}, torch {torch.__version__}"
    return {
        "attention": attention, "n": n, "seconds": median(seconds), "megabytes": peak.bytes / 1e6, "machine": machine,
    }  # fmt: skip
