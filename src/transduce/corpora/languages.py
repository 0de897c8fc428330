"""Language codes, with suggestions for wrong ones, and language identification.

Two-letter codes are those of ISO 639-1; three-letter codes (ISO 639-2 and 639-3) are accepted unchecked, as are scripts
and regions after them ("zh-Hans", "pt-BR"). Lines are
identified by py3langid, a naive Bayes classifier over bytes for 140 languages. Its model takes seconds to load, so it
is loaded at the first use, once for a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transduce.config import base_language, canonical_code

__all__ = [
    "MIN_LINES", "LanguageSample", "SpreadSample", "english_name", "fault_of_code", "is_identifiable",
    "language_in_name", "language_name", "languages_of", "short_code",
]  # fmt: skip

SAMPLED_LINES = 300
MIN_CHARACTERS = 25  # shorter lines are not classified
MIN_BYTES = 40  # or as many bytes, since a Chinese character carries more information than a letter
MAX_CHARACTERS = 1_000  # of each line are classified
MIN_LINES = 20  # lines for a reliable result
MAJORITY_SHARE = 0.5  # of the lines; above it, the text is in that language
SECOND_LANGUAGE_SHARE = 0.15  # of the lines; above it, a second language is reported


def _table(entries: str) -> dict[str, str]:
    """Parse ``key:value`` entries separated by spaces."""
    return dict(entry.split(":") for entry in entries.split())


_NAMES = _table(
    "aa:Afar ab:Abkhazian ae:Avestan af:Afrikaans ak:Akan am:Amharic an:Aragonese ar:Arabic as:Assamese av:Avaric"
    " ay:Aymara az:Azerbaijani ba:Bashkir be:Belarusian bg:Bulgarian bh:Bihari bi:Bislama bm:Bambara bn:Bengali"
    " bo:Tibetan br:Breton bs:Bosnian ca:Catalan ce:Chechen ch:Chamorro co:Corsican cr:Cree cs:Czech"
    " cu:Church_Slavic cv:Chuvash cy:Welsh da:Danish de:German dv:Divehi dz:Dzongkha ee:Ewe el:Greek en:English"
    " eo:Esperanto es:Spanish et:Estonian eu:Basque fa:Persian ff:Fulah fi:Finnish fj:Fijian fo:Faroese fr:French"
    " fy:Frisian ga:Irish gd:Scottish_Gaelic gl:Galician gn:Guarani gu:Gujarati gv:Manx ha:Hausa he:Hebrew"
    " hi:Hindi ho:Hiri_Motu hr:Croatian ht:Haitian hu:Hungarian hy:Armenian hz:Herero ia:Interlingua id:Indonesian"
    " ie:Interlingue ig:Igbo ii:Sichuan_Yi ik:Inupiaq io:Ido is:Icelandic it:Italian iu:Inuktitut ja:Japanese"
    " jv:Javanese ka:Georgian kg:Kongo ki:Kikuyu kj:Kuanyama kk:Kazakh kl:Kalaallisut km:Khmer kn:Kannada"
    " ko:Korean kr:Kanuri ks:Kashmiri ku:Kurdish kv:Komi kw:Cornish ky:Kyrgyz la:Latin lb:Luxembourgish lg:Ganda"
    " li:Limburgish ln:Lingala lo:Lao lt:Lithuanian lu:Luba-Katanga lv:Latvian mg:Malagasy mh:Marshallese mi:Maori"
    " mk:Macedonian ml:Malayalam mn:Mongolian mr:Marathi ms:Malay mt:Maltese my:Burmese na:Nauru"
    " nb:Norwegian_Bokmål nd:North_Ndebele ne:Nepali ng:Ndonga nl:Dutch nn:Norwegian_Nynorsk no:Norwegian"
    " nr:South_Ndebele nv:Navajo ny:Chichewa oc:Occitan oj:Ojibwa om:Oromo or:Oriya os:Ossetian pa:Punjabi pi:Pali"
    " pl:Polish ps:Pashto pt:Portuguese qu:Quechua rm:Romansh rn:Rundi ro:Romanian ru:Russian rw:Kinyarwanda"
    " sa:Sanskrit sc:Sardinian sd:Sindhi se:Northern_Sami sg:Sango sh:Serbo-Croatian si:Sinhala sk:Slovak"
    " sl:Slovenian sm:Samoan sn:Shona so:Somali sq:Albanian sr:Serbian ss:Swati st:Sotho su:Sundanese sv:Swedish"
    " sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai ti:Tigrinya tk:Turkmen tl:Tagalog tn:Tswana to:Tongan"
    " tr:Turkish ts:Tsonga tt:Tatar tw:Twi ty:Tahitian ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek ve:Venda"
    " vi:Vietnamese vo:Volapük wa:Walloon wo:Wolof xh:Xhosa yi:Yiddish yo:Yoruba za:Zhuang zh:Chinese zu:Zulu"
)

# Of varieties, as others name them; other regions are named by their code.
_VARIETIES = _table(
    "Hans:simplified Hant:traditional Latn:Latin Cyrl:Cyrillic Arab:Arabic BR:Brazilian PT:European GB:British"
    " US:American"
)

# Frequent mistakes: country codes and obsolete language codes.
_SUGGESTIONS = _table(
    "al:sq at:de au:en bd:bn by:be cn:zh cz:cs dk:da eg:ar ge:de/ka gb:en gr:el il:he in:id/hi ir:fa iw:he ji:yi"
    " jp:ja jw:jv ke:sw kp:ko kz:kk mo:ro mx:es nz:en ph:tl pk:ur rs:sr sp:es ua:uk us:en uy:es vn:vi"
)

# Common ISO 639-2 and 639-3 codes of languages that also have a two-letter code.
_OF_THREE_LETTERS = _table(
    "afr:af ara:ar aze:az bel:be ben:bn bos:bs bul:bg cat:ca ces:cs cze:cs cym:cy dan:da deu:de ger:de ell:el"
    " gre:el eng:en epo:eo est:et eus:eu fas:fa fin:fi fra:fr fre:fr gle:ga glg:gl heb:he hin:hi hrv:hr hun:hu"
    " hye:hy ind:id isl:is ita:it jpn:ja kat:ka kaz:kk kor:ko lat:la lav:lv lit:lt mkd:mk mlt:mt msa:ms nld:nl"
    " dut:nl nor:no nob:nb nno:nn pol:pl por:pt ron:ro rum:ro rus:ru slk:sk slv:sl spa:es sqi:sq srp:sr swa:sw"
    " swe:sv tam:ta tel:te tgl:tl tha:th tur:tr ukr:uk urd:ur vie:vi yid:yi zho:zh chi:zh cmn:zh"
)

# Languages that the classifier confuses or has under one code; each set counts as one language.
_CONFUSABLE = [
    set(codes.split())
    for codes in (
        "no nb nn da, hr bs sr sh, id ms jv su ace, zh wuu yue, cs sk, pt gl, ru uk be bg mk, es gl an ext ca, "
        "fr wa oc gcr gcf, de lb gsw, nl af fy li, en pcm sco, ar ary arz, fa tg ps, hi mr ne sa bh, az tr tk crh, "
        "kk ky tt ba, it lij vec co sc, la it, xh zu ss nr nd, st nso tn, lv ltg, da sv no nb nn fo, el grc, "
        "he hbo yi, rw rn, ku sdh, gn gug, ki kik, ff fuv"
    ).split(",")
]

# Languages of the classifier. Text in any other language is classified as the most similar one.
_IDENTIFIABLE = frozenset(
    "ace af am an ar ary arz as az ba bcl be bg bn br bs ca crh cs cy da de dz el en eo es et eu ext fa fi fo fr fuv fy"
    " ga gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv ka kab kik kk km kn ko ku ky la lb"
    " lg lij ln lo lt ltg lv mg mk ml mn mr ms mt my nb ne nl nn no nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh se"
    " si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu".split()
)


def is_identifiable(code: str) -> bool:
    """Whether the classifier knows this language, so that other text can be recognised as not in it.

    >>> is_identifiable("de"), is_identifiable("deu"), is_identifiable("bar")
    (True, True, False)
    """
    return short_code(code) in _IDENTIFIABLE


def short_code(code: str) -> str:
    """Return the code of the language alone, in two letters if there are any.

    >>> short_code("deu"), short_code("zho-Hans"), short_code("bar")
    ('de', 'zh', 'bar')
    """
    language = base_language(code)
    return _OF_THREE_LETTERS.get(language, language)


def english_name(code: str) -> str | None:
    """Return the English name of a language, None for an unknown code.

    >>> english_name("de"), english_name("zh-Hans"), english_name("es-419"), english_name("xx")
    ('German', 'Chinese (simplified)', 'Spanish (419)', None)
    """
    name = _NAMES.get(short_code(code))
    if name is None:
        return None
    varieties = [_VARIETIES.get(each, each) for each in code.split("-")[1:]]
    return name.replace("_", " ") + (f" ({', '.join(varieties)})" if varieties else "")


def language_name(code: str) -> str:
    """Return the English name of a language with its code; an unknown code is returned as it is.

    >>> language_name("de"), language_name("deu"), language_name("xx")
    ('German (de)', 'German (deu)', 'xx')
    """
    name = english_name(code)
    return code if name is None else f"{name} ({code})"


def fault_of_code(code: str) -> str | None:
    """Message for an invalid language code, with suggestions; None for a known or three-letter code.

    >>> print(fault_of_code("en"), fault_of_code("bar"), fault_of_code("cz"), sep="; ")
    None; None; 'cz' is not a language code of ISO 639-1; did you mean 'cs', Czech?
    """
    code = base_language(code)
    if code in _NAMES or len(code) == 3:
        return None
    meant = [f"{each!r}, {_NAMES[each]}" for each in _SUGGESTIONS.get(code, "").split("/") if each]
    hint = f"did you mean {', or '.join(meant)}?" if meant else "if it is intended, it works as well"
    return f"{code!r} is not a language code of ISO 639-1; {hint}"


def language_in_name(path: Path) -> str | None:
    """Return the language code that a file name ends in; None if it does not end in one.

    >>> language_in_name(Path("train.en-de.de.gz")), language_in_name(Path("a.pt_BR")), language_in_name(Path("a.txt"))
    ('de', 'pt-BR', None)
    """
    name = path.name.removesuffix(".gz").removesuffix(".xz").rpartition(".")[2]
    code = canonical_code(name)
    return code if code is not None and name[:2].islower() and short_code(code) in _NAMES else None


@dataclass(frozen=True, slots=True)
class LanguageSample:
    """Number of classified lines, and counts by language, the most frequent first."""

    n_lines: int
    counts: tuple[tuple[str, int], ...]

    def share(self, code: str) -> float:
        """Share of lines in a language or one confused with it."""
        return sum(n for other, n in self.counts if _are_confusable(code, other)) / max(1, self.n_lines)

    @property
    def language(self) -> str | None:
        """Language of more than half of the lines; None if there is none or the sample is too small."""
        if self.n_lines < MIN_LINES or not self.counts:
            return None
        code, n = self.counts[0]
        return code if n > MAJORITY_SHARE * self.n_lines and code != "zxx" else None

    def mismatch(self, code: str) -> str | None:
        """Language of the text if it is clearly not ``code``, else None."""
        other = self.language
        if other is None or _are_confusable(code, other) or self.share(code) >= 1 - MAJORITY_SHARE:
            return None
        return other

    def second_language(self, code: str) -> tuple[str, float] | None:
        """Most frequent minority language of a text in ``code``, with its share, if that exceeds 15%; else None."""
        if self.n_lines < 5 * MIN_LINES:
            return None
        others = ((each, n) for each, n in self.counts if each != "zxx" and not _are_confusable(code, each))
        other, n = next(others, ("", 0))
        return (other, n / self.n_lines) if SECOND_LANGUAGE_SHARE < n / self.n_lines <= MAJORITY_SHARE else None


def _are_confusable(one: str, other: str) -> bool:
    one, other = short_code(one), short_code(other)
    return one == other or any(one in codes and other in codes for codes in _CONFUSABLE)


class SpreadSample:
    """Evenly spread sample of the lines that are not blank; fewer than twice ``size``.

    ``is_classified``: only of those long enough to be classified.
    """

    def __init__(self, size: int = SAMPLED_LINES, *, is_classified: bool = True) -> None:
        self.lines: list[str] = []
        self._size, self._stride, self._n_seen, self._is_classified = size, 1, 0, is_classified

    def add(self, line: str) -> None:
        """Offer the next line to the sample."""
        if not self._is_classified:
            if not line or line.isspace():
                return
        elif len(line) < MIN_CHARACTERS and (line.isascii() or len(line.encode("utf-8", "replace")) < MIN_BYTES):
            return
        if self._n_seen % self._stride == 0:
            self.lines.append(line[:MAX_CHARACTERS])
            if len(self.lines) >= 2 * self._size:
                del self.lines[1::2]
                self._stride *= 2
        self._n_seen += 1


def languages_of(lines: Iterable[str]) -> LanguageSample:
    """Classify the language of each line."""
    from py3langid import classify  # here, since loading takes seconds

    counts = Counter(classify(line)[0] for line in lines)
    return LanguageSample(counts.total(), tuple(counts.most_common()))
