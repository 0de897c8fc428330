"""Translation with a trained model: a stream of lines to a stream of translations, in order.

A line is divided into segments, usually sentences (``text_division.py``); verbatim spans are masked; the segments of
many lines are searched in batches; hypotheses are compared with their sources (``hypotheses.py``); and the translations
of a line are put together (``text_translation.py``).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypedDict, Unpack, overload

from transduce.config import SearchConfig, TextFormat, base_language
from transduce.config.decoding import DecodingOptions, greedy_unless_sampled
from transduce.config.search import SearchKeywords
from transduce.errors import ConfigError, quoted
from transduce.files import MAX_LINE_BYTES
from transduce.inference.arguments import require_sequence
from transduce.inference.trained_model import Capabilities
from transduce.inference.translation.parts import ScoredText, TranslatedSegment, Translation
from transduce.inference.translation.prefixes import Prefix
from transduce.inference.translation.progress import Progress, progress_callback
from transduce.inference.translation.remembered import known, with_known_parts
from transduce.inference.translation.segment_translator import SegmentTranslator
from transduce.inference.translation.segmentation import Segmenter
from transduce.inference.translation.text_division import Splitting, TextDivider
from transduce.inference.translation.text_translation import Pair, TextTranslation, WordWeights
from transduce.memories import Memory
from transduce.text import Segment, n_masks
from transduce.text.chunks import chunks
from transduce.text.markup import MarkupRules, Unit, rules_of

if TYPE_CHECKING:
    from transduce.config import Wanted
    from transduce.inference.translation.document_translation import DocumentReport

__all__ = [
    "CHUNK_LINES", "LineOptions", "MaskPredictTranslator", "Prefix", "ScoredText", "Translation", "Translator",
]  # fmt: skip

# Lines read before the first is translated: enough to batch sentences of equal length, few enough for a stream.
CHUNK_LINES = 2000
CHUNK_LINES_WITH_PROGRESS = 200
# Reranks candidates: (texts, their candidates, search configuration) to the n-best of each text.
Rerank = Callable[[Sequence[str], Sequence[TranslatedSegment], SearchConfig], Sequence[TranslatedSegment]]


class LineOptions(TypedDict, total=False):
    """Options of ``Translator.translate_lines`` for all that translate lines."""

    chunk_lines: int
    split: bool
    format: TextFormat
    is_scored: bool
    prefixes: Iterable[str]
    is_linked: bool
    report: Callable[[int], object]


class _Options(SearchKeywords, total=False):
    """Options of ``Translator.translate`` except ``n_best``."""

    search: SearchConfig | None
    split: bool
    format: TextFormat
    prefix: str | Sequence[str]
    draft: Translator | None
    progress: bool | Progress


class Translator(SegmentTranslator):
    """Translate raw text with a model or an ensemble.

    ``Translator.load(folder).translate(["..."])`` is all that most users need. ``precision="bf16"`` or ``"int8"`` (on
    CPUs) computes matrix products in that type: faster on processors that support it, with slightly different outputs.
    After changing weights, make a new translator. Several threads may share one. ``others`` are further models with the
    same vocabularies, for an ensemble; with a ``shortlist``, only its tokens are scored. ``statistics`` are those of
    the training lines; without them, every sentence is translated separately. ``masks`` say what is not masked, by
    default those of ``statistics``.
    """

    capabilities = Capabilities(
        ("translation",), "a translator", "translate", served_as="translator", exported_as="encoder-decoder"
    )

    memory: Memory | None = None

    @cached_property
    def _segmenter(self) -> Segmenter:
        return Segmenter(
            self.src_language,
            self.statistics,
            self._n_tokens,
            max_tokens=self.max_source_tokens,
            n_masks=lambda text: n_masks(text, self.mask_rules) if self.tokenizers.src.has_masks else 0,
        )

    @cached_property
    def _divider(self) -> TextDivider:
        return TextDivider(self._segmenter, self.tokenizers, self.tgt_language)

    @property
    def has_masks(self) -> bool:
        """Whether the model itself copies URLs and placeholders."""
        return self._divider.has_masks

    @overload
    def translate(self, texts: Sequence[str], *, n_best: None = None, **options: Unpack[_Options]) -> list[str]: ...

    @overload
    def translate(self, texts: Sequence[str], *, n_best: int, **options: Unpack[_Options]) -> list[list[str]]: ...

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int | None = None,
        search: SearchConfig | None = None,
        split: bool = True,
        format: TextFormat = "text",
        prefix: str | Sequence[str] = "",
        draft: Translator | None = None,
        progress: bool | Progress = False,
        **options: Unpack[SearchKeywords],
    ) -> list[str] | list[list[str]]:
        """Translate a list of texts; with ``n_best``, return up to so many different translations of each, best first.

        ``n_best`` and ``options``, such as ``beam_size``, override fields of ``search``, by default the model's search
        configuration. Texts of several sentences are translated sentence by sentence, with their
        spacing; with ``split=False`` as a whole. ``format="html"`` or ``"xml"``: the texts have tags, which stay; each
        may be a whole document. ``prefix``: how the translations begin, one for all texts or one for each (see
        ``translate_lines``). ``draft`` is a smaller translator for speculative decoding (see ``with_draft``),
        which is greedy, or samples, without a prefix. ``progress=True`` shows a bar on stderr; a function is called
        with the number of texts done and their total. Warns of texts that are cut; ``translate_lines`` tells more.
        Raises TypeError, naming the item, for anything but a list of strings, ConfigError for an invalid search or
        another number of prefixes than texts, DataError for a prefix that is longer than the model reads.
        """
        translator = self
        if draft is not None:
            if prefix:
                raise ConfigError("a prefix cannot be used with a draft; leave one of them out")
            search = greedy_unless_sampled(search or self.search)
            translator = self.with_draft(draft)
        require_sequence(texts, "translate takes a list of texts", "for one text, translate([text])[0]")
        texts = list(texts)
        for _ in _strings(texts):  # check all before the first is translated
            pass
        overridden = DecodingOptions(n_best=n_best, **options).applied_to(search or self.search)
        prefixes = repeat(prefix, len(texts)) if isinstance(prefix, str) else list(_strings(prefix, name="prefix"))
        if isinstance(prefixes, list) and len(prefixes) != len(texts):
            raise ConfigError(f"there are {len(prefixes):,} prefixes for {len(texts):,} texts; give one for each")
        chunk_lines = CHUNK_LINES_WITH_PROGRESS if progress else CHUNK_LINES
        translations: list[Translation] = []
        with progress_callback(progress, len(texts)) as report:
            for translation in translator.translate_lines(
                texts, search=overridden, chunk_lines=chunk_lines, split=split, format=format, is_scored=False,
                prefixes=prefixes,
            ):  # fmt: skip
                translations.append(translation)
                report(len(translations), len(texts))
        _warn_of_cut(translations, self.max_source_tokens)
        if n_best is None:
            return [translation.text for translation in translations]
        return [[each.text for each in translation.n_best] for translation in translations]

    def translate_iter(
        self,
        texts: Iterable[str],
        *,
        search: SearchConfig | None = None,
        split: bool = True,
        format: TextFormat = "text",
        chunk_lines: int = CHUNK_LINES,
        **options: Unpack[SearchKeywords],
    ) -> Iterator[str]:
        """Translate a stream of texts, in order.

        ``chunk_lines`` texts are read before the first is translated: more is faster, 1 translates each immediately.
        The other options are those of ``translate``.
        """
        require_sequence(texts, "translate_iter takes a stream of texts", "for one text, translate([text])[0]")
        overridden = DecodingOptions(**options).applied_to(search or self.search)
        lines = self.translate_lines(
            _strings(texts), search=overridden, chunk_lines=chunk_lines, split=split, format=format, is_scored=False
        )
        return (translation.text for translation in lines)

    def translate_lines(
        self,
        lines: Iterable[str | Unit],
        *,
        search: SearchConfig | None = None,
        chunk_lines: int = CHUNK_LINES,
        split: bool = True,
        format: TextFormat = "text",
        rerank: Rerank | None = None,
        is_scored: bool = True,
        prefixes: Iterable[str] = repeat(""),
        is_linked: bool = False,
        report: Callable[[int], object] = lambda n_lines: None,
    ) -> Iterator[Translation]:
        """Translate a stream of lines, in order; what has no words stays as it is.

        A chunk has fewer than ``chunk_lines`` if lines are long; plain text is truncated at ``MAX_LINE_BYTES``.
        Without ``split``, a line is one sentence. ``format`` is that of ``translate``. A ``Unit``, such as a paragraph
        of a document, is translated with its tags.
        ``rerank`` gets each sentence with its whole beam and returns its n-best. Without ``is_scored``, the scores of
        greedy search are NaN, which is faster. ``is_linked``: translations have the links between words. ``report``
        gets the number of lines done, also within a chunk, of whose sentences that share is done.

        ``prefixes``: how the translation of each line begins. The last word of a prefix may be continued, unless a
        space follows it. If a line is split, the sentences of the prefix belong to its segments in order, and only the
        last one is continued. Raises ConfigError for a prefix with a shortlist, or with ``rerank``, or
        for fewer prefixes than lines.
        """
        if not isinstance(chunk_lines, int) or chunk_lines < 1:
            raise ConfigError(f"chunk_lines should be at least 1, got {quoted(chunk_lines)}")
        config = search or self.search
        rules = rules_of(format)
        beam_config = config if rerank is None else DecodingOptions(n_best=config.beam_size).applied_to(config)

        n_done = 0

        def translated(chunk: Sequence[tuple[str | Unit, str]]) -> list[Translation]:
            if self.memory is None or format != "text":
                return searched(chunk)
            remembered = known(self.memory, chunk)
            rest = [pair for pair, each in zip(chunk, remembered, strict=True) if each is None]
            found = iter(searched(rest) if rest else ())
            return [
                each or replace(written := next(found), matches=tuple(self.memory.fuzzy(written.source)))
                for each in remembered
            ]

        def searched(chunk: Sequence[tuple[str | Unit, str]]) -> list[Translation]:
            nonlocal n_done
            texts, beginnings = zip(*chunk, strict=True)
            splitting: Splitting = "lines" if split else "none"
            work = self.divided(texts, rules=rules, splitting=splitting, prefixes=beginnings, is_linked=is_linked)
            sources = [each.text for each in work.sentences]
            begun = [each.prefix for each in work.sentences]
            if rerank is not None and any(each.text for each in begun):
                raise ConfigError("a prefix cannot be used with a model for reranking; leave one of them out")
            candidates = self.translate_segments(
                sources, beam_config, lowers_caps=True, is_scored=is_scored, prefixes=begun,
                report=lambda n_sentences: report(n_done + len(chunk) * n_sentences // len(sources)),
            )  # fmt: skip
            assert candidates is not None  # not interrupted
            segments = candidates if rerank is None else rerank(sources, candidates, config)
            n_done += len(chunk)
            report(n_done)
            pairs = work.pairs(segments)
            return work.put_together(segments, self._aligned(pairs) if pairs else (), n_best=config.n_best)

        return chain.from_iterable(
            map(
                translated,
                chunks(
                    _begun(lines, prefixes),
                    chunk_lines,
                    lambda pair: len(pair[0].raw if isinstance(pair[0], Unit) else pair[0]),
                ),
            )
        )

    def translate_file(
        self,
        source: str | Path,
        out: str | Path,
        *,
        search: SearchConfig | None = None,
        progress: bool | Progress = False,
        format: str = "",
        wanted: Wanted = "empty",
        is_trusted: bool = False,
        review: str | Path | None = None,
        **options: Unpack[SearchKeywords],
    ) -> DocumentReport:
        """Translate a document, such as report.docx, to a file, or to one of its name in the folder ``out``.

        Its texts are translated with the tags inside them, and everything else stays, byte for byte. ``format="html"``
        reads it so, whatever its name or content tells. Of a file with translations, texts without one are
        ``wanted``, also those that it calls unsure ("fuzzy"), or "all"; new ones are marked as unsure unless
        ``is_trusted``. ``review`` is an HTML page that is written for a person who looks at the texts. Returns what was
        translated, and what was not and why. Raises DataError for what cannot be read or written, ConfigError for an
        unknown format.
        """
        from transduce.inference.translation.document_files import translate_file

        overridden = DecodingOptions(**options).applied_to(search or self.search)
        return translate_file(
            self, Path(source), Path(out), search=overridden, progress=progress, format=format, wanted=wanted,
            is_trusted=is_trusted, review=None if review is None else Path(review), terms=self.terms,
        )  # fmt: skip

    def with_memory(self, memory: Memory) -> Self:
        """Return the translator that takes lines from a memory if they are in it, and names those that are like them.

        Raises ConfigError for a memory of other languages.
        """
        languages = self.src_language, self.tgt_language
        if [*map(base_language, memory.languages)] != [*map(base_language, languages)]:
            raise ConfigError(
                f"{memory.path} is a memory for {'-'.join(memory.languages)}, the model translates "
                f"{'-'.join(languages)}; name another"
            )
        other = copy.copy(self)
        other.memory = memory
        return other

    def divided(
        self,
        texts: Sequence[str | Unit],
        *,
        rules: MarkupRules | None = None,
        splitting: Splitting = "lines",
        prefixes: Sequence[str] = (),
        is_linked: bool = False,
        is_recalled: bool = False,
    ) -> TextTranslation:
        """Divide texts, or units of documents, into the sentences that are to be translated.

        ``is_recalled``: without the lines and paragraphs that the memory has, if there is one.
        """
        divided = self._divider(texts, rules=rules, splitting=splitting, prefixes=prefixes)
        if is_recalled and self.memory is not None:
            divided = with_known_parts(self.memory, divided)
        return TextTranslation(divided, tgt_language=self.tgt_language, is_linked=is_linked)

    def _aligned(self, pairs: Sequence[Pair]) -> Sequence[WordWeights]:
        from transduce.inference.translation.word_alignment import align_words

        return align_words(self, pairs)

    def split_line(self, line: str) -> list[Segment]:
        """Return the segments of a line that are translated separately, at least one."""
        code, rest = self.tokenizers.src.split_language_code(line[:MAX_LINE_BYTES])
        segments = self._segmenter([rest])[0]
        return [Segment(f"{code} {each.text}", each.space) for each in segments] if code else segments


class MaskPredictTranslator(Translator):
    """A translator whose model predicts masked tokens, in several passes; it finds one translation of a sentence."""

    capabilities = Capabilities(("mask-predict",), "a translator by mask-predict", "translate")


def _warn_of_cut(translations: Sequence[Translation], max_source_tokens: int) -> None:
    """Warn of texts whose end was not translated."""
    cut = [index for index, each in enumerate(translations) if each.is_truncated]
    if cut:
        warnings.warn(
            f"{len(cut):,} of {len(translations):,} texts have a sentence of more than {max_source_tokens:,} tokens, "
            f"whose end was cut off; the first is texts[{cut[0]}]",
            stacklevel=3,
        )


def _begun(lines: Iterable[str | Unit], prefixes: Iterable[str]) -> Iterator[tuple[str | Unit, str]]:
    """Yield lines with their prefixes. Raises ConfigError at the first line without one."""
    beginnings = iter(prefixes)
    for number, line in enumerate(lines):
        if (prefix := next(beginnings, None)) is None:
            raise ConfigError(f'there are {number:,} prefixes, but more lines; give one for each, "" for none')
        yield line, prefix


def _strings(texts: Iterable[str], *, name: str = "texts") -> Iterator[str]:
    """Iterate over ``texts``. Raises TypeError for anything but a string."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{number}] should be a string, got {type(text).__name__}")
        yield text
