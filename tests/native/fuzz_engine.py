"""Odd models, damaged weights and damaged files: python fuzz_engine.py N_CASES [SEED].

The library refuses them or decodes with them. Sanitizers, with which it is compiled, end this at the first bad access.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.inference.native.binding import Config, Search, Tensor, address, flat, library

FIELDS = [name for name, kind in Config._fields_ if kind is ctypes.c_int32]
TYPES = (np.float32, np.uint16, np.float16)
Arrays = dict[str, tuple[NDArray[Any], int]]


class Case:
    """A model of random sizes, with random faults."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.has_source = self.chance(0.8)
        sizes = {name: int(self.random.integers(1, 20 if "d_" in name else 4)) for name in FIELDS}
        sizes |= {
            "n_encoder_layers": sizes["n_encoder_layers"] * self.has_source,
            "src_vocab_size": max(0, self.draw(-9, 60)),
            "tgt_vocab_size": self.draw(3, 60), "is_pre_norm": self.draw(0, 2), "activation": self.draw(0, 5),
            "n_positions": 64 * self.draw(0, 2),
        }  # fmt: skip
        if self.chance(0.1):
            sizes[str(self.random.choice(FIELDS))] = int(self.random.choice([0, -1, -(2**31), 2**31 - 1, 2**20 + 1]))
        self.has_source = sizes["n_encoder_layers"] > 0
        self.config = Config(**sizes, norm_eps=1e-5, embedding_factor=2.0)
        self.arrays = self.tensors() if all(0 <= size < 100 for size in sizes.values()) else {}
        if self.arrays and self.chance(0.1):
            name = str(self.random.choice(list(self.arrays)))
            self.arrays[name] = self.array(self.draw(1, 40), self.draw(1, 40))
        self.precision = self.draw(0, 3)
        self.key = str(seed).encode()

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def draw(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def array(self, *shape: int) -> tuple[NDArray[Any], int]:
        kind = self.draw(0, 3)
        values = self.random.normal(size=shape).astype(np.float32)
        if self.chance(0.02):
            values.flat[self.draw(0, values.size)] = self.random.choice([np.nan, np.inf, -np.inf, 1e38, -1e-42])
        if kind == 1:
            return np.ascontiguousarray(values).view(np.uint16)[..., 1::2].copy(), 1  # the upper halves
        with np.errstate(over="ignore"):
            return values.astype(TYPES[kind]), kind

    def tensors(self) -> Arrays:
        c = self.config
        keys, values = c.n_heads * c.d_k, c.n_heads * c.d_v
        shapes: dict[str, tuple[int, ...]] = {}
        for stack, n_layers in (("encoder", c.n_encoder_layers), ("decoder", c.n_decoder_layers)):
            for layer in range(n_layers):
                parts = {
                    "self_attention.w_qkv": (2 * keys + values, c.d_model),
                    "self_attention.w_o": (c.d_model, values),
                }
                if stack == "decoder" and self.has_source:
                    parts["cross_attention.w_q"] = (keys, c.d_model)
                    parts["cross_attention.w_kv"] = (keys + values, c.d_model)
                    parts["cross_attention.w_o"] = (c.d_model, values)
                parts |= {"feed_forward.w_1": (c.d_ff, c.d_model), "feed_forward.w_2": (c.d_model, c.d_ff)}
                for name, shape in parts.items():
                    shapes[f"{stack}.{layer}.{name}.weight"] = shape
                    if self.chance(0.5):
                        shapes[f"{stack}.{layer}.{name}.bias"] = shape[:1]
                for name in ("self_attention", "cross_attention", "feed_forward"):
                    for kind in ("weight", "bias"):
                        shapes[f"{stack}.{layer}.{name}_residual.norm.{kind}"] = (c.d_model,)
            shapes |= {f"{stack}_norm.{kind}": (c.d_model,) for kind in ("weight", "bias")}
        for name, size in (
            ("src", c.src_vocab_size if self.has_source else c.tgt_vocab_size),
            ("tgt", c.tgt_vocab_size),
        ):
            shapes |= {
                f"{name}_embedding.weight": (size, c.d_model),
                f"{name}_positions.weight": (c.n_positions, c.d_model),
            }
        if self.chance(0.5):
            shapes |= {"output.weight": (c.tgt_vocab_size, c.d_model), "output.bias": (c.tgt_vocab_size,)}
        return {name: self.array(*shape) for name, shape in shapes.items() if all(shape) and not self.chance(0.001)}

    def load(self) -> tuple[Any, bytes]:
        rows = (Tensor * len(self.arrays))(*[
            Tensor(name.encode(), array.ctypes.data, len(array), array.shape[1] if array.ndim > 1 else 1, kind)
            for name, (array, kind) in self.arrays.items()
        ])  # fmt: skip
        error = ctypes.create_string_buffer(200)
        model = library().td_load(ctypes.byref(self.config), rows, len(rows), self.precision, error, len(error))
        return model, error.value

    def run(self, model: Any) -> tuple[int, bytes]:
        """Search for outputs of random sources, and score some; return the status and all results."""
        random, c = np.random.default_rng(7), self.config
        n, n_best, width = int(random.integers(1, 5)), 1, int(random.integers(0, 5))
        search = Search(
            n_sentences=n, n_best=n_best, eos_id=2, alpha=0.6, beam_size=width if width > 1 else 0, is_scored=1
        )
        max_lengths = random.integers(1, 15, n).astype(np.int32)
        sources, offsets = flat(
            [random.integers(0, max(c.src_vocab_size, 1), size) for size in random.integers(1, 12, n)]
        )
        prompts, prompt_offsets = flat(
            [random.integers(0, c.tgt_vocab_size, size) for size in random.integers(1, 4, n)]
        )
        seeds = random.integers(0, 2**32, n).astype(np.uint32)
        ids = np.zeros((n, n_best, 15), np.int32)
        lengths, flags = np.full((n, n_best), -1, np.int32), np.zeros((n, n_best), np.uint8)
        log_probs, scores = np.zeros((n, n_best), np.float32), np.zeros((n, n_best), np.float32)
        given = {
            "prompt_ids": prompts, "prompt_offsets": prompt_offsets, "max_lengths": max_lengths, "seeds": seeds,
            "ids": ids, "lengths": lengths, "log_probs": log_probs, "scores": scores, "is_finished": flags,
        }  # fmt: skip
        if self.has_source:
            given |= {"src_ids": sources, "src_offsets": offsets}
            if not c.src_vocab_size:  # it reads states of another front end
                given["src_states"] = random.normal(size=(len(sources), c.d_model)).astype(np.float32)
        for name, array in given.items():
            setattr(search, name, address(array))
        search.max_length, search.no_repeat_ngram, search.min_length = (
            15,
            int(random.integers(0, 3)),
            int(random.integers(0, 3)),
        )
        if not search.beam_size and random.random() < 0.5:
            search.is_sampled, search.temperature, search.top_p = 1, 0.7, 0.9
            search.top_k = int(random.integers(0, 4))
        if not search.beam_size and random.random() < 0.5:
            search.draft, search.n_drafted = model, int(random.integers(0, 5))
        error = ctypes.create_string_buffer(100)
        status = library().td_run(model, ctypes.byref(search), error, len(error))
        assert status in (0, 2), status
        scored = np.zeros(len(prompts), np.float32)
        texts = Search(n_sentences=n)
        for name in ("src_ids", "src_offsets", "src_states", "prompt_ids", "prompt_offsets"):
            setattr(texts, name, getattr(search, name))
        targets, to = address(prompts, np.int32), address(scored, np.float32)
        assert library().td_score(model, ctypes.byref(texts), targets, to, 0, None) == 0
        return status, b"".join(each.tobytes() for each in (ids, lengths, scores, scored))

    def damaged(self, content: bytes) -> bytes:
        """Cut it, change bytes of it, or put a piece in another place."""
        place, kind = self.draw(0, len(content)), self.draw(0, 4)
        if self.chance(0.5):
            place = self.draw(0, min(len(content), 512))
        if kind == 0:
            return content[:place]
        if kind == 1:
            return content[:place] + bytes([content[place] ^ 1 << self.draw(0, 8)]) + content[place + 1 :]
        piece = self.random.bytes(self.draw(1, 40))
        return content[:place] + piece + content[place + (len(piece) if kind == 2 else 0) :]

    def check_file(self, model: Any, result: tuple[int, bytes], path: Path) -> None:
        error = ctypes.create_string_buffer(200)
        assert library().td_save(model, str(path).encode(), self.key, error, len(error)) == 0
        content = path.read_bytes()
        for written in (content, *(self.damaged(content) for _ in range(4))):
            path.write_bytes(written)
            again = library().td_map(
                ctypes.byref(self.config), self.precision, str(path).encode(), self.key, error, len(error)
            )
            assert bool(again) == (written == content), error.value
            if again:
                assert self.run(again) == result
                library().td_free(again)


def main(n_cases: int, seed: int = 0) -> None:
    """Print how many models were used."""
    n_used = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed, seed + n_cases):
            try:
                case = Case(number)
                model, error = case.load()
                assert bool(model) != bool(error)
                if model:
                    n_used += 1
                    case.check_file(model, case.run(model), Path(folder) / "packed")
                    library().td_free(model)
            except BaseException:
                print(f"case {number}", file=sys.stderr)
                raise
    print(f"{n_cases} cases, {n_used} used")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
