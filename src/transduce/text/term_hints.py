"""Which words of a training pair get the words of the reference beside them, so that a model learns to use terms.

A ``WordTable`` knows words that translate each other. The words of a pair are linked where each is the best for the
other; a neighbour whose best is the same word belongs to it, so that "dialog box" is linked with "Dialogfenster".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from transduce.text.term_marks import Hint, with_hints
from transduce.text.word_spans import word_spans

__all__ = ["WordTable", "common_stem", "is_word", "linked_words", "table_words"]

MIN_LETTERS = 3  # of the words of a hint
P_HINTED = 0.6  # of a source that it has hints
MAX_P_TERM = 0.6  # of a link in such a source that it is one; drawn anew for each, so that some have few hints
P_JOINED = 0.3  # of a link that it is one term with the one after it
P_OTHER_FORM = 0.4  # of a hint that it is the usual form of a word, not that of the reference (Exel et al., 2020)
_APART = 0.5  # what a link between the two ends of a pair counts less than one of equal places

Links = list[tuple[range, range]]  # places of source words and of target words that translate each other


@dataclass(frozen=True, slots=True)
class WordTable:
    """How well words translate each other, by source word and target word, in small letters; and how they are written.

    >>> table = WordTable({"dogs": {"hunde": 0.9, "hunden": 0.2}}, {"hunde": "Hunde", "hunden": "Hunden"})
    >>> table.usual_form(["dogs"], "Hunden")
    'Hunde'
    """

    scores: Mapping[str, Mapping[str, float]]
    written: Mapping[str, str]  # the usual capitals of target words
    common: Collection[str] = ()  # source words that are no terms

    def hinted(self, source: str, target: str, random: Random) -> str:
        """Return the source of a pair with hints, or as it is; both are normalised."""
        if random.random() >= P_HINTED:
            return source
        return with_hints(source, self._hints(source, target, random))

    def _hints(self, source: str, target: str, random: Random) -> Iterator[Hint]:
        (src_spans, src_words), (tgt_spans, tgt_words) = _spans_and_words(source), _spans_and_words(target)
        p_term = random.random() * MAX_P_TERM
        for src, tgt in _joined(linked_words(self.scores, src_words, tgt_words), random):
            is_drawn, is_usual = random.random() < p_term, random.random() < P_OTHER_FORM
            words = [*(src_words[i] for i in src), *(tgt_words[i] for i in tgt)]
            if not (is_drawn and all(map(is_word, words)) and not any(map(self.common.__contains__, words))):
                continue
            written = target[tgt_spans[tgt[0]][0] : tgt_spans[tgt[-1]][1]]
            if is_usual and len(tgt) == 1:
                written = self.usual_form([src_words[i] for i in src], written)
            yield src_spans[src[0]][0], src_spans[src[-1]][1], written

    def usual_form(self, source: Sequence[str], target: str) -> str:
        """Return the form of a target word that most often translates its source words."""
        word = target.casefold()
        totals = dict[str, float]()
        for each in source:
            for form, score in self.scores.get(each, {}).items():
                if form == word or common_stem(form, word):
                    totals[form] = totals.get(form, 0.0) + score
        best = max(totals, key=lambda form: (totals[form], form), default=word)
        usual = target if best == word else self.written.get(best, best)
        return usual[:1].upper() + usual[1:] if target[:1].isupper() else usual


def table_words(text: str) -> list[str]:
    """Return the words of a normalised text as a table has them."""
    return _spans_and_words(text)[1]


def _spans_and_words(text: str) -> tuple[list[tuple[int, int]], list[str]]:
    spans = word_spans(text)
    return spans, [text[start:end].casefold() for start, end in spans]


def is_word(word: str) -> bool:
    """Whether a word may be part of a term: one of some letters."""
    return len(word) >= MIN_LETTERS and word.replace("-", "").isalpha()


def common_stem(word: str, other: str) -> bool:
    """Whether two words may be forms of one: they begin alike, and differ by a short ending.

    >>> common_stem("dokument", "dokumentes"), common_stem("dokument", "dokumentvorlage")
    (True, False)
    """
    n = max(MIN_LETTERS, 3 * max(len(word), len(other)) // 4)
    return word[:n] == other[:n] and abs(len(word) - len(other)) <= MIN_LETTERS


def linked_words(scores: Mapping[str, Mapping[str, float]], source: Sequence[str], target: Sequence[str]) -> Links:
    """Return the links of a pair, in the order of the source; no word is in two.

    >>> table = {"dialog": {"dialogfenster": 0.5}, "box": {"dialogfenster": 0.2}, "open": {"öffnen": 0.9}}
    >>> linked_words(table, ["open", "dialog", "box"], ["dialogfenster", "öffnen"])
    [(range(0, 1), range(1, 2)), (range(1, 3), range(0, 1))]
    """
    best_of_source, best_of_target = dict[int, tuple[float, int]](), dict[int, tuple[float, int]]()
    places = dict[str, list[int]]()
    for j, word in enumerate(target):
        places.setdefault(word, []).append(j)
    for i, word in enumerate(source):
        for of_target, score in scores.get(word, {}).items():
            for j in places.get(of_target, ()):
                at = score * (1 - _APART * abs(i / len(source) - j / len(target)))
                best_of_source[i] = max(best_of_source.get(i, (0.0, 0)), (at, j))
                best_of_target[j] = max(best_of_target.get(j, (0.0, 0)), (at, i))
    links, free_from = Links(), 0
    for i, (_, j) in sorted(best_of_source.items()):
        if i < free_from or best_of_target[j][1] != i:
            continue
        src = _grown(i, {place for place, (_, best) in best_of_source.items() if best == j and place >= free_from})
        tgt = _grown(j, {place for place, (_, best) in best_of_target.items() if best == i})
        links.append((src, tgt))
        free_from = src.stop
    return links


def _grown(place: int, belonging: Collection[int]) -> range:
    """Return a place with the neighbours that belong to it."""
    start, end = place, place + 1
    while start - 1 in belonging:
        start -= 1
    while end in belonging:
        end += 1
    return range(start, end)


def _joined(links: Links, random: Random) -> Links:
    """Return the links, some joined with the next one, if both are neighbours in source and target."""
    joined = links[:1]
    for (_, _), (src, tgt) in pairwise(links):
        before_src, before_tgt = joined[-1]
        if before_src.stop == src.start and before_tgt.stop == tgt.start and random.random() < P_JOINED:
            joined[-1] = range(before_src.start, src.stop), range(before_tgt.start, tgt.stop)
        else:
            joined.append((src, tgt))
    return joined
