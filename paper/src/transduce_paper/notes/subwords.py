"""BPE against WordPiece on the same text: their merges and the number of pieces per word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transduce.corpora import generate_pairs
from transduce.text import WORD_START, Tokenizer, split_characters, train_bpe, train_wordpiece
from transduce_paper.drawing import COLOURS, GREY, INK, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXAMPLE_WORDS", "PairCount", "make_subwords", "pair_counts"]

# The notes give the pair u, g but no text. These words and counts are the example with that pair in the course of the
# tokenizers library.
EXAMPLE_WORDS: Mapping[str, int] = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}

THE_EXAMPLE = """\
The notes: BPE merges the most frequent pair, WordPiece the pair with the greatest P(ab) / (P(a) P(b)); "u" followed by
"g" is merged only if that ratio is the greatest of all. They give no text; we use the words of a well-known example
with that pair: {words}. Our tokenizers treat a word as including the space before it ({begin}), and WordPiece
distinguishes a letter inside a word (…) from the same letter at its start. Pairs before the first merge:"""

ABOUT_THE_TEXT = """\
The text: {n_lines:,} English lines of the built-in grammar corpus ({n_words:,} words, {n_different:,} different ones).
Our WordPiece trainer also requires that a pair be half as frequent as an average piece, so its merges depend on the
vocabulary size ({vocab_size:,} merges here). Without that floor ("by the ratio alone", `data.min_pair_count = 1`) the
ratio prefers rare pairs that are always together. The first {n_first} merges of each:"""

CONCLUSION = """\
BPE begins with frequent pairs ({bpe_first}), WordPiece with letters that rarely occur without each other
({wordpiece_first}). Of the first {few} merges {shared_few} are shared, of {many:,} {shared_many:,}: the order differs
more than the vocabulary."""

LIMITATIONS = """\
Pieces per word say nothing about translation quality, and the grammar corpus has fewer different words than real text.
The sizes here count merges only: the vocabulary of BPE also has 256 bytes, that of WordPiece 512 (each byte at the
start of a word and inside). BPE applies its merges in training order, WordPiece takes the longest matching
piece from the left."""

BYTES_OF_BPE, BYTES_OF_WORDPIECE = 260, 516  # vocabulary before the first merge, special tokens included


@dataclass(frozen=True, slots=True)
class PairCount:
    """A pair of neighbouring letters: its count and the count of each letter."""

    left: str
    right: str
    pair_count: int
    left_count: int
    right_count: int
    n_letters: int  # in the text

    @property
    def ratio(self) -> float:
        """Return P(ab) / (P(a) P(b)), relative to all letters."""
        return self.pair_count * self.n_letters / (self.left_count * self.right_count)


def pair_counts(word_counts: Mapping[str, int]) -> list[PairCount]:
    """Count every pair of neighbours in these words, which begin with a space; the most frequent first.

    >>> [first, *_] = pair_counts({"hug": 10, "pug": 5})
    >>> first.left, first.right, first.pair_count, first.ratio
    ('…u', '…g', 15, 4.0)
    """
    letters: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in word_counts.items():
        spelled = split_characters(WORD_START + word)
        for letter in spelled:
            letters[letter] += count
        for pair in pairwise(spelled):
            pairs[pair] += count
    return [
        PairCount(left, right, pair_count, letters[left], letters[right], letters.total())
        for (left, right), pair_count in sorted(pairs.items(), key=lambda each: (-each[1], each[0]))
    ]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Text size, vocabulary sizes and numbers of merges to show."""

    n_lines: int
    merges: tuple[int, ...]  # vocabulary sizes; the last one is shown in detail
    n_first: int


FULL = Sizes(4000, (50, 100, 250, 500, 1000, 2000), 24)
TEST = Sizes(60, (5, 20), 5)
FEW = 100


def make_subwords(experiments: Experiments) -> Section:
    """Train both tokenizers on the example and on the grammar corpus."""
    sizes = experiments.pick(FULL, test=TEST)
    lines = [pair.en for pair in generate_pairs("train", n_pairs=sizes.n_lines, seed=1)]
    words = Counter(word for line in lines for word in line.split())
    trained = [_train_both(lines, n_merges) for n_merges in sizes.merges]
    bpe, wordpiece = trained[-1].bpe_pieces, trained[-1].wordpiece_pieces
    few = min(FEW, len(bpe), len(wordpiece))
    per_word = [each.pieces_per_word(lines) for each in trained]
    n_wins = sum(bpe_pieces < wordpiece_pieces for bpe_pieces, wordpiece_pieces, _ in per_word)
    return Section(
        "BPE and WordPiece",
        (
            THE_EXAMPLE.format(
                words=", ".join(f"{word} {count} times" for word, count in EXAMPLE_WORDS.items()), begin=WORD_START
            ),
            _table_of_pairs(),
            _table_of_the_example(),
            ABOUT_THE_TEXT.format(
                n_lines=len(lines),
                n_words=words.total(),
                n_different=len(words),
                vocab_size=sizes.merges[-1],
                n_first=sizes.n_first,
            ),
            _table_of_first_merges(bpe, wordpiece, sizes.n_first),
            _table_of_sizes(trained, per_word),
            CONCLUSION.format(
                bpe_first=", ".join(bpe[:4]),
                wordpiece_first=", ".join(wordpiece[:4]),
                few=few,
                shared_few=_n_shared(bpe[:few], wordpiece[:few]),
                many=min(len(bpe), len(wordpiece)),
                shared_many=_n_shared(bpe, wordpiece),
            ),
            LIMITATIONS,
            picture("notes-subwords", "Pieces per word over the number of merges; order of merges in both"),
        ),
        finding=(
            f"BPE needs fewer pieces per word than WordPiece at {n_wins} of {len(per_word)} vocabulary sizes"
            f" ({per_word[-1][0]:.2f} and {per_word[-1][1]:.2f} with {sizes.merges[-1]:,} merges)."
        ),
        question="how do the merges of the two algorithms differ?",
        summary=f"BPE needs {per_word[-1][0]:.2f} pieces per word, WordPiece {per_word[-1][1]:.2f}",
        drawings={"notes-subwords": lambda path: _draw(trained, per_word, path)},
        claims=_claims(),
    )


def _claims() -> tuple[Claim, ...]:
    """Return the notes' descriptions of both algorithms, tested on the example's first merge."""
    pairs = pair_counts(EXAMPLE_WORDS)
    most_frequent = {each.left + each.right for each in pairs if each.pair_count == pairs[0].pair_count}
    best_ratio = max(each.ratio for each in pairs)
    most_likely = {each.left + each.right for each in pairs if each.ratio == best_ratio}
    lines = [" ".join([word] * count) for word, count in EXAMPLE_WORDS.items()]
    bpe = train_bpe(lines, vocab_size=BYTES_OF_BPE + 1).pieces([BYTES_OF_BPE])[0]
    wordpiece = train_wordpiece(lines, vocab_size=BYTES_OF_WORDPIECE + 1, min_pair_count=1).pieces(
        [BYTES_OF_WORDPIECE]
    )[0]
    return (
        Claim(
            "[BPE merges the] most frequent pairs of chars seen in training data",
            "notes",
            agreement(bpe in {pair.replace("…", "") for pair in most_frequent}),
            f"On the example text our trainer first merges {bpe!r}, which occurs {pairs[0].pair_count} times.",
            "by construction",
        ),
        Claim(
            "[WordPiece merges] a char pair whose combined prob. divided by (prob. of first char * prob. of second"
            " char) is greatest among all",
            "notes",
            agreement(wordpiece in {pair.replace("…", "") for pair in most_likely}),
            f"Without its floor for frequency, our trainer first merges {wordpiece!r}, at a ratio of {best_ratio:.2f}.",
            "by construction",
        ),
    )


class PiecesPerWord(NamedTuple):
    """Mean numbers of pieces per word."""

    bpe: float
    wordpiece: float
    quotient: float


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """Both tokenizers with the same number of merges."""

    n_merges: int
    bpe: Tokenizer
    wordpiece: Tokenizer
    quotient: Tokenizer  # WordPiece without a minimum for the frequency of a pair

    @property
    def bpe_pieces(self) -> list[str]:
        """Return the merges of BPE in order."""
        return self.bpe.pieces(range(BYTES_OF_BPE, self.bpe.size))

    @property
    def wordpiece_pieces(self) -> list[str]:
        """Return the merges of WordPiece in order, without its continuation mark."""
        return self.wordpiece.pieces(range(BYTES_OF_WORDPIECE, self.wordpiece.size))

    def pieces_per_word(self, lines: Sequence[str]) -> PiecesPerWord:
        """Return the mean number of pieces per whitespace-separated word."""
        n_words = sum(len(line.split()) for line in lines)
        n_pieces = [sum(map(len, each.encode_batch(lines))) for each in (self.bpe, self.wordpiece, self.quotient)]
        return PiecesPerWord(*(n / n_words for n in n_pieces))


def _train_both(lines: Sequence[str], n_merges: int) -> TokenizerPair:
    return TokenizerPair(
        n_merges,
        train_bpe(lines, vocab_size=BYTES_OF_BPE + n_merges),
        train_wordpiece(lines, vocab_size=BYTES_OF_WORDPIECE + n_merges),
        train_wordpiece(lines, vocab_size=BYTES_OF_WORDPIECE + n_merges, min_pair_count=1),
    )


def _n_shared(one: Sequence[str], other: Sequence[str]) -> int:
    return len(set(one) & set(other))


def _table_of_pairs() -> Table:
    pairs = pair_counts(EXAMPLE_WORDS)
    best = max(pairs, key=lambda each: (each.ratio, each.pair_count))
    rows: list[tuple[Cell, ...]] = []
    for pair in pairs:
        choice = ["BPE"] * (pair is pairs[0]) + ["WordPiece"] * (pair is best)
        counts = pair.pair_count, pair.left_count, pair.right_count, pair.ratio
        rows.append((f"{pair.left} {pair.right}", *counts, " and ".join(choice)))
    columns = ("pair a b", "count(ab)", "count(a)", "count(b)", "P(ab) / (P(a) P(b))", "merged first by")
    return Table("-subwords-pairs", columns, tuple(rows), formats={columns[4]: ".2f"})


def _table_of_the_example() -> Table:
    text = [" ".join([word] * count) for word, count in EXAMPLE_WORDS.items()]
    trained = _train_both(text, 1000)  # until no pair is left
    bpe, wordpiece = trained.bpe_pieces, trained.wordpiece_pieces
    rows = []
    for word in EXAMPLE_WORDS:
        cuts = (tokenizer.pieces(tokenizer.encode(word)) for tokenizer in _after_three_merges(text))
        rows.append((word, *(" ".join(cut) for cut in cuts)))
    rows = [("all merges in order", ", ".join(bpe), ", ".join(wordpiece)), *rows]
    caption = "All merges on that text, and the pieces of each word after the first three merges."
    return Table("-subwords-example", ("", "BPE", "WordPiece"), tuple(rows), caption)


def _after_three_merges(text: Sequence[str]) -> tuple[Tokenizer, Tokenizer]:
    trained = _train_both(text, 3)
    return trained.bpe, trained.wordpiece


def _table_of_first_merges(bpe: Sequence[str], wordpiece: Sequence[str], n_first: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (n + 1, one, _rank(one, wordpiece), other, _rank(other, bpe))
        for n, (one, other) in enumerate(zip(bpe[:n_first], wordpiece[:n_first], strict=False))
    ]
    columns = ("merge", "BPE", "its rank in WordPiece", "WordPiece", "its rank in BPE")
    return Table("-subwords-first-merges", columns, tuple(rows))


def _rank(piece: str, others: Sequence[str]) -> Cell:
    return others.index(piece) + 1 if piece in others else None


def _table_of_sizes(trained: Sequence[TokenizerPair], per_word: Sequence[PiecesPerWord]) -> Table:
    columns = (
        "merges", "BPE, pieces per word", "WordPiece, pieces per word", "by the ratio alone, pieces per word",
        "merged by BPE and WordPiece", "BPE, longest piece", "WordPiece, longest piece",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for each, n_pieces in zip(trained, per_word, strict=True):
        bpe, wordpiece = each.bpe_pieces, each.wordpiece_pieces
        both = _n_shared(bpe, wordpiece) / len(set(bpe) | set(wordpiece))
        rows.append((each.n_merges, *n_pieces, both, max(bpe, key=len), max(wordpiece, key=len)))
    formats = {columns[0]: ",d", columns[4]: ".0%"} | dict.fromkeys(columns[1:4], ".2f")
    return Table(
        "-subwords-sizes", columns, tuple(rows), "Pieces per word of the training text, by vocabulary size.", formats
    )


def _draw(trained: Sequence[TokenizerPair], per_word: Sequence[PiecesPerWord], path: Path) -> None:
    figure, (left, right) = new_panels(10.5, 4.8, n_columns=2)
    sizes = [each.n_merges for each in trained]
    left.plot(sizes, [each.bpe for each in per_word], "o-", color=COLOURS[0], label="BPE")
    left.plot(sizes, [each.wordpiece for each in per_word], "s-", color=COLOURS[1], label="WordPiece")
    left.plot(sizes, [each.quotient for each in per_word], "^-", color=COLOURS[3], label="WordPiece, ratio alone")
    set_log_axis(left, "x", sizes)
    left.set(xlabel="merges", ylabel="pieces per word")
    left.set_title("Pieces per word", loc="left")
    left.set_ylim(bottom=1)
    left.legend(frameon=False)
    _draw_ranks(right, trained[-1].bpe_pieces, trained[-1].wordpiece_pieces)
    save_svg(figure, path)


def _draw_ranks(panel: Axes, bpe: Sequence[str], wordpiece: Sequence[str]) -> None:
    """Plot the rank of each shared piece in both lists of merges, with names for some early ones of either."""
    ranks = {piece: (bpe.index(piece) + 1, wordpiece.index(piece) + 1) for piece in bpe if piece in set(wordpiece)}
    x, y = [of_bpe for of_bpe, _ in ranks.values()], [of_wordpiece for _, of_wordpiece in ranks.values()]
    panel.scatter(x, y, s=6, color=COLOURS[2], alpha=0.3, linewidths=0)
    last = max(len(bpe), len(wordpiece))
    panel.plot((1, last), (1, last), "--", color=GREY, linewidth=1)
    for side, offset, alignment in ((0, (0, 9), "center"), (1, (9, 0), "left")):  # where there are few points
        early = sorted(ranks, key=lambda piece: ranks[piece][side])
        for piece in (early[n] for n in (0, 2, 9, 29) if n < len(early)):
            panel.plot(*ranks[piece], "o", markersize=4.5, color=INK)
            panel.annotate(
                piece,
                ranks[piece],
                xytext=offset,
                textcoords="offset points",
                color=INK,
                fontsize=9,
                ha=alignment,
                va="center",
                bbox={"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 1},
            )
    panel.set_xlim(0.8, 1.6 * last)
    panel.set_ylim(0.8, 2.5 * last)
    set_log_axis(panel, "x")
    set_log_axis(panel, "y")
    panel.set(xlabel="rank of the merge in BPE", ylabel="rank of the merge in WordPiece")
    panel.set_title(f"Order of the {len(ranks):,} shared merges", loc="left")
