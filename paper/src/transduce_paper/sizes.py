"""Descriptions of the size of a run, printed beside numbers so that runs of different sizes are not confused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from transduce.config import RunConfig
from transduce.corpora import BUILT_IN, CATALOGUE

__all__ = ["corpus_description", "model_description", "size_description"]


def size_description(config: RunConfig | Mapping[str, Any]) -> str:
    """Describe the model and the training text of a run, given its configuration or that of its record.

    >>> from transduce.recipes import base, with_settings
    >>> size_description(with_settings(base(), ["data.corpus=multi30k"]))
    '6 + 6 layers, d_model 512, multi30k en-de, 29,000 pairs'
    """
    tables = config.model_dump() if isinstance(config, RunConfig) else config
    return f"{model_description(tables['model'])}, {corpus_description(tables['data'])}"


def model_description(model: Mapping[str, Any]) -> str:
    """Describe the size of a model.

    >>> model_description({"n_encoder_layers": 6, "n_decoder_layers": 6, "d_model": 512})
    '6 + 6 layers, d_model 512'
    """
    layers = [str(model[name]) for name in ("n_encoder_layers", "n_decoder_layers", "n_layers") if name in model]
    return f"{' + '.join(layers)} layers, d_model {model['d_model']}"


def corpus_description(data: Mapping[str, Any]) -> str:
    """Describe a training text: its corpora, for translation the direction, and the number of pairs where it is known.

    >>> corpus_description({"task": "parsing", "corpus": {"wsj-sample": 4.0, "gum": 1.0}})
    'wsj-sample x 4 + gum'
    """
    corpus = data["corpus"]
    weights = {corpus: 1.0} if isinstance(corpus, str) else corpus
    names = " + ".join(name if weight == 1 else f"{name} x {weight:g}" for name, weight in weights.items())
    if data["task"] == "parsing":
        return names
    pairs = f"{data['n_pairs']:,} pairs" if corpus == BUILT_IN else _catalogue_size(corpus)
    direction = "" if names.endswith(data["direction"]) else f" {data['direction']}"  # as in wmt14-en-de
    return ", ".join(filter(None, (names + direction, pairs)))


def _catalogue_size(corpus: object) -> str:
    """Return the number of training pairs in the catalogue; empty for several corpora or an unknown one."""
    size = CATALOGUE[corpus].size if isinstance(corpus, str) and corpus in CATALOGUE else ""
    match = re.match(r"(about )?[\d.,]+( million)? pairs", size)
    return match[0] if match else ""
