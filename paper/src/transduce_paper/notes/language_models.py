"""The three kinds of language models: what each sees and predicts, and what both sides of a gap are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import hypot
from pathlib import Path
from random import Random
from typing import Any

from transduce.config import RunConfig
from transduce.corpora import PlainText
from transduce.inference import LanguageModel
from transduce.recipes import preset, with_settings
from transduce.search import Sampling
from transduce.text import MASK_TOKEN, Tokenizer, normalise
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import half_width_of_share
from transduce_paper.report import Cell, Claim, Section, Table, agreement
from transduce_paper.run_records import Experiment, RunRecord, about_runs
from transduce_paper.sizes import model_description

__all__ = [
    "KINDS", "Kind", "Question", "language_model_experiment", "make_language_models", "questions_of", "right_answers",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the notes' table."""

    title: str
    stack: str  # the part of the Transformer
    sees: str
    predicts: str
    families: str
    settings: tuple[str, ...]  # of its model


# By task.
KINDS: Mapping[str, Kind] = {
    "causal-lm": Kind(
        "autoregressive, causal", "decoder without cross-attention", "what comes before", "every next token", "GPT",
        ("model.system=language-model", "model.n_layers=4", "model.n_positions=128"),
    ),
    "masked-lm": Kind(
        "autoencoding, masked", "encoder", "both sides", "15 % of the tokens, hidden", "BERT",
        ("model.system=language-model", "model.is_causal=false", "model.n_layers=4", "model.n_positions=128"),
    ),
    "span-corruption": Kind(
        "a combination, text to text", "encoder and decoder", "both sides, and its own output", "missing spans", "T5",
        ("model.n_encoder_layers=2", "model.n_decoder_layers=2", "data.max_length=128"),
    ),
}  # fmt: skip
SETTINGS = (
    "model.d_model=128", "model.d_ff=512", "model.n_heads=4", "model.d_k=32", "model.d_v=32", "model.p_drop=0.1",
    "model.norm=pre", "data.corpus=multi30k", "data.language=en", "data.vocab_size=4000", "training.max_updates=3000",
    "training.max_tokens_per_batch=2048", "training.optimiser=muon", "training.warmup_steps=200",
    "training.lr_factor=0.4", "training.decay=cosine", "training.clip_norm=1.0", "training.eps_ls=0.0",
    "training.precision=bf16", "training.validate_every_updates=1000", "training.checkpoint_every_updates=500",
    "training.average_last=1",
)  # fmt: skip
N_QUESTIONS, SEED = 1000, 1
MAX_WORDS = 40  # of a sentence with a question
GREEDY = Sampling(temperature=0.0)

INTRODUCTION = """\
The notes divide language models into three kinds, by the part of the Transformer that they use. One of each is trained
on the same text (English captions, {size}; vocabulary {vocabulary:,}, {n_updates:,} updates). Perplexities per target
are not comparable, since the targets differ. So all are asked the same question: which word is hidden in a sentence of
{dev_text}? {n:,} words are hidden, one in a sentence, drawn at random from those that are one token. The causal model
sees only the words before it, the others both sides. The model of spans is asked for more: it writes as many tokens as
it likes, and only the hidden word alone is right. The intervals are 95 %, of the binomial distribution.
{about_runs}"""

LIMITATIONS = """\
Models of some minutes learn form, not knowledge. On English news, which is harder, a masked model of four times the
size of these stayed near the frequencies of words (10 minutes, perplexity 528). One run each: differences between kinds
that are smaller than those between two seeds, which were not measured, mean nothing."""


@dataclass(frozen=True, slots=True)
class Question:
    """A sentence with a hidden word."""

    before: str
    word: str
    after: str


def make_language_models(experiments: Experiments) -> Section:
    """Train one model of each kind, or read its record, and ask all the same questions."""
    n = experiments.pick(N_QUESTIONS, test=5)
    records: dict[str, RunRecord] = {}
    shares: dict[str, float] = {}
    for task in KINDS:
        experiment = language_model_experiment(experiments, task)
        records[task] = experiments.run(experiment)
        measured = experiments.cached_measurement(
            experiment, "hidden_words", _measurement(experiments, experiment.config, n), settings={"n": n, "seed": SEED}
        )
        shares[task] = measured[0]["right"] / measured[0]["asked"]
    first = records["causal-lm"]
    answers = ", ".join(f"{task} {share:.1%}" for task, share in shares.items())
    return Section(
        "Three kinds of language models",
        (
            INTRODUCTION.format(
                size=model_description(first.config["model"]).split(", ")[1],
                vocabulary=first.config["model"]["vocab_size"],
                n_updates=first.updates,
                dev_text=first.dev_text,
                n=n,
                about_runs=about_runs(records.values()),
            ),
            _table(records, shares, n),
            LIMITATIONS,
        ),
        finding=f"Of {n:,} hidden words the models find {answers}.",
        question="what do the three kinds see and predict, and what is the other side of a gap worth?",
        summary=f"of the hidden words, models find {answers}",
        claims=() if experiments.scale == "test" else _claims(shares, n),
    )


def language_model_experiment(experiments: Experiments, task: str) -> Experiment:
    """Return the run of a kind of language model."""
    config = with_settings(preset("tiny"), [*KINDS[task].settings, *SETTINGS, f"data.task={task}"])
    return experiments.experiment(f"notes-{task}-seed1", config)


def _measurement(experiments: Experiments, config: RunConfig, n: int) -> Callable[[Path], list[dict[str, Any]]]:
    """Return the function from a model folder to the number of right answers."""

    def measure(folder: Path) -> list[dict[str, Any]]:
        model = LanguageModel.load(folder, device=experiments.device)
        documents = PlainText(config.data, experiments.data_folder).of("dev")
        lines = (line for document in documents for line in document)
        questions = list(islice(questions_of(lines, model.tokenizer, seed=SEED), n))
        return [{"asked": len(questions), "right": right_answers(model, questions)}]

    return measure


def questions_of(lines: Iterator[str], tokenizer: Tokenizer, *, seed: int) -> Iterator[Question]:
    """Yield a question for each line that has a word of one token with words on both sides."""
    random = Random(seed)
    for line in lines:
        words = normalise(line).split(" ")
        inner = range(1, min(len(words), MAX_WORDS) - 1)
        single = [index for index in inner if words[index].isalpha() and len(tokenizer.encode(words[index])) == 1]
        if single and len(words) <= MAX_WORDS:
            index = random.choice(single)
            yield Question(" ".join(words[:index]), words[index], " ".join(words[index + 1 :]))


def right_answers(model: LanguageModel, questions: Sequence[Question]) -> int:
    """Return how many hidden words a model finds as its first guess."""
    if "causal-lm" in model.capabilities.tasks:
        prompts = [question.before for question in questions]
        guesses = [each.text for each in model.generate(prompts, max_tokens=1, sampling=GREEDY)]
    else:
        filled = model.fill([f"{each.before} {MASK_TOKEN} {each.after}" for each in questions], n_best=1)
        guesses = [each.fills[0][0].token.replace("▁", " ") for each in filled]
    return sum(guess.strip() == question.word for guess, question in zip(guesses, questions, strict=True))


def _table(records: Mapping[str, RunRecord], shares: Mapping[str, float], n: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for task, kind in KINDS.items():
        record = records[task]
        rows.append(
            (
                kind.title, kind.stack, kind.sees, kind.predicts, kind.families, f"`{task}`", record.parameters / 1e6,
                record.minutes, record.tgt_tokens / record.src_tokens, record.dev_perplexity, shares[task],
                half_width_of_share(shares[task], n),
            )
        )  # fmt: skip
    columns = (
        "kind", "stack", "sees", "predicts", "family", "task", "million parameters", "minutes",
        "targets per token read", "dev PPL per target", "hidden words found", "±",
    )  # fmt: skip
    formats = {
        "million parameters": ".2f",
        "minutes": ".1f",
        "targets per token read": ".2f",
        "dev PPL per target": ".2f",
    }
    return Table("-language-models", columns, tuple(rows), formats=formats | dict.fromkeys(columns[-2:], ".1%"))


def _claims(shares: Mapping[str, float], n: int) -> tuple[Claim, ...]:
    causal, masked = shares["causal-lm"], shares["masked-lm"]
    margin = hypot(half_width_of_share(causal, n), half_width_of_share(masked, n))
    is_better = masked > causal if abs(masked - causal) > margin else None
    return (
        Claim(
            "Masked language modelling: ask a model to predict masked words",
            "notes",
            agreement(is_better),
            f"With both sides of the gap a masked model finds {masked:.1%} of the hidden words, with the words before"
            f" it a causal one {causal:.1%} (± {margin:.1%} for the difference).",
        ),
    )
