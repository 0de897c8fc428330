"""The models whose heads figures 3 to 5 show."""

from __future__ import annotations

from transduce.config import BeamSearchConfig, DataConfig, RunConfig, TrainingConfig, TransformerConfig
from transduce_paper.experiments import Experiment, Scale
from transduce_paper.table3 import row_experiment

__all__ = ["attention_experiment", "six_layers"]


def attention_experiment(scale: Scale, *, is_short: bool) -> Experiment:
    """Return the experiment whose heads are probed; above the scale of a CPU it is the base row of Table 3."""
    if is_short:
        return _short()
    return six_layers() if scale == "cpu" else row_experiment("base", scale, seed=1)


def six_layers() -> Experiment:
    """Return the experiment of 6 + 6 layers of 8 heads on captions and everyday sentences: about 45 minutes.

    The text has first persons, questions and subordinate clauses, which captions lack.
    """
    data = DataConfig(corpus={"multi30k": 1.0, "tatoeba": 1.0}, vocab_size=8000)
    return Experiment("attention-6", _run(data, n_layers=6, n_updates=3200))


def _run(data: DataConfig, *, n_layers: int, n_updates: int) -> RunConfig:
    return RunConfig(
        model=TransformerConfig(
            n_encoder_layers=n_layers, n_decoder_layers=n_layers, d_model=256, d_ff=512, n_heads=8, d_k=32, d_v=32,
            norm="pre",
        ),
        data=data,
        training=TrainingConfig(
            max_updates=n_updates, max_tokens_per_batch=2048, warmup_steps=200, lr_factor=1.0, decay="linear",
            optimiser="muon", precision="bf16", validation_bleu=False, validate_every_updates=n_updates,
            checkpoint_every_updates=30,
        ),
    )  # fmt: skip


def _short() -> Experiment:
    """Return a smoke test of seconds; the model has learned next to nothing."""
    config = RunConfig(
        model=TransformerConfig(n_encoder_layers=2, n_decoder_layers=1, d_model=32, d_ff=48, n_heads=4, d_k=8, d_v=8),
        data=DataConfig(corpus="grammar", n_pairs=300, vocab_size=400),
        training=TrainingConfig(
            max_updates=6, max_tokens_per_batch=400, warmup_steps=2, validation_bleu=False, validate_every_updates=6,
            checkpoint_every_updates=2,
        ),
        search=BeamSearchConfig(beam_size=1, max_extra_tokens=1),
    )  # fmt: skip
    return Experiment("attention-short", config)
