"""Parsing as a task: perplexity and labelled F1 on the way, PARSEVAL at the end. Section 6.3, Table 4."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from transduce.config import SearchConfig
from transduce.linearisation import ANY_TAG, PUNCTUATION_TAGS, delinearise
from transduce.metrics import Parseval, TokenisedBleu, parseval
from transduce.model import EncoderDecoder
from transduce.tasks.parser import Parser, tagged_words
from transduce.tasks.task import Task
from transduce.tasks.validation import TaskValidation
from transduce.training import Score, Validation
from transduce.trees import Tree, escape_brackets, split_words, tree_or_none

__all__ = ["ABOUT_SCORES", "Parsing", "ParsingScores", "evaluate_parser", "gold_tree"]

SIGNATURE = "parseval|COLLINS.prm|punctuation tags given"
ABOUT_SCORES = "The parser was told which words are punctuation, as is usual."


@dataclass(frozen=True, slots=True)
class ParsingScores:
    """PARSEVAL of a parser that was told which words are punctuation, as is usual."""

    result: Parseval

    def as_json(self) -> dict[str, Any]:
        """What ``transduce parseval --json`` prints."""
        return {**asdict(self.result.all), "length_40": asdict(self.result.length_40)}


class ParsingValidation(TaskValidation):
    """Perplexity and labelled F1."""

    def _write(self, model: EncoderDecoder, places: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        config = self.run_config
        parser = Parser(model, self.tokenizers, config.search, precision=config.training.precision)
        gold = [gold_tree(self._sources[place], self._references[place]) for place in places]
        parses = parser.parse_unless(should_stop, [tagged_words(tree) for tree in gold])
        return None if parses is None else [str(parse.tree) for parse in parses]

    def _judged(self, nll_nats: float, outputs: list[str]) -> Validation:
        gold = [gold_tree(*pair) for pair in zip(self._sources, self._references, strict=True)]
        totals = parseval(gold, [tree_or_none(output) for output in outputs]).all
        return Validation(nll_nats, {"f1": Score(totals.f1, SIGNATURE)})


def evaluate_parser(
    parser: Parser, sources: Sequence[str], symbols: Sequence[str], *, search: SearchConfig | None = None
) -> ParsingScores:
    """Scores of a parser on prepared trees: sentences, and their symbols; of tags where the symbols have any."""
    gold = [gold_tree(*pair) for pair in zip(sources, symbols, strict=True)]
    parses = parser.parse_tagged((tagged_words(tree) for tree in gold), search=search)
    result = parseval(gold, [parse.tree for parse in parses])
    tags = {leaf.label for tree in gold for leaf in tree.leaves()} - PUNCTUATION_TAGS
    return ParsingScores(result.without_tags() if tags <= {ANY_TAG} else result)


def gold_tree(source: str, symbols: str) -> Tree:
    """The tree of a prepared pair. Raises TreeError if they do not fit."""
    return delinearise(symbols.split(), [escape_brackets(word) for word in split_words(source)])


class Parsing(Task):
    """Sentences to the trees over their words. Section 6.3."""

    name = "parsing"
    doing = "parsing"
    validation = ParsingValidation

    def evaluate(
        self,
        model_folder: Path,
        text: tuple[list[str], list[str]],
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> ParsingScores:
        """PARSEVAL of the trees of the sources; there is no BLEU of trees."""
        return evaluate_parser(Parser.load(model_folder, device=device), *text)
