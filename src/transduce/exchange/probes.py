"""What an export is checked with: texts, the outputs of our model for them, and the comparison with another library's.

Shapes: B sentences, S source positions, T target positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.errors import DataError
from transduce.model import Transformer, TransformerLM
from transduce.search import greedy_search
from transduce.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    Tokenizer,
    Tokenizers,
    find_verbatim,
    normalise,
)

__all__ = [
    "KEPT_TEXTS", "MAX_DIFFERENCE", "MAX_NEW_TOKENS", "N_SENTENCES", "ODD_TEXTS", "Comparison", "Greedy", "Probes",
    "compared", "n_with_losses", "sentences_of_tokens",
]  # fmt: skip

N_SENTENCES = 16
MAX_SOURCE_TOKENS, MAX_NEW_TOKENS = 200, 40  # EOS included in the second
TIE = 1e-4  # nats: two tokens this close may change places by rounding
MAX_DIFFERENCE = 1e-3  # of logits in fp32; larger ones are faults, not rounding

# Text that tokenizers of other libraries are known to treat differently.
ODD_TEXTS = (
    "A dog  runs\tover the  grass .",
    "  spaces before and after  ",
    "It 's the dog's, isn't it? \"Yes\" – no…",
    "</s> <pad> <s> <unk> are words here",
    "Mu\u0308ller, naïve, Ａ full-width, ﬁ",
    "日本語 と 한국어 и русский",
    "a👩‍👩‍👧z 🙂",
    "no\u00a0break\u2003space",
    "\ufeffin\u00advisible\u200b ☎\ufe0f می\u200cخواهم किताब",
    "1234567890 3.14 1,000,000",
    "masks \ue000 and \ue009, \ue000again",
    "x" * 80,
    "",
)

# Sentences with what transduce copies around a model, and a model by itself may lose.
KEPT_TEXTS = (
    "Open https://example.org/a?b=1 and click OK.",
    "Write to jane.doe@example.org and wait.",
    "The file has 12.5 kg, %s and {name}.",
    "Run setup.exe in C:\\tools for ${count} seconds.",
    "Click OK. 😆",
)


@dataclass(frozen=True, slots=True)
class Greedy:
    """The greedy output of a sentence, and how close the second best token was at each step."""

    ids: tuple[int, ...]  # EOS excluded
    margins: tuple[float, ...]  # nats between the best and the second best token, of EOS too


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """Sentences, and what our model gives for them."""

    sources: list[list[int]]  # EOS included; of a language model the prompts, which begin with BOS
    targets: list[list[int]]  # what the decoder reads: BOS, or the prompt, and the greedy output
    logits: list[NDArray[np.float32]]  # (T, V), after each token of the target
    greedy: list[Greedy]
    suppressed: Sequence[int] = ()  # ids that are never written

    @classmethod
    def of_translator(cls, model: Transformer, tokenizers: Tokenizers, texts: Sequence[str]) -> Probes:
        """Run an encoder-decoder in fp32 on texts. Raises DataError if none has a token."""
        sources = [[*ids, EOS_ID] for ids in _encoded(tokenizers.src, texts)]
        return cls._of(lambda source: _Decoding(model, source, [BOS_ID]), sources, tokenizers.tgt.suppressed_ids)

    @classmethod
    def of_language_model(cls, model: TransformerLM, tokenizer: Tokenizer, texts: Sequence[str]) -> Probes:
        """Run a causal language model in fp32 on prompts, of half its window at most. Raises DataError as above."""
        longest = (model.window or 2 * MAX_NEW_TOKENS) // 2
        prompts = [[BOS_ID, *ids][:longest] for ids in _encoded(tokenizer, texts)]
        return cls._of(lambda prompt: _Decoding(model, None, prompt), prompts, tokenizer.mask_and_sentinel_ids)

    @classmethod
    def _of(
        cls, decoding: Callable[[list[int]], _Decoding], sources: list[list[int]], suppressed: Sequence[int]
    ) -> Probes:
        suppressed = PAD_ID, BOS_ID, *suppressed
        targets, logits, greedy = [], [], []
        for source in sources:
            target, logits_TV, output = decoding(source).greedy(suppressed)
            targets.append(target)
            logits.append(logits_TV)
            greedy.append(output)
        return cls(sources, targets, logits, greedy, suppressed)


def _encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    encoded = [ids[:MAX_SOURCE_TOKENS] for ids in tokenizer.encode_batch(list(map(normalise, texts))) if ids]
    if not encoded:
        raise DataError("there is no sentence to check the export with; give a text file with words")
    return encoded


@dataclass(frozen=True, slots=True)
class _Decoding:
    """Our model at work on one sentence: its source, or None for a language model, and the tokens read first."""

    model: Transformer | TransformerLM
    source: list[int] | None
    first: list[int]

    @torch.no_grad()
    def greedy(self, suppressed: Sequence[int]) -> tuple[list[int], NDArray[np.float32], Greedy]:
        """Return what the decoder has read at the end, the logits after each token of it, and the greedy output."""
        *before, last = self.first
        model, n_new = self.model, MAX_NEW_TOKENS
        if isinstance(model, TransformerLM):
            state = model.start(1)
            n_new = min(n_new, model.window - len(self.first)) if model.window else n_new
        else:
            state = model.start(torch.tensor([self.source]))
        if before:
            _, state = self.model.extend(torch.tensor([before]), state)
        [found] = greedy_search(
            self.model.step, state, max_lengths_B=torch.tensor([n_new]), bos_id=last, eos_id=EOS_ID,
            suppressed_ids=suppressed, is_scored=False,
        )  # fmt: skip
        target = [*self.first, *found.ids]
        logits_TV = self._logits(target)
        allowed_TV = logits_TV[len(before) :].clone()
        allowed_TV[:, list(suppressed)] = -torch.inf
        best_T2 = allowed_TV.topk(2).values
        margins = tuple((best_T2[:, 0] - best_T2[:, 1]).tolist())
        return target, logits_TV.numpy(), Greedy(tuple(found.ids), margins)

    def _logits(self, target: list[int]) -> Tensor:
        ids_1T = torch.tensor([target])
        if isinstance(self.model, TransformerLM):
            logits_TV: Tensor = self.model.output.logits(self.model(ids_1T))
            return logits_TV
        return self.model.logits(self.model(torch.tensor([self.source]), ids_1T))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far another library's outputs are from ours."""

    max_logit_difference: float
    sentences: int
    equal_greedy: int
    near_ties: int  # sentences that differ first where the two best tokens are within ``TIE``

    @property
    def is_same_function(self) -> bool:
        """Whether the differences are those of rounding."""
        return self.max_logit_difference <= MAX_DIFFERENCE and self.equal_greedy + self.near_ties == self.sentences

    def as_json(self) -> dict[str, Any]:
        """Return the values for the card and the command line."""
        return asdict(self)

    def in_words(self) -> str:
        """Describe it for people."""
        ties = f", {self.near_ties} more differ at a tie" if self.near_ties else ""
        return (
            f"{self.equal_greedy} of {self.sentences} greedy outputs equal{ties}, logits differ by at most"
            f" {self.max_logit_difference:.1e}"
        )


def compared(probes: Probes, difference: float, outputs: Sequence[Sequence[int]]) -> Comparison:
    """Compare greedy outputs (ids without EOS) with ours; ``difference`` is the largest of the logits."""
    equal = ties = 0
    for ours, theirs in zip(probes.greedy, outputs, strict=True):
        if list(ours.ids) == list(theirs):
            equal += 1
        else:
            pairs = enumerate(zip([*ours.ids, EOS_ID], [*theirs, EOS_ID], strict=False))
            first = next(step for step, (mine, other) in pairs if mine != other)
            ties += ours.margins[first] <= TIE
    return Comparison(difference, len(outputs), equal, ties)


def n_with_losses(probes: Probes, tokenizer: Tokenizer) -> int:
    """Return how many of ``KEPT_TEXTS``, the last sentences of the probes, lose a string in the greedy output."""
    outputs = [tokenizer.decode(each.ids) for each in probes.greedy[-len(KEPT_TEXTS) :]]
    return sum(
        any(string not in output for string in find_verbatim(text))
        for text, output in zip(KEPT_TEXTS, outputs, strict=True)
    )


def sentences_of_tokens(tokenizer: Tokenizer, n: int = N_SENTENCES) -> list[str]:
    """Return texts of random tokens of a vocabulary, the same for the same tokenizer."""
    generator = np.random.default_rng(1)
    ordinary = np.setdiff1d(np.arange(len(SPECIAL_TOKENS), tokenizer.size), tokenizer.mask_and_sentinel_ids)
    lengths = generator.integers(3, 20, n)
    texts = [tokenizer.decode(generator.choice(ordinary, length).tolist()) for length in lengths]
    return [text.replace("\ufffd", "") or "a" for text in texts]
