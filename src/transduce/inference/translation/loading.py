"""Loading what translates: a translator, with a draft, a reverse model or a reward model beside it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from transduce.config.decoding import LoadingOptions
from transduce.inference.devices import usable_device, usable_precision
from transduce.inference.translation.translator import Translator
from transduce.memories import open_memory
from transduce.terms import Terms, read_avoided, read_terms

if TYPE_CHECKING:
    from transduce.inference.translation.best_of_samples import BestOfSamples
    from transduce.inference.translation.reranking import Reranker

__all__ = ["load_translator", "read_term_lists"]


def read_term_lists(options: LoadingOptions, src_language: str, tgt_language: str) -> Terms:
    """Return the terms, and the phrases to be avoided, that the options name. Raises DataError."""
    terms = read_terms(options.terms, src_language=src_language, tgt_language=tgt_language) if options.terms else ()
    return Terms(terms, read_avoided(options.avoid) if options.avoid else ())


def load_translator(options: LoadingOptions) -> Translator | Reranker | BestOfSamples:
    """Load a model, or an ensemble, with what the options name besides. Raises ConfigError or CheckpointError."""
    device = usable_device(options.device)
    precision = usable_precision(options.precision, device)
    of_model = None if options.draft is not None else options.shortlist  # a draft has the shortlist itself
    load = partial(Translator.load, device=device, precision=precision, engine=options.engine)
    translator = load(*options.folders, shortlist=of_model)
    if options.terms is not None or options.avoid is not None:
        terms = read_term_lists(options, translator.src_language, translator.tgt_language)
        translator = translator.with_terms(terms, are_required=options.are_terms_required)
    if options.memory is not None:
        languages = {"src_language": translator.src_language, "tgt_language": translator.tgt_language}
        translator = translator.with_memory(open_memory(options.memory, **languages))
    if options.draft is not None:
        small = load(options.draft, shortlist=options.shortlist)
        return translator.with_draft(
            small, n_drafted=options.n_drafted, min_probability=options.draft_probability
        )  # fmt: skip
    if options.best_of is not None and options.reward_model is not None:
        from transduce.inference.language_models.responses import RewardModel
        from transduce.inference.translation.best_of_samples import BestOfSamples

        return BestOfSamples(translator, RewardModel.load(options.reward_model, device=device), n=options.best_of)
    if options.rerank is None:
        return translator
    from transduce.inference.translation.reranking import Reranker

    reverse = load(options.rerank)
    return Reranker(translator, reverse, weight=options.rerank_weight)
