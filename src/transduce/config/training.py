"""How a model is trained, and how a run is watched and kept."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transduce.config.record import Count, Record, Seed, Share

MAX_BATCHES = MAX_MINUTES = 10**6  # of minutes, that is two years
Natural = Annotated[int, Field(ge=0, le=10**12)]
Batches = Annotated[int, Field(ge=1, le=MAX_BATCHES)]
Minutes = Annotated[float, Field(gt=0, le=MAX_MINUTES)]
Factor = Annotated[float, Field(gt=0, le=10**6)]
Norm = Annotated[float, Field(gt=0, le=10**12)]
Precision = Literal["fp32", "bf16"]


class TrainingConfig(Record):
    """Section 5: batches, optimiser, schedule, regularisation; and how a run is watched and kept."""

    max_updates: Count = 100_000  # length of the run
    max_minutes: Minutes | None = None  # stop earlier, after this time (not exactly resumable)
    max_tokens_per_batch: Count = 25_000  # rows x longest, end symbols included, on each side (section 5.1)
    n_accumulate: Batches = 1  # batches whose gradients make one update
    warmup_steps: Count = 4000  # equation 3
    lr_factor: Factor = 1.0  # multiplies equation 3
    decay: Literal["inverse_sqrt", "linear", "cosine"] = "inverse_sqrt"  # after warm-up: equation 3, or down to 0
    optimiser: Literal["adam", "muon"] = "adam"  # muon: for the matrices of the layers (Jordan et al., 2024)
    adam_beta1: Share = 0.9  # section 5.3
    adam_beta2: Share = 0.98  # section 5.3
    adam_eps: Factor = 1e-9  # section 5.3
    # Of matrices, times the learning rate, apart from the gradient (Loshchilov and Hutter, 2019).
    weight_decay: Annotated[float, Field(ge=0.0, lt=100.0)] = 0.0
    clip_norm: Norm | None = None  # greatest norm of the gradient; the paper has none
    eps_ls: Share = 0.1  # label smoothing (section 5.4)
    # alpha of R-Drop: two passes should agree (Wu et al., 2021).
    r_drop: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    r_drop_after: Natural = 0  # it begins after so many updates: before, an update takes half the time
    # The first so many epochs also learn the way back: a pair is read from either side, in turn (Ding et al., 2021).
    both_ways_epochs: Natural = 0
    # eps_ls / V on every class, or eps_ls / (V - 1) on each wrong one.
    smoothing: Literal["uniform", "authors"] = "uniform"
    precision: Precision = "fp32"  # bf16: autocast; weights and optimiser stay fp32
    seed: Seed = 1  # of initial weights, dropout and the order of batches
    n_skippable: Natural = 0  # updates of a run that may be left out because something is not finite (--on-nan skip:N)
    log_every_updates: Count = 50  # a record in metrics.jsonl
    validate_every_updates: Count = 1000  # perplexity on dev
    validation_bleu: bool = True  # also translate dev at each validation
    validation_sentences: Count = 500  # how many dev sentences are translated for that
    patience: Count | None = None  # stop after so many validations without a better perplexity
    checkpoint_every_updates: Count = 1000  # a checkpoint
    checkpoint_every_minutes: Minutes | None = None  # and one after this time (paper: 10)
    keep_checkpoints: Batches = 5  # the newest that stay; the best stays too
    average_last: Batches = 5  # checkpoints averaged into the model folder (section 6.1)

    def mean_passes(self, n_updates: int) -> float:
        """Passes through the model for an update, in the mean over the first so many: R-Drop makes two."""
        n_twice = max(0, n_updates - self.r_drop_after) if self.r_drop else 0
        return 1 + n_twice / max(1, n_updates)

    @model_validator(mode="after")
    def _averaged_checkpoints_are_kept(self) -> Self:
        if self.average_last > self.keep_checkpoints:
            raise ValueError(
                f"average_last must be at most keep_checkpoints, got {self.average_last} > {self.keep_checkpoints}"
            )
        return self
