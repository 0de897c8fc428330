"""What other libraries cannot carry: refused by name before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from transduce.config import LanguageModelConfig, ModelConfig, TransformerConfig
from transduce.errors import ConfigError

__all__ = ["CAUSAL_TASKS", "FORMAT_NAMES", "TRANSLATING_TASKS", "Target", "require_exportable"]

Target = Literal["hf", "ct2", "onnx"]
FORMAT_NAMES: dict[Target, str] = {"hf": "Hugging Face", "ct2": "CTranslate2", "onnx": "ONNX"}

TRANSLATING_TASKS = ("translation", "span-corruption")
CAUSAL_TASKS = ("causal-lm", "sft", "dpo", "ppo", "reinforce")
WHY_NOT: dict[str, str] = {
    "parsing": "a parser's search follows the words of the sentence, and no other library has such a search",
    "masked-lm": "BERT normalises its embeddings and has one more layer before the softmax; this model has neither",
    "reward": "its output is one number for a response, which no library's class has at the last token",
}


def require_exportable(config: ModelConfig, task: str, target: Target, *, where: Path) -> None:
    """Raise ConfigError, naming the setting, if the format of ``target`` cannot carry the model in ``where``."""
    reason = next(_reasons(config, task, target), None)
    if reason is not None:
        raise ConfigError(f"{where} cannot be exported to {FORMAT_NAMES[target]}: {reason}")


def _reasons(config: ModelConfig, task: str, target: Target) -> Iterator[str]:
    if task in WHY_NOT:
        yield WHY_NOT[task]
    if task in CAUSAL_TASKS and target != "hf":
        yield f"it is a language model ({task}); use --to hf"
    if task not in (*TRANSLATING_TASKS, *CAUSAL_TASKS):
        yield f"a model for {task} has no counterpart there"
    if not isinstance(config, TransformerConfig | LanguageModelConfig):
        yield f"system = {config.system!r}, a baseline of Table 2, has no counterpart there"
        return
    if config.compatibility != "scaled":
        yield f"compatibility = {config.compatibility!r}; only 'scaled' is known there"
    if config.attention != "full":
        yield f"attention = {config.attention!r}; attention there is over all positions"
    if config.n_experts > 1:
        yield f"n_experts = {config.n_experts}; layers there have one feed-forward network"
    if config.positions == "words":
        yield "positions = 'words'; positions there count tokens, not words"
    if config.d_model % config.n_heads:
        yield f"d_model {config.d_model} is not a multiple of n_heads {config.n_heads}"
    if max(config.d_k, config.d_v) > config.d_model // config.n_heads:
        yield (
            f"heads there have the width d_model / n_heads = {config.d_model // config.n_heads}, these are wider:"
            f" d_k {config.d_k}, d_v {config.d_v}"
        )
