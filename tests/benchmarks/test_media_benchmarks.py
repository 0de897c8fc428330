"""The benchmarks of images and of speech: how results of other systems are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="an installed package has no benchmarks")


def test_each_part_has_its_best_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import ocr

    page = np.zeros((1, 1))
    lines = [ocr.TestLine("clean", "ab", page), ocr.TestLine("noisy", "cd", page), ocr.TestLine("clean", "ef", page)]
    by_scale = {1: ["ab", "xx", "ef"], 2: ["ab", "cd", "ex"], 3: ["", "", ""]}
    scores = ocr.best_of_scales(by_scale, lines, elapsed_s=3.0)
    assert scores["scales"] == {"clean": 1, "noisy": 2}
    assert scores["character_error_rate"]["score"] == 0
    assert (scores["clean_lines"], scores["lines_per_s"]) == (2, 1.0)
    assert "| tesseract | noisy | 1 | 0.00 % | 0.00 % | 100.0 % |" in ocr.as_text({"systems": {"tesseract": scores}})
