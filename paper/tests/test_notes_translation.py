"""Best-of-n for translation: its runs beside the recipes, and the scores of its judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.config import RunConfig
from transduce.metrics import sacrebleu_score
from transduce.recipes import preset, read_recipe, with_settings
from transduce_paper.notes.alignment.translation import best_of_rows
from transduce_paper.notes.alignment.translation_runs import READER, REWARD


@pytest.mark.parametrize(("name", "settings"), [("reader", READER), ("reward", REWARD)])
def test_the_runs_are_those_of_the_recipes(name: str, settings: tuple[str, ...]) -> None:
    def without_files(config: RunConfig) -> RunConfig:
        files = {"train_prompts": None, "dev_prompts": None}
        return config.model_copy(update={"data": config.data.model_copy(update=files)})

    recipe = read_recipe(Path(f"alignment/translation-{name}"))
    assert without_files(recipe) == without_files(with_settings(preset("tiny"), settings))


def test_each_judge_chooses_by_its_own_scores() -> None:
    references = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen heute Ball."]
    draws = [["Eine Katze.", references[0], "Ein Hund."], [references[1], "Zwei Kinder.", "Ein Ball."]]
    rewards, log_probs = [[0.0, 2.0, 1.0], [0.0, 1.0, 5.0]], [[-1.0, -2.0, -3.0], [-1.0, -2.0, -3.0]]
    found = best_of_rows(draws, rewards, log_probs, references, (2, 3))
    rows = {(row["by"], row["n"]): row["bleu"] for row in found}

    def bleu(first: int, second: int) -> float:
        return sacrebleu_score([draws[0][first], draws[1][second]], references).score

    assert rows["reward model", 2] == pytest.approx(bleu(1, 1))
    assert rows["reward model", 3] == pytest.approx(bleu(1, 2))
    assert rows["own probability", 3] == pytest.approx(bleu(0, 0))
    assert rows["chrF (oracle)", 2] == pytest.approx(100.0)
    assert rows["a draw", 1] == pytest.approx(sum(bleu(draw, draw) for draw in range(3)) / 3)
    words = {(row["by"], row["n"]): row["words"] for row in found}
    assert words["chrF (oracle)", 2] == 1
    assert words["own probability", 3] == pytest.approx((2 + 5) / 10)
    assert ("chance", 3) in rows
    assert ("chance", 2) not in rows
