"""A trained model as a constituency parser: sentences in, one tree out for each, in order. Section 6.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transduce.config import InferencePrecision, SearchConfig
from transduce.linearisation import ANY_TAG, PUNCTUATION_TAGS, ending_token, repair
from transduce.model import EncoderDecoder
from transduce.search import Constrained, Prefixes
from transduce.tasks.batch_search import BatchSearch, SearchResult, require_several
from transduce.tasks.devices import usable_device
from transduce.tasks.model_folder import read_model_folder
from transduce.text import UNK_ID, Tokenizers
from transduce.text.bracket_grammar import BracketGrammar, TokenKinds
from transduce.text.chunks import chunks
from transduce.trees import Tree, escape_brackets, sentence_of_words, split_words, unescaped

__all__ = ["Parse", "Parser", "TaggedWords", "tagged_words"]

CHUNK_LINES = 1000  # sentences read before the first is parsed
CHARACTERS_OF_A_WORD = 16  # that take as much memory as a word does beside its letters

# A word, and its tag where it is known and punctuation, or known to be none: then XX. None: for the parser to say.
TaggedWords = Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Parse:
    """What became of one sentence."""

    words: tuple[str, ...]
    tree: Tree | None  # None where there was no word
    score: float  # log-probability over length penalty
    is_truncated: bool  # the sentence was too long to be read whole; its tree has all words all the same


@dataclass(frozen=True, slots=True)
class TreesOfWords(Constrained):
    """What a parser may write: brackets that match, and its words, which are given.

    Of the tags that stand for words, the allowed ones are renormalised to the total of all: the score covers that a
    word comes next, not which. (Else a model that expects another word would rather open brackets for ever.)
    """

    tags: Sequence[int]

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """(N, V) to (N, V), changed in place."""
        blocked_NV, tags = self.blocked(log_probs_NV, prefixes), torch.tensor(self.tags, device=log_probs_NV.device)
        of_all_N1 = log_probs_NV[:, tags].logsumexp(dim=1, keepdim=True)
        log_probs_NV.masked_fill_(blocked_NV, -torch.inf)
        of_allowed_N1 = log_probs_NV[:, tags].logsumexp(dim=1, keepdim=True)
        log_probs_NV[:, tags] += torch.where(of_allowed_N1 > -torch.inf, of_all_N1 - of_allowed_N1, 0.0)
        return log_probs_NV


class Parser:
    """Parses sentences whose words stand between blanks, as treebanks have them.

    ``Parser.load(folder).parse(["..."])`` is all that most users need. Search is constrained: whatever the model has
    learned, brackets match and every word is in the tree once. Without (``is_constrained=False``) what it writes is
    repaired.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        precision: InferencePrecision = "fp32",
        is_constrained: bool = True,
    ) -> None:
        """Raises DataError if the target side of the tokenizers has no brackets and tags."""
        self.model, self.tokenizers, self.search, self.is_constrained = model, tokenizers, search, is_constrained
        self.kinds = TokenKinds.from_vocabulary(tokenizers.tgt.vocabulary)
        self._tokens = {id: token for token, id in tokenizers.tgt.vocabulary.items()} | {UNK_ID: ANY_TAG}
        self._search_all = BatchSearch([model], tokenizers.src, precision=precision)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
        is_constrained: bool = True,
    ) -> Parser:
        """From a model folder. Raises CheckpointError if it cannot be used, or holds a translator."""
        read = read_model_folder(Path(folder), device=usable_device(device))
        read.require_task("parsing", Path(folder))
        return cls(read.model, read.tokenizers, read.search, precision=precision, is_constrained=is_constrained)

    def parse(self, sentences: Sequence[str], *, search: SearchConfig | None = None) -> list[Tree | None]:
        """The tree of each sentence; None for one without words.

        Raises TypeError for a single string, which would be parsed letter by letter.
        """
        require_several(sentences, "parse takes a list of sentences", "for one sentence, parse([sentence])[0]")
        return [parse.tree for parse in self.parse_lines(sentences, search=search)]

    def parse_lines(
        self, lines: Iterable[str], *, search: SearchConfig | None = None, chunk_lines: int = CHUNK_LINES
    ) -> Iterator[Parse]:
        """A stream of sentences to a stream of trees, one for each, in order."""
        return self.parse_tagged((tagged_words(line) for line in lines), search=search, chunk_lines=chunk_lines)

    def parse_tagged(
        self, sentences: Iterable[TaggedWords], *, search: SearchConfig | None = None, chunk_lines: int = CHUNK_LINES
    ) -> Iterator[Parse]:
        """The same where it is known which words are punctuation, as in the evaluation of parsers."""
        for chunk in chunks(sentences, chunk_lines, _n_characters):
            parses = self.parse_unless(lambda: False, chunk, search=search)
            assert parses is not None  # nobody asks to stop
            yield from parses

    def parse_unless(
        self, should_stop: Callable[[], bool], sentences: Sequence[TaggedWords], *, search: SearchConfig | None = None
    ) -> list[Parse] | None:
        """Trees; None if ``should_stop``, which is asked before each search, says so."""

        def processor(places: Sequence[int], max_lengths: Sequence[int]) -> TreesOfWords:
            tags = [[self._allowed(*pair) for pair in readable[place]] for place in places]
            return TreesOfWords(BracketGrammar(self.kinds, tags, max_lengths), self.kinds.tags)

        # Of a line that is longer than any source, the search writes the words that may be read; the others are added.
        most = self._search_all.max_source_tokens - 1
        readable = [words[:most] for words in sentences]
        texts = [sentence_of_words(word for word, _ in words) for words in sentences]
        found = self._search_all(
            texts,
            search or self.search,
            should_stop=should_stop,
            processor=processor if self.is_constrained else None,
            min_tokens=[len(words) + 1 for words in readable],
        )
        if found is None:
            return None
        return [self._parse(words, each) for words, each in zip(sentences, found, strict=True)]

    def _parse(self, tagged: TaggedWords, found: SearchResult) -> Parse:
        words = tuple(word for word, _ in tagged)
        if not words:
            return Parse(words, None, 0.0, found.is_truncated)
        # A word may be nothing that a tokenizer sees: then nothing was searched.
        ids, score = (found.hypotheses[0].ids, found.hypotheses[0].score) if found.hypotheses else ((), 0.0)
        tree = repair(
            [self._tokens[id] for id in ids if id >= UNK_ID],
            [escape_brackets(word) for word in words],
            [tag for _, tag in tagged],
        )
        return Parse(words, tree, score, found.is_truncated)

    def _allowed(self, word: str, tag: str | None) -> Sequence[int]:
        """What may be written for a word. With a letter or a digit it is no punctuation, whatever the model finds."""
        kinds, vocabulary = self.kinds, self.tokenizers.tgt.vocabulary
        if tag in PUNCTUATION_TAGS:
            known = vocabulary.get(tag)
            return (known,) if known is not None else kinds.punctuation or kinds.tags
        # Where the model writes how words end, that of the word alone, unless no word of the training text ended so.
        ending = vocabulary.get(ending_token(word))
        others = kinds.other_tags if ending is None else (ending,)
        if tag is None and not any(map(str.isalnum, unescaped(word))):
            return (*kinds.punctuation, *others)
        return others or kinds.tags


def _n_characters(sentence: TaggedWords) -> int:
    """About how much a sentence takes: a word of one letter takes as much as a long one."""
    return sum(max(len(word), CHARACTERS_OF_A_WORD) for word, _ in sentence)


def tagged_words(sentence: str | Tree) -> list[tuple[str, str | None]]:
    """The words of a sentence, of which nothing is known; those of a tree, with what it says of punctuation.

    >>> from transduce.trees import parse_tree
    >>> tagged_words("Go !"), tagged_words(parse_tree("(TOP (VB Go) (. !))"))
    ([('Go', None), ('!', None)], [('Go', 'XX'), ('!', '.')])
    """
    if isinstance(sentence, str):
        return [(word, None) for word in split_words(sentence)]
    return [(leaf.word or "", leaf.label if leaf.label in PUNCTUATION_TAGS else ANY_TAG) for leaf in sentence.leaves()]
