"""The card of a model folder: what it is, what it was trained on, how well it does, how to use it."""

from __future__ import annotations

from pathlib import Path

from transduce.config import DataConfig, ModelConfig, RunConfig, Split, TrainingConfig, TransformerConfig
from transduce.corpora import OWN_FILES
from transduce.tasks.preparation import Prepared
from transduce.tasks.registry import task_of
from transduce.tasks.task import Scores
from transduce.training import TrainState

__all__ = ["model_card"]

# Of training, what is told where it is not the paper's.
SWITCHES = (
    "optimiser", "lr_factor", "decay", "adam_beta1", "adam_beta2", "adam_eps", "weight_decay", "clip_norm", "r_drop",
    "r_drop_after", "both_ways_epochs", "smoothing",
)  # fmt: skip


def model_card(
    config: RunConfig,
    prepared: Prepared,
    state: TrainState,
    *,
    n_averaged: int,
    scores: Scores | None = None,
    split: Split | None = None,
) -> str:
    """Markdown for ``README.md`` of a model folder."""
    model, training, data, task = config.model, config.training, config.data, task_of(config)
    cost, n_passes, use = task.cost(model), training.mean_passes(state.update), task.use(data)
    lines = [
        f"# A Transformer for {use.what}",
        "",
        f"Made by transduce. Use it with `transduce {use.verb} <this folder>`,",
        f"or in Python: `{use.call}`.",
        "",
        "## Model",
        "",
        f"- {_architecture(model)}",
        f"- {cost.parameters:,} parameters, {cost.parameters_without_embeddings:,} without embeddings",
        f"- vocabulary: {model.src_vocab_size:,} "
        + ("shared symbols" if data.shared_vocabulary else f"source and {model.tgt_vocab_size:,} target symbols"),
        "",
        "## Training",
        "",
        f"- corpus: {_corpora(config.data, prepared)}",
        f"- {state.update:,} updates, {state.epoch + 1:,} epochs begun, {state.tgt_tokens:,} target tokens, "
        f"{state.elapsed_s / 60:.1f} minutes",
        f"- about {n_passes * cost.flops_per_token * state.tgt_tokens:.2e} floating-point operations "
        f"(6 for each weight and target token{f', in {n_passes:.3g} passes' if n_passes > 1 else ''})",
        f"- batches of at most {training.max_tokens_per_batch:,} tokens on a side x {training.n_accumulate}, "
        f"{training.precision}, seed {training.seed}",
        f"- {_method(config)}",
        f"- weights: the mean of the last {n_averaged} checkpoints",
    ]
    if scores is not None and split is not None:
        text = prepared.text(split)
        name = prepared.text_names[split] + (f" ({len(text[0]):,} sentences)" if text else "")
        lines += ["", f"## Scores on {split}: {name}", "", *task.score_lines(scores, config)]
    return "\n".join(lines) + "\n"


def _architecture(model: ModelConfig) -> str:
    told = [f"{model.n_encoder_layers} + {model.n_decoder_layers} layers, d_model {model.d_model}"]
    if isinstance(model, TransformerConfig):
        told.append(f"d_ff {model.d_ff}, {model.n_heads} heads, d_k {model.d_k}, d_v {model.d_v}, {model.norm}-norm")
        told.append("positions of words" if model.positions == "words" else f"{model.positions} positions")
    else:
        own = model.model_dump(exclude=set(ModelConfig.model_fields))
        told += [f"system {model.system}", *(f"{name} {value}" for name, value in own.items())]
    return ", ".join(told)


def _method(config: RunConfig) -> str:
    """How it was optimised and regularised: what the paper sets, then all that differs from the paper's recipe."""
    model, training, paper = config.model, config.training, TrainingConfig()
    told = [f"warm-up {training.warmup_steps:,} updates", f"p_drop {model.p_drop:g}", f"eps_ls {training.eps_ls:g}"]
    if isinstance(model, TransformerConfig) and (model.p_drop_attention or model.p_drop_relu):
        told.append(f"dropout of attention {model.p_drop_attention:g}, inside the feed-forward {model.p_drop_relu:g}")
    told += [f"{name} {value}" for name in SWITCHES if (value := getattr(training, name)) != getattr(paper, name)]
    return ", ".join(told)


def _corpora(data: DataConfig, prepared: Prepared) -> str:
    """What was read: each corpus with its pairs, and its weight where there are several; and how words were spelled."""
    names = [Path(name).name for name in data.files_of("train") if name is not None]
    told = []
    for corpus, n_pairs in prepared.train.summary.n_pairs_of.items():
        files = f" ({', '.join(names)})" if corpus == OWN_FILES else ""
        weight = f", weight {data.weights[corpus]:g}" if len(data.weights) > 1 else ""
        told.append(f"{corpus}{files}, {n_pairs:,} pairs{weight}")
    if data.recombination:
        told.append(f"of each tree {data.n_recombined} more, recombined at {data.recombination:g}")
    if data.bpe_dropout:
        told.append(f"BPE-dropout {data.bpe_dropout:g}, {data.n_encodings} encodings of each pair")
    return "; ".join(told)
