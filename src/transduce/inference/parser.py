"""Constituency parsing with a trained model: a stream of sentences to a stream of trees. Section 6.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from transduce.config import EncoderDecoderConfig, InferencePrecision, SearchConfig
from transduce.config.decoding import DecodingOptions, EngineName
from transduce.config.search import SearchKeywords
from transduce.inference.arguments import require_sequence
from transduce.inference.devices import usable_device
from transduce.inference.engine import Constraints, Engine, EngineSettings
from transduce.inference.engines import make_engine
from transduce.inference.folder import ModelFolder, read_model_folder
from transduce.inference.stored_model import StoredModel
from transduce.inference.text_search import SearchResult, TextSearch
from transduce.inference.trained_model import Capabilities, TrainedModel
from transduce.linearisation import ANY_TAG, PUNCTUATION_TAGS, ending_token, repair
from transduce.text import UNK_ID, Tokenizers
from transduce.text.bracket_grammar import BracketGrammar, TokenKinds
from transduce.text.chunks import chunks
from transduce.trees import Tree, escape_brackets, sentence_of_words, split_words, unescaped

if TYPE_CHECKING:
    import torch

    from transduce.model import EncoderDecoder

__all__ = ["Parse", "Parser", "TaggedWords", "tagged_words"]

CHUNK_LINES = 1000  # sentences read before the first is parsed
MIN_WORD_CHARACTERS = 16  # a shorter word counts as this many characters, for its memory overhead

# Words with a known punctuation tag, XX for a word known not to be punctuation, None if the parser has to decide.
TaggedWords = Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Parse:
    """Parse of one sentence."""

    words: tuple[str, ...]
    tree: Tree | None  # None for a sentence without words
    score: float  # log-probability over length penalty
    is_truncated: bool  # the model did not read the end of the sentence; the tree has all words anyway


class Parser(TrainedModel):
    """Parse sentences of whitespace-separated words, tokenized as in treebanks.

    ``Parser.load(folder).parse(["..."])`` is all that most users need. Search is constrained to balanced brackets and
    every word once; with ``is_constrained=False`` the output is repaired instead. The allowed tags have the probability
    of all tags: the score covers emitting *some* word, not which. (Otherwise a model that expects another word would
    prefer to open brackets without end: a small half-trained parser had 55 F1 without this, 63 with it.)
    """

    capabilities = Capabilities(
        ("parsing",), "a parser", "parse", served_as="parser",
        why_not_exported="a parser's search follows the words of the sentence, and no other library has such a search",
    )  # fmt: skip

    def __init__(
        self,
        model: EncoderDecoder | StoredModel,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        is_constrained: bool = True,
    ) -> None:
        """Make a parser. Raises DataError if the target tokenizer has no brackets and tags."""
        super().__init__(model)
        self.tokenizers, self.search, self.is_constrained = tokenizers, search, is_constrained
        self.kinds = TokenKinds.from_vocabulary(tokenizers.tgt.vocabulary)
        self._tokens = {id: token for token, id in tokenizers.tgt.vocabulary.items()} | {UNK_ID: ANY_TAG}
        made = make_engine(model, settings=EngineSettings(precision, engine=engine))
        self._text_search = TextSearch(made, tokenizers.src)

    def attend(self, on_step: Callable[[], object]) -> None:
        """Call ``on_step`` before each step of decoding, for instance to let more urgent work pass."""
        self.engine.on_step = on_step

    @property
    def engine(self) -> Engine:
        """What computes."""
        return self._text_search.engine

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        is_constrained: bool = True,
    ) -> Self:
        """Load a model folder. Raises CheckpointError if it cannot be used, or holds no parser."""
        loaded = read_model_folder(Path(folder), device=usable_device(device))
        kind = cls.class_for(loaded)
        return kind.from_folder(loaded, precision=precision, engine=engine, is_constrained=is_constrained)

    @classmethod
    def from_folder(
        cls,
        loaded: ModelFolder,
        *,
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        is_constrained: bool = True,
    ) -> Self:
        """Return the parser of a model folder that has been read."""
        model = loaded.stored_as(EncoderDecoderConfig)
        return cls(
            model, loaded.tokenizers, loaded.search, precision=precision, engine=engine, is_constrained=is_constrained
        )

    def parse(
        self, sentences: Sequence[str], *, search: SearchConfig | None = None, **options: Unpack[SearchKeywords]
    ) -> list[Tree | None]:
        """Parse a list of sentences; None for one without words. Raises TypeError for a single string.

        ``options`` override fields of ``search``, by default the model's.
        """
        require_sequence(sentences, "parse takes a list of sentences", "for one sentence, parse([sentence])[0]")
        overridden = DecodingOptions(**options).applied_to(search or self.search)
        return [parse.tree for parse in self.parse_lines(sentences, search=overridden)]

    def parse_lines(
        self, lines: Iterable[str], *, search: SearchConfig | None = None, chunk_lines: int = CHUNK_LINES
    ) -> Iterator[Parse]:
        """Parse a stream of sentences, in order."""
        return self.parse_tagged((tagged_words(line) for line in lines), search=search, chunk_lines=chunk_lines)

    def parse_tagged(
        self, sentences: Iterable[TaggedWords], *, search: SearchConfig | None = None, chunk_lines: int = CHUNK_LINES
    ) -> Iterator[Parse]:
        """Parse a stream of sentences whose punctuation is known, as is usual in evaluation."""
        for chunk in chunks(sentences, chunk_lines, _n_characters):
            parses = self.parse_interruptible(lambda: False, chunk, search=search)
            assert parses is not None  # not interrupted
            yield from parses

    def parse_interruptible(
        self, should_stop: Callable[[], bool], sentences: Sequence[TaggedWords], *, search: SearchConfig | None = None
    ) -> list[Parse] | None:
        """Parse a list of sentences; None if ``should_stop``, checked before each batch, is true."""

        def tree_over(index: int, max_length: int) -> Constraints:
            tags = [self._allowed_ids(*pair) for pair in truncated[index]]
            return Constraints(allowed=BracketGrammar(self.kinds, tags, max_length), pooled=self.kinds.tags)

        # Search covers the words that the model can read; ``repair`` adds the others.
        max_words = self._text_search.max_source_tokens - 1
        truncated = [words[:max_words] for words in sentences]
        texts = [sentence_of_words(word for word, _ in words) for words in sentences]
        results = self._text_search(
            texts,
            search or self.search,
            should_stop=should_stop,
            constrain=tree_over if self.is_constrained else None,
            min_tokens=[len(words) + 1 for words in truncated],
        )
        if results is None:
            return None
        return [self._parse(words, result) for words, result in zip(sentences, results, strict=True)]

    def _parse(self, tagged: TaggedWords, result: SearchResult) -> Parse:
        words = tuple(word for word, _ in tagged)
        if not words:
            return Parse(words, None, 0.0, result.is_truncated)
        # There is no hypothesis if no word has a token, as with control characters.
        ids, score = (result.hypotheses[0].ids, result.hypotheses[0].score) if result.hypotheses else ((), 0.0)
        tree = repair(
            [self._tokens[id] for id in ids if id >= UNK_ID],
            [escape_brackets(word) for word in words],
            [tag for _, tag in tagged],
        )
        return Parse(words, tree, score, result.is_truncated)

    def _allowed_ids(self, word: str, tag: str | None) -> Sequence[int]:
        """Return the target ids allowed for a word. A word with a letter or digit is not tagged as punctuation."""
        kinds, vocabulary = self.kinds, self.tokenizers.tgt.vocabulary
        if tag in PUNCTUATION_TAGS:
            tag_id = vocabulary.get(tag)
            return (tag_id,) if tag_id is not None else kinds.punctuation or kinds.tags
        # With ending tokens, allow only the one of this word, if the vocabulary has it.
        ending = vocabulary.get(ending_token(word))
        word_tags = kinds.other_tags if ending is None else (ending,)
        if tag is None and not any(map(str.isalnum, unescaped(word))):
            return (*kinds.punctuation, *word_tags)
        return word_tags or kinds.tags


def _n_characters(sentence: TaggedWords) -> int:
    """Estimate the memory of a sentence in characters, with a minimum per word."""
    return sum(max(len(word), MIN_WORD_CHARACTERS) for word, _ in sentence)


def tagged_words(sentence: str | Tree) -> list[tuple[str, str | None]]:
    """Return the words of a sentence without tags, or those of a tree with its punctuation tags.

    >>> from transduce.trees import parse_tree
    >>> tagged_words("Go !"), tagged_words(parse_tree("(TOP (VB Go) (. !))"))
    ([('Go', None), ('!', None)], [('Go', 'XX'), ('!', '.')])
    """
    if isinstance(sentence, str):
        return [(word, None) for word in split_words(sentence)]
    return [(leaf.word or "", leaf.label if leaf.label in PUNCTUATION_TAGS else ANY_TAG) for leaf in sentence.leaves()]
