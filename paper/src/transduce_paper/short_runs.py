"""Runs at test scale: seconds long, so their numbers mean nothing."""

from __future__ import annotations

import json
from pathlib import Path

from transduce.config import DocumentsData, PromptsData, RunConfig, TreesData
from transduce.corpora import generate_pairs
from transduce.corpora.grammar import generate_instructions
from transduce.files import write_lines
from transduce.recipes import with_settings

__all__ = ["shortened", "write_few"]


def shortened(config: RunConfig, folder: Path) -> RunConfig:
    """Shorten a run to seconds: six updates on the built-in corpus, evaluated on the few sentences of ``folder``."""
    if isinstance(config.data, TreesData):
        few, kind, max_extra_tokens = "few.ptb", "trees", 60
    elif isinstance(config.data, PromptsData):
        few, kind, max_extra_tokens = "few-rankings.tsv", "prompts", 1
    else:
        few, kind = ("few.txt", "text") if isinstance(config.data, DocumentsData) else ("few.tsv", "tsv")
        max_extra_tokens = 1
    searches = not isinstance(config.data, DocumentsData | PromptsData)  # language models have no search
    path = json.dumps(str(folder / few))
    return with_settings(
        config,
        [
            "data.corpus=grammar", "data.n_pairs=300", "data.vocab_size=400", f"data.dev_{kind}={path}",
            f"data.test_{kind}={path}", "training.max_updates=6", "training.validate_every_updates=6",
            "training.checkpoint_every_updates=2", "training.max_tokens_per_batch=400",
            *(["search.beam_size=1", f"search.max_extra_tokens={max_extra_tokens}"] if searches else []),
        ],
    )  # fmt: skip


def write_few(folder: Path) -> None:
    """Write the 12 sentences of each kind on which shortened runs are evaluated."""
    pairs = list(generate_pairs("dev", n_pairs=12, seed=1))
    rankings = generate_instructions("dev", n=12, seed=1)
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "few.ptb", [pair.tree for pair in pairs])
    write_lines(folder / "few.txt", [pair.en for pair in pairs])
    write_lines(folder / "few.tsv", [f"{pair.en}\t{pair.de}" for pair in pairs])
    write_lines(folder / "few-rankings.tsv", [f"{r.prompt}\t{r.response}\t{r.response[:-2]}" for r in rankings])
