"""The models that the chapter compares: a teacher, and students that are trained on its translations.

The teacher is that of ``multi30k-en-de``, trained for a shorter time; the students are those of the
recipes beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from transduce.config import RunConfig, Split
from transduce.files import write_lines
from transduce.inference import DistilledCounts, Translator, distilled_pairs, greedy_unless_sampled
from transduce.recipes import base, with_settings
from transduce.tasks import open_prepared, write_shortlist
from transduce.text import normalise
from transduce_paper.experiments import Experiments
from transduce_paper.run_records import Experiment

__all__ = [
    "DISTILLED_BEAM", "STUDENTS", "TEACHER", "Student", "shortlist_folder", "student_config", "student_experiment",
    "teacher_experiment",
]  # fmt: skip

SHARED = (
    "model.d_model=256", "model.d_ff=512", "model.n_heads=4", "model.p_drop=0.3", "model.norm=pre",
    "data.vocab_size=10000", "training.max_tokens_per_batch=2048", "training.optimiser=muon",
    "training.warmup_steps=300", "training.decay=linear", "training.weight_decay=0.1", "training.precision=bf16",
    "training.validate_every_updates=2000", "training.validation_sentences=1014",
)  # fmt: skip
TEACHER = (
    *SHARED, "model.n_encoder_layers=4", "model.n_decoder_layers=4", "data.corpus=multi30k",
    "training.max_updates=7000", "training.r_drop=2.0", "training.checkpoint_every_updates=70", "search.beam_size=8",
    "search.alpha=1.6",
)  # fmt: skip
# The whole recipe takes more than two hours of two cores, this part of it 34 minutes.
SHORTENED = ("training.max_updates=3500", "training.r_drop=0.0", "training.checkpoint_every_updates=35")
DISTILLED_BEAM = 4  # half of the teacher's own, for time
DISTILLED = (*SHARED, "data.corpus=files", "data.direction=en-de")
TEST = (
    "model.n_encoder_layers=1", "model.n_decoder_layers=1", "model.d_model=16", "model.d_ff=16", "model.n_heads=2",
    "model.d_k=8", "model.d_v=8", "training.max_updates=2", "training.validate_every_updates=2",
    "training.checkpoint_every_updates=1", "training.max_tokens_per_batch=400", "training.validation_bleu=false",
    "training.precision=fp32", "training.optimiser=adam", "training.average_last=1", "training.keep_checkpoints=1",
    "search.max_extra_tokens=2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Student:
    """A model that is trained on a teacher's translations."""

    what: str
    recipe: str  # the recipe with the same settings
    settings: tuple[str, ...]
    learns_from: Literal["beam", "greedy"] = "beam"  # the search with which the teacher translates
    starts_from: str | None = None  # "teacher", or another student: it is trained further


STUDENTS: Mapping[str, Student] = {
    "draft": Student(
        "a draft for the teacher",
        "multi30k-en-de-draft",
        (
            "model.n_encoder_layers=2", "model.n_decoder_layers=1", "model.d_model=128", "model.d_k=32", "model.d_v=32",
            "model.p_drop=0.1", "training.max_updates=3000", "training.checkpoint_every_updates=60",
            "search.kind=greedy",
        ),
        learns_from="greedy",
    ),
    "blockwise": Student(
        "the teacher with eight heads",
        "multi30k-en-de-blockwise",
        (
            "model.n_encoder_layers=4", "model.n_decoder_layers=4", "model.block_size=8", "training.max_updates=1500",
            "training.lr_factor=0.5", "training.checkpoint_every_updates=50", "search.kind=greedy",
        ),
        starts_from="teacher",
    ),
    "deep-shallow": Student(
        "deep encoder, shallow decoder",
        "multi30k-en-de-deep-shallow",
        (
            "model.n_encoder_layers=8", "model.n_decoder_layers=1", "training.max_updates=3500",
            "training.checkpoint_every_updates=35", "search.kind=greedy",
        ),
    ),
    "deep-shallow-blockwise": Student(
        "the same with eight heads",
        "multi30k-en-de-deep-shallow-blockwise",
        (
            "model.n_encoder_layers=8", "model.n_decoder_layers=1", "model.block_size=8", "training.max_updates=1000",
            "training.lr_factor=0.5", "training.checkpoint_every_updates=50", "search.kind=greedy",
        ),
        starts_from="deep-shallow",
    ),
    "mask-predict": Student(
        "a masked language model",
        "multi30k-en-de-mask-predict",
        (
            "model.n_encoder_layers=4", "model.n_decoder_layers=4", "data.task=mask-predict",
            "training.max_updates=4000", "training.checkpoint_every_updates=50", "search.kind=mask-predict",
            "search.n_iterations=10", "search.n_lengths=5",
        ),
        starts_from="teacher",
    ),
}  # fmt: skip


def teacher_experiment(experiments: Experiments) -> Experiment:
    """Return the run of the teacher."""
    config = with_settings(base(), [*TEACHER, *SHORTENED])
    return experiments.experiment("future-teacher-seed1", config, test=(*TEST, "data.n_pairs=40"))


def student_experiment(experiments: Experiments, name: str, *, needs_text: bool = False) -> Experiment:
    """Return the run of a student.

    Its training text is made by the teacher, unless the run has a record already; ``needs_text``: even then, since its
    model may have to be trained again.
    """
    student, teacher = STUDENTS[name], teacher_experiment(experiments)
    config = with_settings(student_config(name), experiments.pick((), test=TEST))
    experiment = Experiment(f"future-{name}-seed1", config)
    match student.starts_from:
        case None:
            experiment = replace(experiment, tokenizer_of=teacher)
        case "teacher":
            experiment = replace(experiment, starts_from=teacher)
        case other:
            start = student_experiment(experiments, other, needs_text=needs_text)
            experiment = replace(experiment, starts_from=start)
    if experiments.record_path(experiment).exists() and not needs_text:
        return experiment  # its files need not exist any more
    texts = _distilled_text(experiments, teacher, student.learns_from)
    named = [f"data.{split}_tsv={json.dumps(str(path))}" for split, path in texts.items()]
    return replace(experiment, config=with_settings(config, named))


def shortlist_folder(experiments: Experiments, teacher: Experiment) -> Path:
    """Return the folder of the shortlist that is learned from the teacher's training text."""
    folder = experiments.work / "shortlists" / teacher.name
    if not folder.exists():
        experiments.log(f"{teacher.name}: learning a shortlist")
        write_shortlist(open_prepared(experiments.store(teacher.config.data)), folder)
    return folder


def _distilled_text(experiments: Experiments, teacher: Experiment, search: str) -> dict[Split, Path]:
    """Return the files of training, dev and test pairs; the targets of training are the teacher's."""
    weights = experiments.run(teacher).weights_sha256[:12]
    folder = experiments.work / "distilled" / f"{teacher.name}-{weights}"
    paths: dict[Split, Path] = {
        "train": folder / f"train-{search}.tsv", "dev": folder / "dev.tsv", "test": folder / "test.tsv"
    }  # fmt: skip
    for split, path in paths.items():
        if path.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        pairs = (
            _translated(experiments, teacher, search)
            if split == "train"
            else ((normalise(src), normalise(tgt)) for src, tgt in experiments.pairs(teacher, split))
        )
        write_lines(path, (f"{src}\t{tgt}" for src, tgt in pairs))
    return paths


def _translated(experiments: Experiments, teacher: Experiment, search: str) -> Iterator[tuple[str, str]]:
    """Translate the training sources of the teacher, as ``transduce distil`` does."""
    translator = Translator.load(experiments.model_folder(teacher), device=experiments.device)
    sources = (src for src, _ in experiments.pairs(teacher, "train"))
    experiments.log(f"{teacher.name}: translating its training text, {search} search")
    beam = translator.search.model_copy(update={"beam_size": min(DISTILLED_BEAM, translator.search.beam_size)})
    config = greedy_unless_sampled(translator.search) if search == "greedy" else beam
    translations = translator.translate_lines(sources, search=config, split=False, is_scored=False)
    return distilled_pairs(translations, DistilledCounts())


def student_config(name: str) -> RunConfig:
    """Return the configuration of a student, without its files."""
    return with_settings(base(), [*DISTILLED, *STUDENTS[name].settings])
