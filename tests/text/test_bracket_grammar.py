"""Every sequence of allowed tokens becomes a tree, and every tree is allowed."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transduce.errors import DataError
from transduce.linearisation import delinearise, linearise
from transduce.text import EOS_ID, train_word_level
from transduce.text.bracket_grammar import BracketGrammar, TokenKinds
from transduce.trees import Tree

TOKENIZER = train_word_level(["(S (NP XX )NP , )S"])
KINDS = TokenKinds.from_vocabulary(TOKENIZER.vocabulary)
ID = TOKENIZER.vocabulary


def names(ids: list[int]) -> set[str]:
    return {"END" if id == EOS_ID else TOKENIZER.pieces([id])[0] for id in ids}


def grammar(n_words: int, max_length: int = 300) -> BracketGrammar:
    return BracketGrammar(KINDS, [KINDS.tags] * n_words, max_length)


def after(tokens: str, *, n_words: int = 2, limit: int = 300) -> set[str]:
    return names(grammar(n_words, limit)(tuple(ID[token] for token in tokens.split())))


def test_what_may_follow() -> None:
    opening, tags = {"(S", "(NP"}, {"XX", ","}
    assert after("") == opening | tags
    assert after("(S") == opening | tags  # no bracket closes without a word
    assert after("(S XX") == opening | tags | {")S"}
    assert after("(S (NP XX") == opening | tags | {")NP"}
    assert after("(S (NP XX )NP") == opening | tags | {")S"}
    assert after("(S (NP XX )NP ,") == {")S"}  # all words are written: no bracket opens
    assert after("(S (NP XX )NP , )S") == {"END"}
    assert after("XX") == opening | tags
    assert after("XX ,") == {"END"}


def test_each_word_has_its_own_tags() -> None:
    constraint = BracketGrammar(KINDS, [KINDS.other_tags, KINDS.punctuation], 9)
    assert names(constraint(())) == {"XX", "(S", "(NP"}
    assert names(constraint((ID["XX"],))) == {",", "(S", "(NP"}


def test_no_bracket_opens_that_could_not_be_closed() -> None:
    assert after("", n_words=2, limit=3) == {"XX", ","}
    assert after("", n_words=2, limit=5) == {"XX", ",", "(S", "(NP"}
    assert after("(S", n_words=2, limit=5) == {"XX", ","}
    assert after("(S XX", n_words=2, limit=5) == {"XX", ",", ")S"}


def test_not_too_many_open_before_a_word() -> None:
    limit = BracketGrammar.MAX_OPENED_IN_A_ROW
    assert after("(S " * (limit - 1)) == {"XX", ",", "(S", "(NP"}
    assert after("(S " * limit) == {"XX", ","}
    assert after("(S " * limit + "XX") == {"XX", ",", ")S", "(S", "(NP"}


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 3), st.integers(1, 40))
def test_any_walk_ends_in_a_tree_within_its_limit(seed: int, n_words: int, n_beams: int, room: int) -> None:
    draw, limit = random.Random(seed), n_words + room
    constraint, finished = grammar(n_words, limit), list[tuple[int, ...]]()
    prefixes: list[tuple[int, ...]] = [()] * n_beams
    while prefixes:
        longer = []
        for prefix in prefixes:
            allowed = constraint(prefix)
            assert allowed == grammar(n_words, limit)(prefix)  # with an empty cache
            chosen = draw.choice(allowed)
            if chosen == EOS_ID:
                finished.append(prefix)
            else:
                longer.append((*prefix, chosen))
        prefixes = longer
    for prefix in finished:
        assert len(prefix) + 1 <= limit
        words = [f"w{index}" for index in range(n_words)]
        assert delinearise(TOKENIZER.pieces(prefix), words).words() == words


def random_tree(draw: random.Random, n_words: int) -> Tree:
    if n_words == 1 and draw.random() < 0.6:
        return Tree(draw.choice(["XX", ","]), word="w")
    cuts = sorted(draw.sample(range(1, n_words), draw.randint(0, n_words - 1)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, n_words], strict=True)]
    return Tree(draw.choice(["S", "NP"]), tuple(random_tree(draw, size) for size in sizes))


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_every_tree_is_allowed(seed: int, n_words: int) -> None:
    draw = random.Random(seed)
    tree = Tree("TOP", (random_tree(draw, n_words),))
    tokens = linearise(tree)
    assume("(" * (BracketGrammar.MAX_OPENED_IN_A_ROW + 1) not in "".join(token[0] for token in tokens))
    ids = TOKENIZER.encode(" ".join(tokens))
    constraint = grammar(n_words, len(ids) + 1)
    for position, id in enumerate([*ids, EOS_ID]):
        assert id in constraint(tuple(ids[:position]))


def test_what_cannot_be_parsed_is_refused() -> None:
    with pytest.raises(DataError, match="no word"):
        grammar(0)
    with pytest.raises(DataError, match=r"\b3\b.*\b3\b"):
        grammar(3, 3)
    with pytest.raises(DataError, match="'VP'"):
        TokenKinds.from_vocabulary({"(VP": 4, "XX": 5})
    with pytest.raises(DataError, match="no tag"):
        TokenKinds.from_vocabulary({"(VP": 4, ")VP": 5})
