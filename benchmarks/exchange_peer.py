"""Greedy translation by another library alone: transduce is not imported. Used by ``exchange.py``.

``exchange_peer.py LIBRARY FOLDER SENTENCES`` prints one JSON object: the ids of each sentence, and the seconds that all
took, the best of three rounds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

MAX_NEW_TOKENS, BATCH, N_ROUNDS = 80, 32, 3
PAD, BOS, EOS = 0, 1, 2
Translate = Callable[[Sequence[str]], list[list[int]]]


def hugging_face(folder: Path) -> Translate:
    """Load a folder by transformers."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def translate(sentences: Sequence[str]) -> list[list[int]]:
        inputs = tokenizer(list(sentences), return_tensors="pt", padding=True)
        with torch.no_grad():
            rows = model.generate(
                **inputs, num_beams=1, do_sample=False, max_length=None, max_new_tokens=MAX_NEW_TOKENS
            ).tolist()
        return [[id for id in row if id not in (PAD, BOS, EOS)] for row in rows]

    return translate


def ctranslate2(folder: Path, compute_type: str = "float32") -> Translate:
    """Load a folder by CTranslate2."""
    import ctranslate2
    from tokenizers import Tokenizer

    translator = ctranslate2.Translator(str(folder), compute_type=compute_type, intra_threads=1, inter_threads=1)
    sides = [folder / f"tokenizer.{side}json" for side in ("src.", "tgt.")]
    src, tgt = (Tokenizer.from_file(str(path if path.exists() else folder / "tokenizer.json")) for path in sides)

    def translate(sentences: Sequence[str]) -> list[list[int]]:
        tokens = [src.encode(sentence).tokens for sentence in sentences]
        results = translator.translate_batch(
            tokens, beam_size=1, max_decoding_length=MAX_NEW_TOKENS, suppress_sequences=[["<pad>"], ["<s>"]]
        )
        return [[tgt.token_to_id(token) for token in result.hypotheses[0]] for result in results]

    return translate


def onnx(folder: Path) -> Translate:
    """Load a folder by onnxruntime."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    encoder, decoder = (
        onnxruntime.InferenceSession(str(folder / "onnx" / f"{name}.onnx"), options)
        for name in ("encoder_model", "decoder_model_merged")
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cache = [value.name for value in decoder.get_inputs() if value.name.startswith("past_key_values")]
    shapes = {value.name: value.shape for value in decoder.get_inputs()}

    def translate(sentences: Sequence[str]) -> list[list[int]]:
        encoded = [tokenizer.encode(sentence).ids for sentence in sentences]
        longest = max(map(len, encoded))
        ids = np.array([row + [PAD] * (longest - len(row)) for row in encoded], np.int64)
        mask = (ids != PAD).astype(np.int64)
        [states] = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
        past = {name: np.zeros((len(ids), shapes[name][1], 0, shapes[name][3]), np.float32) for name in cache}
        rows, last = [list[int]() for _ in encoded], np.full((len(ids), 1), BOS, np.int64)
        is_open = np.ones(len(ids), bool)
        for _ in range(MAX_NEW_TOKENS):
            inputs = {"input_ids": last, "encoder_hidden_states": states, "encoder_attention_mask": mask}
            logits, *present = decoder.run(None, inputs | past)
            past = dict(zip(cache, present, strict=True))
            logits[:, -1, [PAD, BOS]] = -np.inf
            last = logits[:, -1:].argmax(-1)
            is_open &= last[:, 0] != EOS
            if not is_open.any():
                break
            for row, id, open_ in zip(rows, last[:, 0].tolist(), is_open, strict=True):
                if open_:
                    row.append(id)
        return rows

    return translate


def main() -> None:
    """Translate; print JSON."""
    library, folder, sentences = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]).read_text("utf-8").splitlines()
    match library:
        case "hf":
            translate = hugging_face(folder)
        case "ct2":
            translate = ctranslate2(folder)
        case "ct2-int8":
            translate = ctranslate2(folder / "int8", "int8")
        case _:
            translate = onnx(folder)
    assert "transduce" not in sys.modules
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number].split()))
    outputs: dict[int, list[int]] = {}
    seconds = []
    for _ in range(1 + N_ROUNDS):  # the first warms up
        start = time.perf_counter()
        for begin in range(0, len(order), BATCH):
            numbers = order[begin : begin + BATCH]
            outputs |= dict(zip(numbers, translate([sentences[number] for number in numbers]), strict=True))
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"ids": [outputs[number] for number in range(len(sentences))], "seconds": min(seconds[1:])}))


if __name__ == "__main__":
    main()
