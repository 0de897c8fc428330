"""The systems that ``decode.py`` compares, with one method: generate a fixed number of ids for each source.

A model with random weights does not generate EOS at a sensible position. So the number of tokens is fixed: by
minimum and maximum length for CTranslate2 and transformers, by maximum length and a model without EOS for ours.

Each object lives in its own process; inputs and outputs are plain lists.

Shapes: B sentences, S source positions, N decoding rows, Q new positions, V vocabulary.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from random import Random

    from torch import Tensor

    from transduce.config import InferencePrecision, TransformerConfig
    from transduce.config.decoding import EngineName
    from transduce.model import DecodingState, Transformer

__all__ = [
    "CTranslate2Decoder",
    "Decoder",
    "Ids",
    "OurDecoder",
    "make_marian_decoder",
    "make_model",
    "make_sources",
    "token_names",
]

Ids = list[int]
SEED = 1
ANY_NUMBER = 10**9


class Decoder(Protocol):
    """A system under test."""

    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """Return the best ``n_tokens`` ids for each source, given without EOS; beam 1 is greedy search."""
        ...


def make_model(config: TransformerConfig) -> Transformer:
    """Return a model with random weights, the same in every process, that never generates EOS."""
    import torch

    from transduce.model import Transformer
    from transduce.text import EOS_ID

    class NeverEnding(Transformer):
        def extend(
            self, ids_NQ: Tensor, state: DecodingState, n_new_N: Tensor | None = None
        ) -> tuple[Tensor, DecodingState]:
            logits_NQV, state = super().extend(ids_NQ, state, n_new_N)
            logits_NQV[..., EOS_ID] = -torch.inf
            return logits_NQV, state

    torch.manual_seed(SEED)
    return NeverEnding(config).eval()


def make_sources(n_sentences: int, n_tokens: int, *, vocab_size: int, random: Random) -> list[Ids]:
    """Return random source sentences of about ``n_tokens`` ids."""
    from transduce.text import SPECIAL_TOKENS

    lengths = [n_tokens + random.randint(-n_tokens // 5, n_tokens // 5) for _ in range(n_sentences)]
    return [random.choices(range(len(SPECIAL_TOKENS), vocab_size), k=length) for length in lengths]


def token_names(vocab_size: int) -> list[str]:
    """Return the names of ids, for systems that read and write names."""
    from transduce.text import SPECIAL_TOKENS

    return [*SPECIAL_TOKENS, *map(str, range(len(SPECIAL_TOKENS), vocab_size))]


class OurDecoder:
    """An engine of ``transduce translate``, without tokenization: with the same allocator settings.

    Scores are not requested, as in CTranslate2 by default; both then omit the softmax of greedy search.
    """

    def __init__(
        self,
        config: TransformerConfig,
        engine: EngineName,
        precision: InferencePrecision,
        *,
        n_threads: int,
        shortlist_size: tuple[int, int] | None = None,
    ) -> None:
        """``shortlist_size``: with a random shortlist of so many tokens for each source token, and for all."""
        import numpy as np
        import torch

        from transduce.cli.machine import keep_freed_memory
        from transduce.inference.engine import EngineSettings
        from transduce.inference.engines import make_engine
        from transduce.model.shortlist import Shortlist
        from transduce.text import EOS_ID

        keep_freed_memory()
        torch.set_num_threads(n_threads)
        os.environ["OMP_NUM_THREADS"] = str(n_threads)
        shortlist = None
        if shortlist_size is not None:
            n_of_token, n_frequent = shortlist_size
            candidates = torch.randint(4, config.tgt_vocab_size, (config.src_vocab_size, n_of_token))
            shortlist = Shortlist(candidates.to(torch.int32).numpy(), np.arange(4, 4 + n_frequent, dtype=np.int32))
        # PyTorch's computes with the model itself, which writes no EOS.
        suppressed = [EOS_ID] if engine == "native" else []
        settings = EngineSettings(precision, suppressed, shortlist=shortlist, engine=engine)
        self.engine = make_engine(make_model(config), settings=settings)

    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """See ``Decoder``."""
        from transduce.config import SearchConfig
        from transduce.inference.engine import Request, Run
        from transduce.text import EOS_ID

        requests = [Request(n_tokens, [*ids, EOS_ID]) for ids in sources]
        search = SearchConfig(beam_size=beam_size, max_tokens_per_batch=ANY_NUMBER)
        found = self.engine.hypotheses(requests, search, Run(is_scored=False))
        assert found is not None  # not interrupted
        return [list(best.ids) for best, *_ in found]


class CTranslate2Decoder:
    """CTranslate2: one translation at a time on all cores, or a share of a batch on each (its workers)."""

    def __init__(self, folder: Path, compute_type: str, *, vocab_size: int, n_threads: int, n_workers: int = 1) -> None:
        sys.modules["torch"] = None  # type: ignore[assignment]  # keep its converters from importing torch
        import ctranslate2

        self.names = token_names(vocab_size)
        self.ids = {name: id for id, name in enumerate(self.names)}
        self.suppressed = [["<pad>"], ["<s>"]]  # as in ours
        self.translator = ctranslate2.Translator(
            str(folder), compute_type=compute_type, inter_threads=n_workers, intra_threads=n_threads // n_workers
        )
        self.n_workers = n_workers

    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """See ``Decoder``."""
        results = self.translator.translate_batch(
            [[self.names[id] for id in ids] for ids in sources],
            beam_size=beam_size,
            min_decoding_length=n_tokens,
            max_decoding_length=n_tokens,
            suppress_sequences=self.suppressed,
            max_batch_size=-(-len(sources) // self.n_workers),
        )
        return [[self.ids[name] for name in result.hypotheses[0]] for result in results]


def make_marian_decoder(config: TransformerConfig, *, n_threads: int) -> Decoder:
    """Return a decoder with transformers' ``generate``, which is imported only here."""
    from marian_decoder import MarianDecoder

    return MarianDecoder(config, n_threads=n_threads)
