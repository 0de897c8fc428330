"""What real use did to the product, tried again on real models: a line for each case, right or what came.

    python tests/cases/run.py CASES MODELS [NAME...]

CASES is a folder with a folder of inputs for each case, MODELS that of ``models.sh``. Needs some minutes; a case whose
model or input is absent is left out and said so.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

Check = Callable[["Setting"], "str | None"]  # None if all is right, else what came
CHECKS: dict[str, tuple[Check, tuple[str, ...]]] = {}  # of each case: the check, and the models it needs


class Setting:
    """The folders of the cases and models, and a server that is started when the first case needs one."""

    def __init__(self, cases: Path, models: Path) -> None:
        self.cases, self.models = cases.resolve(), models.resolve()
        self._servers: dict[tuple[str, ...], tuple[subprocess.Popen[str], str]] = {}

    def model(self, name: str) -> Path:
        """The model folder of a name."""
        return self.models / name / "model"

    def run(self, *arguments: object, stdin: str = "") -> tuple[int, str, str]:
        """Run a command line; return exit code, stdout, stderr."""
        done = subprocess.run(
            [Path(sys.executable).with_name("transduce"), *map(str, arguments)],
            input=stdin, capture_output=True, text=True, check=False, encoding="utf-8",
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def translate(self, name: str, text: str, *options: object) -> list[str]:
        """Translate lines by the command line."""
        code, out, errors = self.run("translate", self.model(name), *options, stdin=text)
        if code:
            raise ValueError(f"exit {code}: {errors.strip()}")
        return out.split("\n")[:-1]

    def ask(self, models: Sequence[str], path: str, body: object) -> tuple[int, Any]:
        """Ask a server with some models; return status and answer."""
        key = tuple(models)
        if key not in self._servers:
            command = [Path(sys.executable).with_name("transduce"), "serve", *map(self.model, key), "--port", "0"]
            server = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            assert server.stdout is not None
            self._servers[key] = server, server.stdout.readline().strip()
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._servers[key][1] + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else text

    def address(self, models: Sequence[str]) -> tuple[str, int]:
        """Host and port of a server that was asked before."""
        host, _, port = self._servers[tuple(models)][1].removeprefix("http://").partition(":")
        return host, int(port)

    def input(self, case: str, name: str = "input.json") -> Any:
        """An input of a case."""
        text = (self.cases / case / name).read_text(encoding="utf-8")
        return json.loads(text) if name.endswith(".json") else text

    def close(self) -> None:
        """End the servers."""
        for server, _ in self._servers.values():
            server.terminate()
            server.wait()


def case(*names: str, models: Sequence[str] = ()) -> Callable[[Check], Check]:
    """Register the check of some cases."""

    def register(check: Check) -> Check:
        for name in names:
            CHECKS[name] = (check, tuple(models))
        return check

    return register


def wrong(*found: object) -> str:
    """What came, for the table."""
    return " | ".join(str(each) for each in found)


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


@case("split-sentences-0", models=["demo"])
def _all_sentences(setting: Setting) -> str | None:
    status, answer = setting.ask(["demo"], "/v2/translate", setting.input("split-sentences-0"))
    text = answer["translations"][0]["text"] if status == 200 else ""
    is_right = status == 400 or (text.count(".") == 3 and text.count("\n") == 1)
    return None if is_right else wrong(status, answer)


@case("double-slash", "glossary-null", models=["demo"])
def _clients(setting: Setting) -> str | None:
    slash, _ = setting.ask(["demo"], "//translate", {"q": "The dog sleeps.", "source": "en", "target": "de"})
    null, _ = setting.ask(["demo"], "/v2/translate", setting.input("glossary-null"))
    return None if slash in (200, 307, 308) and null == 200 else wrong(slash, null)


@case("language-codes", models=["demo", "chinese"])
def _codes(setting: Setting) -> str | None:
    spellings = [("demo", "EN", "de"), ("demo", "en", "DE"), ("chinese", "zh-Hans", "en"), ("chinese", "ZH", "EN"),
                 ("chinese", "zh_Hans", "en")]  # fmt: skip
    found = [
        (source, target, setting.ask([model], "/translate", {"q": "你好。", "source": source, "target": target})[0])
        for model, source, target in spellings
    ]
    return None if all(status == 200 for *_, status in found) else wrong(found)


@case("score-zh")
def _scores_by_language(setting: Setting) -> str | None:
    found = []
    for language in ("zh", "ja"):
        folder = setting.cases / "score-zh"
        _, out, _ = setting.run(
            "score", folder / f"hyp.{language}", "--ref", folder / f"ref.{language}", "--language", language, "--json"
        )
        found.append(json.loads(out)["sacrebleu"]["score"] if out else 0)
    return None if min(found) > 50 else wrong(found)


@case("score-multi-ref")
def _several_references(setting: Setting) -> str | None:
    folder = setting.cases / "score-multi-ref"
    code, out, errors = setting.run(
        "score", "--ref", folder / "ref1", "--ref", folder / "ref2", folder / "hyp", "--json"
    )
    return None if code == 0 and abs(json.loads(out)["sacrebleu"]["score"] - 90.64) < 0.01 else wrong(out, errors)


@case("score-nfd")
def _canonically_equal(setting: Setting) -> str | None:
    folder = setting.cases / "score-nfd"
    scores = []
    for ref, hypothesis in (("ref.nfd", "hyp.nfc"), ("ref.hi", "hyp.hi")):
        _, out, _ = setting.run("score", "--ref", folder / ref, folder / hypothesis, "--json")
        scores.append(json.loads(out)["sacrebleu"]["score"])
    return None if min(scores) > 50 else wrong(scores)


@case("nfd-evaluate", models=["demo"])
def _evaluated_in_nfc(setting: Setting) -> str | None:
    folder = setting.cases / "nfd-evaluate"
    found = []
    for ref in ("ref.de", "ref.nfd.de"):
        options = ("--src", folder / "src.en", "--ref", folder / ref, "--json")
        found.append(json.loads(setting.run("evaluate", setting.model("demo"), *options)[1])["sacrebleu"]["score"])
    return None if found[0] == found[1] else wrong(found)


@case("bpe-text", "cr-line-ends", "tokenised-text", "tsv-3-columns")
def _doctor(setting: Setting) -> str | None:
    told = {}
    for name, files, fact in (
        ("bpe-text", ["bpe.en", "bpe.de"], "@@"),
        ("cr-line-ends", ["cr.en", "cr.de"], "CR"),
        ("tokenised-text", ["tok.en", "tok.de"], "tokenised"),
        ("tsv-3-columns", ["anki.tsv"], "column"),
    ):
        paths = [setting.cases / name / file for file in files]
        with tempfile.TemporaryDirectory() as folder:
            if name == "cr-line-ends":  # a copy of the case may have lost them
                for path in paths:
                    (Path(folder) / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r"))
                paths = [Path(folder) / path.name for path in paths]
            _, out, errors = setting.run("doctor", *paths)
        told[name] = fact in out + errors
    return None if all(told.values()) else wrong(told)


@case("hindi-tokens")
def _marks_belong_to_words(setting: Setting) -> str | None:
    from transduce.text import train_bpe

    lines = setting.input("hindi-tokens", "hi.hi").split("\n")
    tokenizer = train_bpe(lines * 50, vocab_size=4000)
    n_tokens = len(tokenizer.encode("किताब खिड़की विद्यार्थी"))
    return None if n_tokens <= 4 else wrong(n_tokens)


@case("region-code", "same-language")
def _directions(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        english, other = ("dog cat house tree book door".split(), "cão gato casa árvore livro porta".split())
        lines = [
            (f"the {english[i]} {n} sees the {english[j]} {m}", f"o {other[i]} {n} vê o {other[j]} {m}")
            for n, (i, j, m) in enumerate(product(range(6), range(6), range(30)))
        ]
        for column, name in enumerate(("a.en", "a.pt")):
            (Path(folder) / name).write_text("".join(f"{line[column]}\n" for line in lines), encoding="utf-8")
        typos = (Path(folder) / "a.en").read_text().replace("the ", "teh ", 700)
        (Path(folder) / "a.typos").write_text(typos)
        sides = {"en-pt_BR": ("a.en", "a.pt"), "en-pt-BR": ("a.en", "a.pt"), "en-en": ("a.typos", "a.en")}
        codes = {
            direction: setting.run(
                "init", "--src", f"{folder}/{src}", "--tgt", f"{folder}/{tgt}", "--direction", direction,
                "--minutes", 1, "--out", f"{folder}/{direction}.toml",
            )[::2]
            for direction, (src, tgt) in sides.items()
        }  # fmt: skip
    return None if not any(code for code, _ in codes.values()) else wrong(codes)


@case("export-masks", models=["help"])
def _exports_say_what_is_lost(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        code, out, errors = setting.run("export", setting.model("help"), "--to", "hf", "--out", f"{folder}/hf")
        card = "".join(path.read_text() for path in Path(folder).rglob("README.md"))
    return None if code == 0 and "URL" in card and "URL" in out + errors else wrong(code, out, errors)


@case("eps-named-png")
def _no_other_program(setting: Setting) -> str | None:
    from transduce.errors import DataError
    from transduce.media import read_image  # type: ignore[attr-defined]

    try:
        read_image(setting.cases / "attack" / "eps-named-png" / "ps.png")
    except DataError:
        return None
    return wrong("it was read")


@case("numbers-units", models=["help"])
def _units_as_the_target_writes_them(setting: Setting) -> str | None:
    found = setting.translate("help", setting.input("numbers-units", "in.en"))
    wanted = ("12,5 kg", "1.500 km", "3,50")
    return None if all(each in line for each, line in zip(wanted, found, strict=True)) else wrong(found)


@case("exif", "stereo-inverted")
def _media_as_people_see_and_hear_them(setting: Setting) -> str | None:
    import numpy as np

    from transduce.media import reader_of

    image, audio = reader_of("image", width=32), reader_of("audio", width=80)
    pictures = [image.read(setting.cases / "exif" / name) for name in ("plain.png", "exif6.jpg", "exif3.jpg")]
    sounds = [audio.read(setting.cases / "stereo-inverted" / name) for name in ("mono16.wav", "stereo_inverted.wav")]
    same = [np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.99
            for one, other in ((pictures[0], pictures[1]), (pictures[0], pictures[2]), (sounds[0], sounds[1]))
            if one.shape == other.shape]  # fmt: skip
    return None if same == [True] * 3 else wrong(same, [each.shape for each in (*pictures, *sounds)])


@case("bulk-dangling", "bulk-long-name", models=["demo"])
def _shards_by_name(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, other in (("dangling", "shard2.txt"), ("long", "n" * 250)):
            (folder / case).mkdir()
            (folder / case / "good.txt").write_text("The dog sleeps.\n")
            if case == "dangling":
                (folder / case / other).symlink_to("/nowhere/shard2.txt")
            else:
                (folder / case / other).write_text("The dog sleeps.\n")
        dangling, long = (
            setting.run(
                "translate", setting.model("demo"), "--in", f"{folder}/{case}/*", "--out", f"{folder}/{case}-out"
            )
            for case in ("dangling", "long")
        )
        is_named = dangling[0] == 1 and "shard2.txt" in dangling[2]
        is_done = "this is a bug" not in long[2] and (folder / "long-out" / "good.txt").exists()
    return None if is_named and is_done else wrong(dangling, long)


@case("html-500", "sigpipe", models=["demo"])
def _clients_that_do_harm(setting: Setting) -> str | None:
    body = {"q": "&#" + "1" * 4301, "source": "en", "target": "de", "format": "html"}
    status, _ = setting.ask(["demo"], "/translate", body)
    host, port = setting.address(["demo"])
    for _ in range(100):
        with socket.create_connection((host, port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
    alive, _ = setting.ask(["demo"], "/health", None)
    return None if status in (200, 400) and alive == 200 else wrong(status, alive)


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


@contextmanager
def _setting(cases: Path, models: Path) -> Iterator[Setting]:
    setting = Setting(cases, models)
    try:
        yield setting
    finally:
        setting.close()


def main() -> int:
    """Run the cases; return the number of wrong ones."""
    parser = argparse.ArgumentParser(description="Try the cases of real use on real models.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    n_wrong = 0
    with _setting(arguments.cases, arguments.models) as setting:
        done = dict[Check, str | None]()
        for name, (check, models) in CHECKS.items():
            if arguments.names and name not in arguments.names:
                continue
            if absent := [model for model in models if not setting.model(model).exists()]:
                print(f"{name}: left out, no model {', '.join(absent)}")
                continue
            if check not in done:
                try:
                    done[check] = check(setting)
                except (ValueError, KeyError, OSError) as error:
                    done[check] = repr(error)
            n_wrong += done[check] is not None
            print(f"{name}: {'right' if done[check] is None else f'WRONG: {done[check]}'}", flush=True)
    return n_wrong


if __name__ == "__main__":
    sys.exit(main())
