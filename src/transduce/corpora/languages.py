"""Languages: whether a code is one, which was meant instead, and which language a text is in.

Codes are those of ISO 639-1, of two letters; those of ISO 639-2 and 639-3, of three letters, are too many to be known
here. Which language lines are in is said by py3langid, a naive Bayes classifier over bytes that knows 140.
Its model takes seconds to load: it is loaded when first asked, once for a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "MIN_LINES", "LanguageSample", "SpreadSample", "fault_of_code", "is_identifiable", "language_in_name",
    "language_name", "languages_of",
]  # fmt: skip

SAMPLED_LINES = 300
MIN_CHARACTERS = 25  # of a line that can be judged
MIN_BYTES = 40  # or of so many bytes: a character of Chinese says more than a letter
MAX_CHARACTERS = 1_000  # of it that are looked at
MIN_LINES = 20  # that say something together
MOST = 0.5  # of the lines: the text is in that language
MANY = 0.15  # of the lines: a second language is worth a word


def _table(entries: str) -> dict[str, str]:
    """What ``key:value`` between blanks say."""
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

# What people write who think of a country, or of an older code.
_MEANT = _table(
    "al:sq at:de au:en bd:bn by:be cn:zh cz:cs dk:da eg:ar ge:de/ka gb:en gr:el il:he in:id/hi ir:fa iw:he ji:yi"
    " jp:ja jw:jv ke:sw kp:ko kz:kk mo:ro mx:es nz:en ph:tl pk:ur rs:sr sp:es ua:uk us:en uy:es vn:vi"
)

# ISO 639-2 and 639-3 codes of languages that have a code of two letters, as far as they are likely to be written.
_OF_THREE_LETTERS = _table(
    "afr:af ara:ar aze:az bel:be ben:bn bos:bs bul:bg cat:ca ces:cs cze:cs cym:cy dan:da deu:de ger:de ell:el"
    " gre:el eng:en epo:eo est:et eus:eu fas:fa fin:fi fra:fr fre:fr gle:ga glg:gl heb:he hin:hi hrv:hr hun:hu"
    " hye:hy ind:id isl:is ita:it jpn:ja kat:ka kaz:kk kor:ko lat:la lav:lv lit:lt mkd:mk mlt:mt msa:ms nld:nl"
    " dut:nl nor:no nob:nb nno:nn pol:pl por:pt ron:ro rum:ro rus:ru slk:sk slv:sl spa:es sqi:sq srp:sr swa:sw"
    " swe:sv tam:ta tel:te tgl:tl tha:th tur:tr ukr:uk urd:ur vie:vi yid:yi zho:zh chi:zh cmn:zh"
)

# What the classifier does not tell apart surely, or has under one name: each set counts as one language.
_ALIKE = [
    set(codes.split())
    for codes in (
        "no nb nn da, hr bs sr sh, id ms jv su ace, zh wuu yue, cs sk, pt gl, ru uk be bg mk, es gl an ext ca, "
        "fr wa oc gcr gcf, de lb gsw, nl af fy li, en pcm sco, ar ary arz, fa tg ps, hi mr ne sa bh, az tr tk crh, "
        "kk ky tt ba, it lij vec co sc, la it, xh zu ss nr nd, st nso tn, lv ltg, da sv no nb nn fo, el grc, "
        "he hbo yi, rw rn, ku sdh, gn gug, ki kik, ff fuv"
    ).split(",")
]

# The languages that the classifier knows. Text in another would be taken for the one that is most like it.
_IDENTIFIABLE = frozenset(
    "ace af am an ar ary arz as az ba bcl be bg bn br bs ca crh cs cy da de dz el en eo es et eu ext fa fi fo fr fuv fy"
    " ga gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv ka kab kik kk km kn ko ku ky la lb"
    " lg lij ln lo lt ltg lv mg mk ml mn mr ms mt my nb ne nl nn no nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh se"
    " si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu".split()
)


def is_identifiable(code: str) -> bool:
    """Whether it can be said of a text that it is not in this language.

    >>> is_identifiable("de"), is_identifiable("deu"), is_identifiable("bar")
    (True, True, False)
    """
    return _OF_THREE_LETTERS.get(code, code) in _IDENTIFIABLE


def language_name(code: str) -> str:
    """A language as people call it, with its code; a code that has no name here is its own name.

    >>> language_name("de"), language_name("deu"), language_name("xx")
    ('German (de)', 'German (deu)', 'xx')
    """
    name = _NAMES.get(_OF_THREE_LETTERS.get(code, code))
    return code if name is None else f"{name.replace('_', ' ')} ({code})"


def fault_of_code(code: str) -> str | None:
    """What is odd about the code of a language, with what may be meant; None for one that may well be.

    >>> print(fault_of_code("en"), fault_of_code("bar"), fault_of_code("cz"), sep="; ")
    None; None; 'cz' is no language code of ISO 639-1; did you mean 'cs', Czech?
    """
    if code in _NAMES or len(code) == 3:
        return None
    meant = [f"{each!r}, {_NAMES[each]}" for each in _MEANT.get(code, "").split("/") if each]
    hint = f"did you mean {', or '.join(meant)}?" if meant else "any two letters will do, if they are meant so"
    return f"{code!r} is no language code of ISO 639-1; {hint}"


def language_in_name(path: Path) -> str | None:
    """The language that the name of a file ends in.

    >>> language_in_name(Path("train.en-de.de.gz")), language_in_name(Path("notes.txt"))
    ('de', None)
    """
    code = path.name.removesuffix(".gz").removesuffix(".xz").rpartition(".")[2]
    return code if code in _NAMES or code in _OF_THREE_LETTERS else None


@dataclass(frozen=True, slots=True)
class LanguageSample:
    """How many of the lines that were judged are in which language, the most frequent first."""

    n_lines: int
    counts: tuple[tuple[str, int], ...]

    def share(self, code: str) -> float:
        """Of the lines that are in a language, or in one that is taken for it."""
        return sum(n for other, n in self.counts if _are_alike(code, other)) / max(1, self.n_lines)

    @property
    def language(self) -> str | None:
        """The one that most lines are in, clearly; else None."""
        if self.n_lines < MIN_LINES or not self.counts:
            return None
        code, n = self.counts[0]
        return code if n > MOST * self.n_lines and code != "zxx" else None

    def mismatch(self, code: str) -> str | None:
        """The language that this text is in, where it clearly is not in ``code``; None where it may be."""
        other = self.language
        if other is None or _are_alike(code, other) or self.share(code) >= 1 - MOST:
            return None
        return other

    def second_language(self, code: str) -> tuple[str, float] | None:
        """A second language of many lines, and its share, where the text is in ``code`` else."""
        if self.n_lines < 5 * MIN_LINES:
            return None
        others = ((each, n) for each, n in self.counts if each != "zxx" and not _are_alike(code, each))
        other, n = next(others, ("", 0))
        return (other, n / self.n_lines) if MANY < n / self.n_lines <= MOST else None


def _are_alike(one: str, other: str) -> bool:
    one, other = _OF_THREE_LETTERS.get(one, one), _OF_THREE_LETTERS.get(other, other)
    return one == other or any(one in alike and other in alike for alike in _ALIKE)


class SpreadSample:
    """Lines that are long enough to be judged, spread evenly over all that are added; at most twice ``size``."""

    def __init__(self, size: int = SAMPLED_LINES) -> None:
        self.lines: list[str] = []
        self._size, self._stride, self._n_seen = size, 1, 0

    def add(self, line: str) -> None:
        """The next line; it may be taken."""
        if len(line) < MIN_CHARACTERS and (line.isascii() or len(line.encode("utf-8", "replace")) < MIN_BYTES):
            return
        if self._n_seen % self._stride == 0:
            self.lines.append(line[:MAX_CHARACTERS])
            if len(self.lines) >= 2 * self._size:
                del self.lines[1::2]
                self._stride *= 2
        self._n_seen += 1


def languages_of(lines: Iterable[str]) -> LanguageSample:
    """Which languages lines are in, each judged by itself."""
    from py3langid import classify  # here, since it takes seconds

    counts = Counter(classify(line)[0] for line in lines)
    return LanguageSample(counts.total(), tuple(counts.most_common()))
