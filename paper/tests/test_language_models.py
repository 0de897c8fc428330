"""The three kinds of language models: the questions they are asked, and a short form of the experiment."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from transduce.inference import Continuation, FilledText, SpanFill
from transduce.search import Sampling
from transduce.text import train_bpe
from transduce_paper import Experiments
from transduce_paper.notes.language_models import KINDS, make_language_models, questions_of, right_answers

LINES = ["the dog sees the cat in the garden .", "the cat sees the dog .", "two words"] * 4


def test_questions_hide_words_of_one_token_with_words_on_both_sides() -> None:
    tokenizer = train_bpe(LINES, vocab_size=320)
    questions = list(questions_of(iter(LINES), tokenizer, seed=1))
    assert questions == list(questions_of(iter(LINES), tokenizer, seed=1))
    assert len(questions) == 8  # "two words" has no word with words on both sides
    for question, line in zip(questions, [line for line in LINES if line != "two words"], strict=True):
        assert f"{question.before} {question.word} {question.after}" == line
        assert len(tokenizer.encode(question.word)) == 1
        assert question.before
        assert question.after
    assert len({question.word for question in questions}) > 1


class Known:
    """A model that knows one word, of either kind."""

    def __init__(self, task: str) -> None:
        self.capabilities = SimpleNamespace(tasks=(task,))

    def generate(self, prompts: Sequence[str], *, max_tokens: int, sampling: Sampling) -> list[Continuation]:
        assert (max_tokens, sampling.temperature) == (1, 0.0)
        assert all("<mask>" not in prompt for prompt in prompts)
        return [Continuation(prompt, " cat", -1.0, 1, False) for prompt in prompts]

    def fill(self, texts: Sequence[str], *, n_best: int) -> list[FilledText]:
        assert all(text.count(" <mask> ") == 1 for text in texts)
        return [FilledText("", ((SpanFill("▁cat", 0.5),),)) for _ in texts]


@pytest.mark.parametrize("task", list(KINDS))
def test_right_answers_are_counted(task: str) -> None:
    questions = list(questions_of(iter(LINES), train_bpe(LINES, vocab_size=320), seed=1))
    expected = sum(question.word == "cat" for question in questions)
    assert 0 < expected < len(questions)
    assert right_answers(Known(task), questions) == expected  # type: ignore[arg-type]


def test_the_short_form_makes_all_three(tmp_path: Path) -> None:
    part = make_language_models(Experiments(tmp_path / "records", tmp_path / "work", scale="test"))
    table = part.table("-language-models")
    assert table.column("task") == [f"`{task}`" for task in KINDS]
    causal, masked, spans = table.column("targets per token read")
    assert causal == 1
    assert 0.1 < masked < 0.25
    assert 0.1 < spans < 0.6
    assert all(perplexity > 1 for perplexity in table.column("dev PPL per target"))
    shutil.rmtree(tmp_path / "work" / "test")
    again = make_language_models(Experiments(tmp_path / "records", tmp_path / "work", scale="test"))
    assert again.table("-language-models") == table  # from the records alone
