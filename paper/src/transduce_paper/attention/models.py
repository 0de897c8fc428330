"""The models whose heads figures 3 to 5 show."""

from __future__ import annotations

from transduce.config import DataConfig, RunConfig, TrainingConfig, TransformerConfig
from transduce_paper.experiments import Experiments
from transduce_paper.run_records import Experiment
from transduce_paper.table3_rows import row_experiment

__all__ = ["attention_experiment"]

N_UPDATES = 3200
# At test scale the model has learned next to nothing.
TEST = (
    "model.n_encoder_layers=2", "model.n_decoder_layers=1", "model.d_model=32", "model.d_ff=48", "model.n_heads=4",
    "model.d_k=8", "model.d_v=8",
)  # fmt: skip


def attention_experiment(experiments: Experiments) -> Experiment:
    """Return the experiment whose heads are probed; above the scale of a CPU it is the base row of Table 3.

    On a CPU: 6 + 6 layers of 8 heads on captions and everyday sentences, about 45 minutes. The text has first persons,
    questions and subordinate clauses, which captions lack.
    """
    if experiments.scale in ("gpu", "paper"):
        return row_experiment(experiments, "base", seed=1)
    config = RunConfig(
        model=TransformerConfig(d_model=256, d_ff=512, n_heads=8, d_k=32, d_v=32, norm="pre"),
        data=DataConfig(corpus={"multi30k": 1.0, "tatoeba": 1.0}, vocab_size=8000),
        training=TrainingConfig(
            max_updates=N_UPDATES, max_tokens_per_batch=2048, warmup_steps=200, lr_factor=1.0, decay="linear",
            optimiser="muon", precision="bf16", validation_bleu=False, validate_every_updates=N_UPDATES,
            checkpoint_every_updates=30,
        ),
    )  # fmt: skip
    return experiments.experiment("attention-6", config, test=TEST)
