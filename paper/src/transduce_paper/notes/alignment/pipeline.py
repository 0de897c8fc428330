"""The runs of the alignment chapter: the recipes alignment/..., each stage from the one before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transduce.recipes import preset, with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.run_records import Experiment

__all__ = ["STAGES", "Stage", "base", "direct_preference", "fine_tuned", "policy", "reward_model"]

MODEL = (
    "model.system=language-model", "model.n_layers=4", "model.d_model=192", "model.d_ff=768", "model.n_heads=4",
    "model.d_k=48", "model.d_v=48", "model.p_drop=0.0", "model.norm=pre", "model.activation=gelu",
    "model.n_positions=128", "data.corpus=grammar", "training.clip_norm=1.0", "training.precision=bf16",
    "training.average_last=1",
)  # fmt: skip
ON_PROMPTS = ("data.max_length=128", "training.decay=linear")
# The settings of each recipe beyond ``MODEL``.
STAGES: dict[str, tuple[str, ...]] = {
    "base": (
        "data.task=causal-lm", "data.language=en", "data.vocab_size=1500", "training.max_updates=1500",
        "training.max_tokens_per_batch=2048", "training.optimiser=muon", "training.warmup_steps=150",
        "training.lr_factor=0.4", "training.decay=cosine", "training.eps_ls=0.0", "training.validate_every_updates=500",
        "training.checkpoint_every_updates=250",
    ),
    "sft": (
        *ON_PROMPTS, "data.task=sft", "data.n_pairs=12000", "training.max_updates=600",
        "training.max_tokens_per_batch=2048", "training.optimiser=muon", "training.warmup_steps=100",
        "training.lr_factor=0.25", "training.eps_ls=0.1", "training.validate_every_updates=200",
        "training.checkpoint_every_updates=200",
    ),
    "reward": (
        *ON_PROMPTS, "data.task=reward", "data.corpus_seed=2", "data.n_pairs=8000", "training.max_updates=500",
        "training.max_tokens_per_batch=4096", "training.warmup_steps=50", "training.lr_factor=0.05",
        "training.validate_every_updates=100", "training.checkpoint_every_updates=100", "alignment.centring=0.1",
    ),
    "dpo": (
        *ON_PROMPTS, "data.task=dpo", "data.corpus_seed=2", "data.n_pairs=8000", "training.max_updates=200",
        "training.max_tokens_per_batch=4096", "training.warmup_steps=20", "training.lr_factor=0.002",
        "training.validate_every_updates=50", "training.checkpoint_every_updates=50", "alignment.beta=0.1",
    ),
    "ppo": (
        *ON_PROMPTS, "data.task=ppo", "data.corpus_seed=3", "data.n_pairs=6000", "training.max_updates=320",
        "training.max_tokens_per_batch=4096", "training.warmup_steps=20", "training.lr_factor=0.005",
        "training.adam_eps=1e-5", "training.adam_eps_form=tensorflow", "training.log_every_updates=16",
        "training.validate_every_updates=160", "training.checkpoint_every_updates=160", "alignment.beta=0.05",
        "alignment.rollout_size=256", "alignment.batch_size=64", "alignment.n_passes=1", "alignment.max_response=40",
        "alignment.unfinished_score=-3.0",
    ),
}  # fmt: skip
TEST = (
    "model.n_layers=1", "model.d_model=32", "model.d_ff=32", "model.n_heads=2", "model.d_k=16", "model.d_v=16",
    "model.n_positions=256", "data.max_length=256", "data.n_pairs=40", "training.max_tokens_per_batch=4000",
    "alignment.rollout_size=8", "alignment.batch_size=4",
    "alignment.n_passes=1", "alignment.max_response=4",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stage:
    """Makes the experiments of one seed."""

    experiments: Experiments
    seed: int

    def of(self, stage: str, *settings: str, name: str = "") -> Experiment:
        """Return the run of a stage, from random weights."""
        config = with_settings(preset("tiny"), [*MODEL, *STAGES[stage], *settings, f"training.seed={self.seed}"])
        return self.experiments.experiment(f"alignment-{name or stage}-seed{self.seed}", config, test=TEST)


def base(stage: Stage) -> Experiment:
    """Return the base model; all seeds share that of seed 1."""
    return replace(stage, seed=1).of("base")


def fine_tuned(stage: Stage) -> Experiment:
    """Return the fine-tuned model of a seed."""
    return replace(stage.of("sft"), starts_from=base(stage))


def reward_model(stage: Stage) -> Experiment:
    """Return the reward model of a seed, of rankings of that seed's responses."""
    return replace(stage.of("reward"), starts_from=fine_tuned(stage))


def direct_preference(stage: Stage, beta: float) -> Experiment:
    """Return the model of DPO."""
    run = stage.of("dpo", f"alignment.beta={beta}", name=f"dpo-beta{beta:g}")
    return replace(run, starts_from=fine_tuned(stage))


def policy(stage: Stage, beta: float) -> Experiment:
    """Return the policy of PPO."""
    run = stage.of("ppo", f"alignment.beta={beta}", name=f"ppo-beta{beta:g}")
    return replace(run, starts_from=fine_tuned(stage), rated_by=reward_model(stage))
