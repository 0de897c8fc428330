"""A random Marian model in OPUS-MT's layout, with freshly trained SentencePiece models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from marian_files import numbered_pieces, trained_sentencepiece
from transduce.exchange import exporting, importing

LINES = [
    "a small dog runs over the green grass .", "two men are standing on a street in the rain .",
    "der kleine hund läuft über das grüne gras .", "zwei männer stehen im regen auf einer straße .",
    "the children are playing with a red ball", "die kinder spielen mit einem roten ball",
] * 4  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _few_sentences() -> Iterator[None]:
    """Checks compare four sentences instead of sixteen."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (importing, exporting):
            patch.setattr(module, "N_SENTENCES", 4)
        yield


@pytest.fixture(scope="session")
def sentencepiece_models() -> tuple[bytes, bytes]:
    """SentencePiece models of both sides."""
    pytest.importorskip("sentencepiece")
    return trained_sentencepiece(LINES, 120), trained_sentencepiece(LINES[2:], 110)


@pytest.fixture(scope="session")
def vocabulary(sentencepiece_models: tuple[bytes, bytes]) -> dict[str, int]:
    """A joint vocabulary numbered as OPUS-MT's."""
    return numbered_pieces(sentencepiece_models)


@pytest.fixture(scope="session")
def marian_values(vocabulary: dict[str, int]) -> dict[str, Any]:
    """The configuration of a small model, its switches as OPUS-MT's."""
    pad = vocabulary["<pad>"]
    return {
        "vocab_size": len(vocabulary), "decoder_vocab_size": len(vocabulary), "d_model": 32, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "activation_function": "swish", "scale_embedding": True, "pad_token_id": pad,
        "eos_token_id": vocabulary["</s>"], "bos_token_id": 0, "decoder_start_token_id": pad,
        "bad_words_ids": [[pad]], "static_position_embeddings": True, "normalize_before": False,
        "normalize_embedding": False, "max_position_embeddings": 512, "share_encoder_decoder_embeddings": True,
        "forced_eos_token_id": None,
    }  # fmt: skip


@pytest.fixture(scope="session")
def opus_folder(
    tmp_path_factory: pytest.TempPathFactory,
    sentencepiece_models: tuple[bytes, bytes],
    vocabulary: dict[str, int],
    marian_values: dict[str, Any],
) -> Callable[..., Path]:
    """``opus_folder(**changes)`` writes a randomly initialised ``MarianMTModel`` and returns its folder."""
    transformers = pytest.importorskip("transformers")
    made: dict[str, Path] = {}

    def make(**changes: Any) -> Path:
        key = json.dumps(changes, sort_keys=True)
        if key in made:
            return made[key]
        folder = tmp_path_factory.mktemp("opus")
        torch.manual_seed(3)
        model = transformers.MarianMTModel(transformers.MarianConfig(**(marian_values | changes)))
        for name, weight in model.named_parameters():
            with torch.no_grad():  # as a trained model: biases that matter, weights that decide
                if "embed_positions" not in name:
                    weight.mul_(8.0 if weight.ndim == 2 and "layers" in name else 1.0)
                    if name.endswith("bias"):
                        weight.normal_(0.0, 0.3)
        model.final_logits_bias.normal_(0.0, 0.5)
        model.save_pretrained(folder)
        generation = json.loads((folder / "generation_config.json").read_text())
        (folder / "generation_config.json").write_text(json.dumps(generation | {"num_beams": 6}))
        source, target = sentencepiece_models
        (folder / "source.spm").write_bytes(source)
        (folder / "target.spm").write_bytes(target)
        (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
        tokenizer = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
        made[key] = folder
        return folder

    return make
