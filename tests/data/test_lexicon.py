"""IBM Model 1, against the formula in plain Python, and on text whose translations are known."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from transduce.data import PairStore, open_pairs, write_pairs
from transduce.data.lexicon import train_lexicon
from transduce.text import PAD_ID, Tokenizers, train_word_level

WORDS = {"a": "eins", "b": "zwei", "c": "drei", "d": "vier", "e": "fünf"}


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    """Sentences of two to four words, translated in reverse order."""
    random = np.random.default_rng(3)
    rows = [list(random.choice(list(WORDS), size=int(random.integers(2, 5)), replace=False)) for _ in range(60)]
    pairs = [(" ".join(row), " ".join(WORDS[word] for word in reversed(row))) for row in rows]
    tokenizers = Tokenizers(train_word_level(src for src, _ in pairs), train_word_level(tgt for _, tgt in pairs))
    write_pairs(tmp_path / "store", {"words": pairs}, tokenizers, max_length=10)
    return open_pairs(tmp_path / "store", tokenizers)


def by_formula(pairs: list[tuple[list[int], list[int]]], n_iterations: int) -> dict[tuple[int, int], float]:
    """Brown et al. (1993), Model 1: c(t | s) = sum over pairs of p(t | s) / sum of p(t | s') over the pair's s'."""
    p: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(n_iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for src, tgt in pairs:
            for t in tgt:
                z = sum(p[s, t] for s in [PAD_ID, *src])
                for s in [PAD_ID, *src]:
                    counts[s, t] += p[s, t] / z
                    totals[s] += p[s, t] / z
        p = defaultdict(float, {(s, t): count / totals[s] for (s, t), count in counts.items()})
    return p


def test_probabilities_are_those_of_the_formula(store: PairStore) -> None:
    pairs = [tuple(ids.tolist() for ids in store.pair(row)) for row in range(len(store))]
    expected = by_formula(pairs, 4)  # type: ignore[arg-type]
    lexicon = train_lexicon(store.columns["src"], store.columns["tgt"], np.arange(len(store)), n_iterations=4)
    keys = zip(lexicon.src_ids_I.tolist(), lexicon.tgt_ids_I.tolist(), strict=True)
    got = dict(zip(keys, lexicon.probabilities_I.tolist(), strict=True))
    assert got.keys() == expected.keys()
    assert got == pytest.approx(dict(expected), rel=1e-9)


def test_the_best_translations_are_those_of_the_words(store: PairStore) -> None:
    """The target of a sentence is its source reversed, word by word."""
    best_VR = train_lexicon(store.columns["src"], store.columns["tgt"], np.arange(len(store))).best(
        2, src_vocab_size=20, fill_id=2
    )
    assert best_VR.shape == (20, 2)
    for row in range(len(store)):
        src_ids, tgt_ids = store.pair(row)
        assert best_VR[src_ids, 0].tolist() == tgt_ids[::-1].tolist()
    assert best_VR[15].tolist() == [2, 2]  # no such token in the text
