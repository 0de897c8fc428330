"""Import of models that Marian has trained: ``model.npz`` with its vocabularies beside it.

Vocabularies: ``source.spm`` and ``target.spm`` with a ``*.yml`` that numbers their pieces, as OPUS-MT publishes them,
or ``*.spm`` alone, whose own numbers Marian then uses. Of two files, ``model.npz.decoder.yml`` or the names tell which
is the source's.

Shapes: D d_model, F d_ff, V vocabulary, O outputs of a projection, I its inputs; Marian has (I, O).
"""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.config import SearchConfig, TransformerConfig, config_from_mapping, split_direction
from transduce.errors import CheckpointError, quoted, shown
from transduce.exchange.foreign_model import (
    ForeignModel,
    NumberedVocabulary,
    TensorSource,
    read_bounded,
    renumbered,
    whole_number,
)
from transduce.exchange.hugging_face import sine_first
from transduce.exchange.libraries import library
from transduce.exchange.opus_folder import require_text, sentencepiece_tokenizers
from transduce.exchange.plain_weights import (
    PlainAttention,
    PlainLayer,
    PlainModel,
    PlainStack,
    Projection,
    Scale,
    reordered,
)
from transduce.files.regular import require_regular
from transduce.machine_limits import free_memory
from transduce.patterns import compiled_on_use
from transduce.text import Tokenizers

__all__ = ["find_npz", "read_marian_npz"]

SETTINGS = "special:model.yml"
MAX_SETTINGS_BYTES = 2**20
# What NumPy and zipfile raise for damaged files, the reading of an array's header included.
DAMAGES = (
    OSError, ValueError, EOFError, KeyError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error,
    NotImplementedError, MemoryError, RecursionError,
)  # fmt: skip
MARIAN_NORM_EPS = 1e-9
GELU_FACTOR = 1.702  # Marian's gelu(x) is x sigmoid(1.702 x), which is swish(1.702 x) / 1.702
ACTIVATIONS: Mapping[str, str] = {"relu": "relu", "swish": "swish", "gelu": "swish"}
POSITIONS_NOTE = (
    "Marian's sinusoids have the frequencies 10000^(-i / (d_model / 2 - 1)); here, as in transformers and CTranslate2,"
    " 10000^(-i / (d_model / 2)): outputs are nearly, not exactly, Marian's"
)
# Settings that compute something else, and the values that we can use.
REQUIRED: Mapping[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-train-position-embeddings": (False,),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-no-projection": (False,),
    "transformer-ffn-depth": (2,),
    "input-types": ([],),
    "lemma-dim-emb": (0,),
    "right-left": (False,),
    "tied-embeddings-src": (False, True),
    "output-omit-bias": (False,),
}
SIDES = ({"source", "src"}, {"target", "tgt", "trg"})  # words of the names of files
WORD = compiled_on_use("[^\\W_]+")
NUMBER = compiled_on_use("[0-9]{1,9}")  # of a piece


def find_npz(source: Path) -> Path | None:
    """Return the model file: the path itself, or the only one in a folder. Raises CheckpointError for several."""
    if source.suffix == ".npz":
        return source
    files = sorted(source.glob("*.npz")) if source.is_dir() else []
    if len(files) > 1:
        raise CheckpointError(
            f"{source} has {len(files)} files .npz; name one of them: {files[0].name}, {files[1].name}"
        )
    return files[0] if files else None


def read_marian_npz(path: Path, *, direction: str | None = None) -> ForeignModel:
    """Read a model file and its vocabularies, which may be named after the languages of a direction.

    Raises CheckpointError if one is damaged or missing, or computes something that ours does not.
    """
    arrays = _read_arrays(path)
    settings = _settings(arrays.pop(SETTINGS, None), where=path)
    for name, allowed in REQUIRED.items():
        if name in settings and settings[name] not in allowed:
            raise CheckpointError(
                f"{path}: {name} = {quoted(settings[name])} cannot be imported, only {quoted(allowed[0])}"
            )
    tensors = TensorSource({name: _tensor(name, array, where=path) for name, array in arrays.items()}, where=path)
    tokenizers, sizes = _tokenizers(arrays, where=path, direction=direction)
    config = _config(settings, tokenizers, where=path)
    factor = GELU_FACTOR if settings.get("transformer-ffn-activation") == "gelu" else 1.0
    weights = _plain(tensors, config, sizes, factor)
    order_D = torch.argsort(sine_first(config.d_model))
    return ForeignModel(
        "Marian",
        config,
        renumbered(reordered(weights, order_D), tokenizers),
        tokenizers,
        SearchConfig(),
        None,
        (POSITIONS_NOTE,),
    )


def _read_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of an npz file without pickle. Raises CheckpointError for damaged and absurdly large files."""
    try:
        require_regular(path, error=CheckpointError, may_be_link=True)
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
        free = free_memory()
        if free is not None and 3 * total > free.n_bytes:  # the arrays, our copy, the model
            raise CheckpointError(
                f"{path} unpacks to {total / 1e9:,.1f} GB and needs thrice as much memory,"
                f" but {free.n_bytes / 1e9:.1f} GB are free"
            )
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except DAMAGES as error:
        raise CheckpointError(f"{path} is no readable npz file: {shown(' '.join(str(error).split()))}") from error


def _tensor(name: str, array: Any, *, where: Path) -> Tensor:
    """Return an array as a tensor. Raises CheckpointError for one of text, times or records."""
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise CheckpointError(f"{where}: {shown(name)} is an array of {array.dtype}, not of numbers") from error


def _settings(encoded: Any, *, where: Path) -> dict[str, Any]:
    """Parse the settings that Marian keeps in the file: bytes of YAML that end in NUL."""
    yaml = library("yaml", needed_for="the import of Marian models")
    if encoded is None:
        raise CheckpointError(f"{where} has no {SETTINGS}; it was not written by Marian")
    text = np.asarray(encoded).tobytes()[:MAX_SETTINGS_BYTES].rstrip(b"\0")
    try:
        settings = yaml.safe_load(text.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"{where}: {SETTINGS} is damaged: {shown(' '.join(str(error).split()))}") from error
    if not isinstance(settings, dict):
        raise CheckpointError(f"{where}: {SETTINGS} should be a table, got {type(settings).__name__}")
    return settings


def _config(settings: Mapping[str, Any], tokenizers: Tokenizers, *, where: Path) -> TransformerConfig:
    d_model, h = (whole_number(settings, name, where=where) for name in ("dim-emb", "transformer-heads"))
    if h < 1 or d_model % h:
        raise CheckpointError(f"{where}: dim-emb {d_model} is not a multiple of {h} heads")
    activation = settings.get("transformer-ffn-activation", "swish")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{where}: transformer-ffn-activation {quoted(activation)} is not one of {', '.join(ACTIVATIONS)}"
        )
    if settings.get("tied-embeddings-all", False):
        embeddings = "three-way"
    elif settings.get("tied-embeddings", False):
        embeddings = "target"
    else:
        raise CheckpointError(
            f"{where}: neither tied-embeddings-all nor tied-embeddings is true; this is not supported"
        )
    fields = {
        "n_encoder_layers": whole_number(settings, "enc-depth", where=where),
        "n_decoder_layers": whole_number(settings, "dec-depth", where=where),
        "d_model": d_model,
        "d_ff": whole_number(settings, "transformer-dim-ffn", where=where),
        "n_heads": h,
        "d_k": d_model // h,
        "d_v": d_model // h,
        "activation": ACTIVATIONS[activation],
        "attention_bias": True,
        "output_bias": True,
        "norm_eps": MARIAN_NORM_EPS,
        "embeddings": embeddings,
        "src_vocab_size": tokenizers.src.size,
        "tgt_vocab_size": tokenizers.tgt.size,
    }
    return config_from_mapping(TransformerConfig, fields, where=where, error=CheckpointError)


def _tokenizers(arrays: Mapping[str, Any], *, where: Path, direction: str | None) -> tuple[Tokenizers, tuple[int, int]]:
    """Return the tokenizers, and the numbers of rows of the embeddings with one more: a row of zeros to start from."""
    folder = where.parent
    n_src, n_tgt = (_n_rows(arrays.get(f"{side}_Wemb", arrays.get("Wemb"))) for side in ("encoder", "decoder"))
    if not n_src or not n_tgt:
        raise CheckpointError(f"{where} has no embeddings (Wemb, or encoder_Wemb and decoder_Wemb)")
    spm = sorted(folder.glob("*.spm"))
    if not spm:
        raise CheckpointError(f"{folder} has no SentencePiece model; put source.spm and target.spm beside the weights")
    models = _two_sides(spm, where=where, direction=direction)
    numbers = [path for path in sorted(folder.glob("*.yml")) if "vocab" in path.name]
    if numbers:
        tables = [_pieces_of_yaml(path) for path in _two_sides(numbers, where=where, direction=direction)]
    else:
        tables = [_pieces_of_model(path) for path in models]
    vocabularies = []
    for pieces, n_rows in zip(tables, (n_src, n_tgt), strict=True):
        if sorted(pieces.values()) != list(range(n_rows)):
            raise CheckpointError(
                f"{where} has {n_rows:,} rows of embeddings, its vocabulary numbers {len(pieces):,} pieces"
            )
        try:
            eos_id, unk_id = pieces["</s>"], pieces["<unk>"]
        except KeyError as error:
            raise CheckpointError(f"the vocabulary of {where} has no {error}") from error
        vocabularies.append(NumberedVocabulary(pieces, pad_id=n_rows, start_id=n_rows, eos_id=eos_id, unk_id=unk_id))
    return sentencepiece_tokenizers(models, vocabularies), (n_src + 1, n_tgt + 1)


def _two_sides(paths: Sequence[Path], *, where: Path, direction: str | None) -> list[Path]:
    """Return the file of the source and that of the target: one for both, or as Marian's settings or names say.

    Raises CheckpointError if nothing says which is which.
    """
    if len(paths) == 1:
        return [paths[0], paths[0]]
    for settings in (where.with_name(f"{where.name}.decoder.yml"), where.with_name("decoder.yml")):
        values = _texts_of_yaml(settings) if settings.exists() else None
        named = values.get("vocabs") if isinstance(values, dict) else None
        if isinstance(named, list):
            found = [path for name in named for path in paths if path.name == str(name).rpartition("/")[2]]
            if len(found) == len(named) == 2:
                return found
    words = [Counter[str](WORD.findall(path.name.lower())) for path in paths]
    own = [each - reduce(and_, words) for each in words]  # as en and de in en-de.en.spm and en-de.de.spm
    languages = [{code.partition("-")[0].lower()} for code in split_direction(direction)] if direction else []
    for wanted in (SIDES, languages):
        sides = [[path for path, each in zip(paths, own, strict=True) if each.keys() & names] for names in wanted]
        if [len(side) for side in sides] == [1, 1] and sides[0] != sides[1]:
            return [sides[0][0], sides[1][0]]
    raise CheckpointError(
        f"{where.parent} has {len(paths)} files like {paths[0].name}, {paths[1].name}, and nothing says which is the"
        f" source's; put source and target into their names, or {where.name}.decoder.yml beside them"
    )


def _n_rows(array: Any) -> int:
    return len(array) if array is not None and array.ndim else 0


def _pieces_of_yaml(path: Path) -> dict[str, int]:
    """Read a vocabulary: its pieces are text, though YAML has other names for some: on, no, 010, null, ~, <<."""
    pieces = _texts_of_yaml(path)
    if not isinstance(pieces, dict) or not all(isinstance(id, str) and NUMBER.fullmatch(id) for id in pieces.values()):
        raise CheckpointError(f"{path} should number pieces, one a line: 'the: 5'")
    require_text(pieces, where=path)
    return {piece: int(id) for piece, id in pieces.items()}


def _texts_of_yaml(path: Path) -> Any:
    """Parse a file without YAML's types: each value is a text, a list or a table."""
    yaml = library("yaml", needed_for="the import of Marian models")
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # ten times as fast, if libyaml is there
    try:
        return yaml.load(read_bounded(path), Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {shown(' '.join(str(error).split()))}") from error


def _pieces_of_model(path: Path) -> dict[str, int]:
    sentencepiece = library("sentencepiece", needed_for="the import of Marian models")
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(read_bounded(path))
    except Exception as error:  # the library raises plain RuntimeError
        raise CheckpointError(f"{path} is damaged: {shown(' '.join(str(error).split()))}") from error
    return {processor.IdToPiece(id): id for id in range(processor.GetPieceSize())}


def _plain(tensors: TensorSource, config: TransformerConfig, sizes: tuple[int, int], factor: float) -> PlainModel:
    d, (n_src, n_tgt) = config.d_model, sizes

    def with_zeros(rows_VD: Tensor) -> Tensor:
        return torch.cat((rows_VD, torch.zeros(1, d)))

    if config.embeddings == "three-way":
        src_VD = tgt_VD = with_zeros(tensors.take("Wemb", n_src - 1, d))
    else:
        src_VD = with_zeros(tensors.take("encoder_Wemb", n_src - 1, d))
        tgt_VD = with_zeros(tensors.take("decoder_Wemb", n_tgt - 1, d))
    bias_V = torch.cat((tensors.take("decoder_ff_logit_out_b", 1, n_tgt - 1)[0], torch.zeros(1)))
    encoder = _stack(tensors, "encoder", config, config.n_encoder_layers, src_VD, factor)
    decoder = _stack(tensors, "decoder", config, config.n_decoder_layers, tgt_VD, factor)
    tensors.require_empty()
    return PlainModel(encoder, decoder, Projection(tgt_VD, bias_V))


def _stack(
    tensors: TensorSource, side: str, config: TransformerConfig, n_layers: int, embedding_VD: Tensor, factor: float
) -> PlainStack:
    """Return a stack; ``factor`` scales what the activation reads, and back what it writes."""
    d, f = config.d_model, config.d_ff

    def projection(weight: str, bias: str, n_in: int, n_out: int) -> Projection:
        return Projection(tensors.take(weight, n_in, n_out).T.contiguous(), tensors.take(bias, 1, n_out)[0])

    def feed_forward(at: str) -> tuple[Projection, Projection]:
        w_1, w_2 = projection(f"{at}_W1", f"{at}_b1", d, f), projection(f"{at}_W2", f"{at}_b2", f, d)
        return (
            Projection(w_1.weight_OI * factor, w_1.bias_O * factor),
            Projection(w_2.weight_OI / factor, w_2.bias_O),
        )

    def scale(name: str) -> Scale:
        return Scale(tensors.take(f"{name}_ln_scale", 1, d)[0], tensors.take(f"{name}_ln_bias", 1, d)[0])

    def attention(at: str) -> PlainAttention:
        q, k, v, out = (projection(f"{at}_W{part}", f"{at}_b{part}", d, d) for part in "qkvo")
        return PlainAttention(q, k, v, out, scale(f"{at}_Wo"))

    layers = (
        PlainLayer(
            attention(f"{at}_self"),
            attention(f"{at}_context") if side == "decoder" else None,
            *feed_forward(f"{at}_ffn"),
            scale(f"{at}_ffn_ffn"),
        )
        for at in (f"{side}_l{number}" for number in range(1, n_layers + 1))
    )
    return PlainStack(embedding_VD, None, tuple(layers), None)
