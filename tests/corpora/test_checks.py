"""Checks of parallel text: each fault is reported, and good text has no remarks."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pytest

from said import says
from transduce.config import DataConfig
from transduce.corpora import CleaningReport, CleaningRules, clean, generate_pairs
from transduce.corpora.checks import TextPart, dropped_share, remark_on_dropped, remarks_between, remarks_on_own_files
from transduce.corpora.languages import (
    _NAMES,
    LanguageSample,
    SpreadSample,
    fault_of_code,
    is_identifiable,
    language_name,
    languages_of,
)
from transduce.corpora.leakage import LeakageSearch, NearDuplicates

Pairs = list[tuple[str, str]]


@cache
def grammar(split: str = "train", n_pairs: int = 300) -> Pairs:
    pairs = generate_pairs("dev" if split == "dev" else "train", n_pairs=n_pairs, seed=5)
    return [(pair.en, pair.de) for pair in pairs]


def files_of(folder: Path, **parts: Pairs) -> DataConfig:
    names = {}
    for split, pairs in parts.items():
        for side, key in enumerate(("src", "tgt")):
            path = folder / f"{split}.{key}"
            path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
            names[f"{split}_{key}"] = str(path)
    return DataConfig(corpus="files", **names)


def told(config: DataConfig) -> list[str]:
    return [f"{remark.status} {remark}" for remark in remarks_on_own_files(config)]


def turned(pairs: Pairs) -> Pairs:
    return [(tgt, src) for src, tgt in pairs]


def test_good_files_are_good(tmp_path: Path) -> None:
    train = [pair for pair in grammar() if pair not in grammar("dev", 100)]
    dev = [(f"Once more: {src}", f"Noch einmal: {tgt}") for src, tgt in grammar("dev", 100)]
    assert told(files_of(tmp_path, train=train, dev=dev)) == []


def test_shifted_files(tmp_path: Path) -> None:
    pairs = grammar()
    shifted = [(src, tgt) for (src, _), (_, tgt) in itertools.pairwise(pairs)]
    found = told(files_of(tmp_path, train=shifted))
    assert len(found) == 1
    assert says(found[0], "problem", tmp_path / "train.src", "train.tgt", "N", "N - 1", 1)


def test_swapped_sides(tmp_path: Path) -> None:
    config = files_of(tmp_path, train=turned(grammar()))
    (one,) = told(config)
    assert re.search(r"^problem .*train\.src\b.*\bGerman\b.*train\.tgt\b.*\bEnglish\b.*\bdirection\b", one)
    assert told(config.model_copy(update={"direction": "de-en"})) == []
    found = told(files_of(tmp_path, train=grammar(), dev=turned(grammar("dev", 100))))
    assert any(re.search(r"^problem .*dev\.src\b.*\bGerman\b.*dev\.tgt\b.*\bEnglish\b", each) for each in found)


def test_swapped_sides_of_languages_that_nobody_knows(tmp_path: Path) -> None:
    config = files_of(tmp_path, train=grammar(), dev=turned(grammar("dev", 100)))
    found = told(config.model_copy(update={"direction": "qqa-qqb"}))
    (problem,) = (each for each in found if each.startswith("problem"))
    assert says(problem, tmp_path / "dev.src", "dev.tgt", tmp_path / "train.src", "train.tgt", "swapped")
    straight = files_of(tmp_path, train=grammar(), dev=grammar("dev", 100)).model_copy(update={"direction": "qqa-qqb"})
    assert not any(each.startswith("problem") for each in told(straight))


def test_another_language(tmp_path: Path) -> None:
    config = files_of(tmp_path, train=grammar()).model_copy(update={"direction": "en-fr"})
    (one,) = told(config)
    assert re.search(r"^problem .*train\.src\b.*train\.tgt\b.*\bGerman \(de\).*\bFrench \(fr\)", one)
    both = [*grammar(n_pairs=300), *((src, src.replace("the", "this")) for src, _ in grammar(n_pairs=100))]
    found = told(files_of(tmp_path, train=both))
    assert any(re.search(r"\d ?%.*train\.tgt\b.*\bEnglish \(en\).*\bGerman \(de\)", each) for each in found), found


def test_codes_of_languages(tmp_path: Path) -> None:
    assert [fault_of_code(code) for code in ("en", "eng", "bar", "nb")] == [None] * 4
    assert says(str(fault_of_code("cz")), "'cz'", "ISO 639-1", "'cs'", "Czech")
    assert says(str(fault_of_code("ge")), "'ge'", "ISO 639-1", "'de'", "German", "'ka'", "Georgian")
    for code, meant in {"jp": "ja", "cn": "zh", "gr": "el", "dk": "da", "ua": "uk"}.items():
        assert says(str(fault_of_code(code)), repr(code), repr(meant))
    assert re.fullmatch(r"'xx'.* ISO 639-1\b[^']*", str(fault_of_code("xx")))  # no suggestion
    assert language_name("jpn") == "Japanese (jpn)"
    config = files_of(tmp_path, train=grammar(n_pairs=10)).model_copy(update={"direction": "en-xx"})
    assert told(config) == [f"note direction = 'en-xx': {fault_of_code('xx')}"]


def test_languages_that_are_alike_and_languages_that_are_not() -> None:
    danish = LanguageSample(100, (("da", 60), ("no", 40)))
    assert danish.mismatch("nb") is None
    assert danish.mismatch("dan") is None
    assert danish.mismatch("en") == "da"
    assert LanguageSample(10, (("da", 10),)).mismatch("en") is None  # too few
    assert LanguageSample(100, (("da", 45), ("en", 10), ("fr", 45))).mismatch("en") is None  # not clear
    assert LanguageSample(100, (("zxx", 90), ("en", 10))).mismatch("en") is None
    assert LanguageSample(100, (("de", 70), ("fr", 30))).second_language("de") == ("fr", 0.3)
    assert LanguageSample(100, (("de", 95), ("fr", 5))).second_language("de") is None
    assert languages_of(["Le chien dort dans son panier.", "Un chat mange une souris."]).mismatch("fr") is None


def test_the_languages_that_are_judged_are_those_of_the_classifier() -> None:
    from py3langid import rank

    known = {code for code, _ in rank("a dog")}
    assert all(is_identifiable(code) for code in known - {"zxx"})
    assert not any(is_identifiable(code) for code in {*_NAMES, "zxx"} - known - {"nb"})


def test_a_sample_is_spread_evenly() -> None:
    sample = SpreadSample(size=10)
    for number in range(1000):
        sample.add("short")
        sample.add(f"a line that is long enough, {number}")
    numbers = [int(line.rpartition(" ")[2]) for line in sample.lines]
    assert 10 <= len(numbers) < 20
    assert {later - earlier for earlier, later in itertools.pairwise(numbers)} == {numbers[1]}
    assert numbers[0] == 0
    assert numbers[-1] >= 900


def test_lines_of_dev_in_the_training_text() -> None:
    dev = [
        ("The dog sleeps in May.", "Der Hund schläft im Mai."),
        ("The cat sleeps in 2011!", "Die Katze schläft 2011!"),
        ("A bird sings very well.", "Ein Vogel singt sehr gut."),
        ("A horse runs very fast.", "Ein Pferd läuft sehr schnell."),
        ("Yes.", "Ja."),
        ("Nobody is here today.", "Niemand ist heute hier."),
        ("", ""),
    ]
    lines = LeakageSearch(dev)
    for pair in [
        ("unknown", "unbekannt"),
        ("the dog  sleeps in may.", "Der Hund schläft im Mai."),
        ("the cat sleeps in 2023", "Die Katze schläft 2023"),
        None,
        ("A bird sings very well.", "Gut singt der Vogel."),
        ("Its horse runs.", "Ein Pferd läuft sehr schnell."),
        ("Yes.", "Ja."),
        ("", ""),
        ("the dog sleeps in may.", "Der Hund schläft im Mai."),
    ]:
        lines.observe(pair)
    found = lines.result()
    assert [each.count for each in (found.pairs, found.near_pairs, found.sources, found.targets, found.short)] == [
        1
    ] * 5
    assert found.is_severe
    numbers = re.findall(r"\d+", str(found.sentence("train.en")))
    assert " ".join(numbers).startswith("5 7 1 1 2 1 2 3 1 3 5 1 4 6 1 5 7")  # 5 of 7 lines: 1 is line 2 there, ...
    assert says(str(found.sentence("train.en")), "train.en", "source", "target")
    assert LeakageSearch(dev).result().sentence("train.en") is None


def test_leakage_is_loud_where_it_is_much(tmp_path: Path) -> None:
    train, dev = grammar(), [(f"Once more: {src}", f"Noch einmal: {tgt}") for src, tgt in grammar("dev", 200)]
    one = told(files_of(tmp_path, train=train, dev=[*dev, train[7]]))
    assert [each.split()[0] for each in one] == ["note"]
    assert says(one[0], 1, 1, 201, 201, 8)
    many = told(files_of(tmp_path, train=train, dev=[*dev, *train[:20]]))
    assert [each.split()[0] for each in many] == ["problem"]
    assert says(many[0], 20, 201, 1, 202, 2, 203, 3)
    assert not says(many[0], 204)  # the first three are enough
    assert re.search(r"; [^;\d]*\bscores\b[^;\d]*$", many[0])
    short = told(files_of(tmp_path, train=[*train, ("Yes.", "Ja.")], dev=[*dev, *[("Yes.", "Ja.")] * 20]))
    assert [each.split()[0] for each in short] == ["note"]


def test_leakage_of_text_without_spaces_is_as_loud() -> None:
    train = [(f"我今天早上在第{number}家商店买了面包。", f"I bought bread in shop {number}.") for number in range(20)]
    lines = LeakageSearch([*train, ("谢谢！", "Thanks!"), ("ありがとう。", "Thanks.")])
    for pair in [*train, ("谢谢！", "Thanks!"), ("ありがとう。", "Thanks.")]:
        lines.observe(pair)
    found = lines.result()
    assert (found.pairs.count, found.short.count, found.is_severe) == (20, 2, True)


def test_lines_of_several_training_texts_are_numbered_in_each() -> None:
    pairs = [(f"This is the sentence of number {number}.", f"Satz {number}") for number in ("one", "two", "three")]
    first, none, second, dev = (
        TextPart(name, "src", "tgt", partial(iter, read))
        for name, read in [("first", pairs[:2]), ("none", []), ("second", pairs[2:]), ("dev", [pairs[2], pairs[1]])]
    )
    [remark] = remarks_between([first, none, second], [dev])
    assert says(remark.message, "line 1 is line 1 of second", "line 2 is line 2 of first")


def test_near_duplicates() -> None:
    near = NearDuplicates()
    for pair in [("A dog.", "Ein Hund."), ("a dog", "ein Hund!"), ("A dog.", "Ein Hund."), None, ("2 dogs", "2 Hunde")]:
        near.observe(pair)
    near.observe(("3 dogs", "3 Hunde"))
    for pair in [("He went.", "वह गया।"), ("He went.", "वह गयी।")]:
        near.observe(pair)
    assert (near.tally.count, near.tally.first_lines) == (1, [2])
    lines = LeakageSearch([("She went.", "वह गयी।")])
    lines.observe(("He went.", "वह गया।"))
    assert lines.result().sentence("train.en") is None


def report_of(pairs: Pairs, **rules: bool) -> CleaningReport:
    report = CleaningReport()
    list(clean(pairs, CleaningRules(**rules), report))
    return report


def test_dropped_pairs() -> None:
    good = grammar(n_pairs=100)
    config = DataConfig(corpus="files", train_src="a.en", train_tgt="a.de")
    assert remark_on_dropped("files", report_of([*good, ("", "")]), config) is None
    assert remark_on_dropped("files", CleaningReport(), config) is None
    some = remark_on_dropped("files", report_of([*good, *[("dog", "")] * 9, ("same", "same")]), config)
    assert some is not None
    assert some.status == "note"
    assert re.search(r"^files: .*\b9\.1 ?%.*\bempty 9\b.*\b101, 102, 103\b.*\bidentical sides 1\b.*\b110\b", str(some))
    assert says(str(some), "data.drop_identical=false", "transduce doctor a.en a.de")
    most = remark_on_dropped("mine", report_of([*good, *[("dog", "dog")] * 90]), config)
    assert most is not None
    assert most.status == "problem"
    assert says(str(most), "transduce doctor mine", "data.max_dropped_share = 0.3", "--set data.max_dropped_share=1.0")
    asked_for = report_of(good * 3, drop_duplicates=True)
    assert asked_for.n_dropped >= 200
    assert dropped_share(asked_for) == 0.0


def test_the_built_in_corpus_needs_no_classifier() -> None:
    code = (
        "import sys; from transduce.config import DataConfig\n"
        "from transduce.corpora.checks import remarks_on_own_files\n"
        "assert not list(remarks_on_own_files(DataConfig()))\n"
        "assert not {'py3langid', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("n_pairs", [0, 1, 12])
def test_little_text_has_no_faults(tmp_path: Path, n_pairs: int) -> None:
    assert told(files_of(tmp_path, train=turned(grammar(n_pairs=max(1, n_pairs))[:n_pairs]))) == []
