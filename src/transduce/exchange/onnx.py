"""Translators as ONNX folders: for onnxruntime, and for transformers.js in Node and browsers.

Shapes: B sentences, S source positions, T target positions, H heads, D d_model, V vocabulary.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transduce.config import SearchConfig, TransformerConfig
from transduce.exchange.hugging_face import (
    encoder_decoder_config,
    generation_config,
    max_source_length,
    write_hugging_face_tokenizers,
)
from transduce.exchange.libraries import library
from transduce.exchange.onnx_graph import decoder_graph, encoder_graph
from transduce.exchange.plain_weights import plain_model
from transduce.exchange.probes import MAX_NEW_TOKENS, Comparison, Probes, compared
from transduce.files import write_json
from transduce.model import Transformer
from transduce.text import BOS_ID, EOS_ID, Tokenizers

__all__ = ["OnnxTranslator", "Precision", "check_onnx", "write_onnx"]

Precision = Literal["fp32", "q8"]
ENCODER, DECODER = "encoder_model", "decoder_model_merged"
SUFFIXES: dict[Precision, str] = {"fp32": "", "q8": "_quantized"}  # as transformers.js names them


def write_onnx(folder: Path, model: Transformer, tokenizers: Tokenizers, search: SearchConfig) -> None:
    """Write encoder and decoder in fp32 and with int8 weights, configuration and tokenizer to an existing folder.

    Raises ConfigError if onnx or onnxruntime is not installed.
    """
    onnx = library("onnx", needed_for="the export to ONNX")
    config, plain = model.config, plain_model(model)
    (folder / "onnx").mkdir()
    for name, graph in ((ENCODER, encoder_graph(plain, config)), (DECODER, decoder_graph(plain, config))):
        onnx.checker.check_model(graph, full_check=True)
        path = folder / "onnx" / f"{name}.onnx"
        onnx.save(graph, str(path))
        _quantize(path, path.with_name(f"{name}{SUFFIXES['q8']}.onnx"))
    values = encoder_decoder_config(config) | {
        "model_type": "marian",  # for the class of transformers.js, which only runs the graphs
        "architectures": ["MarianMTModel"],
        "transformers.js_config": {"dtype": "fp32"},  # its default in browsers is q8
    }
    write_json(folder / "config.json", values)
    write_json(folder / "generation_config.json", generation_config(config, search, tokenizers.tgt) | {"num_beams": 1})
    write_hugging_face_tokenizers(folder, tokenizers, max_length=max_source_length(config))


def _quantize(source: Path, target: Path) -> None:
    """Write a graph with the weights of products and embeddings in 8 bits, scaled for each output.

    They are unsigned: with signed ones, sums of two products overflow on x86 processors without VNNI.
    """
    quantization = library("onnxruntime.quantization", needed_for="the export to ONNX")
    with _without_advice():
        quantization.quantize_dynamic(
            source, target, op_types_to_quantize=["MatMul", "Gather"], per_channel=True,
            weight_type=quantization.QuantType.QUInt8, extra_options={"DisableShapeInference": True},
        )  # fmt: skip


@contextmanager
def _without_advice() -> Iterator[None]:
    """Drop the library's advice to pre-process graphs, for which ours leave nothing to do."""

    def is_other(record: logging.LogRecord) -> bool:
        return "pre-processing before quantization" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(is_other)
    try:
        yield
    finally:
        root.removeFilter(is_other)


class OnnxTranslator:
    """Encoder and decoder of an ONNX folder, run by onnxruntime one sentence at a time."""

    def __init__(self, folder: Path, config: TransformerConfig, precision: Precision = "fp32") -> None:
        runtime = library("onnxruntime", needed_for="running an ONNX folder")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        paths = (folder / "onnx" / f"{name}{SUFFIXES[precision]}.onnx" for name in (ENCODER, DECODER))
        self._encoder, self._decoder = (
            runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]) for path in paths
        )
        self._config = config
        self._present = [output.name for output in self._decoder.get_outputs()[1:]]

    def encode(self, source: Sequence[int]) -> dict[str, NDArray[Any]]:
        """Return the inputs of the decoder's first step but its ids: encoded source and an empty cache."""
        config, mask_1S = self._config, np.ones((1, len(source)), np.int64)
        ids_1S = np.array([source], np.int64)
        [states_1SD] = self._encoder.run(None, {"input_ids": ids_1S, "attention_mask": mask_1S})
        empty = np.zeros((1, config.n_heads, 0, config.d_model // config.n_heads), np.float32)
        past = dict.fromkeys((name.replace("present", "past_key_values") for name in self._present), empty)
        return {"encoder_hidden_states": states_1SD, "encoder_attention_mask": mask_1S, **past}

    def extend(
        self, ids: Sequence[int], state: dict[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], dict[str, NDArray[Any]]]:
        """Decode more tokens: their logits (T, V), and the next state."""
        logits_1TV, *cache = self._decoder.run(None, state | {"input_ids": np.array([ids], np.int64)})
        names = (name.replace("present", "past_key_values") for name in self._present)
        return logits_1TV[0], state | dict(zip(names, cache, strict=True))

    def greedy(self, source: Sequence[int], *, suppressed: Sequence[int]) -> list[int]:
        """Return the greedy output without EOS."""
        state, ids = self.encode(source), [BOS_ID]
        while len(ids) <= MAX_NEW_TOKENS:
            logits_TV, state = self.extend(ids[-1:], state)
            logits_TV[-1, list(suppressed)] = -np.inf
            best = int(logits_TV[-1].argmax())
            if best == EOS_ID:
                break
            ids.append(best)
        return ids[1:]


def check_onnx(folder: Path, probes: Probes, config: TransformerConfig, *, precision: Precision = "fp32") -> Comparison:
    """Run the graphs by onnxruntime and compare logits and greedy outputs, with cache, with ours."""
    translator = OnnxTranslator(folder, config, precision)
    difference, outputs = 0.0, []
    for source, target, logits in zip(probes.sources, probes.targets, probes.logits, strict=True):
        theirs_TV, _ = translator.extend(target, translator.encode(source))
        difference = max(difference, float(np.abs(theirs_TV - logits).max()))
        outputs.append(translator.greedy(source, suppressed=probes.suppressed)[:MAX_NEW_TOKENS])
    return compared(probes, difference, outputs)
