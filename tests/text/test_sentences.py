"""Sentence and clause splitting, and joining without loss (except line ends)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import Segment, spaces_between, split_clauses, split_sentences

ENGLISH = [
    "Dr. Smith paid 3.50 dollars.",
    'She asked: "Is it good?"',
    "Mr. and Mrs. Jones live in the U.S. now.",
    "See fig. 3 for details, e.g. the red line.",
    "Version 2.0.1 is out!",
    "Really?!",
]
GERMAN = ["Am 3. Mai kam Dr. Müller nach Berlin.", "Das sind ca. 5 km, z. B. zu Fuß.", "Er sagte: „Gut.“"]


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(("sentences", "language"), [(ENGLISH, "en"), (GERMAN, "de")])
def test_sentences_end_where_people_end_them(sentences: list[str], language: str) -> None:
    assert [each.text for each in split_sentences(" ".join(sentences), language)] == sentences


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "See vol. 3 and vols. 4, ch. 5, no. 6, vol. II, eq. 7 of it. | It is long."),
        ("en", "It takes approx. 5 minutes, max. 10, incl. tax. | Approx. 20 people came."),
        ("en", "Mme. Dupont and Mlle. Durand saw Sgt. Brown. | They left."),
        ("en", "Call ext. 5, apt. 7, on Mon. or Tue. and so on. | Done."),
        ("en", "By Eq. (7), Eqs. 8 and 9, Eq. A1, Fig. (3) and refs. [4, 5]. | It ends."),
        ("fr", "Hier M. Dupont et MM. Petit. | Il fait 5 m. | Le Gén. Martin."),
        ("pl", "Był z p. Kowalskim i red. Nowak. | Potem wyszedł."),
        ("de", "Frau Dipl.-Ing. Maier vom Hl. Geist. | Ende."),
        ("en", "It ends with '?' or \"!\" here. | Yes."),
        ("en-GB", "See vol. 3 of it. | It is long."),
        ("de", "Am 1. Mai kam er. | Das ist der 2. Versuch. | Im 19. Jahrhundert nicht."),
        ("de", "Er wohnt im 3. Stock. | Vom 5. bis zum 7. August, jeden 2. Tag. | Sie hat 3. | Er hat 4."),
        ("de", "Es war 1990. | Dann kam er am 6. | Sie blieb."),
        ("de", "Inkl. MwSt. und zzgl. Versand der Fa. Müller, ca. 5 Euro. | Ende."),
        ("de", "Das ist Max. | Er kam."),
        ("fr", "M. Dupont et Mme. Durand, le Dr. Martin et le Pr. Petit. | Ils partent."),
        ("fr", "Av. J.-C. et apr. J.-C. en janv. et févr. | Voir réf. 5, max. 6, no. 7. | Fin."),
        ("es", "Dña. Ana y D. Juan, aprox. 7, pág. 3, p. ej. esto. | Fin."),
        ("it", "L'avv. Rossi, pag. 5, n. 6, la sig.ra Bianchi. | Fine."),
        ("pt", "A Profa. Reis, vol. 3, cap. 4, aprox. 7. | Av. Paulista. | Fim."),
        ("nl", "Dhr. Jansen en mevr. de Vries, d.w.z. dit hier. | Einde."),
        ("pl", "Pan inż. Lis, str. 5, ok. 7, w 19. wieku. | Koniec."),
        ("ru", "Это т. е. то, см. рис. 2, гл. 3. | Конец."),
        ("cs", "Je to 2. pokus, 1. května. | Odešel."),
        ("fi", "Hän tuli 1. toukokuuta. | Hän lähti."),
        ("sv", "Det är t.ex. detta. | Slut."),
    ],
)
def test_no_sentence_ends_at_an_abbreviation_or_an_ordinal_number(language: str, text: str) -> None:
    expected = text.split(" | ")
    assert [each.text for each in split_sentences(" ".join(expected), language)] == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "(This is one.) | This is another. | (One. Two!) | He left (it was late). | She stayed."),
        ("en", "(Yes!) | “No.” | [See the note.] | (Or not.) | Done."),
        ("en", "See (below. It is) there. | (See below.) and here. | Done."),
        ("en", "(ca.) Five of (e.g.) Them."),
        ("de", "(Das ist ein Satz.) | Das ist noch einer."),
        ("ja", "（これは文です。） | 次。"),
    ],
)
def test_sentences_in_brackets(language: str, text: str) -> None:
    expected = text.split(" | ")
    space = "" if language == "ja" else " "
    assert [each.text for each in split_sentences(space.join(expected), language)] == expected


@pytest.mark.parametrize(
    ("language", "text", "n_sentences"),
    [
        ("hi", "यह एक है। वह दो है॥ तीन", 3), ("hi", "यह एक है।वह दो है।", 2), ("ar", "هذا واحد. هل هذا؟ نعم", 3),
        ("ur", "یہ ایک ہے۔ یہ دو ہے۔", 2), ("am", "ይህ አንድ ነው። ይህ ሁለት ነው።", 2), ("hy", "Սա մեկ է։ Սա երկու է։", 2),
        ("km", "នេះមួយ។ នេះពីរ។", 2), ("km", "នេះមួយ។នេះពីរ។", 2), ("my", "ဒါတစ်ခု။ ဒါနှစ်ခု။", 2),
        ("zh", "这是一。这是二！", 2), ("ja", "「はい。そうです。」と言った。", 2), ("si", "මේ එකයි෴ මේ දෙකයි", 2),
    ],
)  # fmt: skip
def test_sentences_of_every_script(language: str, text: str, n_sentences: int) -> None:
    assert len(split_sentences(text, language)) == n_sentences


def test_no_sentence_ends_inside_a_name() -> None:
    for text in (
        "It is in /usr/share/doc/README.Debian for you.",
        "Use System.Xml and Makefile.PL here.",
        'See <img alt="One is. Two is."/> here.',
    ):
        assert [each.text for each in split_sentences(text, "en")] == [text]
    assert [each.text for each in split_sentences("これはペンです。それは本です。", "ja")] == [
        "これはペンです。",
        "それは本です。",
    ]


def test_items_of_a_list_keep_their_numbers() -> None:
    sentences = [each.text for each in split_sentences("1. Open the door. 2. Close the window.", "en")]
    assert sentences == ["1. Open the door.", "2. Close the window."]


def test_what_has_no_word_is_no_sentence() -> None:
    assert [each.text for each in split_sentences("He left. ...", "en")] == ["He left. ..."]
    assert [each.text for each in split_sentences("M. Dupont est là. Il part.", "fr")] == [
        "M. Dupont est là.",
        "Il part.",
    ]
    assert [each.text for each in split_sentences("", "en")] == [""]
    assert [each.text for each in split_sentences(" 5. ", "en")] == ["5."]


def test_an_unknown_language_has_the_general_rules() -> None:
    assert len(split_sentences("Hello there. How are you?", "xq")) == 2


def joined(texts: list[str], segments: list[Segment]) -> str:
    return "".join(map("".join, zip(texts, spaces_between(texts, segments, ""), strict=True))).rstrip()


def test_joining_restores_whitespace() -> None:
    segments = split_sentences("One is here.   Two is there.\tThree.\n\nFour.", "en")
    assert joined([each.text.upper() for each in segments], segments) == "ONE IS HERE.   TWO IS THERE.\tTHREE.\n\nFOUR."


def test_line_ends_of_other_programs_stay() -> None:
    text = "One is here.\u2028Two is there.\x85\x0cThree is far."
    segments = split_sentences(text, "en")
    assert len(segments) == 3
    assert joined([each.text for each in segments], segments) == text


def test_a_translation_of_nothing_leaves_no_gap() -> None:
    segments = split_sentences("One. Two is here. Three is far.", "en")
    assert joined(["", *[each.text for each in segments[1:]]], segments) == " ".join(each.text for each in segments[1:])


@given(
    st.text(alphabet=st.sampled_from("aB1 .!?…\"'“”()\t\u00a0\n\u2028é犬。-*,;:"), max_size=80),
    st.sampled_from(["en", "de", "ja"]),
)
def test_no_character_is_lost(text: str, language: str) -> None:
    segments = split_sentences(text, language)
    assert segments
    assert "".join(each.text + each.space for each in segments) == text.strip()
    assert not any(each.space.strip() for each in segments)


@given(st.text(alphabet=st.sampled_from("abc ,;:-)(–\t"), max_size=120), st.integers(1, 8))
def test_clauses_are_short_and_lose_nothing(text: str, max_tokens: int) -> None:
    clauses = split_clauses(text, max_tokens, words)
    assert "".join(each.text + each.space for each in clauses) == text.strip()
    assert all(words(each.text) <= max_tokens for each in clauses)


def test_clauses_end_at_punctuation_before_whitespace() -> None:
    text = "the first part of it is long; the second part, which has a comma, is long"
    clauses = [each.text for each in split_clauses(text, 10, words)]
    assert clauses == ["the first part of it is long;", "the second part, which has a comma, is long"]
    clauses = [each.text for each in split_clauses(text, 7, words)]
    assert clauses == ["the first part of it is long;", "the second part,", "which has a comma, is long"]
    assert [each.text for each in split_clauses("a " * 6, 4, words)] == ["a a a", "a a a"]
    assert [each.text for each in split_clauses("x" * 50, 4, len)] == ["x" * 50]  # a word is never split


@pytest.mark.parametrize(
    "text",
    [
        "one two three four, | five six seven eight", "one two three four； | five six seven eight",
        "عندما يهطل المطر اليوم، | نبقى في البيت معا", "عندما يهطل المطر اليوم؛ | نبقى في البيت معا",
        "जब बारिश होती है। | हम घर पर रहते", "ዝናብ ሲዘንብ ሁሉም ሰው፣ | ቤት እንቀመጣለን ዛሬ ነው", "ዝናብ ሲዘንብ ሁሉም ሰው፤ | ቤት እንቀመጣለን ዛሬ ነው",
        "երբ անձրև է գալիս՝ | մենք տանը ենք մնում", "ߛߊ߲ ߓߍ ߣߊ ߕߎߡߊ ߡߍ߲߸ | ߊ߲ ߓߍ ߕߏ ߛߏ", "မိုး ရွာ တဲ့ အခါ၊ | အိမ် မှာ နေ တယ်",
        "གནམ གཤིས ངན པ། | ཁྱིམ ལ བསྡད ཡིན", "ᠪᠣᠷᠣᠭᠠᠨ ᠣᠷᠣᠬᠤ ᠴᠠᠭ ᠲᠤ᠂ | ᠭᠡᠷ ᠲᠡᠭᠡᠨ ᠪᠠᠶᠢᠨ᠎ᠠ ᠪᠢᠳᠡ",
        "ពេល ភ្លៀង យើង នៅ៖ | ផ្ទះ ជា មួយ គ្នា",
        "when it really rains; | we stay at home", "όταν βρέχει πολύ εδώ· | μένουμε στο σπίτι μας",
    ],
)  # fmt: skip
def test_clauses_end_at_the_commas_of_every_script(text: str) -> None:
    expected = text.split(" | ")
    assert [each.text for each in split_clauses(" ".join(expected), 5, words)] == expected


def test_clauses_of_scripts_without_spaces() -> None:
    text = "下雨的时候，我们在家里读书、写字；天晴的时候，我们去公园。大家都高兴"
    clauses = [each.text for each in split_clauses(text, 14, len)]
    assert "".join(clauses) == text
    assert all(each[-1] in "，、；。" for each in clauses[:-1])
    assert max(map(len, clauses)) <= 14
    assert [each.text for each in split_clauses("١،٥ ٢،٥", 1, words)] == ["١،٥", "٢،٥"]  # a decimal comma


def test_no_clause_ends_inside_a_tag() -> None:
    text = 'see the picture <img alt="one, two, three, four"/> over there'
    assert '<img alt="one, two, three, four"/>' in " | ".join(each.text for each in split_clauses(text, 4, words))


def test_a_very_long_line_takes_little_time() -> None:
    """Not timed: quadratic time in 90,000 characters would not end."""
    for text in ("1. " * 30_000, "« " * 30_000, "No. " * 30_000, "x" * 90_000, "a, " * 30_000, "።" * 90_000):
        segments = split_sentences(text, "en")
        assert "".join(each.text + each.space for each in segments) == text.strip()
    for text in ("x" * 90_000, f"{'x' * 25_000} Yes. {'y' * 25_000}"):  # a word is never split
        assert {each.space for each in split_sentences(text, "en")[:-1]} <= {" "}
