"""The models whose heads figures 3 to 5 show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from transduce.config import DataConfig, RunConfig, TrainingConfig, TransformerConfig
from transduce.corpora import ParallelText
from transduce.errors import ConfigError
from transduce.files import sha256_of_file
from transduce.inference import WEIGHTS_FILE, Translator, evaluate
from transduce.model import cost_of
from transduce.recipes import with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.machine import machine_description
from transduce_paper.measurement_cache import MeasuredArrays
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord
from transduce_paper.table3.rows import row_experiment

__all__ = ["attention_experiment", "shown_model"]

N_SCORED = 1_000  # dev sentences
ENGLISH = "en"  # the language of the drawn sentences, and of the grammar's trees

N_UPDATES, N_VALIDATIONS = 5500, 20
# At test scale the model has learned next to nothing.
TEST = (
    "model.n_encoder_layers=2", "model.n_decoder_layers=1", "model.d_model=32", "model.d_ff=48", "model.n_heads=4",
    "model.d_k=8", "model.d_v=8",
)  # fmt: skip


def attention_experiment(experiments: Experiments) -> Experiment:
    """Return the experiment whose heads are probed; above the scale of a CPU it is the base row of Table 3.

    On a CPU: 6 + 6 layers of 8 heads on captions and everyday sentences, an hour and a half; the best one counts.
    The text has first persons, questions and subordinate clauses, which captions lack.
    """
    if experiments.scale in ("gpu", "paper"):
        return row_experiment(experiments, "base", seed=1)
    config = RunConfig(
        model=TransformerConfig(d_model=256, d_ff=512, n_heads=8, d_k=32, d_v=32, norm="pre"),
        data=DataConfig(corpus={"multi30k": 1.0, "tatoeba": 1.0}, vocab_size=8000),
        training=TrainingConfig(
            max_updates=N_UPDATES, max_tokens_per_batch=2048, warmup_steps=200, lr_factor=1.0, decay="linear",
            optimiser="muon", precision="bf16", validation_bleu=False,
            validate_every_updates=N_UPDATES // N_VALIDATIONS, checkpoint_every_updates=N_UPDATES // 100,
            averaging="best",
        ),
    )  # fmt: skip
    return experiments.experiment("attention-6", config, test=TEST)


def shown_model(experiments: Experiments, request: Request) -> tuple[Experiments, Experiment]:
    """Return the run whose model is shown, and where it is found: that of the request, or the experiment's.

    Raises ConfigError for a model that does not translate from English.
    """
    if request.model is None:
        return experiments, attention_experiment(experiments)
    translator = Translator.load(request.model, device=experiments.device)
    if translator.src_language != ENGLISH:
        raise ConfigError(
            f"figures 3 to 5 need a model that translates from English; {request.model} translates from"
            f" {translator.src_language}"
        )
    settings = [f"data.direction={translator.src_language}-{translator.tgt_language}"]
    run = with_settings(attention_experiment(experiments).config, settings)
    config = run.model_copy(update={"model": translator.model.config})
    name = str(request.model)  # as it was given
    return GivenModel(translator, request.model, experiments), Experiment(name, config)


class GivenModel(Experiments):
    """A model folder in place of runs: its measurements are made anew each time."""

    def __init__(self, translator: Translator, folder: Path, experiments: Experiments) -> None:
        super().__init__(
            experiments.records, experiments.work, scale=experiments.scale, data_folder=experiments.data_folder,
            device=experiments.device, log=experiments.log,
        )  # fmt: skip
        self.translator, self.folder = translator, folder
        self._record: RunRecord | None = None

    def run(self, experiment: Experiment) -> RunRecord:
        """Return what is known of the model as a record; it counts as trained to the end."""
        if self._record is None:
            config, model = experiment.config, self.translator.model
            pairs = list(islice(ParallelText(config.data, self.data_folder).of("dev"), self.pick(N_SCORED, test=20)))
            scores = evaluate(self.translator, *zip(*pairs, strict=True)).scores
            cost, corpus = cost_of(model.config), config.data.corpus
            first = corpus if isinstance(corpus, str) else next(iter(corpus))
            self._record = RunRecord(
                experiment.name, config.model_dump(), data_fingerprint="",
                weights_sha256=sha256_of_file(self.folder / WEIGHTS_FILE), updates=0, src_tokens=0, tgt_tokens=0,
                minutes=0.0, machine=machine_description(self.device), torch=str(torch.__version__),
                parameters=cost.parameters, parameters_without_embeddings=cost.parameters_without_embeddings,
                training_flops=0.0, sustained_flops=0.0, dev_text=f"{first} dev", dev_perplexity=0.0,
                dev_scores=scores.as_json(), test_text=f"{first} test", test_scores=None, last_fall=0.0,
            )  # fmt: skip
        return self._record

    def model_folder(self, experiment: Experiment) -> Path:
        """Return the folder."""
        return self.folder

    def cached_measurement(
        self,
        experiment: Experiment,
        what: str,
        measure: Callable[[Path], list[dict[str, Any]]],
        *,
        settings: Mapping[str, int | str],
    ) -> list[dict[str, Any]]:
        """Return ``measure(folder)``."""
        self.log(f"{experiment.name}: measuring {what}")
        return measure(self.folder)

    def cached_arrays(
        self,
        experiment: Experiment,
        what: str,
        measure: Callable[[Path], MeasuredArrays],
        *,
        settings: Mapping[str, int | str],
    ) -> MeasuredArrays:
        """Return ``measure(folder)``."""
        return measure(self.folder)
