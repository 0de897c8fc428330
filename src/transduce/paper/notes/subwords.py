"""Byte-pair encoding against WordPiece on the same text: what each merges, and how finely each cuts words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.corpora import generate_pairs
from transduce.paper.drawing import COLOURS, GREY, INK, new_panels, save_svg
from transduce.paper.notes.part import Part
from transduce.paper.report import Cell, Table
from transduce.text import WORD_START, Tokenizer, train_bpe, train_wordpiece
from transduce.text.wordpiece_trainer import split_characters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXAMPLE_WORDS", "PairCount", "make_subwords", "pair_counts"]

# The notes have the pair u, g and no text. These words, with their counts, are those with which the course of the
# tokenizers library explains both learners by the same pair.
EXAMPLE_WORDS: Mapping[str, int] = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}

THE_EXAMPLE = """\
The notes: BPE merges the pair that is seen most often, WordPiece the one with the greatest P(ab) / (P(a) P(b)); "u"
followed by "g" is merged only if that quotient is the greatest of all. They have no text; these are the words of a
well-known example with that pair: {words}.
Our learners take a word with the space before it ({begin}), and WordPiece tells a letter inside a word (…) from the
same at its start. Before the first merge:"""

WHAT_WAS_COMPARED = """\
On {n_lines:,} English lines of the built-in grammar corpus ({n_words:,} words, {n_different:,} different ones). Our
WordPiece also asks that a pair be common: half as common as an average piece, so its merges depend on the size that is
asked for ({vocab_size:,} merges here). Without that floor the quotient prefers pairs that are seen twice. The first
{n_first} merges of each:"""

WHAT_IT_SAYS = """\
BPE begins with what is frequent ({bpe_first}); WordPiece with letters that hardly stand without each other
({wordpiece_first}). Of the first {few} pieces {shared_few} are the same, of {many:,} {shared_many:,}: the order differs
more than the vocabulary. BPE needs fewer pieces for a word at {n_wins} of the {n_sizes} sizes."""

WHAT_IT_CANNOT_SHOW = """\
Pieces per word say nothing about translations, and the grammar corpus has fewer different words than a real text.
BPE keeps 256 bytes beside its merges, WordPiece 512, each at the start of a word and inside; the sizes here count
merges alone. A word is cut by BPE as it was learned, by WordPiece from the left with the longest piece that fits."""

BYTES_OF_BPE, BYTES_OF_WORDPIECE = 260, 516  # vocabulary before the first merge, special symbols included


@dataclass(frozen=True, slots=True)
class PairCount:
    """Two neighbours, how often they stand together, and how often each occurs at all."""

    left: str
    right: str
    together: int
    left_alone: int
    right_alone: int
    n_letters: int  # of the text

    @property
    def quotient(self) -> float:
        """P(ab) / (P(a) P(b)), each as a share of all letters."""
        return self.together * self.n_letters / (self.left_alone * self.right_alone)


def pair_counts(word_counts: Mapping[str, int]) -> list[PairCount]:
    """Of every two neighbours in these words, which begin with a space, the most frequent first.

    >>> [first, *_] = pair_counts({"hug": 10, "pug": 5})
    >>> first.left, first.right, first.together, first.quotient
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
        PairCount(left, right, together, letters[left], letters[right], letters.total())
        for (left, right), together in sorted(pairs.items(), key=lambda each: (-each[1], each[0]))
    ]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done."""

    n_lines: int
    merges: tuple[int, ...]  # of the vocabularies that are learned; the last is looked at closely
    n_first: int


WHOLE = Sizes(4000, (50, 100, 250, 500, 1000, 2000), 24)
SHORT = Sizes(60, (5, 20), 5)
FEW = 100


def make_subwords(*, is_short: bool) -> Part:
    """Both learners on the example and on the grammar corpus."""
    sizes = SHORT if is_short else WHOLE
    lines = [pair.en for pair in generate_pairs("train", n_pairs=sizes.n_lines, seed=1)]
    words = Counter(word for line in lines for word in line.split())
    learned = [_learn(lines, n_merges) for n_merges in sizes.merges]
    bpe, wordpiece = learned[-1].bpe_pieces, learned[-1].wordpiece_pieces
    few = min(FEW, len(bpe), len(wordpiece))
    per_word = [
        (each.pieces_per_word(each.bpe, lines), each.pieces_per_word(each.wordpiece, lines)) for each in learned
    ]
    return Part(
        (
            "## BPE and WordPiece",
            THE_EXAMPLE.format(
                words=", ".join(f"{word} {count} times" for word, count in EXAMPLE_WORDS.items()), begin=WORD_START
            ),
            _table_of_pairs(),
            _table_of_the_example(),
            WHAT_WAS_COMPARED.format(
                n_lines=len(lines),
                n_words=words.total(),
                n_different=len(words),
                vocab_size=sizes.merges[-1],
                n_first=sizes.n_first,
            ),
            _table_of_first_merges(bpe, wordpiece, sizes.n_first),
            _table_of_sizes(learned, per_word),
            WHAT_IT_SAYS.format(
                bpe_first=", ".join(bpe[:4]),
                wordpiece_first=", ".join(wordpiece[:4]),
                few=few,
                shared_few=_n_shared(bpe[:few], wordpiece[:few]),
                many=min(len(bpe), len(wordpiece)),
                shared_many=_n_shared(bpe, wordpiece),
                n_wins=sum(one < other for one, other in per_word),
                n_sizes=len(per_word),
            ),
            WHAT_IT_CANNOT_SHOW,
        ),
        {"notes-subwords": lambda path: _draw(learned, per_word, path)},
    )


@dataclass(frozen=True, slots=True)
class Learned:
    """Both tokenizers of one number of merges, and what each has merged, in its order."""

    n_merges: int
    bpe: Tokenizer
    wordpiece: Tokenizer

    @property
    def bpe_pieces(self) -> list[str]:
        """What BPE has merged."""
        return self.bpe.pieces(range(BYTES_OF_BPE, self.bpe.size))

    @property
    def wordpiece_pieces(self) -> list[str]:
        """What WordPiece has merged, without its mark inside words."""
        return self.wordpiece.pieces(range(BYTES_OF_WORDPIECE, self.wordpiece.size))

    @staticmethod
    def pieces_per_word(tokenizer: Tokenizer, lines: Sequence[str]) -> float:
        """Of running text; a word is what stands between spaces."""
        n_pieces = sum(map(len, tokenizer.encode_batch(lines)))
        return n_pieces / sum(len(line.split()) for line in lines)


def _learn(lines: Sequence[str], n_merges: int) -> Learned:
    return Learned(
        n_merges,
        train_bpe(lines, vocab_size=BYTES_OF_BPE + n_merges),
        train_wordpiece(lines, vocab_size=BYTES_OF_WORDPIECE + n_merges),
    )


def _n_shared(one: Sequence[str], other: Sequence[str]) -> int:
    return len(set(one) & set(other))


def _table_of_pairs() -> Table:
    pairs = pair_counts(EXAMPLE_WORDS)
    best = max(pairs, key=lambda each: (each.quotient, each.together))
    rows: list[tuple[Cell, ...]] = []
    for pair in pairs:
        choice = ["BPE"] * (pair is pairs[0]) + ["WordPiece"] * (pair is best)
        counts = pair.together, pair.left_alone, pair.right_alone, pair.quotient
        rows.append((f"{pair.left} {pair.right}", *counts, " and ".join(choice)))
    columns = ("pair a b", "count(ab)", "count(a)", "count(b)", "P(ab) / (P(a) P(b))", "merged first by")
    return Table("-subwords-pairs", columns, tuple(rows), formats={columns[4]: ".2f"})


def _table_of_the_example() -> Table:
    text = [" ".join([word] * count) for word, count in EXAMPLE_WORDS.items()]
    learned = _learn(text, 1000)  # until no pair is left
    bpe, wordpiece = learned.bpe_pieces, learned.wordpiece_pieces
    rows = []
    for word in EXAMPLE_WORDS:
        cuts = (tokenizer.pieces(tokenizer.encode(word)) for tokenizer in _cut_short(text))
        rows.append((word, *(" ".join(cut) for cut in cuts)))
    rows = [("all merges, in their order", ", ".join(bpe), ", ".join(wordpiece)), *rows]
    caption = "All that each merges on that text, and how it cuts the words after its first three merges:"
    return Table("-subwords-example", ("", "BPE", "WordPiece"), tuple(rows), caption)


def _cut_short(text: Sequence[str]) -> tuple[Tokenizer, Tokenizer]:
    learned = _learn(text, 3)
    return learned.bpe, learned.wordpiece


def _table_of_first_merges(bpe: Sequence[str], wordpiece: Sequence[str], n_first: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (n + 1, one, _place(one, wordpiece), other, _place(other, bpe))
        for n, (one, other) in enumerate(zip(bpe[:n_first], wordpiece[:n_first], strict=False))
    ]
    columns = ("merge", "BPE", "its place in WordPiece", "WordPiece", "its place in BPE")
    return Table("-subwords-first-merges", columns, tuple(rows))


def _place(piece: str, others: Sequence[str]) -> Cell:
    return others.index(piece) + 1 if piece in others else None


def _table_of_sizes(learned: Sequence[Learned], per_word: Sequence[tuple[float, float]]) -> Table:
    columns = (
        "merges", "BPE, pieces per word", "WordPiece, pieces per word", "merged by both", "BPE, longest piece",
        "WordPiece, longest piece",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for each, (one, other) in zip(learned, per_word, strict=True):
        bpe, wordpiece = each.bpe_pieces, each.wordpiece_pieces
        both = _n_shared(bpe, wordpiece) / len(set(bpe) | set(wordpiece))
        rows.append((each.n_merges, one, other, both, max(bpe, key=len), max(wordpiece, key=len)))
    formats = {columns[0]: ",d", columns[1]: ".2f", columns[2]: ".2f", columns[3]: ".0%"}
    return Table("-subwords-sizes", columns, tuple(rows), "Over vocabulary sizes, on the text they learned:", formats)


def _draw(learned: Sequence[Learned], per_word: Sequence[tuple[float, float]], path: Path) -> None:
    figure, (left, right) = new_panels(9.5, 4.0, n_columns=2)
    sizes = [each.n_merges for each in learned]
    left.plot(sizes, [one for one, _ in per_word], "o-", color=COLOURS[0], label="BPE")
    left.plot(sizes, [other for _, other in per_word], "s-", color=COLOURS[1], label="WordPiece")
    left.set(xscale="log", xlabel="merges", ylabel="pieces per word", title="How finely words are cut")
    left.set_ylim(bottom=1)
    left.legend(frameon=False)
    _draw_places(right, learned[-1].bpe_pieces, learned[-1].wordpiece_pieces)
    save_svg(figure, path)


def _draw_places(panel: Axes, bpe: Sequence[str], wordpiece: Sequence[str]) -> None:
    """When each merged what both have; some of what either merged early by name."""
    places = {piece: (bpe.index(piece) + 1, wordpiece.index(piece) + 1) for piece in bpe if piece in set(wordpiece)}
    x, y = [of_bpe for of_bpe, _ in places.values()], [of_wordpiece for _, of_wordpiece in places.values()]
    panel.scatter(x, y, s=9, color=COLOURS[2], alpha=0.45, linewidths=0)
    last = max(len(bpe), len(wordpiece))
    panel.plot((1, last), (1, last), "--", color=GREY, linewidth=1)
    for side in (0, 1):
        early = sorted(places, key=lambda piece: places[piece][side])
        for piece in (early[n] for n in (0, 2, 9, 29) if n < len(early)):
            panel.annotate(piece, places[piece], xytext=(5, 3), textcoords="offset points", color=INK, fontsize=9)
            panel.plot(*places[piece], ".", markersize=8, color=INK)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="merge of BPE",
        ylabel="merge of WordPiece",
        title=f"When each merged the {len(places):,} pieces of both",
    )
