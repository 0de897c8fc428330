"""eole as a system of ``whole_run.py``: its own model, data loading, loss, optimiser and trainer, in turns.

Run by the Python of an environment with eole (0.6 or later), which has no transduce: imports only the standard library,
eole, torch, and modules of this folder that need neither. The text are lines of token ids of our tokenizer.

Shapes: B sentences, S source positions, T target positions, V vocabulary.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eole
import torch
import torch._dynamo  # the first update imports it, which takes seconds; loading libraries is no training
import torch.nn.functional as F
from eole.config.run import TrainConfig
from eole.constants import CorpusTask
from eole.inputters.dynamic_iterator import build_dynamic_dataset_iter
from eole.models.model import get_model_class
from eole.train_single import TrainingInitializer, configure_process
from eole.trainer import build_trainer
from eole.utils.optimizers import Optimizer
from turns import Ended, Turns

NEVER = 10**9
CPU = -1  # eole's device id
EVALUATION_SENTENCES = 32  # per batch


def configuration(whole: dict[str, Any]) -> TrainConfig:
    """Return eole's configuration of the run: ours, in its words."""
    model, training, text = whole["run"]["model"], whole["run"]["training"], Path(whole["text"])
    stacks = {"hidden_size": model["d_model"], "heads": model["n_heads"], "transformer_ff": model["d_ff"]}
    return TrainConfig(
        data={
            "train": {"path_src": str(text / "train.src"), "path_tgt": str(text / "train.tgt"), "transforms": []},
        },
        src_vocab=str(text / "vocabulary"),
        share_vocab=True,
        src_vocab_size=model["src_vocab_size"],
        tgt_vocab_size=model["tgt_vocab_size"],
        vocab_size_multiple=1,
        seed=training["seed"],
        report_every=NEVER,
        model={
            "architecture": "transformer",
            **stacks,
            "add_ffnbias": True,
            "norm_eps": 1e-6,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "generator_bias": False,
            "embeddings": {"word_vec_size": model["d_model"], "position_encoding_type": "SinusoidalInterleaved"},
            "encoder": {"encoder_type": "transformer", "layers": model["n_encoder_layers"]},
            "decoder": {"decoder_type": "transformer", "layers": model["n_decoder_layers"], "with_cross_attn": True},
        },
        training={
            "model_path": str(Path(whole["folder"]) / "model"),
            "world_size": 0,
            "gpu_ranks": [],
            "compute_dtype": training["precision"],
            "num_workers": 0,
            "bucket_size": sum(1 for _ in (text / "train.src").open()),  # an epoch, as ours
            "batch_type": "tokens",
            "batch_size": training["max_tokens_per_batch"],
            "normalization": "tokens",
            "optim": "adam",
            "adam_beta1": training["adam_beta1"],
            "adam_beta2": training["adam_beta2"],
            "adam_eps": training["adam_eps"],
            "learning_rate": training["lr_factor"],
            "decay_method": "noam",
            "warmup_steps": training["warmup_steps"],
            "max_grad_norm": 0,
            "dropout": [model["p_drop"]],
            "attention_dropout": [model["p_drop_attention"]],
            "label_smoothing": training["eps_ls"],
            "param_init_method": "xavier_uniform",
            "param_init": 0.0,
            "log_attention_entropy": False,
            "train_steps": NEVER,
            "valid_steps": NEVER,
            "save_checkpoint_steps": 0,
        },
    )


class EoleRun:
    """eole's trainer over its own batches."""

    def __init__(self, whole: dict[str, Any]) -> None:
        config = configuration(whole)
        configure_process(config, CPU)
        context = TrainingInitializer(config).initialize()
        self.vocabulary = context.vocabs["tgt"]
        training = context.config.training
        self.model = get_model_class(context.config.model).for_training(
            context.config.model, context.vocabs, training, device_id=CPU
        )
        self.optimiser = Optimizer.from_config(self.model, context.config)
        for group in self.optimiser._optimizer.param_groups:
            group["fused"] = True  # as for the other tuned peers
        self.trainer = build_trainer(context.config, CPU, self.model, context.vocabs, self.optimiser)
        self.batches = build_dynamic_dataset_iter(
            context.config, context.transforms, context.vocabs, task=CorpusTask.TRAIN, device_id=CPU
        )
        self.pad_id = self.vocabulary[config.pad_token]
        self.dev = list(self._dev_batches(Path(whole["text"]), config))

    def train(self, turns: Turns) -> None:
        """Train until ``turns`` raises ``Ended``."""
        self.trainer.train(self._in_turns(turns), NEVER, save_checkpoint_steps=0, valid_steps=NEVER)

    def progress(self) -> dict[str, float]:
        """Return the updates."""
        return {"updates": self.optimiser.training_step - 1}

    @torch.no_grad()
    def nll(self) -> tuple[float, int]:
        """Return the summed negative log-likelihood of the dev tokens in nats, in fp32, and their number."""
        is_training = self.model.training
        self.model.eval()
        nll_nats, n_tokens = 0.0, 0
        for src_BS, src_lengths_B, tgt_BT in self.dev:
            states_BTD = self.model(src_BS, tgt_BT, src_lengths_B)[0]
            logits_BTV = self.model.generator(states_BTD).float()
            labels_BT = tgt_BT[:, 1:]
            nll_nats += F.cross_entropy(
                logits_BTV.flatten(0, 1), labels_BT.flatten(), ignore_index=self.pad_id, reduction="sum"
            ).item()
            n_tokens += int((labels_BT != self.pad_id).sum())
        self.model.train(is_training)
        return nll_nats, n_tokens

    def _in_turns(self, turns: Turns) -> Iterator[tuple[dict[str, Any], int]]:
        n_tgt_tokens = 0
        turns(0)
        for batch, bucket in self.batches:
            turns(n_tgt_tokens)
            n_tgt_tokens += int((batch["tgt"][:, 1:] != self.pad_id).sum())
            yield batch, bucket

    def _dev_batches(
        self, text: Path, config: TrainConfig
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        sources, targets = ((text / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt"))
        pairs = sorted(zip(sources, targets, strict=True), key=lambda pair: len(pair[1].split()))
        for first in range(0, len(pairs), EVALUATION_SENTENCES):
            chosen = pairs[first : first + EVALUATION_SENTENCES]
            src_BS = self._padded([src.split() for src, _ in chosen])
            tgt_BT = self._padded([[config.bos_token, *tgt.split(), config.eos_token] for _, tgt in chosen])
            yield src_BS, (src_BS != self.pad_id).sum(dim=1), tgt_BT

    def _padded(self, rows: list[list[str]]) -> torch.Tensor:
        ids = [torch.tensor([self.vocabulary[token] for token in row]) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=self.pad_id)


def main() -> None:
    """Build eole's model and trainer, and train in turns."""
    whole = json.loads(sys.argv[1])
    torch.set_num_threads(whole["n_threads"])
    system = EoleRun(whole)
    parameters = sum(weight.numel() for weight in set(system.model.parameters()) if weight.requires_grad)
    turns = Turns(system.nll, system.progress, sample_every_s=whole["sample_every_s"])
    turns.ready(parameters=parameters, versions={"eole": eole.__version__, "torch": torch.__version__})
    try:
        system.train(turns)
    except Ended:
        return


if __name__ == "__main__":
    main()
