"""Parts of Marian models for tests: SentencePiece models, their numbered vocabulary, weights as Marian stores them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file

__all__ = ["MARIAN_SETTINGS", "marian_arrays", "numbered_pieces", "trained_sentencepiece"]

MARIAN_SETTINGS: dict[str, Any] = {
    "type": "transformer", "dim-emb": 32, "enc-depth": 2, "dec-depth": 2, "transformer-heads": 4,
    "transformer-dim-ffn": 48, "transformer-ffn-activation": "swish", "transformer-preprocess": "",
    "transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "tied-embeddings-all": True,
    "transformer-decoder-autoreg": "self-attention", "transformer-train-position-embeddings": False,
}  # fmt: skip


def trained_sentencepiece(lines: list[str], vocab_size: int) -> bytes:
    """Return a SentencePiece model of these lines."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=vocab_size, model_type="unigram",
        minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    return model.getvalue()


def numbered_pieces(models: Sequence[bytes]) -> dict[str, int]:
    """Number the pieces of two SentencePiece models as OPUS-MT does.

    EOS and unknown come first, padding last, and before it a language code.
    """
    pieces = ["</s>", "<unk>", *dict.fromkeys(piece for model in models for piece in _pieces_of(model)), ">>deu<<"]
    return {piece: id for id, piece in enumerate([*pieces, "<pad>"])}


def _pieces_of(model: bytes) -> list[str]:
    """Return the pieces of a SentencePiece model without its special ones."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = (processor.IdToPiece(id) for id in range(processor.GetPieceSize()))
    return [piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")]


def marian_arrays(folder: Path, values: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the weights of a Hugging Face folder as Marian names and stores them."""
    tensors = {name: weight.numpy() for name, weight in load_file(folder / "model.safetensors").items()}
    arrays = {
        "Wemb": tensors["model.shared.weight"][:-1],  # Marian has no row for padding
        "decoder_ff_logit_out_b": tensors["final_logits_bias"][:, :-1],
    }
    for side in ("encoder", "decoder"):
        for index in range(values[f"{side}_layers"]):
            at, to = f"model.{side}.layers.{index}", f"{side}_l{index + 1}"
            kinds = {"self": "self_attn"} | ({"context": "encoder_attn"} if side == "decoder" else {})
            for ours, theirs in kinds.items():
                for part in "qkvo":
                    name = f"{at}.{theirs}.{'out' if part == 'o' else part}_proj"
                    arrays[f"{to}_{ours}_W{part}"] = tensors[f"{name}.weight"].T
                    arrays[f"{to}_{ours}_b{part}"] = tensors[f"{name}.bias"][None]
                arrays[f"{to}_{ours}_Wo_ln_scale"] = tensors[f"{at}.{theirs}_layer_norm.weight"][None]
                arrays[f"{to}_{ours}_Wo_ln_bias"] = tensors[f"{at}.{theirs}_layer_norm.bias"][None]
            for number in "12":
                arrays[f"{to}_ffn_W{number}"] = tensors[f"{at}.fc{number}.weight"].T
                arrays[f"{to}_ffn_b{number}"] = tensors[f"{at}.fc{number}.bias"][None]
            arrays[f"{to}_ffn_ffn_ln_scale"] = tensors[f"{at}.final_layer_norm.weight"][None]
            arrays[f"{to}_ffn_ffn_ln_bias"] = tensors[f"{at}.final_layer_norm.bias"][None]
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
