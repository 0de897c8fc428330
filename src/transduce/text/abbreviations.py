"""Where a full stop ends no sentence, beyond what sentencex knows: abbreviations, ordinal numbers, quoted signs.

The rules are by language; those of "" hold in every language. Words are without their last full stop. Those in
lower case stand for all cases; "M" is no "m", which is metres.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from transduce.patterns import compiled_on_use

__all__ = ["LOOKS_AT", "abbreviations", "continues"]

# Titles, and other words that stand before the word they belong to, also before one with a capital letter.
_BEFORE_ANYTHING = {
    "": "dr prof mr mrs ms mme mmes mlle mlles mgr messrs dra profa sra srta sres sras sig sigg dott avv mevr dhr inż",
    "en": "gov sen rep rev hon gen col capt lt sgt cpl cmdr adm maj supt insp vs amb atty Eq Eqs Eqn Eqns Thm",
    "de": "hr hrn frl fa st evtl ggf inkl exkl zzgl abzgl einschl bzw sog vgl lt bspw insb insbes mind z.b d.h i.d.r"
    " dipl ing hl",
    "fr": "st ste pr me av bd boul sté éts M MM gén cdt vve",
    "es": "d dña sto sta excmo excma av avda ud uds gral pdte",
    "it": "on rag geom sen arch ing egr gent spett",
    "pt": "av sto sta exmo exma eng pe",
    "nl": "mr drs ir ds st mw",
    "pl": "ks mgr ul al św płk gen p pp red mec hab kpt bp abp",
    "ru": "г ул д кв проф акад им гр",
    "uk": "м вул буд кв проф акад ім",
    "cs": "mudr judr ing mgr bc sv ul pí plk",
    "sv": "hr fr jfr",
    "da": "hr fr",
    "tr": "sn av doç alb",
}

# Words that end no sentence before a number, Arabic or Roman, or before a letter or sign other than a capital one.
_BEFORE_MORE = {
    "": "vol vols no nos nr núm num p pp pg pag pág págs s ss fig figs abb tab ch chap cap kap sec sect art arts par"
    " abs bd ed eds éd ext tel tél fax apt approx aprox appr ca circa cca max min incl excl inkl exkl est etc ecc"
    " vs cf jan feb mar apr jun jul aug sep sept oct okt nov dec dez mon tue tues wed thu thur thurs fri sat sun"
    " kg km cm mm hr hrs sec min std str dept univ ave blvd rd ln ft lb lbs oz gal op cit ibid viz resp misc alt eq eqs"
    " abbr",
    "en": "eqn eqns ref refs prop thm lem def cor alg",
    "fr": "janv févr avr juil déc env réf av apr boul chap al cf ex éd p.ex j.-c av.j.-c",
    "es": "ej p.ej aprox núms ene abr ago dic c d.c a.c s.a ec ecs",
    "it": "pagg gen mag giu lug ago set ott dic p.es es n tav",
    "pt": "p.ex ex fev abr mai ago set out dez",
    "nl": "blz bijv d.w.z enz nl m.b.t t.a.v o.a m.i.v zgn resp ong evt",
    "pl": "np tzn tj itd itp ok godz rys tab poz wyd m.in tzw ww zob",
    "cs": "např tj atd apod č obr kap odst viz resp tzv cca",
    "sk": "napr tj atď č obr kap resp tzv",
    "da": "f.eks bl.a m.v osv ca nr jf evt pga",
    "nb": "f.eks bl.a m.m osv ca nr jf evt pga",
    "sv": "ekv t.ex bl.a m.m osv ca nr s.k d.v.s resp",
    "fi": "esim mm ym ks n nro s klo",
    "ru": "т т.е т.д т.п рис стр гл см табл напр др пр руб коп тыс млн млрд г гг в вв н н.э ур",
    "uk": "т т.д т.п рис стор див табл напр ін ст",
    "tr": "vb vs örn bkz s yy",
    "hu": "pl kb stb ill old sz",
}

# Languages that write ordinal numbers with a full stop: 1. Mai, 1. května.
_ORDINALS = frozenset("bs cs da de et eu fi hr hu is lb lv nb nn no pl sk sl sr sv tr".split())

# German, where nouns have capitals: words before an ordinal number, and words that begin a sentence rather than follow
# such a number.
_BEFORE_ORDINAL = frozenset(
    "am beim bis das dem den der des die dieser ein eine einem einen einer eines im ins jede jedem jeden jeder jedes"
    " seit vom zum zur ihr ihre ihrem ihren sein seine seinem seinen unser unsere mein meine".split()
)
_SENTENCE_STARTS = frozenset(
    "aber als am an auch auf aus bei da dann danach das dass dem den denn der des die dies diese dieser dort du ein"
    " eine er es für hier ich ihr im in ist man mit nach nun nur ob sie sind so und uns vor war was wenn wer wie wir wo"
    " zu".split()
)
_MONTHS_AND_DAYS = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november dezember montag dienstag mittwoch"
    " donnerstag freitag samstag sonnabend sonntag jan feb mär apr jun jul aug sept okt nov dez".split()
)

_LAST_WORD = compiled_on_use(r"(?<![\w.])([^\W\d_][\w.-]{0,11})\.\s*$")
_ORDINAL = compiled_on_use(r"(?:([^\W\d_]+)\s+|(?<!\S)|[(\"„])(\d{1,4})\.\s*$")
_QUOTED_END = compiled_on_use(r"[.!?…][\"'’”“»)]+\s*$")
_ROMAN = compiled_on_use(r"(?:[IVXLC]{2,}|[VX])\b")  # not "I"
_BRACKET = compiled_on_use(r"^[(\[](?=\d)")  # eq. (7)
_FIRST_WORD = compiled_on_use(r"\W{0,3}(\w+)")
LOOKS_AT = 40  # characters before and after a full stop


def continues(before: str, after: str, language: str) -> bool:
    """Whether the sentence of a text goes on after the full stop at its end.

    >>> continues("See vol. ", "3 of it.", "en"), continues("Am 1. ", "Mai", "de"), continues("It is 5. ", "We", "en")
    (True, True, False)
    """
    before, after = before[-LOOKS_AT:], after[:LOOKS_AT].lstrip()
    language = language.partition("-")[0].lower()
    if match := _LAST_WORD.search(before):
        word = match[1].casefold()
        if not _of(language)[0].isdisjoint((word, match[1])):
            return True
        after = _BRACKET.sub("", after)
        if not after[:1].isalnum() or (after[:1].isupper() and not _ROMAN.match(after)):
            return False
        return word in _of(language)[1] or (len(word) == 1 and after[0].islower())
    if _QUOTED_END.search(before):
        return after[:1].islower()
    if language in _ORDINALS and (match := _ORDINAL.search(before)):
        return after[:1].islower() or (language == "de" and _is_german_ordinal(match, after))
    return False


def _is_german_ordinal(number: re.Match[str], after: str) -> bool:
    """Whether a number and a full stop are an ordinal number, before a word with a capital letter."""
    first = _FIRST_WORD.match(after)
    word = first[1].lower() if first else ""
    follows_article = (number[1] or "").lower() in _BEFORE_ORDINAL and word not in _SENTENCE_STARTS
    return word in _MONTHS_AND_DAYS or (follows_article and word != "" and len(number[2]) < len("1990"))


def abbreviations(language: str) -> frozenset[str]:
    """Return words that never end a sentence of a language, whatever follows their full stop."""
    return _of(language.partition("-")[0].lower())[0]


@cache
def _of(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a language that end no sentence: before anything, before what has no capital letter."""

    def words(table: Mapping[str, str]) -> frozenset[str]:
        return frozenset(f"{table['']} {table.get(language, '')}".split())

    return words(_BEFORE_ANYTHING), words(_BEFORE_MORE)
