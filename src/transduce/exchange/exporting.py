"""``transduce export``: a model folder in the format of another library, checked there in the same command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.errors import ConfigError, TransduceError, quoted
from transduce.exchange.card import export_card
from transduce.exchange.ctranslate2 import Quantization, check_ctranslate2, token_names, write_ctranslate2
from transduce.exchange.hugging_face import check_hugging_face, write_hugging_face
from transduce.exchange.hugging_face_causal import check_hugging_face_causal, write_hugging_face_causal
from transduce.exchange.libraries import library
from transduce.exchange.onnx import check_onnx, write_onnx
from transduce.exchange.opus_layout import (
    compare_marian_tokenizer,
    sides_with_one_pad,
    write_opus_folder,
    write_sentencepiece_models,
)
from transduce.exchange.probes import (
    KEPT_TEXTS,
    N_SENTENCES,
    ODD_TEXTS,
    Comparison,
    Probes,
    n_with_losses,
    sentences_of_tokens,
)
from transduce.exchange.refusals import FORMAT_NAMES, Target, require_exportable
from transduce.files import atomic_folder, write_text
from transduce.inference import Translator
from transduce.inference.folder import ModelFolder, read_model_config, read_model_folder
from transduce.inference.trained_model import TrainedModel
from transduce.text import BOS_ID, EOS_ID, UNK_ID, SentencePieceTokenizer, Tokenizer, Tokenizers, normalise
from transduce.text.documents import DocumentCodec
from transduce.text.tokenizer import WORD_START

__all__ = ["ExportReport", "export_model"]

NEEDED: Mapping[Target, Sequence[str]] = {
    "hf": ("transformers",), "ct2": ("ctranslate2",), "onnx": ("onnx", "onnxruntime"),
}  # fmt: skip
INT8_FOLDER = "int8"  # of CTranslate2, within the exported folder
CARD_FILE = "README.md"


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export measured."""

    target: Target
    comparison: Comparison  # in fp32
    quantised: Comparison | None  # in int8
    odd_texts: int  # that the tokenizer of the export encodes and decodes as ours does
    odd_texts_differing: tuple[str, ...] = field(default=())
    kept_texts_lost: int | None = None  # of ``KEPT_TEXTS`` that lose a string in the greedy output; None: no translator

    @property
    def is_good(self) -> bool:
        """Whether the export computes the same function on the same ids."""
        return self.comparison.is_same_function and not self.odd_texts_differing

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        values = {"format": self.target, **self.comparison.as_json(), "odd_texts_equal": self.odd_texts}
        if self.kept_texts_lost is not None:
            values["sentences_with_losses"] = {"sentences": len(KEPT_TEXTS), "lost": self.kept_texts_lost}
        return values | ({"int8": self.quantised.as_json()} if self.quantised else {})


def export_model(
    folder: Path,
    target: Target,
    out: Path,
    *,
    texts: Sequence[str] | None = None,
    license_id: str = "unknown",
    log: Callable[[str], None] = lambda line: None,
) -> ExportReport:
    """Write the model in ``folder`` to the new folder ``out`` for another library, and compare the two.

    ``texts`` are what the outputs are compared on; by default, texts of random tokens of the vocabulary.
    Raises ConfigError, naming the setting, for a model that the format cannot carry and for a missing library;
    CheckpointError if the model folder cannot be used; TransduceError, leaving nothing behind, if the check fails.
    """
    saved = read_model_config(folder)
    config, kind = saved.config, TrainedModel.class_for(saved)
    require_exportable(config, kind.capabilities, target, where=folder)
    for name in NEEDED[target]:
        library(name, needed_for=f"the export to {FORMAT_NAMES[target]}")
    loaded = read_model_folder(folder, device=torch.device("cpu"))
    model = loaded.model.float()
    texts = sentences_of_tokens(loaded.tokenizers.src, N_SENTENCES) if texts is None else list(texts)[:N_SENTENCES]
    is_causal, is_translator = isinstance(config, LanguageModelConfig), issubclass(kind, Translator)
    if is_causal:
        probes = Probes.of_language_model(model, loaded.tokenizers.src, texts)
    else:
        texts = [*texts, *(KEPT_TEXTS if is_translator else ())]
        probes = Probes.of_translator(model, loaded.tokenizers, texts)
    with atomic_folder(out) as temporary:
        export = _EXPORTS[target, is_causal]
        report = export(temporary, loaded, model, probes)
        if not report.is_good:
            raise TransduceError(_failure(report, folder))
        if is_translator:
            report = replace(report, kept_texts_lost=n_with_losses(probes, loaded.tokenizers.tgt))
        own = folder / CARD_FILE
        card = own.read_text(encoding="utf-8", errors="replace") if own.is_file() else ""
        write_text(temporary / CARD_FILE, export_card(report.as_json(), loaded, card, license_id=license_id))
    log(f"{FORMAT_NAMES[target]}: {report.comparison.in_words()}")
    if report.quantised is not None:
        log(f"int8: {report.quantised.in_words()}")
    if report.kept_texts_lost is not None:
        log(
            "warning: URLs, placeholders, numbers and emoji are kept by transduce around the model (masks, capitals),"
            f" not by other programs: {report.kept_texts_lost} of {len(KEPT_TEXTS)} sentences lost some;"
            f" {out / CARD_FILE} says what to do"
        )
    return report


def _failure(report: ExportReport, folder: Path) -> str:
    name = FORMAT_NAMES[report.target]
    if report.odd_texts_differing:
        what = f"its tokenizer there differs on {quoted(report.odd_texts_differing[0])}"
    else:
        what = f"it computes something else there: {report.comparison.in_words()}"
    return f"{folder} was written for {name}, but {what}; nothing was kept"


def _to_hugging_face(out: Path, loaded: ModelFolder, model: Any, probes: Probes) -> ExportReport:
    if isinstance(loaded.tokenizers.src, SentencePieceTokenizer):
        write_opus_folder(out, model, loaded.tokenizers, loaded.search, direction=loaded.direction)
        src, tgt = sides_with_one_pad(loaded.tokenizers)
        comparison = check_hugging_face(out, probes, src.original_ids, tgt.original_ids)
        return ExportReport("hf", comparison, None, *compare_marian_tokenizer(out, src))
    write_hugging_face(out, model, loaded.tokenizers, loaded.search)
    return ExportReport("hf", check_hugging_face(out, probes), None, *_compare_tokenizers(out, loaded.tokenizers))


def _to_hugging_face_causal(out: Path, loaded: ModelFolder, model: Any, probes: Probes) -> ExportReport:
    tokenizer = loaded.tokenizers.src
    assert isinstance(loaded.config, LanguageModelConfig)
    write_hugging_face_causal(out, model, loaded.config, tokenizer)
    return ExportReport("hf", check_hugging_face_causal(out, probes), None, *_compare_causal_tokenizer(out, tokenizer))


def _to_ctranslate2(out: Path, loaded: ModelFolder, model: Any, probes: Probes) -> ExportReport:
    src, tgt = loaded.tokenizers.src, loaded.tokenizers.tgt
    src_tokens, tgt_tokens = (token_names(side.vocabulary) for side in (src, tgt))
    (out / INT8_FOLDER).mkdir()
    comparisons: list[Comparison] = []
    precisions: tuple[tuple[Quantization, Path], ...] = (("float32", out), ("int8", out / INT8_FOLDER))
    for quantization, where in precisions:
        write_ctranslate2(where, model, src_tokens=src_tokens, tgt_tokens=tgt_tokens, quantization=quantization)
        if isinstance(src, SentencePieceTokenizer) and isinstance(tgt, SentencePieceTokenizer):
            write_sentencepiece_models(where, src, tgt)
        else:
            loaded.tokenizers.save(where)
        comparisons.append(check_ctranslate2(where, probes, loaded.tokenizers, quantization=quantization))
    exact, quantised = comparisons
    return ExportReport("ct2", exact, quantised, *_compare_token_files(out, loaded.tokenizers))


def _to_onnx(out: Path, loaded: ModelFolder, model: Any, probes: Probes) -> ExportReport:
    if isinstance(loaded.tokenizers.src, SentencePieceTokenizer):
        raise ConfigError("its tokenizer is a SentencePiece model, which is no tokenizer.json; use --to hf or --to ct2")
    write_onnx(out, model, loaded.tokenizers, loaded.search)
    assert isinstance(loaded.config, TransformerConfig)
    exact, quantised = (check_onnx(out, probes, loaded.config, precision=precision) for precision in ("fp32", "q8"))
    return ExportReport("onnx", exact, quantised, *_compare_tokenizers(out, loaded.tokenizers))


_EXPORTS: Mapping[tuple[Target, bool], Callable[..., ExportReport]] = {
    ("hf", False): _to_hugging_face,
    ("hf", True): _to_hugging_face_causal,
    ("ct2", False): _to_ctranslate2,
    ("onnx", False): _to_onnx,
}


def _compare_tokenizers(folder: Path, tokenizers: Tokenizers) -> tuple[int, tuple[str, ...]]:
    """Encode and decode odd texts by the exported ``tokenizer.json``; return how many agree, and the others."""
    ours = tokenizers.src
    return _compared_texts(folder, lambda text: [*ours.encode(normalise(text)), EOS_ID], ours.decode)


def _compare_token_files(folder: Path, tokenizers: Tokenizers) -> tuple[int, tuple[str, ...]]:
    """Encode and decode odd texts as the card of a CTranslate2 folder says; return how many agree, and the others."""
    encode, decode = _by_sentencepiece(folder) if (folder / "source.spm").exists() else _by_tokenizers(folder)
    src, tgt = tokenizers.src, tokenizers.tgt
    names, differing = token_names(tgt.vocabulary), []
    for text in map(normalise, ODD_TEXTS):
        written = [id for id in tgt.encode(text) if id != UNK_ID]
        ids = [src.vocabulary.get(token, UNK_ID) for token in encode(text)]  # as CTranslate2 reads tokens
        if ids != src.encode(text) or decode([names[id] for id in written]) != tgt.decode(written).strip():
            differing.append(text)
    return len(ODD_TEXTS) - len(differing), tuple(differing)


Coding = tuple[Callable[[str], list[str]], Callable[[list[str]], str]]  # of a text as tokens, and back


def _by_sentencepiece(folder: Path) -> Coding:
    kind = library("sentencepiece", needed_for="the export to CTranslate2").SentencePieceProcessor
    source, target = (kind(model_file=str(folder / name)) for name in ("source.spm", "target.spm"))
    return (
        lambda text: list(source.encode(text, out_type=str)),
        lambda tokens: str(target.decode(tokens)).replace(WORD_START, " ").strip(),
    )


def _by_tokenizers(folder: Path) -> Coding:
    from tokenizers import Tokenizer as LibraryTokenizer

    files = [LibraryTokenizer.from_file(str(folder / name)) for name in Tokenizers.files(folder)]
    source, target = files[0], files[-1]
    return (
        lambda text: source.encode(text).tokens,
        lambda tokens: target.decode([id for id in map(target.token_to_id, tokens) if id is not None]).strip(),
    )


def _compare_causal_tokenizer(folder: Path, tokenizer: Tokenizer) -> tuple[int, tuple[str, ...]]:
    codec = DocumentCodec(tokenizer)

    def encode(text: str) -> list[int]:
        *lines, last = text.split("\n")
        return [BOS_ID, *codec.encode(lines), *(tokenizer.encode(normalise(last)) if last.strip() else [])]

    return _compared_texts(folder, encode, lambda ids: codec.decode(ids[1:]))


def _compared_texts(
    folder: Path, encode: Callable[[str], list[int]], decode: Callable[[list[int]], str]
) -> tuple[int, tuple[str, ...]]:
    from tokenizers import Tokenizer as LibraryTokenizer

    theirs = LibraryTokenizer.from_file(str(folder / "tokenizer.json"))
    values = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    theirs.encode_special_tokens = values["split_special_tokens"]
    differing = []
    for text in ODD_TEXTS:
        ids = encode(text)
        if theirs.encode(text).ids != ids or theirs.decode(ids, skip_special_tokens=True) != decode(ids):
            differing.append(text)
    return len(ODD_TEXTS) - len(differing), tuple(differing)
