"""Section 7: less sequential generation, restricted attention, and output other than text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce.config import MIN_DRAFT_PROBABILITY, N_DRAFTED, GreedySearchConfig
from transduce.inference import Translator, greedy_unless_sampled
from transduce_paper.experiments import Experiments
from transduce_paper.future.lengths import lengths_section
from transduce_paper.future.measuring import System, measured, our_system, peer_system
from transduce_paper.future.neighbourhoods import neighbourhood_experiments, neighbourhoods_section
from transduce_paper.future.peer import has_ctranslate2
from transduce_paper.future.pixels import pixels_experiment, pixels_section
from transduce_paper.future.systems import (
    DISTILLED_BEAM,
    STUDENTS,
    shortlist_folder,
    student_experiment,
    teacher_experiment,
)
from transduce_paper.machine import machine_description
from transduce_paper.report import Claim, Report, Section, Table, agreement, how_to_reproduce
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord, about_runs, machines
from transduce_paper.sizes import size_description

__all__ = ["is_recorded", "make_future"]

N_TIMED, N_ROUNDS = {1: 100, 64: 320}, 3
ITERATIONS = (10, 4, 1)
NEAR_IN_BLEU = 0.5
TEACHER_BEAM, TEACHER_GREEDY = "teacher, beam {beam}", "teacher, greedy"
DEEP_SHALLOW, BLOCKS = "deep encoder, shallow decoder", "blocks of {n} tokens"
ONE_AT_A_TIME, SHALLOW_ONE_AT_A_TIME = "the same model, one token a pass", "that model, one token a pass"

INTRODUCTION = """\
“Making generation less sequential is another research goals of ours.” The teacher ({teacher}) writes a token a pass.
The others write several, or make a pass cheap. All students are trained on the teacher's translations of its training
text (`transduce distil`; Kim and Rush, 2016), with a beam of {beam}, the draft on those of greedy search. The deep
encoder with a shallow decoder, the plainest of them, needs them as much as the others (Kasai et al., 2021). The teacher
is the model of `multi30k-en-de` after {updates:,} updates without R-Drop: the whole recipe, and so its
BLEU, takes hours. The students' recipes are those beside it."""

COLUMNS_EXPLAINED = """\
Speed is that of whole translation, from text to text, on {machine}: sentences a second with one sentence at a time
and in batches of 64, the median of {n_rounds} rounds in which all systems take turns; *x* is relative to the
teacher's greedy search, *x, 1, range* from its slowest round against the teacher's fastest to the opposite. A pass is
one call of the decoder of the model that decides what is written; tokens a pass include EOS. *Identical* counts the
sentences that are written exactly as by the teacher's greedy search, for blocks as by the same model with one token a
pass; drafts and blocks can differ only by rounding, where two tokens are as probable (`benchmarks/identity.py` counts
such places). Drafts have at most {n_drafted} tokens; those that *end early* end after a token that the draft gives
less than {probability}. A shortlist (`transduce shortlist`) has the likely tokens of each sentence: only these are
scored."""


def is_recorded(experiments: Experiments) -> bool:
    """Whether every run of the report has a record, and its speeds are measured."""
    runs = [teacher_experiment(experiments), *neighbourhood_experiments(experiments), pixels_experiment(experiments)]
    names = [*(run.name for run in runs), *(f"future-{name}-seed1" for name in STUDENTS)]
    names += ["future.speed", "future.lengths", "future-pixels.baselines"]
    return all((experiments.records / experiments.scale / f"{name}.json").exists() for name in names)


def make_future(experiments: Experiments, request: Request) -> Report:
    """Train teacher and students, or read their records, and measure all in one run."""
    teacher = teacher_experiment(experiments)
    records = {"teacher": experiments.run(teacher)}
    for name in STUDENTS:
        records[name] = experiments.run(student_experiment(experiments, name))
    weights = {f"weights_of_{name}": record.weights_sha256 for name, record in records.items()}
    n_timed, n_rounds = experiments.pick((N_TIMED, N_ROUNDS), test=(dict.fromkeys(N_TIMED, 2), 1))
    settings: dict[str, Any] = {
        **weights,
        "n_rounds": n_rounds,
        "n_timed": {str(size): n for size, n in n_timed.items()},
        "n_drafted": N_DRAFTED,
        "min_draft_probability": MIN_DRAFT_PROBABILITY,
    }
    rows = experiments.measurement(
        "future",
        "speed",
        lambda: _measured(experiments, teacher, n_timed=n_timed, n_rounds=n_rounds),
        settings=settings,
    )
    found = _findings(rows)
    introduction = INTRODUCTION.format(
        teacher=size_description(records["teacher"].config), updates=records["teacher"].updates, beam=DISTILLED_BEAM
    )
    return Report(
        "Section 7: less sequential generation, restricted attention, pixels",
        (
            Section(
                "Less sequential generation",
                (
                    introduction,
                    _table(rows),
                    COLUMNS_EXPLAINED.format(
                        machine=rows[0]["machine"],
                        n_rounds=n_rounds,
                        n_drafted=N_DRAFTED,
                        probability=MIN_DRAFT_PROBABILITY,
                    ),
                    _details(records, rows),
                ),
                claims=found["claims"],
            ),
            neighbourhoods_section(experiments),
            lengths_section(experiments),
            pixels_section(experiments),
            how_to_reproduce(
                "future", scale=experiments.scale, seeds="seed 1 for each run", hardware=machines(records.values())
            ),
        ),
        finding=found["verdict"],
        name="future",
    )


def _measured(
    experiments: Experiments,
    teacher: Experiment,
    *,
    n_timed: Mapping[int, int],
    n_rounds: int,
) -> list[dict[str, Any]]:
    """Load all models and measure them."""
    sources, references = zip(*experiments.pairs(teacher, "test"), strict=True)
    if experiments.scale == "test":
        sources, references = sources[:3], references[:3]
    students = {name: student_experiment(experiments, name, needs_text=True) for name in STUDENTS}
    systems = _systems(experiments, teacher, students, with_peer=has_ctranslate2() and experiments.scale != "test")
    rows = measured(
        systems,
        sources,
        references,
        language=teacher.config.data.tgt_language,
        n_timed=n_timed,
        n_rounds=n_rounds,
        log=experiments.log,
    )
    machine = f"{machine_description(experiments.device)}, torch {torch.__version__}"
    return [{**row, "machine": machine} for row in rows]


def _systems(
    experiments: Experiments, teacher: Experiment, students: Mapping[str, Experiment], *, with_peer: bool
) -> list[System]:
    def loaded(experiment: Experiment, shortlist: Path | None = None) -> Translator:
        return Translator.load(experiments.model_folder(experiment), device=experiments.device, shortlist=shortlist)

    main = loaded(teacher)
    greedy = greedy_unless_sampled(main.search)
    draft, blockwise, shallow, shallow_blocks, masked = (loaded(students[name]) for name in STUDENTS)
    shortlist = shortlist_folder(experiments, teacher)
    short_draft, short_shallow = (loaded(students[name], shortlist) for name in ("draft", "deep-shallow"))
    one_at_a_time = GreedySearchConfig(**(blockwise.search.model_dump() | {"block_size": 1}))
    n_block = _block_size(blockwise)
    systems = [
        our_system(TEACHER_BEAM.format(beam=main.search.beam_size), main),
        our_system(TEACHER_GREEDY, main, greedy),
        our_system(f"teacher, drafts of {N_DRAFTED} tokens", main.with_draft(draft, min_probability=0), greedy),
        our_system("teacher, drafts that end early", main.with_draft(draft), greedy),
        our_system("teacher, such drafts from a shortlist", main.with_draft(short_draft), greedy),
        our_system("draft alone, greedy", draft),
        our_system(BLOCKS.format(n=n_block), blockwise, same_as=ONE_AT_A_TIME),
        our_system(ONE_AT_A_TIME, loaded(students["blockwise"]), one_at_a_time),
        our_system(f"{DEEP_SHALLOW}, greedy", shallow),
        our_system(f"{DEEP_SHALLOW}, shortlist", short_shallow),
        our_system(f"{DEEP_SHALLOW}, {BLOCKS.format(n=n_block)}", shallow_blocks, same_as=SHALLOW_ONE_AT_A_TIME),
        our_system(SHALLOW_ONE_AT_A_TIME, loaded(students["deep-shallow-blockwise"]), one_at_a_time),
        *(
            our_system(
                f"mask-predict, {n} iteration{'s' * (n > 1)}",
                loaded(students["mask-predict"]),
                masked.search.model_copy(update={"n_iterations": n}),
            )
            for n in ITERATIONS
        ),
    ]
    if with_peer:
        for name, translator in (("teacher", main), (DEEP_SHALLOW, shallow)):
            n_extra = translator.search.max_extra_tokens
            systems.append(peer_system(f"{name}, greedy, CTranslate2", translator, max_extra_tokens=n_extra))
    return systems


def _block_size(translator: Translator) -> int:
    return int(getattr(translator.model.config, "block_size", 1))


def _findings(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the verdict and the claim that follow from the rows."""
    beam, greedy, *others = rows
    ours = [row for row in others if "CTranslate2" not in row["system"]]
    speed_up = {row["system"]: row["per_s_1"] / greedy["per_s_1"] for row in others}
    drafted = [row for row in ours if "drafts" in row["system"]]
    best_draft = max(drafted, key=lambda row: float(row["per_s_1"]))
    near = [row for row in ours if row["sacrebleu"] >= beam["sacrebleu"] - NEAR_IN_BLEU]
    best_near = max(near, key=lambda row: float(row["per_s_1"]), default=None)
    (blocks,) = (row for row in ours if row["same_as"] == ONE_AT_A_TIME)
    (one_at_a_time,) = (row for row in ours if row["system"] == ONE_AT_A_TIME)
    sentences = [
        f"Speculative decoding writes {speed_up[best_draft['system']]:.2f} times as many sentences a second as greedy"
        f" search, one at a time ({_range(best_draft, greedy)} by the rounds), and"
        f" {_share_identical(best_draft)} of them are identical. With {blocks['system']} a model writes"
        f" {blocks['per_s_1'] / one_at_a_time['per_s_1']:.2f} times as many as with one token a pass,"
        f" {_share_identical(blocks)} of them identical."
    ]
    if best_near is None:
        sentences.append(f"No system is within {NEAR_IN_BLEU} BLEU of the teacher's beam search.")
    else:
        sentences.append(
            f"Within {NEAR_IN_BLEU} BLEU of the teacher's beam search, the fastest by our engine is:"
            f" {best_near['system']}, {speed_up[best_near['system']]:.2f} times the teacher's greedy search"
            f" ({_range(best_near, greedy)} by the rounds)."
        )
    fewest = min((row for row in ours if row["passes_per_sentence"]), key=lambda row: float(row["passes_per_sentence"]))
    claim = Claim(
        "Making generation less sequential is another research goals of ours.",
        "section 7",
        agreement(best_draft["least_per_s_1"] > greedy["most_per_s_1"] or None),
        f"With the same output, {best_draft['tokens_per_pass']:.2f} tokens a pass and"
        f" {speed_up[best_draft['system']]:.2f} times the speed of greedy search ({_range(best_draft, greedy)}); the"
        f" fewest passes, {fewest['passes_per_sentence']:.1f} a sentence, has: {fewest['system']}.",
    )
    return {"verdict": " ".join(sentences), "claims": (claim,)}


def _range(row: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the least and the greatest ratio of two speeds that their rounds allow, one sentence at a time."""
    low, high = row["least_per_s_1"] / other["most_per_s_1"], row["most_per_s_1"] / other["least_per_s_1"]
    return f"{low:.2f} to {high:.2f}"


def _share_identical(row: Mapping[str, Any]) -> str:
    return f"{row['same'] / row['n_sentences']:.1%}"


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    greedy = rows[1]
    columns = (
        "system", "layers", "million parameters", "BLEU", "tokenised BLEU", "a second, 1", "x, 1", "x, 1, range",
        "a second, 64", "x, 64", "passes a sentence", "tokens a pass", "drafts kept", "identical",
    )  # fmt: skip
    cells = tuple(
        (
            row["system"],
            row["layers"],
            row["million_parameters"],
            row["sacrebleu"],
            row["multi30k_bleu"],
            row["per_s_1"],
            row["per_s_1"] / greedy["per_s_1"],
            _range(row, greedy),
            row["per_s_64"],
            row["per_s_64"] / greedy["per_s_64"],
            row["passes_per_sentence"],
            row["tokens_per_pass"],
            row["accepted"],
            f"{row['same']:,} of {row['n_sentences']:,}",
        )
        for row in rows
    )
    two_digits = ("BLEU", "tokenised BLEU", "x, 1", "x, 64", "tokens a pass", "million parameters")
    one_digit = ("a second, 1", "a second, 64", "passes a sentence")
    formats = dict.fromkeys(two_digits, ".2f") | dict.fromkeys(one_digit, ".1f") | {"drafts kept": ".1%"}
    return Table("", columns, cells, formats=formats)


def _details(records: Mapping[str, RunRecord], rows: Sequence[dict[str, Any]]) -> str:
    text = records["teacher"].test_text
    lines = [f"- BLEU on {text}: `{rows[0]['signature']}`; tokenised BLEU is that usual for Multi30k."]
    lines += [
        f"- {name}: {record.updates:,} updates, {record.minutes:.0f} minutes, {record.machine}"
        for name, record in records.items()
    ]
    lines.append(f"- {about_runs(records.values())}")
    if not any("CTranslate2" in row["system"] for row in rows):
        lines.append("- CTranslate2 was not installed.")
    return "\n".join(lines)
