"""What belongs to a process says so where it is pickled, and is copied for other settings."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from said import naming
from transduce import LanguageModel, Parser, Reader, Transcriber, Translator
from transduce.inference import RewardModel
from transduce.inference.process_bound import ProcessBound


def test_a_translator_is_not_pickled(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    for make in (pickle.dumps, copy.deepcopy, lambda each: pickle.dumps([each], protocol=2)):
        with pytest.raises(TypeError, match=naming("Translator", "Translator.load(folder)")):
            make(translator)
    assert copy.copy(translator).translate(["the dog"]) == translator.translate(["the dog"])


@pytest.mark.parametrize("kind", [Translator, Parser, LanguageModel, Reader, Transcriber, RewardModel])
def test_all_that_loads_models_is_bound_to_its_process(kind: type) -> None:
    assert issubclass(kind, ProcessBound)
