"""The systems that ``decode.py`` compares, each with one method: write so many ids for each source, and never the end.

A model with random weights does not say the end symbol at a sensible place. So all systems are told how many tokens to
write: CTranslate2 and transformers by their least and greatest length, ours by its limit and a model that never ends.

Each of these objects lives in a process of its own; nothing but plain lists goes in and out.
"""

# B sentences, V vocabulary

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from random import Random

    from torch import Tensor

    from transduce.config import InferencePrecision, TransformerConfig
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


class Decoder(Protocol):
    """A system under test."""

    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """The best ``n_tokens`` ids for each source, which is given without its end symbol; a beam of 1 is greedy."""
        ...


def make_model(config: TransformerConfig) -> Transformer:
    """A model with random weights, the same in every process, that never says the end symbol."""
    import torch

    from transduce.model import Transformer
    from transduce.text import EOS_ID

    class NeverEnding(Transformer):
        def extend(
            self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None
        ) -> tuple[Tensor, DecodingState]:
            logits_NTV, state = super().extend(ids_NT, state, n_new_N)
            logits_NTV[..., EOS_ID] = -torch.inf
            return logits_NTV, state

    torch.manual_seed(SEED)
    return NeverEnding(config).eval()


def make_sources(n_sentences: int, n_tokens: int, *, vocab_size: int, random: Random) -> list[Ids]:
    """Random ids, for each sentence about ``n_tokens`` of them."""
    from transduce.text import SPECIAL_TOKENS

    lengths = [n_tokens + random.randint(-n_tokens // 5, n_tokens // 5) for _ in range(n_sentences)]
    return [random.choices(range(len(SPECIAL_TOKENS), vocab_size), k=length) for length in lengths]


def token_names(vocab_size: int) -> list[str]:
    """Names of ids, for systems that read and write names."""
    from transduce.text import SPECIAL_TOKENS

    return [*SPECIAL_TOKENS, *map(str, range(len(SPECIAL_TOKENS), vocab_size))]


class OurDecoder:
    """``transduce translate`` without its text side: memory handed out as the command line does, the same search."""

    def __init__(self, config: TransformerConfig, precision: InferencePrecision, *, n_threads: int) -> None:
        import torch

        from transduce.cli.machine import keep_freed_memory
        from transduce.model import for_inference

        keep_freed_memory()
        torch.set_num_threads(n_threads)
        self.model = for_inference(make_model(config), precision)

    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """See ``Decoder``."""
        import torch

        from transduce.config import SearchConfig
        from transduce.data import pad_rows
        from transduce.tasks.batch_search import run_search
        from transduce.text import EOS_ID

        src_BS = pad_rows([[*ids, EOS_ID] for ids in sources])
        max_lengths_B = torch.full((len(sources),), n_tokens)
        with torch.no_grad():
            outputs = run_search(self.model, src_BS, max_lengths_B, SearchConfig(beam_size=beam_size))
        return [list(n_best[0].ids) for n_best in outputs]


class CTranslate2Decoder:
    """CTranslate2 with one translation at a time on all cores, as ours."""

    def __init__(self, folder: Path, compute_type: str, *, vocab_size: int, n_threads: int) -> None:
        sys.modules["torch"] = None  # type: ignore[assignment]  # it takes torch for its converters, where there is one
        import ctranslate2

        self.names = token_names(vocab_size)
        self.ids = {name: id for id, name in enumerate(self.names)}
        self.forbidden = [["<pad>"], ["<s>"]]  # as in ours
        self.translator = ctranslate2.Translator(
            str(folder), compute_type=compute_type, inter_threads=1, intra_threads=n_threads
        )

    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """See ``Decoder``."""
        results = self.translator.translate_batch(
            [[self.names[id] for id in ids] for ids in sources],
            beam_size=beam_size,
            min_decoding_length=n_tokens,
            max_decoding_length=n_tokens,
            suppress_sequences=self.forbidden,
        )
        return [[self.ids[name] for name in result.hypotheses[0]] for result in results]


def make_marian_decoder(config: TransformerConfig, *, n_threads: int) -> Decoder:
    """transformers' ``generate``; its library is imported only here."""
    from marian_decoder import MarianDecoder

    return MarianDecoder(config, n_threads=n_threads)
