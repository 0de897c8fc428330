"""Quality and speed of several systems that translate the same sentences, one at a time and in batches."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from transduce.config import SearchConfig
from transduce.exchange import write_ctranslate2
from transduce.inference import Translator
from transduce.metrics import score_translations
from transduce.model import Transformer
from transduce.search import PassCounts
from transduce.text import SPECIAL_TOKENS
from transduce_paper.future.peer import CTranslate2Process

__all__ = ["BATCH_SIZES", "System", "measured", "our_system", "peer_system"]

BATCH_SIZES = (1, 64)
MAX_TOKENS_PER_BATCH = 10**6  # a batch has as many sentences as it is given


@dataclass(frozen=True, slots=True)
class System:
    """A translator with its search."""

    name: str
    translate: Callable[[Sequence[str]], list[str]]  # the sentences of one batch
    million_parameters: float
    layers: str
    passes: Callable[[], PassCounts | None] = lambda: None  # so far, if it counts them
    same_as: str | None = None  # the system whose sentences it should write; None: the second one


def our_system(
    name: str, translator: Translator, search: SearchConfig | None = None, *, same_as: str | None = None
) -> System:
    """Return a translator as a system."""
    config, weights = translator.model.config, translator.model.parameters()

    def passes() -> PassCounts | None:
        return translator.passes if translator.passes.sentences else None

    return System(
        name,
        lambda texts: translator.translate(
            texts, search=search, split=False, max_tokens_per_batch=MAX_TOKENS_PER_BATCH
        ),
        sum(weight.numel() for weight in weights) / 1e6,
        " + ".join(map(str, config.layer_counts)),
        passes,
        same_as,
    )


def peer_system(name: str, translator: Translator, *, max_extra_tokens: int) -> System:
    """Return the greedy search of CTranslate2 with the same weights in fp32, as many threads, and our tokenizers.

    It has a process of its own (see ``peer.py``).
    """
    model, tokenizers = translator.model, translator.tokenizers
    assert isinstance(model, Transformer)
    names = [
        [*SPECIAL_TOKENS, *map(str, range(len(SPECIAL_TOKENS), each.size))] for each in (tokenizers.src, tokenizers.tgt)
    ]
    ids = {name: number for number, name in enumerate(names[1])}
    with tempfile.TemporaryDirectory() as folder:
        write_ctranslate2(Path(folder), model, src_tokens=names[0], tgt_tokens=names[1])
        peer = CTranslate2Process(Path(folder), n_threads=torch.get_num_threads())

    def translate(texts: Sequence[str]) -> list[str]:
        sources = [translator.source_ids(text) for text in texts]
        tokens = [[names[0][number] for number in source] for source in sources]
        translations = peer.translate(tokens, max_length=max(map(len, sources)) + 1 + max_extra_tokens)
        return tokenizers.tgt.decode_batch([ids[token] for token in each] for each in translations)

    layers = " + ".join(map(str, model.config.layer_counts))
    return System(name, translate, sum(weight.numel() for weight in model.parameters()) / 1e6, layers)


def measured(
    systems: Sequence[System],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    language: str,
    n_timed: Mapping[int, int],
    n_rounds: int,
    log: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Return a row for each system: scores of all sentences, speed by batch size, passes.

    ``n_timed``: how many of the first sentences are timed, by batch size. The systems are timed in turn, round by
    round, every second round in reverse order; speeds are medians. Passes are counted on all sentences, in batches.
    ``same`` counts the sentences that are written as by the system that ``same_as`` names.
    """
    rows: list[dict[str, Any]] = []
    outputs: list[list[str]] = []
    largest = max(BATCH_SIZES)
    for system in systems:
        log(f"translating {len(sources):,} sentences: {system.name}")
        outputs.append(_translated(system, sources, largest))
        scores = score_translations(outputs[-1], references, language=language, also=["multi30k_bleu"]).as_json()
        counts = system.passes()
        rows.append(
            {
                "system": system.name,
                "layers": system.layers,
                "million_parameters": system.million_parameters,
                "sacrebleu": scores["sacrebleu"]["score"],
                "signature": scores["sacrebleu"]["signature"],
                "multi30k_bleu": scores["multi30k_bleu"]["score"],
                "passes_per_sentence": None if counts is None else counts.passes_per_sentence,
                "tokens_per_pass": None if counts is None else counts.tokens_per_pass,
                "accepted": None if counts is None or not counts.drafted else counts.accepted / counts.drafted,
                "n_sentences": len(sources),
            }
        )
    by_name = {system.name: texts for system, texts in zip(systems, outputs, strict=True)}
    for row, system in zip(rows, systems, strict=True):
        row["same_as"] = system.same_as or systems[min(1, len(systems) - 1)].name
        row["same"] = sum(a == b for a, b in zip(by_name[system.name], by_name[row["same_as"]], strict=True))
    for batch_size in BATCH_SIZES:
        timed = sources[: n_timed[batch_size]]
        seconds: dict[str, list[float]] = {system.name: [] for system in systems}
        for number in range(n_rounds):
            log(f"timing batches of {batch_size}, round {number + 1} of {n_rounds}")
            for system in list(systems)[:: -1 if number % 2 else 1]:
                start = time.perf_counter()
                _translated(system, timed, batch_size)
                seconds[system.name].append(time.perf_counter() - start)
        for row in rows:
            rates = sorted(len(timed) / each for each in seconds[row["system"]])
            row[f"per_s_{batch_size}"] = median(rates)
            row[f"least_per_s_{batch_size}"], row[f"most_per_s_{batch_size}"] = rates[0], rates[-1]
    return rows


def _translated(system: System, sources: Sequence[str], batch_size: int) -> list[str]:
    texts: list[str] = []
    for start in range(0, len(sources), batch_size):
        texts += system.translate(sources[start : start + batch_size])
    return texts
