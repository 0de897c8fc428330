"""What the layers of a language model know about parts of speech: a linear probe of each (Alain and Bengio, 2016)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import DataConfig
from transduce.corpora import BUILT_IN, TreebankText
from transduce.inference import LanguageModel
from transduce.model import TransformerLM, initialise
from transduce.text import BOS_ID, Tokenizer
from transduce.trees import Tree
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import half_width_of_share
from transduce_paper.notes.language_models import language_model_experiment
from transduce_paper.notes.pretraining.parsing import encoder_experiment
from transduce_paper.report import Cell, Section, Table

__all__ = [
    "TaggedSentence", "majority_accuracy", "probe_accuracy", "states_of_words", "study_probe", "tagged_sentences",
]  # fmt: skip

# Models of the chapter on the three kinds, and the encoder of the parser.
ON_CAPTIONS = {"masked-lm, captions": "masked-lm", "causal-lm, captions": "causal-lm"}
ON_NEWS = "masked-lm, news and captions"
FIRST = next(iter(ON_CAPTIONS))
UNTRAINED = "random weights"  # those of the first model before training
N_TRAIN_WORDS, N_TEST_WORDS = 40_000, 20_000
MAX_WORDS = 60  # of a sentence
N_ITERATIONS = 60  # of the probe's optimiser
L2 = 1e-4  # of the probe's weights

ABOUT = """\
{finding}

A linear classifier names the part of speech of a word of {treebank} (its tag in the tree, {n_tags} kinds) from the
model's state at the last token of the word. It is trained on {n_train:,} words and tested on {n_test:,} of the dev
sentences; the language model itself does not change. Layer 0 is the embedding with its position. *{untrained}* is the
masked model of captions before training. A dictionary with the most frequent tag of each word has {majority:.1%}. The
models of captions are those of the chapter on the three kinds, that of news and captions is the encoder of the parser,
with a layer less; the causal one does not see what follows the word. Intervals of 95 % are at most ± {margin:.1%}, by
the normal approximation."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence as words with their parts of speech."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def study_probe(experiments: Experiments) -> Section:
    """Probe each layer of the models, or read the accuracies from the records."""
    corpus, n_words = experiments.pick(("gum", (N_TRAIN_WORDS, N_TEST_WORDS)), test=(BUILT_IN, (300, 100)))
    accuracy_of: dict[str, list[float]] = {}
    about: dict[str, Any] = {}
    models = {name: language_model_experiment(experiments, task) for name, task in ON_CAPTIONS.items()} | {
        ON_NEWS: encoder_experiment(experiments)
    }
    for name, experiment in models.items():

        def measure(folder: Path, *, has_untrained: bool = name == FIRST) -> list[dict[str, Any]]:
            train, test = (
                list(islice_words(tagged_sentences(corpus, split, experiments.data_folder), n))
                for split, n in zip(("train", "dev"), n_words, strict=True)
            )
            return _measured(folder, train, test, has_untrained=has_untrained, device=experiments.device)

        settings: dict[str, int | str] = {"corpus": corpus, "train_words": n_words[0], "test_words": n_words[1]}
        for row in experiments.cached_measurement(experiment, "parts_of_speech", measure, settings=settings):
            about = row
            accuracy_of.setdefault(name if row["is_trained"] else UNTRAINED, []).append(row["accuracy"])
    best = {kind: max(enumerate(accuracies), key=lambda pair: pair[1]) for kind, accuracies in accuracy_of.items()}
    summary = ", ".join(f"{kind} {accuracy:.1%} at layer {layer}" for kind, (layer, accuracy) in best.items())
    text = ABOUT.format(
        finding=f"Parts of speech are read best from: {summary}.",
        treebank=corpus,
        n_tags=about["tags"],
        n_train=about["train_words"],
        n_test=about["test_words"],
        majority=about["majority"],
        untrained=UNTRAINED.capitalize(),
        margin=max(
            half_width_of_share(accuracy, about["test_words"]) for each in accuracy_of.values() for accuracy in each
        ),
    )
    rows: list[tuple[Cell, ...]] = [(layer, *cells) for layer, cells in enumerate(zip_longest(*accuracy_of.values()))]
    columns = ("layer", *accuracy_of)
    table = Table("-pretraining-probe", columns, tuple(rows), formats=dict.fromkeys(accuracy_of, ".1%"))
    return Section(
        "Parts of speech, layer by layer", (text, table), summary=f"a linear probe finds parts of speech: {summary}"
    )


def tagged_sentences(corpus: str, split: str, data_folder: Path | None) -> Iterator[TaggedSentence]:
    """Yield the sentences of a treebank with the tags of their words, without long ones."""
    config = DataConfig(corpus=corpus, task="parsing", shared_vocabulary=False)
    text = TreebankText(config, data_folder)
    trees: Iterable[Tree] = text.train_trees(corpus) if split == "train" else text.trees("dev")
    for tree in trees:
        leaves = list(tree.leaves())
        if len(leaves) <= MAX_WORDS:
            yield TaggedSentence(tuple(leaf.word or "" for leaf in leaves), tuple(leaf.label for leaf in leaves))


def islice_words(sentences: Iterable[TaggedSentence], n_words: int) -> Iterator[TaggedSentence]:
    """Yield sentences until they have ``n_words`` words."""
    n = 0
    for sentence in sentences:
        if n >= n_words:
            return
        n += len(sentence.words)
        yield sentence


def states_of_words(
    model: TransformerLM, tokenizer: Tokenizer, sentences: Sequence[TaggedSentence], device: torch.device
) -> Tensor:
    """Return the states at the last token of each word: layers x words x width, the embeddings first."""
    states: list[list[Tensor]] = [[] for _ in range(len(model.decoder) + 1)]
    hooks = [
        layer.register_forward_hook(_collect(states, index, is_first=index == 0))
        for index, layer in enumerate(model.decoder)
    ]
    last_tokens: list[list[int]] = []
    try:
        for sentence in sentences:
            ids, ends = [BOS_ID], []
            for word in sentence.words:
                ids += tokenizer.encode(word)
                ends.append(len(ids) - 1)
            last_tokens.append(ends)
            with torch.no_grad():
                model(torch.tensor([ids], device=device))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(
        [torch.cat([each[ends] for each, ends in zip(layer, last_tokens, strict=True)]) for layer in states]
    )


def _collect(states: list[list[Tensor]], index: int, *, is_first: bool) -> Any:
    """Return a hook that keeps the states after a layer; of the first layer also those before it."""

    def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if is_first:
            states[0].append(inputs[0].cpu())
        states[index + 1].append(output.cpu())

    return hook


def probe_accuracy(train_ND: Tensor, train_tags_N: Tensor, test_ND: Tensor, test_tags_N: Tensor, n_tags: int) -> float:
    """Return the accuracy of multinomial logistic regression on standardised features; a tag may be unknown (-1)."""
    mean_D, scale_D = train_ND.mean(dim=0), train_ND.std(dim=0) + 1e-6
    train_ND, test_ND = (train_ND - mean_D) / scale_D, (test_ND - mean_D) / scale_D
    weight = torch.zeros(n_tags, train_ND.shape[1], requires_grad=True)
    bias = torch.zeros(n_tags, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=N_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(F.linear(train_ND, weight, bias), train_tags_N) + L2 * weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        found_N = F.linear(test_ND, weight, bias).argmax(dim=1)
    return float((found_N == test_tags_N).double().mean())


def majority_accuracy(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> float:
    """Return the accuracy of the most frequent tag of each word; of unknown words, the most frequent tag of all."""
    tags_of: dict[str, Counter[str]] = {}
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            tags_of.setdefault(word, Counter())[tag] += 1
    overall = sum(tags_of.values(), Counter[str]()).most_common(1)[0][0]
    best = {word: tags.most_common(1)[0][0] for word, tags in tags_of.items()}
    pairs = [pair for sentence in test for pair in zip(sentence.words, sentence.tags, strict=True)]
    return sum(best.get(word, overall) == tag for word, tag in pairs) / len(pairs)


def _measured(
    folder: Path,
    train: Sequence[TaggedSentence],
    test: Sequence[TaggedSentence],
    *,
    has_untrained: bool,
    device: torch.device,
) -> list[dict[str, Any]]:
    """Return the accuracy at each layer of a model, and of the same model before training."""
    loaded = LanguageModel.load(folder, device=device)
    assert isinstance(loaded.model, TransformerLM)
    id_of = {tag: id for id, tag in enumerate(sorted({tag for sentence in train for tag in sentence.tags}))}
    train_tags_N, test_tags_N = (
        torch.tensor([id_of.get(tag, -1) for sentence in sentences for tag in sentence.tags])
        for sentences in (train, test)
    )
    shared = {
        "tags": len(id_of), "train_words": len(train_tags_N), "test_words": len(test_tags_N),
        "majority": majority_accuracy(train, test),
    }  # fmt: skip
    rows: list[dict[str, Any]] = []
    for is_trained in (True, False) if has_untrained else (True,):
        if not is_trained:
            torch.manual_seed(0)
            initialise(loaded.model)
        of_train, of_test = (
            states_of_words(loaded.model, loaded.tokenizer, sentences, device) for sentences in (train, test)
        )
        for layer, (train_ND, test_ND) in enumerate(zip(of_train, of_test, strict=True)):
            accuracy = probe_accuracy(train_ND, train_tags_N, test_ND, test_tags_N, len(id_of))
            rows.append({"is_trained": is_trained, "layer": layer, "accuracy": accuracy, **shared})
    return rows
