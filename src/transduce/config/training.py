"""Training settings: batches, optimiser, schedule, regularisation, validation, checkpoints."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transduce.config.record import (
    FROM_LIST,
    MAX_MINUTES,
    ClosedFraction,
    Count,
    FileName,
    Fraction,
    Record,
    Seed,
    matching,
)  # fmt: skip

MAX_BATCHES = 10**6
Natural = Annotated[int, Field(ge=0, le=10**12)]
Batches = Annotated[int, Field(ge=1, le=MAX_BATCHES)]
Minutes = Annotated[float, Field(gt=0, le=MAX_MINUTES)]
Factor = Annotated[float, Field(gt=0, le=10**6)]
Norm = Annotated[float, Field(gt=0, le=10**12)]
Precision = Literal["fp32", "bf16"]
ScoreName = Annotated[
    str, Field(max_length=200), matching("[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a score, as in bleu, or loss")
]


class TrainingConfig(Record):
    """Batches, optimiser, schedule and regularisation (section 5); validation and checkpoints."""

    # A model folder whose weights the run starts from, where they fit (train --from); the others are drawn.
    init_from: FileName | None = None
    max_updates: Count = 100_000  # length of the run
    max_minutes: Minutes | None = None  # stop after this time, if earlier than max_updates (not exactly resumable)
    max_tokens_per_batch: Count = 25_000  # rows x longest row, EOS included, on each side (section 5.1)
    n_accumulate: Batches = 1  # gradient accumulation: batches per update
    warmup_steps: Count = 4000  # updates over which the rate rises (equation 3)
    lr_factor: Factor = 1.0  # multiplies the learning rate of equation 3
    decay: Literal["inverse_sqrt", "linear", "cosine"] = "inverse_sqrt"  # after warm-up: equation 3, or decay to 0
    # The updates after which a finished run was extended (train --more); the decay to 0 then starts again, from less.
    extended_at: Annotated[tuple[Count, ...], FROM_LIST] = ()
    optimiser: Literal["adam", "muon"] = "adam"  # muon: for the layers' matrices (Jordan et al., 2024)
    adam_beta1: Fraction = 0.9  # decay of the first moment (section 5.3)
    adam_beta2: Fraction = 0.98  # decay of the second moment (section 5.3)
    adam_eps: Factor = 1e-9  # epsilon, added to a denominator (section 5.3)
    # Where epsilon is added: to the corrected second moment's root, or, gentler at first, to that of the raw moment.
    adam_eps_form: Literal["torch", "tensorflow"] = "torch"
    # Decoupled weight decay of matrices, scaled by the learning rate (Loshchilov and Hutter, 2019).
    weight_decay: Annotated[float, Field(ge=0.0, lt=100.0)] = 0.0
    clip_norm: Norm | None = None  # maximum gradient norm; the paper does not clip
    eps_ls: ClosedFraction = 0.1  # label smoothing (section 5.4); at 1, "uniform" leaves a uniform target
    # R-Drop's alpha: weight of the KL divergence between two forward passes (Wu et al., 2021).
    r_drop: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    r_drop_after: Natural = 0  # R-Drop starts after this many updates; updates before it take half the time
    # Bidirectional training: in the first epochs pairs are also read from target to source (Ding et al., 2021).
    bidirectional_epochs: Natural = 0
    # Images and audio: masks over columns or frames, and as many over rows or bands, of each training source, drawn
    # anew in each epoch (SpecAugment, Park et al., 2019).
    feature_masks: Annotated[int, Field(ge=0, le=100)] = 0
    # Images and audio: weight of the CTC loss of the encoder's states, which shows the model early where in its source
    # the text is (Graves et al., 2006; Watanabe et al., 2017).
    ctc_weight: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    # Label smoothing: "uniform" puts eps_ls / V on every class, the target too; "authors" (their code) 1 - eps_ls on
    # the target and eps_ls / (V - 1) on each other.
    smoothing: Literal["uniform", "authors"] = "uniform"
    precision: Precision = "fp32"  # bf16: autocast; weights and optimiser stay fp32
    seed: Seed = 1  # of initial weights, dropout and batch order
    max_skipped_updates: Natural = 0  # for a non-finite loss or gradient (--on-nan skip:N)
    log_every_updates: Count = 50  # interval of records in metrics.jsonl
    validate_every_updates: Count = 1000  # interval of validations (dev perplexity)
    validation_bleu: bool = True  # also translate dev at each validation
    validation_sentences: Count = 500  # number of dev sentences translated at a validation
    # What makes a checkpoint the best: the "loss" on dev, or another score of the validation, such as "bleu".
    best_by: ScoreName = "loss"
    patience: Count | None = None  # early stopping: validations in a row that are not better by best_by
    checkpoint_every_updates: Count = 1000  # interval of checkpoints
    checkpoint_every_minutes: Minutes | None = None  # additional checkpoints at this interval (paper: 10)
    keep_checkpoints: Batches = 5  # newest checkpoints kept; the best one and average_last around it are kept too
    average_last: Batches = 5  # checkpoints averaged into the model folder (section 6.1)
    averaging: Literal["last", "best"] | None = None  # the last ones, or around the best. Default: best with patience

    @property
    def averages_around_best(self) -> bool:
        """Whether the model folder averages the checkpoints around the best one, not the last ones."""
        return self.averaging == "best" or (self.averaging is None and self.patience is not None)

    def mean_passes(self, n_updates: int) -> float:
        """Return the mean number of forward passes per batch over the first ``n_updates``: two with R-Drop."""
        n_r_drop = max(0, n_updates - self.r_drop_after) if self.r_drop else 0
        return 1 + n_r_drop / max(1, n_updates)

    @model_validator(mode="after")
    def _averaged_checkpoints_are_kept(self) -> Self:
        if self.average_last > self.keep_checkpoints:
            raise ValueError(
                f"average_last must be at most keep_checkpoints, got {self.average_last} > {self.keep_checkpoints}"
            )
        return self
