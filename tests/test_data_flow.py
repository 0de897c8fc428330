"""The data flow of docs/architecture.md, one call per arrow: from recipe to update, from str to translation."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from transduce.data import pad_rows
from transduce.inference import Translator
from transduce.inference.folder import read_model_folder
from transduce.metrics import sacrebleu_score
from transduce.model import make_model
from transduce.recipes import read_recipe
from transduce.search import LengthPenalty, beam_search
from transduce.tasks import prepare, task_of
from transduce.text import BOS_ID, EOS_ID, PAD_ID, normalise
from transduce.training import DistributedContext, make_optimiser
from transduce.training.gradients import GradientAccumulator

MODEL = Path(__file__).parent / "formats" / "before_format_numbers" / "run" / "model"
DOCUMENT = Path(__file__).parents[1] / "docs" / "architecture.md"


def test_from_a_recipe_to_the_first_update(micro_recipe: Path, tmp_path: Path) -> None:
    run = read_recipe(micro_recipe)
    task = task_of(run)
    prepared = prepare(run.data, tmp_path / "prepared")
    config = task.model_config(run.model, *prepared.tokenizers.sizes)
    model = make_model(config, prepared.tokenizers)
    batches = task.batches(prepared.train, run, torch.device("cpu"))
    batch = batches.batch(0, 0)
    objective = task.objective(model, run)
    loss = objective(batch, 0)
    gradients = GradientAccumulator(model, objective, batches, run.training, DistributedContext())
    gradient = gradients.accumulate([(0, 0)], update=0)
    assert gradient is not None
    assert gradient.n_tgt_tokens == loss.n_tokens == batches.n_tokens(0, 0)[1]
    optimiser = make_optimiser(model, run.training)
    for group in optimiser.param_groups:
        group["lr"] = 0.01
    optimiser.step()
    assert objective(batch, 1).loss_nats < loss.loss_nats


def test_from_a_str_to_its_translation() -> None:
    source = json.loads((MODEL.parents[1] / "expected.json").read_text(encoding="utf-8"))["translations"][0]["source"]
    read = read_model_folder(MODEL, device=torch.device("cpu"))
    text = normalise(source)
    ids = read.tokenizers.src.encode(text)
    src_BS = pad_rows([[*ids, EOS_ID]])
    state = read.model.start(src_BS)
    ((best, *_),) = beam_search(
        read.model.step,
        state,
        max_lengths_B=torch.tensor([src_BS.shape[1] + read.search.max_extra_tokens]),
        beam_size=read.search.beam_size,
        penalty=LengthPenalty.of(read.search),
        n_best=1,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        suppressed_ids=(PAD_ID, BOS_ID),
    )
    translation = read.tokenizers.tgt.decode(best.ids)
    assert translation
    assert sacrebleu_score([translation], Translator.load(MODEL).translate([source])).score > 99.99


def test_the_document_names_these_calls() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").partition("## Data flow")[2].partition("\n## ")[0]
    called = set(test_from_a_recipe_to_the_first_update.__code__.co_names)
    called |= set(test_from_a_str_to_its_translation.__code__.co_names)
    arrows = [part.split("--")[0] for part in section.split(" --")[1:]]
    names = [name.strip().split("(")[0].rpartition(".")[2] for arrow in arrows for name in arrow.split(",")]
    assert len(arrows) > 15
    assert not [name for name in names if name and name.isidentifier() and name not in {*called, "extend"}]
