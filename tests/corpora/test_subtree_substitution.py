"""Subtree substitution: inserted subtrees come from the given trees and are of the replaced node's kind."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config import DataConfig
from transduce.corpora.subtree_substitution import substitute_subtrees
from transduce.corpora.treebank_text import TreebankText
from transduce.tasks import prepare
from transduce.trees import Tree, parse_tree

LABELS = st.sampled_from(["S", "NP", "NN", "DT"])
INNER = st.recursive(
    st.builds(lambda tag, word: Tree(tag, word=word), LABELS, st.sampled_from(["a", "b", "c"])),
    lambda inner: st.builds(lambda label, children: Tree(label, tuple(children)), LABELS, st.lists(inner, min_size=1)),
    max_leaves=8,
)
TREES = st.builds(lambda children: Tree("TOP", tuple(children)), st.lists(INNER, min_size=1, max_size=3))
PETS = [parse_tree(f"(TOP (S (NP (DT the) (NN {noun})) (VP (VB {verb}))))") for noun, verb in ("ab", "cd", "ef")]


@given(st.lists(TREES, min_size=1, max_size=5), st.sampled_from([0.0, 0.3, 0.999]), st.integers(0, 5))
def test_each_place_has_its_own_node_or_another_of_its_kind(trees: list[Tree], p_exchange: float, seed: int) -> None:
    made = list(substitute_subtrees(trees, p_exchange=p_exchange, n_copies=2, seed=seed))
    assert made == list(substitute_subtrees(trees, p_exchange=p_exchange, n_copies=2, seed=seed))
    assert len(made) == 2 * len(trees)
    bank = {
        (node, above, is_first)
        for tree in trees
        for node, above, is_first in _placed(tree)
        if len(node.words()) < len(tree.words())
    }
    for new, old in zip(made, [*trees, *trees], strict=True):
        assert p_exchange or new == old
        assert _may_stand_for(new, old, bank)


def _placed(tree: Tree, is_first: bool = True) -> list[tuple[Tree, str, bool]]:
    """Return each node below the root, its parent's label and whether the sentence begins with it."""
    placed = []
    for number, child in enumerate(tree.children):
        begins = is_first and number == 0
        placed += [(child, tree.label, begins), *_placed(child, begins)]
    return placed


def _may_stand_for(
    new: Tree, old: Tree, bank: set[tuple[Tree, str, bool]], above: str = "", first: bool = True
) -> bool:
    if new == old or new.label != old.label:
        return new == old
    n_new, n_old = len(new.words()), len(old.words())
    if (new, above, first) in bank and math.floor(math.log2(n_new)) == math.floor(math.log2(n_old)):
        return True
    pairs = list(zip(new.children, old.children, strict=False))
    return len(new.children) == len(old.children) > 0 and all(
        _may_stand_for(*pair, bank, old.label, first and number == 0) for number, pair in enumerate(pairs)
    )


def test_words_and_phrases_meet_others() -> None:
    made = {" ".join(tree.words()) for tree in substitute_subtrees(PETS, p_exchange=0.3, n_copies=50, seed=1)}
    assert made == {f"the {noun} {verb}" for noun in "ace" for verb in "bdf"}


def test_as_many_as_the_probability_says() -> None:
    many = [Tree("TOP", tuple(Tree("NN", word=f"{n}") for n in range(2000)))]
    (made,) = substitute_subtrees(many, p_exchange=0.25, n_copies=1, seed=3)
    n_exchanged = sum(new != old for new, old in zip(made.children[1:], many[0].children[1:], strict=True))
    assert 430 < n_exchanged < 570


def test_a_deep_tree() -> None:
    tree = Tree("NN", word="dog")
    for _ in range(5000):
        tree = Tree("NP", (tree,))
    (made,) = substitute_subtrees([Tree("TOP", (tree, tree))], p_exchange=0.5, n_copies=1, seed=1)
    assert made.words() == ["dog", "dog"]


def test_a_whole_sentence_stays_where_it_is() -> None:
    trees = [parse_tree(f"(TOP (S (VP (VB {word}))))") for word in "abc"]
    assert list(substitute_subtrees(trees, p_exchange=0.9, n_copies=1, seed=1)) == trees


def test_training_reads_the_trees_and_what_is_made_of_them(tmp_path: Path) -> None:
    config = DataConfig(corpus="grammar", task="parsing", n_pairs=20, shared_vocabulary=False, vocab_size=400)
    more = config.model_copy(update={"subtree_substitution": 0.5, "n_recombined": 3})
    text = TreebankText(more)
    written = list(text.train("grammar"))
    assert written == list(TreebankText(config).train("grammar"))
    made = list(text.recombined("grammar"))
    assert made[:20] != made[20:40]
    assert (len(written), len(made)) == (20, 60)
    assert list(TreebankText(config).recombined("grammar")) == []
    assert list(text.of("dev")) == list(TreebankText(config).of("dev"))
    plain, prepared = prepare(config, tmp_path / "plain"), prepare(more, tmp_path / "more")
    assert (len(plain.train), len(prepared.train)) == (20, 80)
    assert plain.tokenizers.fingerprint == prepared.tokenizers.fingerprint  # not trained on synthetic pairs


def test_text_cannot_be_recombined() -> None:
    with pytest.raises(ValueError, match=r"\bsubtree_substitution\b.*'parsing'.*'translation'"):
        DataConfig(subtree_substitution=0.1)
