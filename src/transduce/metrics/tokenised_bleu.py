"""Tokenised BLEU, as papers report it: both sides tokenised with Moses. Only for comparison with published tables.

    the paper    unicode punctuation replaced, Moses tokens, compounds split, cased
    Multi30k     lowercased, punctuation normalised, Moses tokens

Both count like multi-bleu.perl, without smoothing: a corpus without any matching 4-gram scores 0.
Moses has rules for abbreviations and apostrophes in some languages, and uses the English abbreviations for others.
``sacremoses`` is imported lazily, since compiling its tables takes a quarter of a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from transduce.metrics.bleu import Score, corpus_score
from transduce.metrics.bleu_tokenizers import bleu_with

__all__ = ["has_moses_rules", "multi30k_bleu", "paper_bleu", "split_compounds"]

HYPHEN_INSIDE_WORD = re.compile(r"(\S)-(\S)")
MAX_DOTS = 1000  # consecutive dots: Moses' punctuation rules take quadratic time in their number
EXCESS_DOTS = re.compile(rf"\.{{{MAX_DOTS + 1},}}")


def paper_bleu(
    hypotheses: Sequence[str], references: Sequence[str], *further_references: Sequence[str], language: str
) -> Score:
    """Return BLEU of raw text as the paper's authors computed it. Section 6.1, Table 2.

    Compounds count as several tokens and styles of quotation marks are not distinguished, so it is higher than
    sacreBLEU: by 0.3 to 1.5 points for the output of the authors' base model (tensor2tensor, issue 317).
    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(paper_bleu(["Der CO2-Ausstoß sinkt."], ["Der CO2-Ausstoß sinkt."], language="de"))
    100.00 (nrefs:1|case:mixed|eff:no|tok:moses-de-compounds-split|smooth:none|punct:unicode-replaced|sacremoses:...)
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    replace_unicode = MosesPunctNormalizer(language).replace_unicode_punct
    tokenize = MosesTokenizer(language).tokenize

    def prepare(line: str) -> str:
        # Moses does not replace the low quotation mark; the authors' reference has a plain one in its place.
        plain = replace_unicode(line.replace("„", '"'))
        return split_compounds(tokenize(plain, return_str=True))

    settings = {"tok": f"moses-{language}-compounds-split", "punct": "unicode-replaced"}
    return _bleu_of_tokens(prepare, settings, hypotheses, references, *further_references)


def multi30k_bleu(
    hypotheses: Sequence[str], references: Sequence[str], *further_references: Sequence[str], language: str
) -> Score:
    """Return BLEU of raw text as reported for Multi30k: the data set's preprocessing applied to both sides.

    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(multi30k_bleu(["Ein Hund schläft im Garten."], ["ein hund schläft im Garten."], language="de"))
    100.00 (nrefs:1|case:lc|eff:no|tok:moses-de|smooth:none|punct:moses-normalised|sacremoses:...)
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalize = MosesPunctNormalizer(language, perl_parity=True).normalize
    tokenize = MosesTokenizer(language).tokenize

    def prepare(line: str) -> str:
        plain = EXCESS_DOTS.sub("." * MAX_DOTS, line.lower())
        return str(tokenize(normalize(plain), return_str=True))

    settings = {"tok": f"moses-{language}", "punct": "moses-normalised"}
    return _bleu_of_tokens(prepare, settings, hypotheses, references, *further_references, lowercase=True)


def _bleu_of_tokens(
    prepare: Callable[[str], str],
    settings: dict[str, str],
    hypotheses: Sequence[str],
    *references: Sequence[str],
    lowercase: bool = False,
) -> Score:
    """Return BLEU as multi-bleu.perl counts it, of lines tokenised by ``prepare``."""
    from sacremoses import __version__

    metric = bleu_with("none", lowercase=lowercase, smooth_method="none")
    settings = settings | {"sacremoses": str(__version__)}
    return corpus_score(metric, hypotheses, *references, prepare=prepare, settings=settings)


def split_compounds(tokens: str) -> str:
    """Split each hyphen inside a word into a separate token, as in Google's evaluations.

    Matches do not overlap: of two hyphens around a single letter only the first is split.

    >>> split_compounds("der CO2-Ausstoß von A-B-C")
    'der CO2 ##AT##-##AT## Ausstoß von A ##AT##-##AT## B-C'
    """
    return HYPHEN_INSIDE_WORD.sub(r"\1 ##AT##-##AT## \2", tokens)


def has_moses_rules(language: str) -> bool:
    """Return whether Moses has abbreviation rules for a language; otherwise it uses the English ones.

    >>> has_moses_rules("de"), has_moses_rules("xx")
    (True, False)
    """
    from sacremoses.corpus import NonbreakingPrefixes

    return language in NonbreakingPrefixes().available_langs.values()
