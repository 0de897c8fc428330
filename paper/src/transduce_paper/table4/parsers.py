"""The parsers of Table 4 and of its variants: runs of the recipes, at any scale."""

from __future__ import annotations

from transduce.config import RunConfig
from transduce.recipes import preset, with_settings
from transduce_paper.experiments import Scale

__all__ = ["PARSERS", "SMALL_PARSER", "parser_at_scale"]

# The settings of the recipes parsing-gum, parsing-free-trees and parsing-wsj; the recipes give the reasons.
_SMALL = (
    "model.n_encoder_layers=3", "model.n_decoder_layers=5", "model.d_model=128", "model.d_ff=512", "model.n_heads=4",
    "model.d_k=32", "model.d_v=32", "model.p_drop=0.1", "model.norm=pre", "model.positions=words",
    "data.leaves=endings", "data.subtree_substitution=0.1", "data.max_length=300", "training.max_tokens_per_batch=2048",
    "training.warmup_steps=300", "training.decay=linear", "training.optimiser=muon", "training.precision=bf16",
    "training.validation_sentences=200", "training.checkpoint_every_updates=100", "search.beam_size=4",
)  # fmt: skip
PARSERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "gum": (
        "base",
        (
            *_SMALL, "data.corpus=gum", "data.n_recombined=15", "data.vocab_size=4000", "training.max_updates=6000",
            "training.validate_every_updates=1000",
        ),
    ),
    "free-trees": (
        "base",
        (
            *_SMALL, "data.corpus={wsj-sample=4.0, gum=1.0, craft=0.3}", "data.n_recombined=5", "data.vocab_size=6000",
            "training.max_updates=5000", "training.validate_every_updates=2500",
        ),
    ),
    "wsj": (
        "base",
        (
            "model.n_encoder_layers=4", "model.n_decoder_layers=4", "model.d_model=1024", "model.d_k=128",
            "model.d_v=128", "model.p_drop=0.2", "model.p_drop_attention=0.2",
            "data.corpus=wsj", "data.leaves=tags", "data.vocab_size=16000", "data.max_length=512",
            "training.max_updates=100000", "training.max_tokens_per_batch=25000", "training.warmup_steps=16000",
            "training.lr_factor=0.5", "training.checkpoint_every_updates=1000", "training.keep_checkpoints=5",
            "search.beam_size=21",
        ),
    ),
}  # fmt: skip
_COMMON = (
    "model.embeddings=separate", "data.task=parsing", "data.shared_vocabulary=false", "training.average_last=5",
    "search.alpha=0.3", "search.max_extra_tokens=300",
)  # fmt: skip
CPU_UPDATES_DIVISOR = 4
# What a parser has besides at test scale.
SMALL_PARSER = ("model.n_encoder_layers=1", "model.n_decoder_layers=1", "data.subtree_substitution=0.0")


def parser_at_scale(name: str, scale: Scale) -> RunConfig:
    """Return the run of a recipe; at scale cpu with a quarter of its updates, at scale hours with more validations."""
    base, settings = PARSERS[name]
    config = with_settings(preset(base), [*_COMMON, *settings])
    n_updates = config.training.max_updates
    if scale == "hours":
        # Perplexity alone after each tenth of the run, for ``last_fall``; to parse each time could take as long as
        # training.
        return with_settings(
            config, [f"training.validate_every_updates={n_updates // 10}", "training.validation_bleu=false"]
        )
    if scale in ("gpu", "paper"):
        return config
    return with_settings(config, [f"training.max_updates={n_updates // CPU_UPDATES_DIVISOR}"])
