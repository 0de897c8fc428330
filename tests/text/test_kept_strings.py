"""What a translation has lost, and how it is mended."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import lost_strings, mask, mend, needs_translation, unmask

EN_DE = {"src_language": "en", "tgt_language": "de"}
# (source, target, what the target lacks separated by " | ", the mended target)
CASES = [
    ("Made in 2024.", "Gemacht in 2402.", "2024", "Gemacht in 2024."),
    ("See send(2), recv(2) and poll(2).", "Siehe sie alle.", "2 | 2 | 2", "Siehe send(2) sie recv(2) alle poll(2)."),
    ("Ask $ally now", "$allykopf fragen", "$ally", "$ally fragen"),
    ("2 of 150", "2.0 von 150", "2", "2 von 150"),
    ("read returns 0 of /dev/null", "/dev/null gibt read", "0", "0 /dev/null gibt read"),
    ("It is 0 with a null byte", "Es ist mit null byte", "0", "Es ist 0 mit null byte"),
    ("Made in 2024 by 3 men.", "Von Männern gemacht.", "2024 | 3", "Von Männern 2024 gemacht 3."),
    ("It has 1,500 files and 2 dirs.", "Es hat 1.500 Dateien und zwei Ordner.", "", None),
    ("It has 1,500 files.", "Es hat 1500 Dateien.", "", None),
    ("It has 1,500 files.", "Es hat 1,500 Dateien.", "", None),
    ("It has 1,500 files.", "Es hat 15 Dateien.", "1,500", "Es hat 1.500 Dateien."),
    ("It weighs 12.5 kg.", "Es wiegt 125 kg.", "12.5", "Es wiegt 12,5 kg."),
    ("It weighs 12.5 kg.", "Es wiegt.", "12.5", "Es wiegt 12,5 kg."),
    ("Version 7.4 is out.", "Version 74 ist da.", "7.4", "Version 7.4 ist da."),
    ("Pay 7.4 percent", "Zahle 7,4 Prozent", "", None),
    ("On 24/12/2025 at 10:30", "Am 24.12.2025 um 10.30 Uhr", "", None),
    ("Call 030/123-456", "Ruf 030 123 456 an", "", None),
    ("From 10-20 men", "Von 10 bis 20 Männern", "", None),
    ("At 14:05:33.", "Um 2,02-11-11.2:0505 Uhr", "14:05:33", "Um 14:05:33 Uhr"),
    ("Two files and 5 dirs", "2 Dateien und Ordner", "5", "2 Dateien und 5 Ordner"),
    ("The 2nd of 3 men", "Der zweite von drei", "", None),
    ("The 2nd column", "Die Spalte", "2", "Die 2 Spalte"),
    ("A 4-year-old dog", "Ein vierjähriger Hund", "", None),
    ("1 file selected", "eine Datei ausgewählt", "1", "1 Datei ausgewählt"),
    ("the value 1", "einen Wert", "1", "einen Wert 1"),
    ("MPI-3.1 is here", "MPI-31 ist da", "MPI-3.1", "MPI-3.1 ist da"),
    ("SMT-LIB 2.0 here", "SMT-LIB 2 hier", "2.0", "SMT-LIB 2.0 hier"),
    ("from 0.08 to 9", "von 0,8 bis 9", "0.08", "von 0.08 bis 9"),
    ("10x20 dots", "20 Punkte", "10", "10 20 Punkte"),
    ("returns %E8%BB%8A now", "ergibt %E8 jetzt", "%E8%BB%8A", "ergibt %E8 %E8%BB%8A jetzt"),
    ("See https://x.org/a.", "Siehe https://x.org/b.", "https://x.org/a", "Siehe https://x.org/a."),
    ("See https://x.org/a now", "Siehe https://x.org/ajetzt", "", None),
    ("Hello {name} and %s!", "Hallo und %s!", "{name}", "Hallo {name} und %s!"),
    ("Hello $Name, [X1X]", "Hallo $Nome, [X1]", "$Name | [X1X]", "Hallo $Name, [X1X]"),
    ("<b>Bold</b> text", "<b>Fetter<b> Text", "</b>", "<b>Fetter</b> Text"),
    ("%s of %s", "%s", "%s", "%s %s"),
    ("an MP3 player", "ein MP3-Spieler", "", None),
    ("a 👍 for x.txt", "ein für", "👍 | x.txt", "ein 👍 für x.txt"),
    ("The 3D view", "Die dreidimensionale Ansicht", "", None),
    ("The 3D view", "Die 5D-Ansicht", "3", "Die 3D-Ansicht"),
    ("5GB of data", "viele Daten", "5", "5GB viele Daten"),
    ("use md5", "MD5 benutzen", "", None),
    ("Nothing here", "Nichts 5", "", None),
]


@pytest.mark.parametrize(("source", "target", "lost", "mended"), CASES)
def test_what_is_lost_and_mended(source: str, target: str, lost: str, mended: str | None) -> None:
    assert " | ".join(lost_strings(source, target, **EN_DE)) == lost
    assert mend(source, target, **EN_DE) == (target if mended is None else mended)


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("1 000,5 km", "1,000.5 km", ("fr", "en")),
        ("1.000,5 km", "1\u00a0000,5 km", ("de", "fr")),
        ("page 12 300 dpi", "page 12 à 300 dpi", ("en", "fr")),
        ("In 2024", "في ٢٠٢٤", ("en", "ar")),
        ("१२ किताबें", "12 books", ("hi", "en")),
        ("3 books", "三本书", ("en", "zh")),
        ("1,00,000 books", "100000 livres", ("hi", "fr")),
        ("42 files", "42 files", ("xx", "yy")),
    ],
)
def test_numbers_are_kept_in_the_form_of_the_target(source: str, target: str, languages: tuple[str, str]) -> None:
    assert lost_strings(source, target, src_language=languages[0], tgt_language=languages[1]) == ()


def test_control_tags_may_be_lacking() -> None:
    assert lost_strings("<fr2> a dog", "un chien", **EN_DE, may_lack=["<fr2>"]) == ()
    assert mend("<fr2> see %s", "voir", **EN_DE, may_lack={"<fr2>"}) == "voir %s"


WORDLESS = [
    "", " ", "2024", "3.14", "-", "---", "...", "?", "#", "(1)", "10:30",
    "00:00:07,312 --> 00:00:09,993", "https://x.org",
    "a@b.org", "%s", "{name}: 5", "<b></b>", "5 km", "$3.50", "report.pdf", "👍", "ℹ️", "№ 5", "١٢٣", "\u0301", "½",
    "x86_64",
    "{n, plural, one {# file} other {# files}}", "\ue005", "-> 7.4.7.2 <-", "😀 2024-11-26T14:05:33Z",
]  # fmt: skip
WORDY = [
    "A", "OK", "Yes.", "5 dogs", "犬", "কুকুর", "ক", "ไทย", "עברית", "https://x.org is", "(a)", "May 2024", "ª",
    "%s files",
]  # fmt: skip


def test_text_without_words_stays() -> None:
    assert [text for text in WORDLESS if needs_translation(text)] == []
    assert [text for text in WORDY if not needs_translation(text)] == []


STRINGS = [
    "2024", "1,500", "12.5 kg", "$3.50", "7", "10:30", "24/12/2025", "https://x.org/a1", "{name}", "%s", "<b>", "</b>",
    "AB-1234", "a@b.org", "x.txt", "👍", "1/2", "+49 30 1234567", "$Name", "300", "1.000.000",
]  # fmt: skip
WORDS = ["der", "Hund,", "zwei", "ein", "und.", "Ende!", "7", "2402", "%d", "{x}", "犬", "。", "12 300", "one"]


@given(
    st.lists(st.sampled_from([*STRINGS, *WORDS]), max_size=14),
    st.sampled_from(["en", "de", "fr", "zh", "xx"]),
    st.sampled_from(["en", "de", "fr", "zh", "xx"]),
    st.randoms(use_true_random=False),
)
def test_everything_survives_a_model(parts: list[str], src: str, tgt: str, chance: random.Random) -> None:
    """Whatever the model drops, doubles or writes between, the translation has every string of the source."""
    source, languages = " ".join(parts), {"src_language": src, "tgt_language": tgt}
    masked = mask(source)
    output = [piece for piece in masked.text.split(" ") for _ in range(chance.choice([0, 1, 1, 2]))]
    chance.shuffle(output)
    output[1:1] = chance.sample(WORDS, 3)
    target, _ = unmask(" ".join(output), masked)
    mended = mend(source, target, **languages)
    assert lost_strings(source, mended, **languages) == ()
    assert mend(source, mended, **languages) == mended
    assert mend(source, source, **languages) == source


@given(st.text("ab .,1290<>/%${}:-'\u00a0犬é٣½", max_size=40), st.text("ab .,1290<>/%${}:-'\u00a0犬é٣½", max_size=40))
def test_any_two_texts_are_compared_and_mended(source: str, target: str) -> None:
    mended = mend(source, target, **EN_DE)
    assert lost_strings(source, mended, **EN_DE) == ()
    assert lost_strings(source, source, **EN_DE) == ()


def test_a_number_of_a_range_is_put_in_as_the_language_writes_it() -> None:
    mended = mend("It is 3.5 x 4.5 cm.", "Es ist 3,5 x 9,9 cm.", src_language="en", tgt_language="de")
    assert mended == "Es ist 3,5 x 4,5 cm."
