"""How often less sequential decoding writes what greedy search writes, in each precision.

    python benchmarks/identity.py MODEL --text FILE [--draft SMALL] [--n-drafted 7] [--lines 1000] [--json]

MODEL is a translator; with ``--draft`` a smaller one drafts for it, else its own further heads propose blocks
(``model.block_size``). FILE has a sentence a line. Both searches run on the same sentences in float64, fp32, bf16 and
int8 (as far as the processor has them), in batches as ``transduce translate`` makes them.

In exact arithmetic both are the same. A pass over several tokens sums in another order than a pass over one, so that
rounding decides where two tokens are as probable. For each sentence that differs, the two tokens at the first
difference are scored by a pass over the whole sentence: ``within_1e-4`` counts the places where their log-probabilities
are at most 1e-4 nats apart, ``beyond`` the others, and ``largest_gap`` is the largest distance. Exit code 1 if float64
has a difference, or fp32 one that is beyond.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from machine import machine

from transduce.config import MIN_DRAFT_PROBABILITY, N_DRAFTED, GreedySearchConfig, InferencePrecision
from transduce.inference.engine import EngineSettings
from transduce.inference.engines import make_engine
from transduce.inference.folder import read_model_folder
from transduce.inference.text_search import TextSearch
from transduce.model import EncoderDecoder, for_inference, has_int8_products
from transduce.search import DraftLength
from transduce.text import BOS_ID, EOS_ID

NEAR_NATS = 1e-4
PRECISIONS: dict[str, tuple[InferencePrecision, torch.dtype]] = {
    "float64": ("fp32", torch.float64),
    "fp32": ("fp32", torch.float32),
    "bf16": ("bf16", torch.float32),
    "int8": ("int8", torch.float32),
}


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description="Compare less sequential decoding with greedy search.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="sentences, one a line")
    parser.add_argument("--draft", type=Path, help="model folder of the draft; else MODEL's own heads")
    parser.add_argument("--n-drafted", type=int, default=N_DRAFTED)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--precisions", nargs="*", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    lines = [line for line in arguments.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = lines[: arguments.lines]
    found = {
        name: compared(arguments.model, arguments.draft, lines, name, n_drafted=arguments.n_drafted)
        for name in arguments.precisions
        if name != "int8" or has_int8_products("cpu")
    }
    print(json.dumps({"found": found, "machine": machine()}) if arguments.json else as_text(found))
    exact, single = found.get("float64", {}), found.get("fp32", {})
    return int(exact.get("different", 0) > 0 or single.get("beyond", 0) > 0)


@torch.no_grad()
def compared(folder: Path, draft: Path | None, lines: Sequence[str], name: str, *, n_drafted: int) -> dict[str, Any]:
    """Return the counts of one precision."""
    precision, dtype = PRECISIONS[name]
    print(f"{name}: {len(lines):,} sentences", file=sys.stderr)
    length = DraftLength(n_drafted, MIN_DRAFT_PROBABILITY)
    loaded = read_model_folder(folder, device=torch.device("cpu"))
    model: EncoderDecoder = loaded.model.to(dtype)
    tokenizer = loaded.tokenizers.src
    if draft is None and getattr(model.config, "block_size", 1) == 1:
        sys.exit(f"{folder} has no further heads (model.block_size); name a draft with --draft")
    plain = GreedySearchConfig(max_extra_tokens=loaded.search.max_extra_tokens, block_size=1)
    settings = EngineSettings(precision)
    greedy = TextSearch(make_engine(model, settings=settings), tokenizer)
    engine = make_engine(model, settings=settings)
    search = plain.model_copy(update={"block_size": None})
    if draft is not None:
        small: EncoderDecoder = read_model_folder(draft, device=torch.device("cpu")).model.to(dtype)
        engine = engine.with_draft(make_engine(small, settings=settings), length)
    fast = TextSearch(engine, tokenizer)
    expected, got = greedy(lines, plain, is_scored=False), fast(lines, search, is_scored=False)
    assert expected is not None
    assert got is not None
    scorer = for_inference(copy.deepcopy(model), precision)
    gaps = []
    for line, one, other in zip(lines, expected, got, strict=True):
        pair = [[*each.hypotheses[0].ids, *([EOS_ID] * each.hypotheses[0].is_finished)] for each in (one, other)]
        if pair[0] != pair[1]:
            source = greedy.source_ids([line])[0][: greedy.max_source_tokens - 1]
            gaps.append(gap(scorer, source, pair[0], pair[1]))
    n_near = sum(each <= NEAR_NATS for each in gaps)
    return {
        "sentences": len(lines), "different": len(gaps), "within_1e-4": n_near, "beyond": len(gaps) - n_near,
        "largest_gap": max(gaps, default=0.0), "identical": 1 - len(gaps) / len(lines),
        "tokens_per_pass": engine.counts.tokens_per_pass, "passes_per_sentence": engine.counts.passes_per_sentence,
    }  # fmt: skip


def gap(model: EncoderDecoder, source: Sequence[int], one: Sequence[int], other: Sequence[int]) -> float:
    """Return the distance of the log-probabilities of two outputs' tokens where they first differ, in nats."""
    place = next(index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    src_BS, tgt_BT = torch.tensor([[*source, EOS_ID]]), torch.tensor([[BOS_ID, *one[:place]]])
    log_probs_V = model.logits(model(src_BS, tgt_BT)[-1:]).double().log_softmax(dim=1)[0]
    return abs(float(log_probs_V[one[place]] - log_probs_V[other[place]]))


def as_text(found: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table."""
    lines = [
        "| precision | sentences | identical | within 1e-4 nats | beyond | largest gap | tokens a pass |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {each['sentences']:,} | {each['identical']:.2%} | {each['within_1e-4']} | {each['beyond']}"
        f" | {each['largest_gap']:.1e} | {each['tokens_per_pass']:.2f} |"
        for name, each in found.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
