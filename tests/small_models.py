"""Small untrained models: translators, and model folders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch

from transduce.config import ModelConfig, SearchConfig
from transduce.inference import Translator
from transduce.inference.folder import write_model_folder
from transduce.model import make_model
from transduce.model.weights import weights_of
from transduce.text import Tokenizer, Tokenizers, train_bpe

__all__ = ["sentences", "untrained_translator", "write_model"]

WORDS = "the a dog cat house tree river man woman child sees hears likes old young small big red not very".split()
SIZES = {"n_encoder_layers": 1, "n_decoder_layers": 2, "d_model": 32, "d_ff": 64, "n_heads": 4, "d_k": 8, "d_v": 8}


def sentences(n: int, seed: int = 0) -> list[str]:
    """Sentences of up to 14 of a few words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 14))) for _ in range(n)]


def untrained_translator(
    tokenizer: Tokenizer | None = None,
    *,
    seed: int = 4,
    dtype: torch.dtype = torch.float64,
    search: SearchConfig | None = None,
    direction: str = "en-de",
    **model: Any,
) -> Translator:
    """A translator with one vocabulary, by default of senseless sentences; ``model`` are its settings beside SIZES.

    In float64 its probabilities are close and exact, so that any difference shows.
    """
    tokenizer = tokenizer or train_bpe(sentences(50), vocab_size=300)
    torch.manual_seed(seed)
    made = make_model(ModelConfig(**SIZES | model).with_vocabulary(tokenizer.size, tokenizer.size)).to(dtype).eval()
    search = search or SearchConfig(max_extra_tokens=8, n_best=4)
    return Translator(made, Tokenizers(tokenizer, tokenizer), search, direction=direction)  # type: ignore[arg-type]


def write_model(
    folder: Path,
    model: Any,
    tokenizers: Tokenizers,
    *,
    task: str = "translation",
    search: SearchConfig | None = None,
    direction: str = "en-de",
    card: str = "",
    **options: Any,
) -> Path:
    """Write a model folder and return it."""
    write_model_folder(
        folder, config=model.config, weights=weights_of(model), tokenizers=tokenizers, search=search or SearchConfig(),
        direction=direction, task=task, card=card, **options,
    )  # fmt: skip
    return folder
