"""Text as users translate it: what is kept, what is not repeated, what is joined."""

from __future__ import annotations

import re
from collections import Counter

from register import Setting, case, wrong


@case("auto-already-target", "detect-target-language", models=["demo"])
def _language(setting: Setting) -> str | None:
    german, french = "Der alte Hund sieht die Katze nicht.", "Le vieux chien ne voit pas le chat."
    _, detected = setting.ask(["demo"], "/detect", {"q": german})
    _, other = setting.ask(["demo"], "/detect", {"q": french})
    _, libre = setting.ask(["demo"], "/translate", {"q": german, "source": "auto", "target": "de"})
    _, deepl = setting.ask(["demo"], "/v2/translate", {"text": [german], "target_lang": "DE"})
    is_right = (
        detected[0]["language"] == "de"
        and (not other or other[0]["language"] not in ("en", "de"))
        and libre["translatedText"] == german
        and libre["detectedLanguage"]["language"] == "de"
        and deepl["translations"][0]["text"] == german
    )
    return None if is_right else wrong(detected, other, libre, deepl)


@case("cli-nonwords", "numbers-lines", models=["demo", "help", "packages"])
def _no_letters(setting: Setting) -> str | None:
    text = setting.input("cli-nonwords", "input.txt")
    more = "00:01:02.500 --> 00:01:04.000\n1/2\n(3)\n€ 5,00\n😆\n•\n\t7\n+49 30 1234567\n"
    results = {name: setting.translate(name, text + more) for name in ("demo", "help", "packages")}
    expected = (text + more).split("\n")[:-1]
    changed = {name: [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]]
               for name, found in results.items()}  # fmt: skip
    return wrong(changed) if any(changed.values()) else None


@case("digits", models=["help", "packages"])
def _digits(setting: Setting) -> str | None:
    body = setting.input("digits")
    lost = []
    for name in ("help", "packages"):
        _, answer = setting.ask([name], "/translate", body)
        lost += [
            (name, source, target)
            for source, target in zip(body["q"], answer["translatedText"], strict=True)
            if Counter(re.findall(r"\d", source)) != Counter(re.findall(r"\d", target))
        ]
    return wrong(lost) if lost else None


@case("weblate-placeholders", models=["help"])
def _placeholders(setting: Setting) -> str | None:
    kinds = ("[X16X] $Username %name% [[name]] __NAME__ @name@ {0} {name} %s %(count)d ${path} {{x}} :id <x/>"
             " https://example.org/a_(b)?c=1 info@example.org example.com/page").split()  # fmt: skip
    texts = [f"The window shows {kind}." for kind in kinds] + [f"Click {' '.join(kinds)} and close the file."]
    found = setting.translate("help", "".join(f"{text}\n" for text in texts))
    lost = [
        (kind, target)
        for text, target in zip(texts, found, strict=True)
        for kind in kinds
        if text.count(kind) != target.count(kind)
    ]
    return wrong(lost) if lost else None


@case("empty-translation", "empty-sentence-demo", "repetition", models=["demo", "help", "packages", "everyday"])
def _never_empty_and_no_loops(setting: Setting) -> str | None:
    words = [*setting.input("empty-translation")["q"], *setting.input("empty-sentence-demo")["q"],
             *setting.input("repetition")["q"]]  # fmt: skip
    bad = []
    for name in ("demo", "help", "packages", "everyday"):
        for source, target in zip(words, setting.translate(name, "".join(f"{word}\n" for word in words)), strict=True):
            copies = max((len(match[0].split()) for match in re.finditer(r"\b(\w+)(?: \1\b){4,}", target)), default=0)
            if not target.strip() or copies or "\ufffd" in target:
                bad.append((name, source, target))
    return wrong(bad) if bad else None


@case("join-zh", "zh-glued", models=["chinese"])
def _joined_by_the_target(setting: Setting) -> str | None:
    found = setting.translate("chinese", "".join(setting.input("join-zh", "in.zh")))
    _, answer = setting.ask(["chinese"], "/translate", setting.input("zh-glued"))
    glued = [line for line in (*found, answer["translatedText"]) if re.search(r"[.!?][A-Z]", line)]
    return wrong(glued) if glued else None


@case("caps-unicase", models=["arabic"])
def _no_capitals_without_case(setting: Setting) -> str | None:
    found = setting.translate("arabic", setting.input("caps-unicase", "in.ar"))
    whole = setting.translate("arabic", setting.input("caps-unicase", "in.ar"), "--no-split")
    capitals = [line for line in found if line == line.upper()]
    return wrong(capitals or (found, whole)) if capitals or found != whole else None


@case("caps-split", models=["demo"])
def _capitals_as_small_letters(setting: Setting) -> str | None:
    text = setting.input("caps-split", "in.en")
    capitals, small = setting.translate("demo", text), setting.translate("demo", _sentence_case(text))
    pairs = [(c, s) for c, s in zip(capitals, small, strict=True) if c != s.upper()]
    return wrong(f"{len(pairs)} of {len(capitals)}", *pairs[:2]) if len(pairs) > 0.05 * len(capitals) else None


def _sentence_case(text: str) -> str:
    lines = [re.sub(r"\bi\b", "I", line.capitalize()) for line in text.split("\n")[:-1]]
    return "".join(f"{line}\n" for line in lines)


@case("tags-lost", models=["tags"])
def _control_tags(setting: Setting) -> str | None:
    found = setting.translate("tags", setting.input("tags-lost", "in.en"))
    return wrong(found) if any("<" in line for line in found) else None


@case("output-cut", models=["long"])
def _cut_output_says_why(setting: Setting) -> str | None:
    from transduce import Translator

    translator, text = Translator.load(setting.model("long")), setting.input("output-cut", "in.en").rstrip("\n")
    search = translator.search.model_copy(update={"max_extra_tokens": 2})  # whatever this model writes is longer
    [cut] = translator.translate_lines([text], search=search)
    return None if "output-cut" in cut.warnings else wrong(cut)


@case("data-uri", "tag-on-symbol", models=["demo", "help"])
def _tags(setting: Setting) -> str | None:
    bad = []
    for name in ("demo", "help"):
        body = setting.input("data-uri") | {"source": "en", "target": "de", "format": "html"}
        _, answer = setting.ask([name], "/translate", body)
        [image] = re.findall("<img[^>]*>", body["q"])
        if image not in answer["translatedText"]:
            bad.append((name, answer["translatedText"][:80]))
        for number, piece in enumerate(('<a href="#top">↑</a>', "<sup>*</sup>"), start=1):
            _, answer = setting.ask([name], "/translate", setting.input("tag-on-symbol", f"input{number}.json"))
            if piece not in answer["translatedText"]:
                bad.append((name, answer["translatedText"]))
    return wrong(bad) if bad else None


@case("numbers-units", models=["help"])
def _units_as_the_target_writes_them(setting: Setting) -> str | None:
    found = setting.translate("help", setting.input("numbers-units", "in.en"))
    wanted = ("12,5 kg", "1.500 km", "3,50")
    return None if all(each in line for each, line in zip(wanted, found, strict=True)) else wrong(found)


_LINKS = " ".join(f"http://a.b/{n}" for n in range(1, 13))
OWN = (  # a text, and what its translation has as often
    ("Press Ctrl+Alt+F2 to open page 17.", "17"), ("The meeting is on 2031-04-05 at 09:45.", "2031-04-05 09:45"),
    ("See https://docs.example.net/v2/a_(b)/c?x=1&y=2#z for help.", "https://docs.example.net/v2/a_(b)/c?x=1&y=2#z"),
    ("Write to jane.doe+test@mail.example.co.uk now.", "jane.doe+test@mail.example.co.uk"),
    ("The value of {count} is %d.", "{count} %d"), ("Hello %(user)s, you have %(n)d messages.", "%(user)s %(n)d"),
    ("Open ${HOME}/bin and $PATH.", "${HOME}/bin $PATH"), ("Click [[button]] or __LINK__.", "[[button]] __LINK__"),
    ("The name @user_name@ is used.", "@user_name@"), ("Use {{ value }} here.", "{{ value }}"),
    ("The icon [X3X] is red and [X12X] is blue.", "[X3X] [X12X]"), ("Set %1$s to %2$s.", "%1$s %2$s"),
    ("IBAN GB29 NWBK 6016 1331 9268 19 is wrong.", "GB29 NWBK 6016 1331 9268 19"),
    ("Call +1 (555) 010-9999 today.", "+1 (555) 010-9999"), ("ISBN 0-306-40615-2 is a book.", "0-306-40615-2"),
    ("Use #1e90ff or #FFF as the color.", "#1e90ff #FFF"), ("About 3/4 of the files are ½ full.", "3/4 ½"),
    ("Version 10.4.0-rc1 replaces 9.8.", "10.4.0-rc1"), ("The error code is 0x8007000E.", "0x8007000E"),
    ("Save as report_2020.final.docx in C:\\Temp.", "report_2020.final.docx"),
    ("Order AB-1234-X is late.", "AB-1234-X"),
    ("The subtitle 00:01:02,345 --> 00:01:04,000 is late.", "00:01:02,345 00:01:04,000"),
    ("Room 101, 2nd floor, 1987.", "101 1987"), ("The file has 128 pages and 3 tables.", "128 3"),
    ("Visit example.org/path or www.example.com.", "example.org/path www.example.com"),
    ("Use <b>bold</b> and <br/> tags.", "<b> </b> <br/>"), ("Press &nbsp; or &amp; here.", "&nbsp; &amp;"),
    ("The address is 192.168.0.1:8080.", "192.168.0.1:8080"), ("VAT DE123456789 is missing.", "DE123456789"),
    ("{n, plural, one {# file} other {# files}} left.", "{n, plural, one {# file} other {# files}}"),
    ("The year 1999 was not 2001.", "1999 2001"),
    ("A, 1; B, 2; C, 3; D, 4; E, 5; F, 6; G, 7; H, 8; I, 9; J, 10; K, 11; L, 12.",
     "1 2 3 4 5 6 7 8 9 10 11 12"), ("Time: 7:05 p.m. and 19:05.", "19:05"), ("12345678 users", "12345678"),
    (f"{_LINKS} are links.", _LINKS),
    ("Use x86_64 and UTF-8.", "x86_64 UTF-8"), ("Use :name and :id in the query.", ":name :id"),
    ("The dog 🐕 and the cat 🐈 sleep.", "🐕 🐈"), ("5 km", "5"), ("Item 4.2.1 (b)", "4.2.1"),
)  # fmt: skip


@case("own", models=["demo", "help", "packages"])
def _own(setting: Setting) -> str | None:
    bad = []
    for name in ("demo", "help", "packages"):
        found = setting.translate(name, "".join(f"{text}\n" for text, _ in OWN))
        for (text, kept), target in zip(OWN, found, strict=True):
            words = [kept] if "plural" in kept or "NWBK" in kept or "(555)" in kept or "{{" in kept else kept.split(" ")
            lost = [word for word in words if target.count(word) < 1]
            if lost or not target.strip():
                bad.append((name, lost, text, target))
    return wrong(len(bad), *bad) if bad else None
