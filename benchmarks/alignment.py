"""How well attention aligns words, by layer, beside statistical alignments of the training text.

    pip install eflomal
    python benchmarks/alignment.py MODEL --train train.en train.de --test test.en test.de [--pairs 500] [--heads]

There is no alignment by hand of such text: the references are the links of eflomal (Östling and Tiedemann, 2016), made
of training and test pairs together, in both directions. Links of both are sure, links of one are possible. A model
reads each test pair (forced decoding), and each target word is linked with the source word that it attends to most.

One JSON object for the links of ``transduce align``, and for each layer, with the mean of its heads or with ``--heads``
each head, at the position that predicts a token and at the one that reads it (Chen et al., 2020), says the alignment
error rate, precision and recall (Och and Ney, 2003): for attention as it is, and divided by all that a source word gets
(``word_alignment.py``). For both, a last line says how often a pair of tags around one to three words comes to stand
around just the words with sure links to them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import torch
from needed import need

from transduce.files import read_lines
from transduce.inference import Translator
from transduce.inference.engine import ForcedPair, ForcedScores
from transduce.inference.translation import word_alignment
from transduce.inference.translation.word_alignment import OF_NOBODY, AlignedSentence, align_words
from transduce.text import BOS_ID, normalise, word_spans
from transduce.text.tag_placing import Node, Placing
from transduce.text.trusted_weights import trusted_weights

SEED = 1
TAGS_PER_SENTENCE = 6
AS_IT_IS = 1e6  # beside which what a source word gets is nothing
Links = set[tuple[int, int]]  # (source word, target word)
Pair = tuple[str, str]


def main() -> None:
    """Print one line for each way to read the attention."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--train", nargs=2, type=Path, required=True)
    parser.add_argument("--test", nargs=2, type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=500, help="pairs of the test text")
    parser.add_argument("--heads", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    need(parser, programs=["eflomal-align"], how="pip install eflomal")
    torch.set_num_threads(arguments.threads)
    test = [*islice(pairs_of(*arguments.test), arguments.pairs)]
    forward, reverse = reference([*test, *pairs_of(*arguments.train)], len(test))
    translator = Translator.load(arguments.model)
    report("transduce align", links_of(translator, test, is_trusted=True), forward, reverse)
    sure = [one & other for one, other in zip(forward, reverse, strict=True)]
    for of_nobody in (AS_IT_IS, OF_NOBODY):
        word_alignment.OF_NOBODY = of_nobody
        n, n_right = tags_in_place(align_words(translator, test), sure)
        how = "divided" if of_nobody == OF_NOBODY else "as it is"
        print(json.dumps({"tags": how, "pairs": n, "in place": round(100 * n_right / n, 1)}), flush=True)
    recorded = RecordedAttention(Translator.load(arguments.model, engine="torch"))
    config = translator.model.config
    for layer in range(config.layer_counts[-1]):
        for head in [None, *range(config.n_heads)] if arguments.heads else [None]:
            for is_read in (False, True):
                recorded.layer, recorded.head, recorded.is_read = layer, head, is_read
                for of_nobody in (AS_IT_IS, OF_NOBODY):
                    word_alignment.OF_NOBODY = of_nobody
                    what = f"layer {layer + 1}" if head is None else f"layer {layer + 1}, head {head + 1}"
                    how = "read" if is_read else "predicted"
                    name = f"{what}, {how}, {'divided' if of_nobody == OF_NOBODY else 'as it is'}"
                    report(name, links_of(recorded, test), forward, reverse)


def pairs_of(source: Path, target: Path) -> Iterable[Pair]:
    """Yield the pairs of two files, without those that have an empty side."""
    for pair in zip(read_lines(source), read_lines(target), strict=True):
        src, tgt = map(normalise, pair)
        if src and tgt:
            yield src, tgt


def reference(pairs: Sequence[Pair], n: int) -> tuple[list[Links], list[Links]]:
    """Return eflomal's links of the first ``n`` pairs: a source word for each target word, and the other way round."""
    with tempfile.TemporaryDirectory() as folder:
        text, forward, reverse = (Path(folder, name) for name in ("text", "forward", "reverse"))
        text.write_text("".join(f"{words(src)} ||| {words(tgt)}\n" for src, tgt in pairs), encoding="utf-8")
        subprocess.run(["eflomal-align", "-i", text, "-f", forward, "-r", reverse], check=True, capture_output=True)
        return _read(forward, n), _read(reverse, n)


def words(text: str) -> str:
    """Return the words that the software aligns, between spaces."""
    return " ".join(text[start:end].lower().replace(" ", "_").replace("|||", "|") for start, end in word_spans(text))


def _read(path: Path, n: int) -> list[Links]:
    lines = islice(read_lines(path), n)
    return [{(int(i), int(j)) for i, j in (link.split("-") for link in line.split())} for line in lines]


@dataclass(slots=True)
class RecordedAttention:
    """Stands for a translator in ``align_words``, and for its engine: reads one layer, at one head or all."""

    translator: Translator
    layer: int = 0
    head: int | None = None  # None: their mean
    is_read: bool = False  # whether the position that reads a token counts, in place of the one that predicts it
    _read: dict[tuple[int, ...], list[np.ndarray]] = field(default_factory=dict)  # of each pair, by layer

    def __getattr__(self, name: str) -> object:
        return getattr(self.translator, name)

    @property
    def engine(self) -> RecordedAttention:
        """This object."""
        return self

    @torch.no_grad()
    def forced_scores(
        self, pairs: Sequence[ForcedPair], *, max_tokens: int, has_attention: bool = False
    ) -> list[ForcedScores]:
        """Return attention, without probabilities."""
        found = []
        for pair in pairs:
            key = (*pair.source, *pair.target)
            if key not in self._read:
                layers: list[np.ndarray] = []

                def record(
                    kind: str, layer: int, weights_BHTS: torch.Tensor, layers: list[np.ndarray] = layers
                ) -> None:
                    if kind == "cross":
                        layers.append(weights_BHTS[0].numpy())

                source, target = torch.tensor([pair.source]), torch.tensor([[BOS_ID, *pair.target[:-1]]])
                self.translator.model(source, target, attention_hook=record)
                self._read[key] = layers
            weights_HTS = self._read[key][self.layer]
            weights_TS = weights_HTS.mean(0) if self.head is None else weights_HTS[self.head]
            shifted_TS = np.roll(weights_TS, -1, axis=0) if self.is_read else weights_TS
            found.append(ForcedScores(0.0, np.zeros(len(pair.target)), shifted_TS))
        return found


def links_of(
    translator: Translator | RecordedAttention, pairs: Sequence[Pair], *, is_trusted: bool = False
) -> list[Links]:
    """Link each target word with the source word that it belongs to most."""
    found = []
    for each in align_words(translator, pairs):  # type: ignore[arg-type]
        weights_XY = each.weights_XY
        if is_trusted:
            weights_XY = trusted_weights(weights_XY, each.source, each.source_words, each.target, each.target_words)
        found.append({(int(weights_Y.argmax()), number) for number, weights_Y in enumerate(weights_XY)})
    return found


def tags_in_place(aligned: Sequence[AlignedSentence], sure: Sequence[Links]) -> tuple[int, int]:
    """Put tags around words whose sure links are to neighbours; return how many, and how many come to these."""
    random, n, n_right = Random(SEED), 0, 0
    for each, links in zip(aligned, sure, strict=True):
        for _ in range(TAGS_PER_SENTENCE):
            first, n_words = random.randrange(len(each.source_words)), random.choice((1, 1, 2, 3))
            inside = {target for source, target in links if first <= source < first + n_words}
            outside = {target for source, target in links if not first <= source < first + n_words}
            if first + n_words > len(each.source_words) or not inside:
                continue
            low, high = min(inside), max(inside) + 1
            if high - low != len(inside) or outside & {*range(low, high)}:
                continue
            start, stop = each.source_words[first][0], each.source_words[first + n_words - 1][1]
            node = Node("\ufdd0", "\ufdd1", start, stop, has_space_before=True, has_space_after=True)
            placing = Placing.of(each.source, each.source_words, each.target, each.target_words, each.weights_XY)
            rendered = placing.render([node], 0, len(each.target_words), str, is_whole=True)
            begin, end = each.target_words[low][0], each.target_words[high - 1][1]
            n_right += rendered.partition("\ufdd0")[2].partition("\ufdd1")[0] == each.target[begin:end] and (
                rendered.index("\ufdd0") == begin
            )
            n += 1
    return n, n_right


def report(name: str, found: Sequence[Links], forward: Sequence[Links], reverse: Sequence[Links]) -> None:
    """Print what is right of links."""
    n_found = n_sure = sure_found = possible_found = 0
    for links, one, other in zip(found, forward, reverse, strict=True):
        n_found, n_sure = n_found + len(links), n_sure + len(one & other)
        sure_found, possible_found = sure_found + len(links & one & other), possible_found + len(links & (one | other))
    line = {
        "links": name,
        "error": round(100 * (1 - (sure_found + possible_found) / (n_found + n_sure)), 1),
        "precision": round(100 * possible_found / n_found, 1),
        "recall": round(100 * sure_found / n_sure, 1),
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
