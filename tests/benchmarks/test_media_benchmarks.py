"""The benchmarks of images and of speech: how results of other systems are counted."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="an installed package has no benchmarks")


def test_each_part_has_its_best_scale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    monkeypatch.syspath_prepend(BENCHMARKS)
    import ocr

    page = np.zeros((4, 9))
    lines = [ocr.TestLine("clean", "ab", page), ocr.TestLine("noisy", "cd", page), ocr.TestLine("clean", "ef", page)]
    by_scale = {1: ["ab", "xx", "ef"], 2: ["ab", "cd", "ex"], 3: ["", "", ""]}
    found, scales = ocr.best_of_scales(by_scale, lines)
    assert found == ["ab", "cd", "ef"]
    assert scales == {"clean": 1, "noisy": 2}
    scores = ocr.scored(found, lines, 3.0)
    assert scores["character_error_rate"]["score"] == 0
    assert (scores["clean_lines"], scores["lines_per_s"]) == (2, 1.0)
    assert "| tesseract | noisy | 1 | 0.00 % | 0.00 % | 100.0 % |" in ocr.as_text({"systems": {"tesseract": scores}})
    pytest.importorskip("transduce_paper")  # it draws
    ocr.draw(lines, {"tesseract": found}, tmp_path / "lines.svg")
    assert "tesseract: cd" in (tmp_path / "lines.svg").read_text()


def test_an_image_on_which_tesseract_fails_reads_as_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    monkeypatch.syspath_prepend(BENCHMARKS)
    import ocr

    def run(command: list[str], **_: object) -> CompletedProcess[str]:
        names = [Path(line).stem for line in Path(command[1]).read_text().splitlines()]
        failed = "2" in names
        return CompletedProcess(command, int(failed), "" if failed else "".join(f"{name} \f" for name in names), "")

    monkeypatch.setattr(ocr.subprocess, "run", run)
    found = ocr.read_by_tesseract([tmp_path / f"{number}.png" for number in range(5)], [])
    assert found == ["0", "1", "", "3", "4"]


def test_words_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import speech

    samples = [np.zeros(16_000), np.zeros(32_000)]
    names = ["clean/0 en-us", "noisy/1 en-us"]
    scores = speech.scored(["the dog sleeps", "a hat"], ["The dog sleeps.", "A cat."], names, samples, elapsed_s=1.5)
    assert (scores["clean_word_error_rate"]["score"], scores["noisy_word_error_rate"]["score"]) == (0, 50)
    assert (scores["speech_s"], scores["times_real_time"]) == (3.0, 2.0)
    told = speech.as_text({"speech": "synthetic", "systems": {"ours": scores}})
    assert "| ours | noisy | 1 | 50.00 % |" in told
    assert "Speech: synthetic." in told
