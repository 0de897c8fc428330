"""Table 2: BLEU and training cost of the Transformer and of baselines modelled on its predecessors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transduce.config import RunConfig, TransformerConfig
from transduce.paper.experiments import Experiment, Experiments, RunRecord, machines
from transduce.paper.long_table2.printed import PRINTED, Printed, printed_table
from transduce.paper.long_table2.systems import as_large_as_the_transformer
from transduce.paper.report import Cell, Report, Table, how_to_reproduce, picture, verdict_line
from transduce.paper.request import Request
from transduce.paper.sizes import size_description
from transduce.paper.table3 import learning_rate_description, row_at_scale
from transduce.paper.table_plots import FlopsPoint, draw_bleu_over_flops
from transduce.recipes import TABLE_3, with_settings

__all__ = ["PRINTED", "make_table2", "system_at_scale"]


# Our systems: the paper's row that each is modelled on, and its changes of the base configuration.
SYSTEMS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "ByteNet-like (dilated convolutions)": ("ByteNet", {"system": "bytenet"}),
    "LSTM without attention": ("", {"system": "last-state"}),
    "GNMT-like (LSTM, additive attention)": ("GNMT + RL", {"system": "recurrent"}),
    "ConvS2S-like (gated convolutions)": ("ConvS2S", {"system": "convs2s"}),
    "Transformer, mixture of experts": ("MoE", {"n_experts": 8}),
    "Transformer": ("Transformer (base)", {}),
}

FLOPS = ".1e"


def make_table2(experiments: Experiments, request: Request) -> Report:
    """Train every system on the same text with the same tokenizer, search and number of updates."""
    names = ["LSTM without attention", "Transformer"] if request.is_short else list(SYSTEMS)
    records = {name: experiments.run(_experiment(experiments, name, is_short=request.is_short)) for name in names}
    paper, ours = (size_description(config) for config in (row_at_scale("base", "paper"), _transformer_config(records)))
    return Report(
        "table2",
        "Table 2: BLEU and the cost of training",
        (
            verdict_line(_verdict(records)),
            f"Transformer of the paper (base): {paper}. Ours: {ours}. Numbers of different sizes cannot be compared"
            " with each other, only the order of the systems.",
            _measured(records),
            picture("table2", "BLEU over training FLOPs: our systems above, the paper's below"),
            how_to_reproduce(
                "table2",
                scale=experiments.scale,
                seeds=f"seed {records['Transformer'].config['training']['seed']} for each system",
                hardware=machines(records.values()),
            ),
            _details(records),
            "## The paper's numbers\n\nBLEU on newstest2014. The text gives 41.0 for the big model's English to French,"
            " the table 41.8. For the paper's own models, the last two columns are FLOPs by its rule (training time x"
            " number of GPUs x sustained FLOP/s) and by counting matrix products.",
            printed_table(),
        ),
        drawings={"table2": lambda path: _draw(records, path)},
    )


def _transformer_config(records: Mapping[str, RunRecord]) -> Mapping[str, Any]:
    return records["Transformer"].config


def _bleu(record: RunRecord) -> float:
    return float((record.test_scores or record.dev_scores)["sacrebleu"]["score"])


def _verdict(records: Mapping[str, RunRecord]) -> str:
    """Summarise the order of the systems; the paper has the Transformer first."""
    in_order = sorted(records, key=lambda name: -_bleu(records[name]))
    rank, ours = in_order.index("Transformer") + 1, _bleu(records["Transformer"])
    if rank == 1:
        second = in_order[1]
        lead = ours - _bleu(records[second])
        return (
            f"The Transformer comes first, as in the paper: {ours:.1f} BLEU, {lead:.1f} more than {second}, on the same"
            " text and with about the same FLOPs."
        )
    first = in_order[0]
    return (
        f"The paper's order, Transformer first, does not hold at this size: it has {ours:.1f} BLEU, rank {rank} of"
        f" {len(in_order)}, and {first} leads with {_bleu(records[first]):.1f}, on the same text and with about the"
        " same FLOPs."
    )


def system_at_scale(name: str, experiments: Experiments) -> RunConfig:
    """Return the base run of Table 3 with another system, of about the Transformer's FLOPs per token."""
    _, changes = SYSTEMS[name]
    config = row_at_scale("base", experiments.scale)
    settings = [f"model.{key}={value}" for key, value in changes.items()]
    settings.append(f"training.average_last={TABLE_3['base']().training.average_last}")  # as in section 6.1
    if "n_experts" in changes and isinstance(config.model, TransformerConfig):  # two experts are active per token
        settings.append(f"model.d_ff={config.model.d_ff // config.model.n_active_experts}")
    if experiments.scale == "cpu":
        max_updates = 3 * config.training.max_updates // 2
        settings += [f"training.max_updates={max_updates}", f"training.validate_every_updates={max_updates}"]
    return as_large_as_the_transformer(with_settings(config, settings), config)


def _experiment(experiments: Experiments, name: str, *, is_short: bool) -> Experiment:
    config = system_at_scale(name, experiments)
    slug = SYSTEMS[name][1].get("system", "experts" if SYSTEMS[name][1] else "transformer")
    if is_short:
        config = with_settings(experiments.shortened(config), ["model.n_encoder_layers=1", "model.n_decoder_layers=1"])
    return Experiment(f"table2-{'short-' if is_short else ''}{slug}-seed1", config)


def _details(records: Mapping[str, RunRecord]) -> str:
    record = records["Transformer"]
    training, data, search = (record.config[table] for table in ("training", "data", "search"))
    corpora = data["corpus"] if isinstance(data["corpus"], str) else ", ".join(data["corpus"])
    text, scores = record.test_text or record.dev_text, record.test_scores or record.dev_scores
    return "\n".join(
        (
            "## Details\n",
            "- Systems: baselines modelled on the paper's, not those systems themselves. The number of layers of"
            " each is chosen for about the Transformer's FLOPs; of 8 experts, each half as wide, two are active.",
            f"- Training: the same text ({corpora}, {data['direction']}), tokenizer, search and {record.updates:,}"
            f" updates ({training['warmup_steps']:,} of warm-up{learning_rate_description(training)}),"
            f" {training['precision']}. All are trained like the Transformer (section 5.3), which may not be the best"
            " for the others.",
            f"- BLEU on {text}: `{scores['sacrebleu']['signature']}`. Tokenised BLEU with compounds split, like the"
            f" paper's: `{scores['paper_bleu']['signature']}`. Beam {search['beam_size']}, alpha {search['alpha']}.",
            "- FLOPs by count: 6 per weight and target token. FLOPs by rule (the paper's): training time x sustained"
            " FLOP/s, measured with large matrix products before each training.",
            "- Left out: ensembles, the big model, English to French.",
        )
    )


def _draw(records: Mapping[str, RunRecord], path: Path) -> None:
    record = records["Transformer"]
    ours = [
        FlopsPoint(name, _flops_by_rule(each), _bleu(each), name.startswith("Transformer"))
        for name, each in records.items()
    ]
    printed = [
        FlopsPoint(name, row.flops_de, row.bleu_de, name.startswith("Transformer"))
        for name, row in PRINTED.items()
        if row.flops_de is not None and row.bleu_de is not None
    ]
    flops = "training FLOPs (time x sustained FLOP/s)"
    draw_bleu_over_flops(
        (
            (f"Ours: {size_description(record.config)}", flops, f"BLEU, {record.test_text or record.dev_text}", ours),
            (
                f"Paper: base {size_description(row_at_scale('base', 'paper'))}",
                flops,
                "BLEU, newstest2014 en-de",
                printed,
            ),
        ),
        path,
    )


def _flops_by_rule(record: RunRecord) -> float:
    """Return the training FLOPs by the paper's rule: time times the sustained FLOP/s of the machine."""
    return 60 * record.minutes * record.sustained_flops


def _measured(records: Mapping[str, RunRecord]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, record in records.items():
        theirs = PRINTED.get(SYSTEMS[name][0], Printed())
        scores = record.test_scores or record.dev_scores
        layers = f"{record.config['model']['n_encoder_layers']} + {record.config['model']['n_decoder_layers']}"
        rows.append(
            (
                name,
                layers,
                record.parameters / 1e6,
                _bleu(record),
                float(scores["paper_bleu"]["score"]),
                record.dev_perplexity,
                record.training_flops,
                _flops_by_rule(record),
                record.sustained_flops / 1e12,
                record.minutes,
                theirs.bleu_de,
                theirs.flops_de,
            )
        )
    columns = (
        "system", "layers", "million parameters", "BLEU", "tokenised BLEU", "dev PPL", "FLOPs by count",
        "FLOPs by rule", "TFLOPS sustained", "minutes", "paper: BLEU en-de", "paper: FLOPs en-de",
    )  # fmt: skip
    formats = dict.fromkeys(("million parameters", "BLEU", "tokenised BLEU", "dev PPL", "TFLOPS sustained"), ".2f")
    flops = ("FLOPs by count", "FLOPs by rule", "paper: FLOPs en-de")
    return Table("", columns, tuple(rows), formats=formats | {"minutes": ".1f"} | dict.fromkeys(flops, FLOPS))
