"""``transduce import``: a model of another library becomes a model folder, and is checked against that library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transduce.errors import CheckpointError, ConfigError, DataError, TransduceError, quoted, shown
from transduce.exchange.foreign_model import ForeignModel
from transduce.exchange.hugging_face import check_hugging_face
from transduce.exchange.libraries import is_installed
from transduce.exchange.marian_npz import find_npz, read_marian_npz
from transduce.exchange.opus_folder import is_opus_folder, read_opus_folder
from transduce.exchange.opus_layout import differing_texts
from transduce.exchange.plain_weights import assign_plain
from transduce.exchange.probes import N_SENTENCES, Comparison, Probes, sentences_of_tokens
from transduce.imports import without_collection
from transduce.inference import Translator
from transduce.inference.folder import require_memory_to_search, write_model_folder
from transduce.model import ShapesOnly, Transformer
from transduce.model.weights import assign_weights
from transduce.text import SentencePieceTokenizer

__all__ = ["ImportReport", "import_model", "model_of", "read_source"]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did."""

    format: str
    parameters: int
    comparison: Comparison | None  # with transformers; None where it is not installed, or cannot read the source

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        checked = self.comparison.as_json() if self.comparison else {"max_logit_difference": None}
        return {"format": self.format, "parameters": self.parameters, **checked}


def import_model(
    source: Path, out: Path, *, direction: str | None = None, log: Callable[[str], None] = lambda line: None
) -> ImportReport:
    """Read a Marian model, as a folder of Hugging Face or as Marian's npz, and write it as the model folder ``out``.

    ``direction``, such as "en-de", is needed if the source does not name its languages.
    Raises CheckpointError if the source is damaged, incomplete, or computes something that our model does not, or if
    the check fails; ConfigError without a direction.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise DataError(f"{out} exists already; nothing was written; name another folder or remove it")
    with without_collection():
        foreign = read_source(source, direction=direction)
        direction = direction or foreign.direction
        if direction is None:
            raise ConfigError(f"{source} does not say its languages; give them, for example --direction en-de")
        log(f"read {foreign.format}: {foreign.config.layers_in_words()} of {foreign.config.d_model}")
        model = model_of(foreign)
        comparison = _checked(source, foreign, model, log)
        parameters = sum(weight.numel() for weight in model.canonical().values())
        write_model_folder(
            out,
            config=foreign.config,
            weights=model.canonical(),
            tokenizers=foreign.tokenizers,
            search=foreign.search,
            direction=direction,
            task=Translator.capabilities.tasks[0],
            card=_card(foreign, source, direction, parameters, comparison),
        )
    return ImportReport(foreign.format, parameters, comparison)


def read_source(source: Path, *, direction: str | None = None) -> ForeignModel:
    """Read a source of any format; ``direction`` tells which file is of which side where names have languages.

    Raises CheckpointError if it has none, is damaged, computes something else, or needs more memory than there is.
    """
    if not source.exists():
        raise CheckpointError(f"{source} does not exist; give a folder of a Marian model, or its model.npz")
    npz = find_npz(source)
    if npz is not None:
        foreign = read_marian_npz(npz, direction=direction)
    elif source.is_dir() and is_opus_folder(source):
        foreign = read_opus_folder(source)
    else:
        raise CheckpointError(
            f"{source} is no model that can be imported; those are folders with config.json, weights and source.spm, as"
            " OPUS-MT's on the Hugging Face Hub, and Marian's model.npz with its vocabularies beside it"
        )
    require_memory_to_search(foreign.config, torch.device("cpu"), where=source)
    return foreign


def model_of(foreign: ForeignModel) -> Transformer:
    """Return our model with the weights of a source."""
    with ShapesOnly():
        model = Transformer(foreign.config)
    undefined = {name: torch.empty(weight.shape) for name, weight in model.canonical().items()}
    assign_weights(model, undefined, where=Path(foreign.format))
    assign_plain(model, foreign.weights)
    return model.eval()


def _checked(source: Path, foreign: ForeignModel, model: Transformer, log: Callable[[str], None]) -> Comparison | None:
    """Compare logits, greedy outputs and texts with those of transformers, where it can read the source."""
    if not is_opus_folder(source):
        log("not checked against another library: transformers does not read Marian's own files")
        return None
    if not is_installed("transformers"):
        log("not checked: transformers is not installed (pip install 'transduce[exchange]')")
        return None
    src, tgt = foreign.tokenizers.src, foreign.tokenizers.tgt
    assert isinstance(src, SentencePieceTokenizer)
    assert isinstance(tgt, SentencePieceTokenizer)
    texts = sentences_of_tokens(src, N_SENTENCES)
    probes = Probes.of_translator(model, foreign.tokenizers, texts)
    try:
        comparison = check_hugging_face(source, probes, src.original_ids, tgt.original_ids)
        differing = differing_texts(source, tgt)
    except (TransduceError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged setting makes transformers raise
        reason = shown(" ".join(str(error).split()))
        raise CheckpointError(
            f"{source} cannot be checked, since transformers cannot use it: {type(error).__name__}: {reason}"
        ) from error
    log(f"checked against transformers: {comparison.in_words()}")
    if not comparison.is_same_function:
        raise CheckpointError(f"{source} does not compute here what transformers does: {comparison.in_words()}")
    if differing:
        ours, theirs = map(quoted, differing[0])
        raise CheckpointError(f"{source} writes other texts here than in transformers: {ours}, and there {theirs}")
    return comparison


def _card(foreign: ForeignModel, source: Path, direction: str, parameters: int, comparison: Comparison | None) -> str:
    config = foreign.config
    src, tgt = config.vocab_sizes
    checked = f"compared with transformers: {comparison.in_words()}" if comparison else "not compared with transformers"
    lines = [
        f"# A Transformer for {direction.replace('-', ' to ')}",
        "",
        f"Imported by transduce from {foreign.format}: {source.resolve().name}. Authors and licence are those of the",
        "source. Use it with `transduce translate <this folder>`, or in Python:",
        "`Translator.load(folder).translate([...])`.",
        "",
        "## Model",
        "",
        f"- {config.layers_in_words()}, d_model {config.d_model}, d_ff {config.d_ff}, {config.n_heads} heads,"
        f" {config.activation} activation",
        f"- {parameters:,} parameters; vocabulary: {src:,} source and {tgt:,} target tokens",
        "",
        "## Import",
        "",
        f"- {checked}",
        "- the features are in the order of the paper's positional encoding, the special tokens at ids 0 to 3; an",
        "  export to Hugging Face restores both",
        "- the search is ours: its length penalty is ((5 + n) / 6)^alpha",
        *(f"- {note}" for note in foreign.notes),
    ]
    return "\n".join(lines) + "\n"
