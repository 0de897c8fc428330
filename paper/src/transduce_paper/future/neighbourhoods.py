"""Quality of restricted attention against the size of the neighbourhood: a character-level model and a translator."""

from __future__ import annotations

from collections.abc import Mapping

from transduce.recipes import tiny, with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.report import Claim, Section, Table, agreement
from transduce_paper.run_records import Experiment, RunRecord, about_runs, are_trained_to_the_end
from transduce_paper.sizes import size_description

__all__ = ["NEIGHBOURHOODS", "neighbourhood_experiments", "neighbourhoods_section"]

NEIGHBOURHOODS: Mapping[str, tuple[int | None, ...]] = {
    "characters": (16, 64, None),
    "translation": (3, 7, None),
}  # None: full attention
SHARED = (
    "model.d_model=256", "model.n_heads=4", "model.d_k=64", "model.d_v=64", "model.norm=pre",
    "training.precision=bf16", "training.max_tokens_per_batch=2048", "training.optimiser=muon",
    "training.average_last=1", "training.weight_decay=0.1",
)  # fmt: skip
CHARACTERS = (
    *SHARED, "model.system=language-model", "model.n_layers=4", "model.d_ff=1024", "model.p_drop=0.1",
    "model.activation=gelu", "model.n_positions=2048", "data.task=causal-lm", "data.corpus=newstest",
    "data.direction=en-fr", "data.language=en", "data.tokenizer=characters", "data.vocab_size=1000",
    "training.max_updates=1200", "training.warmup_steps=200", "training.lr_factor=1.1", "training.decay=cosine",
    "training.clip_norm=1.0", "training.eps_ls=0.0", "training.validate_every_updates=400",
    "training.checkpoint_every_updates=250",
)  # fmt: skip
TRANSLATION = (
    *SHARED, "model.n_encoder_layers=2", "model.n_decoder_layers=2", "model.d_ff=512", "model.p_drop=0.3",
    "data.corpus=multi30k", "data.vocab_size=6000", "training.max_updates=1200", "training.warmup_steps=200",
    "training.decay=linear", "training.validate_every_updates=1200", "training.checkpoint_every_updates=250",
    "search.beam_size=4",
)  # fmt: skip
TEST = (
    "model.n_layers=1", "model.n_positions=32", "model.d_model=16", "model.d_ff=16", "model.n_heads=1",
    "data.n_pairs=20", "data.direction=en-de", "training.precision=fp32", "training.max_updates=2",
    "training.validate_every_updates=2", "training.checkpoint_every_updates=1",
)  # fmt: skip
NOTABLE = 0.02  # a difference of perplexity, relative


def neighbourhoods_section(experiments: Experiments) -> Section:
    """Train models with several neighbourhoods, or read their records."""
    records = {
        kind: {r: experiments.run(_experiment(experiments, kind, r)) for r in sizes}
        for kind, sizes in experiments.pick(NEIGHBOURHOODS, test={"characters": (16, None)}).items()
    }
    rows = tuple(
        (
            kind,
            "all" if r is None else r,
            record.dev_perplexity,
            record.dev_perplexity / of_kind[None].dev_perplexity - 1,
            record.bleu if "sacrebleu" in record.scores else None,
        )
        for kind, of_kind in records.items()
        for r, record in of_kind.items()
    )
    columns = ("model", "r", "dev PPL", "above full attention", "test BLEU")
    formats = {"dev PPL": ".3f", "above full attention": "+.1%", "test BLEU": ".2f"}
    sizes = "; ".join(f"{kind}: {size_description(of_kind[None].config)}" for kind, of_kind in records.items())
    introduction = (
        "Self-attention of each position sees r positions: in a decoder itself and"
        f" the r - 1 before it, in an encoder as many on both sides. {sizes}. Segments of characters have"
        f" {records['characters'][None].config['model']['n_positions']:,} positions. Each run has"
        f" {records['characters'][None].updates:,} updates.{_explanation(records['characters'])}"
        f" {about_runs(record for of_kind in records.values() for record in of_kind.values())}"
    )
    return Section(
        "Restricted attention: quality",
        (introduction, Table("-neighbourhoods", columns, rows, formats=formats)),
        claims=(_claim(records["characters"]),),
    )


def neighbourhood_experiments(experiments: Experiments) -> list[Experiment]:
    """Return the runs of both kinds with each neighbourhood."""
    return [_experiment(experiments, kind, r) for kind, sizes in NEIGHBOURHOODS.items() for r in sizes]


def _experiment(experiments: Experiments, kind: str, r: int | None) -> Experiment:
    config = with_settings(tiny(), CHARACTERS if kind == "characters" else TRANSLATION)
    if r is not None:
        config = with_settings(config, ["model.attention=restricted", f"model.neighbourhood={r}"])
    return experiments.experiment(f"future-{kind}-{'full' if r is None else f'r{r}'}-seed1", config, test=TEST)


def _explanation(characters: dict[int | None, RunRecord]) -> str:
    """Say what perplexities mean that rise with the neighbourhood."""
    if min(characters.values(), key=lambda record: record.dev_perplexity) is characters[None]:
        return ""
    return (
        " So few updates favour small neighbourhoods, in which what is near is found at once; they do not show what"
        " full attention gains from what is far."
    )


def _claim(characters: dict[int | None, RunRecord]) -> Claim:
    full = characters[None].dev_perplexity
    largest = max(r for r in characters if r is not None)
    loss = characters[largest].dev_perplexity / full - 1
    worse = characters[largest if loss > 0 else None]
    return Claim(
        "local, restricted attention mechanisms to efficiently handle large inputs and outputs",
        "section 7",
        agreement(loss < NOTABLE, is_trained=are_trained_to_the_end([worse])),
        f"After {characters[None].updates:,} updates in segments of"
        f" {characters[None].config['model']['n_positions']:,} characters, the perplexity with r = {largest} is"
        f" {loss:+.1%} from that of full attention.",
    )
