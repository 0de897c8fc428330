"""Byte-pair encoding; ``test_every_tokenizer.py`` tests the contract of every kind."""

from transduce.text import train_bpe


def test_a_small_corpus_gives_the_pairs_that_occur_twice() -> None:
    tokenizer = train_bpe(["abc abd"], vocab_size=1000)
    assert tokenizer.pieces(range(260, tokenizer.size)) == ["ab", "▁ab"]


def test_every_merge_makes_a_token() -> None:
    tokenizer = train_bpe(["the lowest tower", "the newest tower"] * 3, vocab_size=300)
    assert tokenizer.merges
    made = {left + right for left, right in tokenizer.merges}
    assert made | set(train_bpe(["a"], vocab_size=260).vocabulary) == set(tokenizer.vocabulary)
