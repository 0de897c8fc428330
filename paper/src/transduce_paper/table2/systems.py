"""The systems of Table 2: ours at each scale, modelled on the paper's, with about the same FLOPs per token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from transduce.config import RunConfig, TransformerConfig
from transduce.model import cost_of
from transduce.recipes import TABLE_3, with_settings
from transduce.training import peak_learning_rate
from transduce_paper.experiments import Experiments, Scale
from transduce_paper.run_records import Experiment
from transduce_paper.table2.text import text_settings
from transduce_paper.table3.rows import row_at_scale

__all__ = [
    "LONGER_UPDATES",
    "SYSTEMS",
    "System",
    "as_large_as_the_transformer",
    "config_at_scale",
    "flops_per_token",
    "system_experiment",
    "systems_at_scale",
]

# At scales cpu and gpu: six times the updates of Table 3. With a quarter of them (at cpu scale, 2,250) the order was
# another one.
N_TIMES_TABLE_3 = N_VALIDATIONS = 6
# At scale hours: the widths and layers of Table 3's base at that scale, on a text of several kinds.
N_VALIDATIONS_AT_HOURS_SCALE = 10
AT_HOURS_SCALE = ("data.vocab_size=8000", "training.averaging=best", "training.validation_sentences=200")


@dataclass(frozen=True, slots=True)
class Tried:
    """Settings of training that every system is tried with at scale hours."""

    peak_rate: float  # the highest learning rate, in runs of all lengths
    p_drop: float

    def __str__(self) -> str:
        return f"highest rate {self.peak_rate:g}, P_drop {self.p_drop:g}"

    def settings(self, config: RunConfig) -> list[str]:
        """Return the settings of a configuration whose warm-up is set."""
        unscaled = config.training.model_copy(update={"lr_factor": 1.0})
        lr_factor = self.peak_rate / peak_learning_rate(d_model=config.model.d_model, config=unscaled)
        return [f"training.lr_factor={lr_factor:.6g}", f"model.p_drop={self.p_drop}"]


# The first is how Table 3's base is trained at this scale.
TRIED = (Tried(2e-3, 0.1), Tried(1e-3, 0.1), Tried(2e-3, 0.2))
# Updates by number of training pairs; None: all. Each system is tried on the text of N_TRIED_PAIRS.
UPDATES_BY_PAIRS: Mapping[int | None, int] = {10_000: 2_500, 40_000: 5_000, None: 10_000}
LONGER_UPDATES = 24_000  # of the two systems that lead, on all pairs: would their order be another one?
N_TRIED_PAIRS, N_TRIED_UPDATES = 40_000, 1_200
WARM_UP = 400  # updates at least, else a tenth of a run: the Transformer needs some hundreds to begin to learn


@dataclass(frozen=True, slots=True)
class System:
    """One of our systems, and the row of the paper's table that it is modelled on."""

    slug: str  # in names of records
    row: str = ""  # of the paper; empty if it has none
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the base configuration's model
    is_big: bool = False  # the last row of Table 3 instead of its first
    direction: str = "en-de"
    only_at: Scale | None = None  # trained at this scale only


# In the order of the paper's table.
SYSTEMS: Mapping[str, System] = {
    "ByteNet-like (dilated convolutions)": System("bytenet", "ByteNet", {"system": "bytenet"}),
    "LSTM without attention": System("last-state", "", {"system": "last-state"}),
    "GNMT-like (LSTM, additive attention)": System("recurrent", "GNMT + RL", {"system": "recurrent"}),
    "ConvS2S-like (gated convolutions)": System("convs2s", "ConvS2S", {"system": "convs2s"}),
    "Transformer, mixture of experts": System("experts", "MoE", {"n_experts": 8}),
    "Transformer": System("transformer", "Transformer (base)"),
    "Transformer, English to French": System(
        "transformer-en-fr", "Transformer (base)", direction="en-fr", only_at="paper"
    ),
    "Transformer (big)": System("transformer-big", "Transformer (big)", is_big=True, only_at="paper"),
    "Transformer (big), English to French": System(
        "transformer-big-en-fr", "Transformer (big)", is_big=True, direction="en-fr", only_at="paper"
    ),
}


def systems_at_scale(scale: Scale) -> list[str]:
    """Return the names of the systems that are trained at a scale."""
    if scale == "test":
        return ["LSTM without attention", "Transformer"]
    return [name for name, system in SYSTEMS.items() if system.only_at in (None, scale)]


def system_experiment(experiments: Experiments, name: str, *, seed: int = 1) -> Experiment:
    """Return the run of a system under the name of its record, at other scales than hours."""
    config = config_at_scale(name, experiments.scale, seed=seed)
    small = ("model.n_encoder_layers=1", "model.n_decoder_layers=1", "training.log_every_updates=3")
    return experiments.experiment(f"table2-9000-{SYSTEMS[name].slug}-seed{seed}", config, test=small)


def tried_experiment(experiments: Experiments, name: str, tried: Tried) -> Experiment:
    """Return the short run by which settings of a system are chosen, at scale hours."""
    config = _at_hours_scale(experiments, name, tried, n_pairs=N_TRIED_PAIRS, n_updates=N_TRIED_UPDATES)
    config = with_settings(config, ["training.validation_bleu=false", "search.beam_size=1"])  # perplexity decides
    return experiments.experiment(f"table2-{SYSTEMS[name].slug}-tried{1 + TRIED.index(tried)}", config)


def experiment_on_pairs(
    experiments: Experiments,
    name: str,
    tried: Tried,
    *,
    n_pairs: int | None = None,
    n_updates: int | None = None,
    seed: int = 1,
) -> Experiment:
    """Return the run of a system with its settings on so many pairs, or on all, at scale hours.

    ``n_updates`` is another length than that of so many pairs.
    """
    of_run = n_updates or UPDATES_BY_PAIRS[n_pairs]
    config = _at_hours_scale(experiments, name, tried, n_pairs=n_pairs, n_updates=of_run, seed=seed)
    amount = ("all" if n_pairs is None else f"{n_pairs}") + (f"-{n_updates}-updates" if n_updates else "")
    return experiments.experiment(f"table2-{SYSTEMS[name].slug}-{amount}-seed{seed}", config)


def _at_hours_scale(
    experiments: Experiments, name: str, tried: Tried, *, n_pairs: int | None, n_updates: int, seed: int = 1
) -> RunConfig:
    interval = n_updates // N_VALIDATIONS_AT_HOURS_SCALE
    settings = [
        *text_settings(experiments), f"training.max_updates={n_updates}",
        f"training.warmup_steps={max(WARM_UP, n_updates // 10)}",
        f"training.validate_every_updates={interval}", f"training.checkpoint_every_updates={interval // 5}",
    ]  # fmt: skip
    settings += [] if n_pairs is None else [f"data.max_pairs={n_pairs}"]
    config = with_settings(config_at_scale(name, "hours", seed=seed), settings)
    return with_settings(config, tried.settings(config))


def config_at_scale(name: str, scale: Scale, *, seed: int = 1) -> RunConfig:
    """Return the run of Table 3's base (or big) with another system, of about the Transformer's FLOPs per token."""
    system = SYSTEMS[name]
    row = "big" if system.is_big else "base"
    config = with_settings(row_at_scale(row, scale, seed=seed), AT_HOURS_SCALE if scale == "hours" else ())
    settings = [f"model.{key}={value}" for key, value in system.changes.items()]
    training = TABLE_3[row]().training
    settings += [f"training.{each}={getattr(training, each)}" for each in ("keep_checkpoints", "average_last")]
    if config.training.averages_around_best and scale != "hours":
        settings.append("training.averaging=last")  # as in section 6.1
    if "n_experts" in system.changes and isinstance(
        config.model, TransformerConfig
    ):  # two experts are active per token
        settings.append(f"model.d_ff={config.model.d_ff // config.model.n_active_experts}")
    if scale != "paper":
        settings.append("training.validation_bleu=true")
    if scale not in ("paper", "hours"):
        max_updates = N_TIMES_TABLE_3 * config.training.max_updates
        settings += [
            f"training.max_updates={max_updates}",
            f"training.validate_every_updates={max_updates // N_VALIDATIONS}",
            "training.checkpoint_every_updates=100",
        ]
    if scale == "paper" and system.direction == "en-fr":
        settings += _french(is_big=system.is_big)
    return as_large_as_the_transformer(with_settings(config, settings), config)


def _french(*, is_big: bool) -> list[str]:
    """Return the settings of the English-French runs: 32,000 word pieces (section 5.1); for big P_drop 0.1 (6.1)."""
    settings = ["data.corpus=wmt14-en-fr", "data.direction=en-fr", "data.tokenizer=wordpiece", "data.vocab_size=32000"]
    return [*settings, "model.p_drop=0.1"] if is_big else settings


def as_large_as_the_transformer(config: RunConfig, transformer: RunConfig) -> RunConfig:
    """Choose the number of layers whose FLOPs are nearest to the Transformer's; leave mixtures of experts alone."""
    if config.model.system == "transformer":
        return config
    target = flops_per_token(transformer)

    def with_layers(n: int) -> RunConfig:
        return with_settings(config, [f"model.n_encoder_layers={n}", f"model.n_decoder_layers={n}"])

    def cost(n: int) -> int:
        return flops_per_token(with_layers(n))

    n = next(n for n in count(1) if cost(n) >= target)
    return with_layers(n if n == 1 or cost(n) - target < target - cost(n - 1) else n - 1)


def flops_per_token(config: RunConfig) -> int:
    """Return the training FLOPs per token, with the vocabulary size of the recipe."""
    return cost_of(config.model.with_vocabulary(config.data.vocab_size, config.data.vocab_size)).flops_per_token
