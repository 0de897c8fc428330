"""Texts are divided, and put together, without a model: what stays, what goes between, and what is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.inference.translation.line_statistics import LineStatistics
from transduce.inference.translation.parts import ScoredText, TranslatedSegment, Translation
from transduce.inference.translation.segmentation import Segmenter
from transduce.inference.translation.text_division import Splitting, TextDivider
from transduce.inference.translation.text_translation import TextTranslation
from transduce.text import Tokenizers, byte_tokenizer, train_bpe, word_spans
from transduce.text.markup import html_rules

Model = Callable[[str], TranslatedSegment | str]
PARAGRAPHS = LineStatistics(sentences=3, tokens=40, longest=60, least_ratio=0.1, caps=0.0)


@cache
def tokenizers(*, has_masks: bool) -> Tokenizers:
    tokenizer = train_bpe(["the dog sleeps"] * 2, vocab_size=280, masks=True) if has_masks else byte_tokenizer()
    return Tokenizers(tokenizer, tokenizer)


class Aligned:
    """The n-th word of a translation belongs to the n-th of its source."""

    def __init__(self, source: str, target: str) -> None:
        self.weights_XY = np.eye(len(word_spans(target)), len(word_spans(source)), dtype=np.float32)


def translations(
    texts: Sequence[str],
    model: Model = str.upper,
    *,
    direction: str = "en-de",
    has_masks: bool = True,
    statistics: LineStatistics | None = None,
    vocabularies: Any = None,
    n_best: int = 1,
    **options: Any,
) -> list[Translation]:
    """Translate with a function in place of a model."""
    src, tgt = direction.split("-", 1)
    segmenter = Segmenter(src, statistics, lambda texts: [len(text.split()) + 1 for text in texts], max_tokens=100)
    divide = TextDivider(segmenter, vocabularies or tokenizers(has_masks=has_masks), tgt)
    work = TextTranslation(divide(texts, **options), tgt_language=tgt)
    assert len(set(work.sentences)) == len(work.sentences)
    found = [model(each.text) for each in work.sentences]
    segments = [each if isinstance(each, TranslatedSegment) else segment((each, -1.0)) for each in found]
    aligned = [Aligned(*pair) for pair in work.pairs(segments)]
    return work.put_together(segments, aligned, n_best=n_best)


def segment(*best: tuple[str, float], warnings: tuple[Any, ...] = ()) -> TranslatedSegment:
    return TranslatedSegment(tuple(ScoredText(*each) for each in best), warnings)


def texts_of(*arguments: Any, **options: Any) -> list[str]:
    return [each.text for each in translations(*arguments, **options)]


def refuse(text: str) -> str:
    raise AssertionError(text)


NO_LETTERS = [
    "", " ", "\t", "   \t ", "\u3000\u00a0", "\0", "2024", "31", "1", "-", "---", "...", "…", "?", "#", "3.14", "(1)",
    "00:00:07,312 --> 00:00:09,993", "+1 (555) 010-9999", "2024-11-26", "10 %", "٣٫١٤", "१२३", "→", "↑ ↓", "★★★",
    "© 2024", "$5.00", "=====", "* * *", "1,2\t3,4", "1\n2\n3", "\u2028", "\x0c\x85", "5.\u00a0 6.",
    "https://example.org/a?b=c", "a.b@c.org", "{name}", "%s", "%(count)d", "{0}: {1}", "👍", "https://x.org 12",
    "\ud83d\ude00",
]  # fmt: skip


@pytest.mark.parametrize("has_masks", [False, True])
@pytest.mark.parametrize("splitting", ["lines", "sentences", "none"])
def test_text_without_letters_stays(has_masks: bool, splitting: Splitting) -> None:
    results = translations(NO_LETTERS, refuse, has_masks=has_masks, splitting=splitting)
    readable = [text.encode("utf-16", "surrogatepass").decode("utf-16") for text in NO_LETTERS]
    assert [each.text for each in results] == readable
    assert [each.source for each in results] == NO_LETTERS
    assert not any(each.warnings for each in results)


def test_sentences_without_letters_stay_in_their_line() -> None:
    asked: list[str] = []

    def model(text: str) -> str:
        asked.append(text)
        return text.upper()

    text = "He left. 2024! She came. ...\n17 + 4\nIt fell."
    assert texts_of([text], model) == [text.upper()]
    assert not any(any(map(str.isdigit, each)) for each in asked)


def test_lone_surrogates_become_replacement_characters() -> None:
    assert texts_of(["\ud800", "a \udcff b", "\ud800\n5"], str.upper) == ["\ufffd", "A \ufffd B", "\ufffd\n5"]


PIECES = [
    "The dog sleeps. ",
    "One",
    "two.",
    "x",
    " 2024 ",
    "-",
    ". ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "\u2003",
]
PIECES += ["\u2028", "\x0b", "\x1c", "\x85", "Yes!\tNo?", "\u3000", "(a) "]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(["lines", "sentences", "none"]))
def test_all_space_around_sentences_stays(text: str, splitting: Splitting) -> None:
    for statistics in (None, PARAGRAPHS):
        assert texts_of([text], str.upper, splitting=splitting, statistics=statistics) == [text.upper()]


def test_lines_and_columns_are_translated_apart() -> None:
    asked: list[str] = []
    text = "  One dog\tTwo\r\n\tThree cats \u2028Four\u00a0"
    assert texts_of([text], lambda text: asked.append(text) or text.upper()) == [text.upper()]  # type: ignore[func-returns-value]
    assert asked == ["One dog", "Two", "Three cats", "Four"]
    asked.clear()
    texts_of([text], lambda text: asked.append(text) or text.upper(), splitting="none")  # type: ignore[func-returns-value]
    assert asked == [text.strip()]


JOINED = [  # direction, source, translations by sentence, result
    ("zh-en", "他走了。我来了！", "He left./I came!", "He left. I came!"),
    ("zh-en", "你好。今天很好。谢谢。", "Hi./A fine day./Thanks.", "Hi. A fine day. Thanks."),
    ("ja-de", "これはペンです。それは本です。", "Ein Stift./Ein Buch.", "Ein Stift. Ein Buch."),
    ("ja-ko", "これはペンです。それは本です。", "펜입니다./책입니다.", "펜입니다. 책입니다."),
    ("zh-ja", "他走了。我来了！", "彼は去った。/私は来た！", "彼は去った。私は来た！"),
    ("en-zh", "He left. I came!", "他走了。/我来了！", "他走了。我来了！"),
    ("en-zh", "He left.  I came!", "他走了。/我来了！", "他走了。我来了！"),
    ("en-zh-hant", "He left. I came!", "他走了。/我來了！", "他走了。我來了！"),
    ("en-ja", "He left. I came!", "彼は去った。/私は来た！", "彼は去った。私は来た！"),
    ("en-ja", "He left.\nI came!", "彼は去った。/私は来た！", "彼は去った。\n私は来た！"),
    ("en-zh", "He left. I came!", "OK./我来了！", "OK. 我来了！"),
    ("en-th", "He left. I came!", "เขาไปแล้ว/ฉันมาแล้ว", "เขาไปแล้ว ฉันมาแล้ว"),
    ("en-ko", "He left. I came!", "그는 떠났다./나는 왔다!", "그는 떠났다. 나는 왔다!"),
    ("en-de", "He left.  I came!", "Er ging./Ich kam!", "Er ging.  Ich kam!"),
]  # fmt: skip


@pytest.mark.parametrize(("direction", "source", "parts", "joined"), JOINED)
def test_sentences_are_joined_as_the_target_language_joins_them(
    direction: str, source: str, parts: str, joined: str
) -> None:
    by_sentence = iter(parts.split("/"))
    assert texts_of([source], lambda text: next(by_sentence), direction=direction) == [joined]


def test_clauses_of_an_unspaced_script_are_joined_with_spaces() -> None:
    def n_tokens(texts: Sequence[str]) -> list[int]:
        return [len(text) + 1 for text in texts]

    segmenter = Segmenter("zh", None, n_tokens, max_tokens=12)
    divide = TextDivider(segmenter, tokenizers(has_masks=True), "en")
    work = TextTranslation(divide(["我们昨天买了一本书，他们今天卖了两本书。"]), tgt_language="en")
    assert len(work.sentences) == 2
    [result] = work.put_together([segment(("we bought,", -1.0)), segment(("they sold.", -1.0))], [])
    assert result.text == "we bought, they sold."


def test_equal_sentences_are_translated_once() -> None:
    asked: list[str] = []
    texts = ["He left. He left.", "He left.", "He left.\nHe left."]
    assert texts_of(texts, lambda text: asked.append(text) or text.upper()) == [each.upper() for each in texts]  # type: ignore[func-returns-value]
    assert asked == ["He left."]


def test_the_best_of_a_text_are_the_best_combinations() -> None:
    parts = {
        "One is.": segment(("a", -1.0), ("b", -1.5)),
        "Two is.": segment(("c", -1.0), ("d", -1.2), warnings=("short",)),
    }
    [results] = translations(["One is.  Two is."], parts.__getitem__, n_best=3)
    assert [each.text for each in results.n_best] == ["a  c", "a  d", "b  c"]
    assert [each.score for each in results.n_best] == pytest.approx([-2.0, -2.2, -2.5])
    assert (results.warnings, results.n_segments) == (("short",), 2)
    assert len(translations(["One is.  Two is."], parts.__getitem__, n_best=9)[0].n_best) == 4
    same = {"One is.": segment(("a", -1.0), ("a b", -1.5)), "Two is.": segment(("b c", -1.0), ("c", -1.1))}
    [results] = translations(["One is. Two is."], same.__getitem__, n_best=9)
    texts = [each.text for each in results.n_best]
    assert texts == ["a b c", "a c", "a b b c"]  # "a b c" comes about in two ways


def test_what_has_no_translation_stands_as_in_the_source_and_is_told() -> None:
    def model(text: str) -> TranslatedSegment | str:
        return segment(("", -3.0), warnings=("untranslated",)) if "dog" in text else text.upper()

    texts = ["The dog.", "A cat. The dog.", "  The dog\tA cat", "A cat."]
    results = translations(texts, model)
    assert [each.text for each in results] == ["The dog.", "A CAT. The dog.", "  The dog\tA CAT", "A CAT."]
    assert [each.warnings for each in results] == [("untranslated",)] * 3 + [()]
    [html] = translations(["<p>The <b>dog</b> &amp; 5"], model, rules=html_rules())
    assert html.text == "<p>The <b>dog</b> &amp; 5"


def test_flags_of_sentences_are_those_of_the_text() -> None:
    flags: dict[str, tuple[Any, ...]] = {"One.": ("short", "lost"), "Two.": ("source-cut",), "Three.": ("lost",)}
    results = translations(
        ["One. Two.\nThree.", "Three.", "5"], lambda text: segment(("x", -1.0), warnings=flags.get(text, ()))
    )
    assert [each.warnings for each in results] == [("source-cut", "lost", "short"), ("lost",), ()]
    assert [each.is_truncated for each in results] == [True, False, False]


@pytest.mark.parametrize(
    "text", ["See https://x.org/a now", "Mail a@b.org.", "{name} left {0}", "It costs %d dollars", "<p>See {x} now"]
)
def test_a_model_without_masks_never_sees_addresses_and_placeholders(text: str) -> None:
    asked: list[str] = []
    rules = html_rules() if text.startswith("<") else None
    [result] = translations(
        [text],
        lambda text: asked.append(text) or text.upper(),  # type: ignore[func-returns-value]
        has_masks=False,
        rules=rules,
    )
    for kept in ("https://x.org/a", "a@b.org", "{name}", "{0}", "%d", "{x}"):
        assert result.text.count(kept) == text.count(kept)
        assert not any(kept in each for each in asked)


def test_the_sentences_of_a_prefix_belong_to_those_of_the_text() -> None:
    segmenter = Segmenter("en", None, lambda texts: [1] * len(texts), max_tokens=100)
    divide = TextDivider(segmenter, tokenizers(has_masks=False), "de")
    texts = ["2024\nHe left. She came.\tIt fell.", "See https://x.org now", "5"]
    prefixes = ["Er ging. Sie k", "Siehe https://x", "Fü"]
    work = TextTranslation(divide(texts, prefixes=prefixes), tgt_language="de")
    begun = [(each.text, each.prefix.text, each.prefix.is_whole) for each in work.sentences]
    assert begun == [
        ("He left.", "Er ging.", True), ("She came.", "Sie k", False), ("It fell.", "", False),
        ("See https://x.org now", "Siehe https://x", False),
    ]  # fmt: skip


class WithCodes:
    """Vocabularies whose sources may begin with a language code."""

    has_masks = False

    @property
    def src(self) -> WithCodes:
        return self

    tgt = src

    def split_language_code(self, text: str) -> tuple[str, str]:
        code, mark, rest = text.partition("<< ")
        return (code + "<<", rest) if mark else ("", text)


def test_a_language_code_begins_each_sentence() -> None:
    asked: list[str] = []
    results = translations(
        [">>deu<< He left. She came.\n5", ">>deu<< 5", "He left."],
        lambda text: asked.append(text) or text.removeprefix(">>deu<< ").upper(),  # type: ignore[func-returns-value]
        vocabularies=WithCodes(),
    )
    assert asked == [">>deu<< He left.", ">>deu<< She came.", "He left."]
    assert [each.text for each in results] == ["HE LEFT. SHE CAME.\n5", "5", "HE LEFT."]


def test_tags_follow_their_words() -> None:
    texts = ["<p>The <b>dog</b> sleeps.</p>\n<p>5</p>", "One. <i>Two</i>.<br>Three"]
    results = texts_of(texts, lambda text: text.upper(), rules=html_rules())
    assert results == ["<p>THE <b>DOG</b> SLEEPS.</p>\n<p>5</p>", "ONE. <i>TWO</i>.<br>THREE"]


def test_a_document_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.inference.translation.text_division.MAX_LINE_BYTES", 20)
    text = "<b title='a dog'>One is.</b> Two is."
    [cut] = translations([text])
    assert cut.is_truncated
    [whole] = translations([text], rules=html_rules())
    assert (whole.text, whole.warnings) == ("<b title='a dog'>ONE IS.</b> TWO IS.", ())
