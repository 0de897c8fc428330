"""Targets that are longer than the search lets outputs be are counted by ``prepare`` and by training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commands import CommandLine
from said import says
from transduce.data import excess_of_targets, pairs
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks.prepared import open_prepared

TREE = "(TOP (S (NP (DT The) (JJ old) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat))) (. .)))"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A text of 40 pairs, of which four have targets that are 30 words longer than their sources."""
    sources = [f"dog {n} sleeps" for n in range(40)]
    targets = [f"Hund {n} schläft" + " sehr" * (30 if n % 10 == 0 else 0) for n in range(40)]
    (tmp_path / "a.en").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("\n".join(targets) + "\n", encoding="utf-8")
    path = tmp_path / "a.toml"
    path.write_text(
        f'preset = "tiny"\n[model]\nn_encoder_layers = 1\nn_decoder_layers = 1\nd_model = 16\nd_ff = 16\n'
        f'[data]\ncorpus = "files"\ntrain_src = "{tmp_path}/a.en"\ntrain_tgt = "{tmp_path}/a.de"\n'
        'max_length_ratio = 50.0\nvocab_size = 300\ntokenizer = "characters"\n[training]\nmax_updates = 1\n'
        "max_tokens_per_batch = 2000\nwarmup_steps = 1\n",
        encoding="utf-8",
    )
    return path


def test_prepare_counts_them(transduce: CommandLine, recipe: Path, tmp_path: Path) -> None:
    outcome = transduce("prepare", recipe, "--out", tmp_path / "store")
    assert outcome.code == 0, outcome.err
    prepared = open_prepared(tmp_path / "store")
    excess = np.asarray(prepared.train.tgt_lengths, np.int64) - prepared.train.src_lengths  # type: ignore[attr-defined]
    assert says(outcome.err, "warning", 4, 40, 50, "search.max_extra_tokens", excess.max())
    outcome = transduce(
        "prepare", recipe, "--out", tmp_path / "other", "--set", f"search.max_extra_tokens={excess.max()}"
    )
    assert "max_extra_tokens" not in outcome.err


def test_a_run_tells_them_before_it_trains(recipe: Path, tmp_path: Path) -> None:
    told: list[str] = []
    train(read_recipe(recipe), tmp_path / "run", log=told.append, should_stop=lambda: True)
    assert sum("max_extra_tokens" in line for line in told) == 1


@pytest.mark.parametrize("n_rows", [1, 7, 1 << 20])
def test_parts_of_a_store_count_as_the_whole(
    recipe: Path, tmp_path: Path, transduce: CommandLine, monkeypatch: pytest.MonkeyPatch, n_rows: int
) -> None:
    transduce("prepare", recipe, "--out", tmp_path / "store")
    prepared = open_prepared(tmp_path / "store")
    excess = np.asarray(prepared.train.tgt_lengths, np.int64) - prepared.train.src_lengths  # type: ignore[attr-defined]
    monkeypatch.setattr(pairs, "ROWS_PER_PART", n_rows)
    for limit in (0, 49, 50, int(excess.max()) - 1, int(excess.max())):
        assert excess_of_targets(tmp_path / "store" / "train", limit) == ((excess > limit).sum(), excess.max())


def test_trees_are_longer_than_their_sentences(transduce: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.ptb").write_text(f"{TREE}\n" * 3)
    recipe = tmp_path / "parse.toml"
    recipe.write_text(
        f'preset = "tiny"\n[model]\nembeddings = "separate"\n[data]\ncorpus = "files"\ntask = "parsing"\n'
        f'train_trees = "{tmp_path}/a.ptb"\nshared_vocabulary = false\nvocab_size = 300\n'
    )
    limits = {1: True, 50: False}
    for limit, is_told in limits.items():
        outcome = transduce(
            "prepare", recipe, "--out", tmp_path / str(limit), "--set", f"search.max_extra_tokens={limit}"
        )
        assert outcome.code == 0, outcome.err
        assert ("max_extra_tokens" in outcome.err) == is_told
