"""Evaluation metrics: sacreBLEU's BLEU and chrF, tokenised BLEUs, perplexity, error rates, bootstrap significance,
PARSEVAL.

Imports no torch. Every score has a signature: the settings that produced it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.metrics.bleu import Score, chrf_score, sacrebleu_score, sentence_chrf_scores
    from transduce.metrics.bleu_tokenizers import bleu_tokenizer, has_spaces, require_bleu_tokenizer
    from transduce.metrics.calibration import (
        ReliabilityBin,
        expected_calibration_error,
        overconfidence,
        reliability_bins,
    )
    from transduce.metrics.error_rates import (
        ErrorRates,
        character_error_rate,
        edit_distance,
        error_rates,
        word_error_rate,
    )
    from transduce.metrics.parseval import Parseval, parseval
    from transduce.metrics.perplexity import perplexity
    from transduce.metrics.scores import (
        TOKENISED_BLEUS,
        TokenisedBleu,
        TranslationScores,
        customary_bleus,
        score_translations,
    )
    from transduce.metrics.significance import PairedBootstrap, paired_bootstrap
    from transduce.metrics.tokenised_bleu import has_moses_rules, multi30k_bleu, paper_bleu
    from transduce.preprocessed import looks_tokenised

__all__ = [
    "TOKENISED_BLEUS", "ErrorRates", "PairedBootstrap", "Parseval", "ReliabilityBin", "Score", "TokenisedBleu",
    "TranslationScores", "bleu_tokenizer", "character_error_rate", "chrf_score", "customary_bleus", "edit_distance",
    "error_rates", "expected_calibration_error", "has_moses_rules", "has_spaces", "looks_tokenised", "multi30k_bleu",
    "overconfidence", "paired_bootstrap", "paper_bleu", "parseval", "perplexity", "reliability_bins",
    "require_bleu_tokenizer", "sacrebleu_score", "score_translations", "sentence_chrf_scores", "word_error_rate",
]  # fmt: skip

imported_on_use(__name__)
