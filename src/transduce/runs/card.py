"""Model cards: architecture, training data, scores and usage of a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transduce.config import (
    DataConfig,
    EncoderDecoderConfig,
    LanguageModelConfig,
    ModelConfig,
    PairsData,
    RunConfig,
    Split,
    TrainingConfig,
    TransformerConfig,
    TreesData,
)
from transduce.corpora import CATALOGUE, OWN_FILES, TREEBANKS, Corpus
from transduce.corpora.treebank_text import Treebank
from transduce.inference.ancestry import Ancestor
from transduce.model import cost_of
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import task_named, task_of
from transduce.tasks.task import Scores
from transduce.training import TrainState

__all__ = ["licences_of", "model_card"]

# Training settings reported where they differ from the paper's.
REPORTED_SETTINGS = (
    "optimiser", "lr_factor", "decay", "adam_beta1", "adam_beta2", "adam_eps", "weight_decay", "clip_norm", "r_drop",
    "r_drop_after", "bidirectional_epochs", "feature_masks", "ctc_weight",
    "smoothing",
)  # fmt: skip


def model_card(
    config: RunConfig,
    prepared: Prepared,
    state: TrainState,
    *,
    averaged: str,
    scores: Scores | None = None,
    split: Split | None = None,
    ancestry: Sequence[Ancestor] = (),
) -> str:
    """Return the Markdown text for ``README.md`` of a model folder; ``averaged`` are the checkpoints, in words."""
    model, training, data, task = config.model, config.training, config.data, task_of(config)
    cost, n_passes, use = cost_of(model), training.mean_passes(state.update), task.use(data)
    n_counted = task.n_flop_tokens(state.src_tokens, state.tgt_tokens)
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
        f"- vocabulary: {_vocabulary(config)}",
        "",
        "## Training",
        "",
        f"- corpus: {_corpora(config.data, prepared)}",
        f"- {state.update:,} updates, {state.epoch + 1:,} epochs started, {state.tgt_tokens:,} {task.counted_noun}, "
        f"{state.elapsed_s / 60:.1f} minutes",
        *_operations(n_passes * cost.flops_per_token, n_counted, n_passes),
        f"- batches of at most {training.max_tokens_per_batch:,} tokens per side x {training.n_accumulate}, "
        f"{training.precision}, seed {training.seed}",
        f"- {_method(config)}",
        f"- weights: {averaged}",
        *([f"- started from {', which started from '.join(map(str, reversed(ancestry)))}"] if ancestry else []),
    ]
    if licences := licences_of(config.data):
        lines += ["", "## Licences of the training text", "", *licences]
    if scores is not None and split is not None:
        text = prepared.text(split)
        name = prepared.text_names[split] + (f" ({len(text[0]):,} {task.sentence_noun})" if text else "")
        lines += ["", f"## Scores on {split}: {name}", "", *task.score_lines(scores, config)]
    return "\n".join(lines) + "\n"


def licences_of(data: DataConfig) -> list[str]:
    """Name the licence and the source of each corpus that a catalogue has."""
    known: dict[str, Corpus | Treebank] = {**CATALOGUE, **TREEBANKS}
    return [f"- {name}: {known[name].licence} ({known[name].source})" for name in data.weights if name in known]


def _operations(flops_per_token: float, n_tokens: int | None, n_passes: float) -> list[str]:
    if n_tokens is None:
        return []
    passes = f", in {n_passes:.3g} passes" if n_passes > 1 else ""
    return [f"- about {flops_per_token * n_tokens:.2e} floating-point operations (6 per weight and token{passes})"]


def _vocabulary(config: RunConfig) -> str:
    n_src, n_tgt = config.model.vocab_sizes
    if isinstance(config.model, LanguageModelConfig):
        return f"{n_tgt:,} tokens"
    return f"{n_src:,} " + ("shared tokens" if config.data.shared_vocabulary else f"source and {n_tgt:,} target tokens")


def _architecture(model: ModelConfig) -> str:
    parts = [f"{model.layers_in_words()}, d_model {model.d_model}"]
    if isinstance(model, TransformerConfig | LanguageModelConfig):
        parts.append(f"d_ff {model.d_ff}, {model.n_heads} heads, d_k {model.d_k}, d_v {model.d_v}, {model.norm}-norm")
        parts.append("word positions" if model.positions == "words" else f"{model.positions} positions")
        if isinstance(model, TransformerConfig) and model.source == "patches":
            parts.append(f"patches of {model.patch_width} x {model.patch_height} pixels")
        if isinstance(model, TransformerConfig) and model.source == "frames":
            parts.append(f"frames of {model.source_width} mel bands")
        if model.compatibility != "scaled":
            parts.append(f"{model.compatibility} compatibility function")
        if model.attention == "restricted":
            parts.append(f"self-attention restricted to {model.neighbourhood} positions")
        if model.activation != "relu":
            parts.append(f"{model.activation} activation")
        if isinstance(model, TransformerConfig) and model.block_size > 1:
            parts.append(f"blocks of {model.block_size} tokens proposed at once")
        if isinstance(model, LanguageModelConfig):
            parts.append(f"a window of {model.n_positions:,} tokens")
    else:
        specific = model.model_dump(exclude=set(EncoderDecoderConfig.model_fields))
        parts += [f"system {model.system}", *(f"{name} {value}" for name, value in specific.items())]
    return ", ".join(parts)


def _method(config: RunConfig) -> str:
    """Describe optimisation and regularisation: the paper's settings, then all that differ from the paper's."""
    model, training, paper = config.model, config.training, TrainingConfig()
    parts = [f"warm-up {training.warmup_steps:,} updates", f"p_drop {model.p_drop:g}", f"eps_ls {training.eps_ls:g}"]
    if isinstance(model, TransformerConfig) and (model.p_drop_attention or model.p_drop_relu):
        parts.append(f"attention dropout {model.p_drop_attention:g}, feed-forward dropout {model.p_drop_relu:g}")
    values = {name: getattr(training, name) for name in REPORTED_SETTINGS}
    parts += [f"{name} {value}" for name, value in values.items() if value != getattr(paper, name)]
    return ", ".join(parts)


def _corpora(data: DataConfig, prepared: Prepared) -> str:
    """Describe the training data: each corpus with its pairs and weight, and data augmentation."""
    names = [Path(name).name for name in data.names_of("train")]
    parts, noun = [], task_named(data.task).example_noun
    for corpus, n in prepared.train.summary.n_examples_of.items():
        files = f" ({', '.join(names)})" if corpus == OWN_FILES and names else ""
        weight = f", weight {data.weights[corpus]:g}" if len(data.weights) > 1 else ""
        parts.append(f"{corpus}{files}, {n:,} {noun}{weight}")
    if isinstance(data, TreesData) and data.subtree_substitution:
        share = f"{data.subtree_substitution:g}"
        parts.append(f"{data.n_recombined} more trees per tree by subtree substitution at {share}")
    if isinstance(data, PairsData) and data.bpe_dropout:
        parts.append(f"BPE-dropout {data.bpe_dropout:g}, {data.n_encodings} encodings of each pair")
    return "; ".join(parts)
