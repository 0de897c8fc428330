"""Sentences over several subtitles, and their translations divided again."""

from __future__ import annotations

import pytest

from transduce.documents import read_document
from transduce.documents.cue_layout import MAX_COLUMNS, atoms_of, laid_out


def subtitles(*texts: str, seconds: float = 2) -> bytes:
    """Return subtitles in SubRip's format, one right after the other."""
    times = [f"00:{int(at * seconds) // 60:02}:{int(at * seconds) % 60:02},000" for at in range(len(texts) + 1)]
    cues = [
        f"{at + 1}\n{start} --> {end}\n{text}\n"
        for at, (text, start, end) in enumerate(zip(texts, times, times[1:], strict=False))
    ]
    return "\n".join(cues).encode()


def texts_of(data: bytes, name: str = "a.srt") -> list[str]:
    return [each.unit.text for each in read_document(data, name).segments]


def cue_texts(data: bytes) -> list[str]:
    return ["\n".join(block.split("\n")[2:]) for block in data.decode().strip().split("\n\n")]


@pytest.mark.parametrize(
    ("cues", "texts"),
    [
        (["When it rains", "we stay in.", "He left."], ["When it rains we stay in.", "He left."]),
        (["- Yes.\n- No, I", "think not."], ["Yes.", "No, I think not."]),
        (
            ["I thought...", "He came.", "and so...", "on it went."],
            ["I thought...", "He came.", "and so... on it went."],
        ),
        (["Where is Dr.", "Miller?"], ["Where is Dr. Miller?"]),
        (["PARIS", "He came"], ["PARIS", "He came"]),
        (["He said", "[door slams]", "nothing."], ["He said", "[door slams]", "nothing."]),
        (["♪ la la ♪", "he sang"], ["la la", "he sang"]),
        (["{\\an8}Up here", "and down"], ["Up here", "and down"]),
        (["<i>One</i>\n<i>two</i>", "<i>three.</i>"], ["One two three."]),
        (["<i>One", "two</i> three."], ["One two three."]),
        ([">> JOHN: Hi there", ">> No"], ["JOHN: Hi there", "No"]),
        (["私は", "行く。"], ["私は行く。"]),
        (["-5 degrees", "12", "in Rome."], ["-5 degrees", "in Rome."]),
    ],
)
def test_a_sentence_is_one_text(cues: list[str], texts: list[str]) -> None:
    assert texts_of(subtitles(*cues)) == texts


def test_a_pause_ends_a_text() -> None:
    data = b"1\n00:00:01,000 --> 00:00:02,000\nIt was\n\n2\n00:00:09,000 --> 00:00:10,000\nlate.\n"
    assert texts_of(data) == ["It was", "late."]


@pytest.mark.parametrize(
    ("cues", "target", "expected"),
    [
        (
            ["When it rains,", "we stay in."],
            "Wenn es regnet, bleiben wir drin.",
            ["Wenn es regnet,", "bleiben wir drin."],
        ),
        (["<i>I was going</i>", "<i>to the sea.</i>"], "Ich ging ans Meer.", ["<i>Ich ging</i>", "<i>ans Meer.</i>"]),
        (["- I see", "the sea."], "Ich sehe das Meer.", ["- Ich sehe", "das Meer."]),
        (["One", "two", "three."], "Eins zwei.", ["Eins", "zwei.", ""]),
        (["私は", "行く。"], "我要走了。", ["我要", "走了。"]),
        (["Yes"], "Ja <i>und</i>\nnein", ["Ja <i>und</i> nein"]),
    ],
)
def test_a_translation_is_divided(cues: list[str], target: str, expected: list[str]) -> None:
    written = read_document(subtitles(*cues), "a.srt").written([target])
    assert [each.rstrip("\n") for each in cue_texts(written)] == expected


def test_tags_are_closed_and_opened_where_a_subtitle_ends() -> None:
    data = subtitles("The <b>very old", "house</b> fell.")
    written = read_document(data, "a.srt").written(["Das <b>sehr alte Haus</b> fiel."])
    assert cue_texts(written) == ["Das <b>sehr alte</b>", "<b>Haus</b> fiel."]


def test_lines_are_of_equal_length_and_not_too_long() -> None:
    text = "Das ist ein langer Satz, der auf zwei Zeilen gehört, wenn er lesbar sein soll."
    lines = laid_out(atoms_of(text), 2, MAX_COLUMNS, "\n").split("\n")
    assert lines == ["Das ist ein langer Satz, der auf zwei", "Zeilen gehört, wenn er lesbar sein soll."]
    assert laid_out(atoms_of("Kurz und gut."), 2, MAX_COLUMNS, "\n") == "Kurz und gut."


def test_what_stands_around_the_words_of_vtt_stays() -> None:
    data = (
        b"\xef\xbb\xbfWEBVTT - x\nKind: captions\nLanguage: en\n\nNOTE\nno text\n\nSTYLE\n::cue {}\n\nid\n"
        b"00:01.000 --> 00:02.000 align:start\n<v Bob>Fish &amp; <c.x>chips</c>\n\n"
        b"00:02.000 --> 00:03.000\n<v Ann>Yes <00:02.500>sir\n"
    )
    document = read_document(data, "a.vtt")
    assert texts_of(data, "a.vtt") == ["Fish & chips", "Yes sir"]
    written = document.written(["Fisch &amp; <c.x>Fritten</c>", "Ja, <00:02.500>Herr"], tgt_language="de")
    expected = data.replace(b"Language: en", b"Language: de").replace(b"Fish", b"Fisch").replace(b"chips", b"Fritten")
    assert written == expected.replace(b"Yes <00:02.500>sir", b"Ja, <00:02.500>Herr")


def test_quotation_marks_of_vtt_are_no_entities() -> None:
    [segment] = read_document(b"WEBVTT\n\n00:01.000 --> 00:02.000\nFish &amp; chips\n", "a.vtt").segments
    assert segment.unit.put_back("C'est \"l'été\" & <x>") == "C'est \"l'été\" &amp; &lt;x&gt;"
