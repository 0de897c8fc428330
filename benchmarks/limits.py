"""How near the engine in C is to what the machine can do: multiplications, and bytes of weights, a second.

    python benchmarks/limits.py [--preset base] [--precisions fp32 int8]

With one thread. *Products*: the multiplications that the weights take for the tokens of a batch, over the time of
decoding, beside those of PyTorch's product of two large matrices in the same precision (peak). Attention and the
softmax are in the time, but not among the multiplications. *Weights*: one sentence reads the decoder's weights once a
step; the bytes a second beside those of a sum over 256 MB (``numpy.dot`` of an array with itself). The weights are
random, as in ``decode.py``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from random import Random
from typing import cast

from decoders import OurDecoder, make_sources
from machine import machine

from transduce.config import InferencePrecision
from transduce.recipes import preset

SIZE = 2048  # of the large matrices
BANDWIDTH_BYTES = 256 << 20
BYTES = {"fp32": 4, "bf16": 2, "int8": 1}  # of a weight
N_TOKENS = 32
ROUNDS = 3


def seconds(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median time of a call, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def peak(precision: str) -> float:
    """Return the multiplications a second of PyTorch's product of large matrices."""
    import torch

    from transduce.model.inference import Int8Linear

    if precision == "int8":
        product = Int8Linear(torch.randn(SIZE, SIZE), None)  # oneDNN's, with the inputs made integers
        inputs = torch.randn(SIZE, SIZE)
        return SIZE**3 / seconds(lambda: product(inputs))
    x, y = (torch.randn(SIZE, SIZE, dtype=torch.bfloat16 if precision == "bf16" else torch.float32) for _ in range(2))
    return SIZE**3 / seconds(lambda: x @ y)


def bandwidth() -> float:
    """Return the bytes a second that one thread reads."""
    import numpy as np

    a = np.ones(BANDWIDTH_BYTES // 4, np.float32)
    return BANDWIDTH_BYTES / seconds(lambda: np.dot(a, a))


def main() -> None:
    """Measure and print."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--vocab-size", type=int, default=37_000)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"], choices=list(BYTES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = preset(arguments.preset).model.with_vocabulary(arguments.vocab_size, arguments.vocab_size)
    width_k, width_v = config.n_heads * config.d_k, config.n_heads * config.d_v
    of_layer = config.d_model * ((2 * width_k + 2 * width_v) + (width_k + width_v) + 2 * config.d_ff)
    of_decoder = config.n_decoder_layers * of_layer  # without the keys and values of the source, computed once
    of_output = config.d_model * config.tgt_vocab_size
    sources = make_sources(64, N_TOKENS, vocab_size=config.src_vocab_size, random=Random(1))
    print(json.dumps(machine() | {"read_gb_per_s": round(bandwidth() / 1e9, 1)}))
    for precision in arguments.precisions:
        decoder = OurDecoder(config, "native", cast(InferencePrecision, precision), n_threads=1)
        top = peak(precision)
        for name, n, beam in (("64 greedy", 64, 1), ("64 beam 4", 64, 4), ("1 beam 4", 1, 4)):
            batch = sources[:n]
            s = seconds(lambda: decoder.write(batch, n_tokens=N_TOKENS, beam_size=beam))  # noqa: B023
            of_sources = seconds(lambda: decoder.write(batch, n_tokens=1, beam_size=beam))  # noqa: B023
            products = (N_TOKENS - 1) * n * beam * (of_decoder + of_output) / (s - of_sources)
            read = (N_TOKENS - 1) * (of_decoder + of_output) * BYTES[precision] / (s - of_sources)
            print(json.dumps({
                "precision": precision, "setting": name, "billion_products_per_s": round(products / 1e9, 1),
                "of_peak": round(products / top, 2), "peak": round(top / 1e9, 1),
                **({"weights_gb_per_s": round(read / 1e9, 1)} if n == 1 else {}),
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
