"""The parsing task: perplexity and labelled F1 in validation, PARSEVAL in evaluation. Section 6.3, Table 4."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

from transduce.config import DataConfig, RunConfig, SearchConfig, Split, TreesData
from transduce.corpora import Pair, TreebankText
from transduce.errors import ConfigError
from transduce.findings import Finding
from transduce.findings.treebanks import examine_trees_of
from transduce.inference.parser import Parser, tagged_words
from transduce.linearisation import ANY_TAG, PUNCTUATION_TAGS, delinearise
from transduce.metrics import Parseval, parseval
from transduce.model import EncoderDecoder
from transduce.tasks.pairs.pair_task import Lines, PairPreparation, PairTask
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage, EvaluationOptions
from transduce.tasks.tokenizers import tokenizer_trainer, tokenizers_of_model
from transduce.tasks.validation import PairValidation
from transduce.text import Tokenizers, train_word_level
from transduce.training import Score, Validation
from transduce.trees import Tree, escape_brackets, split_words, tree_or_none

__all__ = ["ABOUT_SCORES", "Parsing", "ParsingScores", "evaluate_parser", "gold_tree"]

SIGNATURE = "parseval|COLLINS.prm|punctuation tags given"
ABOUT_SCORES = "Gold punctuation tags are given to the parser, as is usual."


@dataclass(frozen=True, slots=True)
class ParsingScores:
    """PARSEVAL scores of a parser with gold punctuation tags, as is usual."""

    result: Parseval

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that ``transduce parseval --json`` prints."""
        return {**asdict(self.result.all), "length_40": asdict(self.result.length_40)}


class ParsingValidation(PairValidation):
    """Perplexity and labelled F1."""

    score = "f1"

    def _decode(self, model: EncoderDecoder, rows: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        parser = Parser(model, self.tokenizers, self._search, precision=self.config.precision)
        gold = [gold_tree(self._sources[row], self._references[row]) for row in rows]
        parses = parser.parse_interruptible(should_stop, [tagged_words(tree) for tree in gold])
        return None if parses is None else [str(parse.tree) for parse in parses]

    def _validation(self, nll_nats: float, outputs: list[str]) -> Validation:
        gold = [gold_tree(*pair) for pair in zip(self._sources, self._references, strict=True)]
        totals = parseval(gold, [tree_or_none(output) for output in outputs]).all
        return Validation(nll_nats, {self.score: Score(totals.f1, SIGNATURE)})


def evaluate_parser(
    parser: Parser, sources: Sequence[str], tokens: Sequence[str], *, search: SearchConfig | None = None
) -> ParsingScores:
    """Evaluate a parser on sentences and their linearised trees; tags are scored only if the trees have any."""
    gold = [gold_tree(*pair) for pair in zip(sources, tokens, strict=True)]
    parses = parser.parse_tagged((tagged_words(tree) for tree in gold), search=search)
    result = parseval(gold, [parse.tree for parse in parses])
    tags = {leaf.label for tree in gold for leaf in tree.leaves()} - PUNCTUATION_TAGS
    return ParsingScores(result.without_tags() if tags <= {ANY_TAG} else result)


def gold_tree(source: str, tokens: str) -> Tree:
    """Return the tree of a prepared pair. Raises TreeError if source and tokens do not fit."""
    return delinearise(tokens.split(), [escape_brackets(word) for word in split_words(source)])


class TreePreparation(PairPreparation[TreesData]):
    """Preparation of sentences and their trees."""

    def make_source(self, config: TreesData) -> TreebankText:
        """Return the sentences and their trees."""
        return TreebankText(config, self.data_folder)

    def training_items(self, corpus: str) -> Iterator[Pair]:
        """Return the pairs, and those made by subtree substitution."""
        assert isinstance(self.source, TreebankText)
        return chain(self.source.train(corpus), self.source.recombined(corpus))

    def train_tokenizers(self, lines: Lines) -> Tokenizers:
        """Train a subword tokenizer for sentences and a word-level one for linearised trees.

        Of ``tokenizer_from`` both are taken if it is a parser, else that of the source.
        """
        existing = tokenizers_of_model(self.config)
        if existing is None:
            return Tokenizers(tokenizer_trainer(self.config)(lines(0)), train_word_level(lines(1)))
        if existing.src.is_closed:
            raise ConfigError(f"{self.config.tokenizer_from} does not read text; a parser needs a vocabulary of text")
        return existing if existing.tgt.is_closed else Tokenizers(existing.src, train_word_level(lines(1)))


class Parsing(PairTask):
    """Constituency parsing as sequence to sequence: sentences to linearised trees. Section 6.3."""

    name = used_as = "parsing"
    progress_verb = "parsing"
    has_words_as_targets = True
    settings = TreesData
    reads = frozenset({"training.r_drop", "training.r_drop_after"})
    searches = ("beam", "greedy")
    preparation = TreePreparation
    validation = ParsingValidation

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> ParsingScores:
        """Return PARSEVAL scores of the parsed sources."""
        text = prepared.text(split)
        assert text is not None
        return evaluate_parser(self.load(model_folder, device=options["device"]), *text)

    def score_lines(self, scores: ParsingScores, config: RunConfig) -> list[str]:
        """Return a table of the PARSEVAL measures, for all sentences and for those of at most 40 words."""
        of_all, of_short = asdict(scores.result.all), asdict(scores.result.length_40)
        measured = [name for name in of_all if of_all[name] is not None]
        search = f"Beam {config.search.beam_size}, alpha {config.search.alpha}"
        return [
            f"{search}. {ABOUT_SCORES}",
            "",
            "| PARSEVAL | all | length <= 40 |",
            "| --- | --- | --- |",
            *(f"| {name} | {of_all[name]:.6g} | {of_short[name]:.6g} |" for name in measured),
        ]

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the trees."""
        return examine_trees_of(data, recipe, data_folder)

    def use(self, data: DataConfig) -> CardUsage:
        """Describe the use of a parser."""
        return CardUsage(f"parsing {data.src_language}", "parse", "Parser.load(folder).parse([...])")


register(Parsing())
