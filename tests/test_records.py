"""docs/records: README.md and docs/results.md have the numbers of the records; predicted costs follow from formulas."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from transduce.model import Cost, cost_of
from transduce.recipes import RECIPES, preset

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
MEASURED = (
    "demo",
    "documents",
    "generation",
    "images-and-speech",
    "language-models",
    "multi30k-en-de",
    "other-texts",
    "own-text",
    "parsing",
    "speed",
    "starter",
)
KEYS = {"command", "seed", "commit", "reported_in", "machine", "versions", "settings", "values"}
FURTHER_KEYS = {"signatures", "note", "superseded_by"}
METRICS = {"sacrebleu", "chrf", "multi30k_bleu", "f1"}  # scores mean something only with a signature
OF_CSV = {
    "demo": ("demo",),
    "multi30k": ("multi30k-en-de", "published"),
    "own-text": ("own-text", "multi30k-en-de", "other-texts"),
    "parsing": ("parsing",),
    "speed": ("speed",),
    "start": ("starter",),
}

# What need not be in a record: code, addresses, dates, years, versions and section numbers, integers below 100, and
# digits that are part of a name (test_2016_flickr, int8, AVX-512).
EXEMPT = (
    r"^```.*?^```",
    r"`[^`\n]*`",
    r"\]\([^()\s]+\)",
    r"\b\d{4}-\d\d-\d\d\b",
    r"(?<![\w.,])(?:19|20)\d\d(?!\w|[.,]\d)",
    r"\d+\.\d+\.\d+",
    r"\b(?:Python|torch|CTranslate2) \d+\.\d+",
    r"\b[Ss]ections? \d+(?:\.\d+)*(?:(?:,| and) \d+(?:\.\d+)*)*",
)
NUMBER = re.compile(r"(?<![\w.,])(?<![A-Za-z]-)(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w]|[.,]\d)")
DURATION = re.compile(r"(\d+) min (\d+) s\b")
SMALLEST_INTEGER = 100


@dataclass(frozen=True)
class Printed:
    """A number of a page: its text, and the place (from, to) where it stands."""

    text: str
    start: int
    end: int

    def is_rounded(self, value: float) -> bool:
        """Whether a value, rounded to the digits of the text, is the text."""
        digits = len(self.text.partition(".")[2])
        return abs(value - float(self.text.replace(",", ""))) <= 0.5 * 10.0**-digits + 1e-9


@cache
def _record(name: str) -> dict[str, Any]:
    return json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))


def _names() -> list[str]:
    return sorted(path.stem for path in RECORDS.glob("*.json"))


def _leaves(value: Any) -> Iterator[float]:
    """The numbers of a record, at any depth; text such as a command has none."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, (int, float)):
        yield value


@cache
def _numbers(name: str) -> tuple[float, ...]:
    """What the pages may print of a record: values, what is derived from them, and counts among the settings.

    Measurements that were superseded do not count.
    """
    record = _record(name)
    numbers = [each["value"] for each in record.get("derived", {}).values()]
    numbers += _leaves(record.get("published", {}))
    for measurement in record.get("measurements", {}).values():
        if "superseded_by" not in measurement:
            numbers += _leaves(measurement["values"])
            settings = measurement["settings"]
            numbers += [each for each in _leaves(settings) if each == int(each)]
            numbers += [settings["million_parameters"]] if "million_parameters" in settings else []
    return tuple(numbers)


def _linked(text: str) -> list[str]:
    return sorted(set(re.findall(r"\]\(records/([\w-]+)\.json\)", text)))


def _without_exempt(text: str) -> str:
    """The text with blanks in place of all that is exempt, so that places stay the same."""
    for pattern in EXEMPT:
        text = re.sub(pattern, lambda match: " " * len(match[0]), text, flags=re.DOTALL | re.MULTILINE)
    return text


def _printed(text: str) -> list[Printed]:
    found = [Printed(match[0], *match.span()) for match in NUMBER.finditer(_without_exempt(text))]
    return [each for each in found if "." in each.text or int(each.text.replace(",", "")) >= SMALLEST_INTEGER]


def _unrecorded(text: str, records: list[str]) -> list[str]:
    """The numbers and durations of a text that no value of the records rounds to."""
    values = [value for name in records for value in _numbers(name)]
    numbers = [each.text for each in _printed(text) if not any(map(each.is_rounded, values))]
    durations = [match for match in DURATION.finditer(text) if 60 * int(match[1]) + int(match[2]) not in values]
    return numbers + [match[0] for match in durations]


def _sections(page: str) -> dict[str, str]:
    """The sections of a page by heading; the first, without a heading, is the summary."""
    summary, *others = re.split(r"^## ", page, flags=re.MULTILINE)
    return {"summary": summary} | {each.partition("\n")[0]: each.partition("\n")[2] for each in others}


def _check(page: str) -> dict[str, list[str]]:
    """The numbers of each section that its linked records lack; the summary has the records of the whole page."""
    found = {
        title: _unrecorded(text, _linked(page if title == "summary" else text))
        for title, text in _sections(page).items()
    }
    return {title: numbers for title, numbers in found.items() if numbers}


def test_the_pages_have_the_numbers_of_the_records() -> None:
    assert _check(RESULTS) == {}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(_printed(readme)) > 10
    assert _unrecorded(readme, _names()) == []


def test_each_section_with_numbers_links_a_record() -> None:
    sections = _sections(RESULTS)
    unlinked = [title for title, text in sections.items() if _printed(text) and not _linked(text)]
    assert unlinked in ([], ["summary"])  # the summary has the records of the whole page
    assert _linked(RESULTS) == _names()
    assert {title for title in sections if title != "summary"} == {_record(name)["section"] for name in MEASURED}


def test_a_changed_number_is_noticed() -> None:
    numbers = _printed(RESULTS)
    assert len(numbers) > 80
    # A changed digit can give another number of the record by chance, two different changes hardly.
    unnoticed = [each for each in numbers if not (_check(_with_digit(each, 1)) or _check(_with_digit(each, 5)))]
    assert unnoticed == []
    assert _check(RESULTS.replace("2 min 19 s", "2 min 18 s")) != {}
    assert "Built-in demo" in _check(RESULTS.replace("](records/demo.json)", "](records/speed.json)"))


def _with_digit(number: Printed, added: int) -> str:
    """The page with another last digit in one number."""
    digit = (int(number.text[-1]) + added) % 10
    return f"{RESULTS[: number.end - 1]}{digit}{RESULTS[number.end :]}"


@pytest.mark.parametrize(
    ("row", "name", "path"),
    [
        ("Multi30k en-de", "multi30k-en-de", ["derived", "mean of the two seeds, test_2016_flickr", "value"]),
        ("captions (29,000 pairs)", "own-text", ["measurements", "captions, init", "values", "sacrebleu"]),
        ("help pages (27,508 pairs)", "own-text", ["measurements", "help pages, init", "values", "sacrebleu"]),
        ("everyday", "own-text", ["measurements", "everyday sentences, init", "values", "sacrebleu"]),
        ("Built-in demo", "demo", ["measurements", "grammar", "values", "sacrebleu"]),
        ("Constituency parsing", "parsing", ["measurements", "parsing-gum", "values", "GUM dev", "f1"]),
        ("Constituency parsing", "parsing", ["measurements", "parsing-gum", "values", "GUM test", "f1"]),
        ("training, base", "speed", ["measurements", "training, base, bf16", "values", "transduce", "tokens_per_s"]),
        (
            "64 sentences, beam 4",
            "speed",
            ["measurements", "decoding, batch 64, beam 4", "values", "transduce_int8", "tokens_per_s"],
        ),
        (
            "one sentence, beam 4",
            "speed",
            ["measurements", "decoding, batch 1, beam 4", "values", "transduce_int8", "tokens_per_s"],
        ),
        ("serving", "speed", ["measurements", "serving, 64 clients", "values", "transduce"]),
        ("start to", "speed", ["measurements", "first words, engine in C", "values", "wall_s"]),
        ("[Language models]", "language-models", ["measurements", "characters, long", "values", "bits_per_byte"]),
        ("[Images]", "images-and-speech", ["measurements", "ocr-lines", "values", "noisy", "character_error_rate"]),
        (
            "[Speech]",
            "images-and-speech",
            ["measurements", "speech-synthetic", "values", "together", "word_error_rate"],
        ),
        ("[Terms]", "documents", ["measurements", "terms, hard", "values", "as_listed"]),
        ("de-en", "other-texts", ["measurements", "multi30k-de-en", "values", "test_2016_flickr", "multi30k_bleu"]),
        ("en-fr", "other-texts", ["measurements", "multi30k-en-fr", "values", "test_2016_flickr", "multi30k_bleu"]),
    ],
)
def test_each_headline_is_its_own_measurement(row: str, name: str, path: list[str]) -> None:
    lines = [line for line in _sections(RESULTS)["summary"].splitlines() if row in line and "**" in line]
    value = _at(_record(name), path)
    assert len(lines) == 1
    bold = re.findall(r"\*\*([\d.,]+)(?: %| s)?\*\*", lines[0])
    assert any(Printed(number, 0, 0).is_rounded(value) for number in bold)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("**42.05** and 1,593 of 29,000, 128", ["42.05", "1,593", "29,000", "128"]),
        ("test_2016_flickr, newstest2014, int8, c5.2xlarge, AVX-512, 99, [4], 2 cores", []),
        ("in 2021, on 2026-11-24, torch 2.11, version 2.13.0, section 6.3, sections 5.1 and 5.4", []),
        ("`alpha 0.6` [x](y/1.5.json)\n```\n93.33\n```\n0.17 (1.74 x).", ["0.17", "1.74"]),
    ],
)
def test_which_numbers_count(text: str, numbers: list[str]) -> None:
    assert [each.text for each in _printed(text)] == numbers


@pytest.mark.parametrize(
    ("text", "value", "is_rounded"),
    [
        ("93.3", 93.33, True),
        ("93.33", 93.3, False),
        ("93.4", 93.33, False),
        ("1,593", 1593, True),
        ("34.00", 33.9994, True),
    ],
)
def test_rounding(text: str, value: float, is_rounded: bool) -> None:
    assert Printed(text, 0, len(text)).is_rounded(value) is is_rounded


@pytest.mark.parametrize("name", [*MEASURED, "wmt14"])
def test_measurements_are_complete(name: str) -> None:
    record = _record(name)
    assert record["format"] == 1
    for title, measurement in record["measurements"].items():
        assert set(measurement) >= KEYS, title
        assert set(measurement) <= KEYS | FURTHER_KEYS, title
        assert measurement["command"]
        assert list(_leaves(measurement["values"])) != []
        assert set(measurement.get("signatures", {})) == METRICS & _keys(measurement["values"]), title
        assert re.fullmatch(r"[0-9a-f]{7,40}", measurement["reported_in"])
        assert measurement["commit"] is None or re.fullmatch(r"[0-9a-f]{7,40}", measurement["commit"])
        assert measurement.get("superseded_by", title) in record["measurements"]


def _keys(value: Any) -> set[str]:
    return set(value).union(*map(_keys, value.values())) if isinstance(value, dict) else set()


@pytest.mark.parametrize("name", ["multi30k-en-de", "speed"])
def test_derived_numbers_follow_from_the_values(name: str) -> None:
    record = _record(name)
    assert record["derived"] != {}
    for derived in record["derived"].values():
        [rule] = set(derived) - {"value"}
        values = [_at(record["measurements"][title]["values"], path) for title, *path in derived[rule]]
        if rule == "mean":
            assert derived["value"] == pytest.approx(fmean(values), abs=0.005 + 1e-9)
        else:
            ratio, rounding = values[0] / values[1], 0.5 / values[0] + 0.5 / values[1]
            assert derived["value"] == pytest.approx(ratio, abs=0.005 + ratio * rounding)


def _at(value: Any, path: list[str]) -> float:
    for key in path:
        value = value[key]
    return float(value)


def test_published_figures_name_their_source() -> None:
    for figure in _record("published")["published"].values():
        assert figure["source"]
        assert list(_leaves(figure["values"])) != []


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/results/*.csv")), ids=lambda path: path.stem)
def test_plotted_numbers_are_recorded(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row if re.fullmatch(r"\d+(\.\d+)?", cell)]
    values = [value for name in OF_CSV[path.stem] for value in _numbers(name)]
    assert [cell for cell in cells if not any(map(Printed(cell, 0, 0).is_rounded, values))] == []


def test_scores_in_the_comments_of_recipes_are_recorded() -> None:
    values = [value for name in MEASURED for value in _numbers(name)]
    scores = [
        Printed(score, 0, 0)
        for path in RECIPES.glob("*.toml")
        for score in re.findall(r"^#.* (?:sacreBLEU|multi30k_bleu) (\d+\.\d+)", path.read_text(encoding="utf-8"), re.M)
    ]
    assert len(scores) >= 3
    assert [score.text for score in scores if not any(map(score.is_rounded, values))] == []


@pytest.mark.parametrize("run", _record("wmt14")["measurements"])
def test_predicted_costs_follow_from_the_formula(run: str) -> None:
    record = _record("wmt14")
    settings, values = (record["measurements"][run][key] for key in ("settings", "values"))
    cost = _cost(settings["preset"], settings["vocab_size"])
    update = cost.flops_per_token * settings["token_pairs_per_update"]
    total = update * settings["updates"]
    assert values["million_parameters"] == pytest.approx(cost.parameters / 1e6, abs=0.05)
    assert values["flops_of_an_update"] == pytest.approx(update, rel=0.02)
    assert values["flops_of_the_run"] == pytest.approx(total, rel=0.01)
    for machine in ("8_a100", "one_h200"):
        devices, peak, share = (record["assumptions"][machine][key] for key in ("devices", "peak_flops", "share"))
        assert values[f"hours_on_{machine}"] == pytest.approx(total / (devices * peak * share) / 3600, abs=0.05)
    p100 = record["assumptions"]["8_p100"]
    sustained = update / p100["seconds_per_update"][settings["preset"]] / p100["devices"] / 1e12
    assert values["sustained_p100_tflops"] == pytest.approx(sustained, abs=0.05)


def test_the_share_of_the_peak_is_that_of_the_log() -> None:
    a100 = _record("wmt14")["assumptions"]["8_a100"]
    log = a100["from"]
    rate = log["target_tokens"] * _cost(log["preset"], log["vocab_size"]).flops_per_token / log["seconds"]
    assert a100["share"] == pytest.approx(rate / (a100["devices"] * a100["peak_flops"]), abs=0.005)


def test_the_table_of_predicted_costs_has_the_recorded_numbers() -> None:
    page = (ROOT / "notebook" / "predicted-cost.md").read_text(encoding="utf-8")
    runs = _record("wmt14")["measurements"].values()
    for start, key, form in (
        ("parameters (V", "million_parameters", "{:.1f} M"),
        ("FLOPs of the run", "flops_of_the_run", "{:.1e}"),
        ("8 A100", "hours_on_8_a100", "{:.1f} h"),
        ("one H200", "hours_on_one_h200", "{:.1f} h"),
    ):
        [row] = re.findall(rf"^\| {re.escape(start)}[^|]*\| (.*) \|$", page, re.M)
        assert row.split(" | ") == [form.format(run["values"][key]).replace("e+", "e") for run in runs]


def _cost(name: str, vocab_size: int) -> Cost:
    return cost_of(preset(name).model.with_vocabulary(vocab_size, vocab_size))
