"""Import of Marian models: the same function as the other library's, and back with the same weights."""

from __future__ import annotations

import io
import json
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from marian_files import MARIAN_SETTINGS, marian_arrays, numbered_pieces, trained_sentencepiece
from transduce import Translator
from transduce.config import GreedySearchConfig
from transduce.corpora import generate_pairs
from transduce.errors import CheckpointError, ConfigError, TransduceError
from transduce.exchange import export_model, import_model
from transduce.exchange.hugging_face import sine_first
from transduce.exchange.marian_npz import _pieces_of_yaml, _two_sides, read_marian_npz
from transduce.exchange.opus_layout import differing_texts
from transduce.exchange.probes import ODD_TEXTS
from transduce.text import SentencePieceTokenizer, Tokenizers, normalise
from transduce.text.encoding_workers import chunk_encoder
from transduce.text.sentencepiece_tokenizer import sentencepiece_description

from .conftest import LINES

OpusFolder = Callable[..., Path]


@pytest.fixture(scope="module")
def imported(opus_folder: OpusFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder made of the random Marian model."""
    out = tmp_path_factory.mktemp("imported") / "model"
    report = import_model(opus_folder(), out)
    assert report.comparison is not None
    assert report.comparison.max_logit_difference < 1e-4
    assert report.comparison.equal_greedy == report.comparison.sentences == 4
    return out


def test_greedy_outputs_of_60_sentences_are_those_of_generate(imported: Path, opus_folder: OpusFolder) -> None:
    import transformers

    folder = opus_folder()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    translator = Translator.load(imported)
    odd = [">>deu<< " + LINES[0], "a dog 日本 unknown", "Gras", "the red children"]
    texts = [*LINES[:6], *odd, *(pair.en for pair in generate_pairs("test", n_pairs=50, seed=1))]
    theirs = generated(tokenizer, model, texts)
    found = translator.translate_segments(
        texts, GreedySearchConfig(), is_checked=False
    )  # as the model writes, loops too
    assert found is not None
    ours = [each.n_best[0].text for each in found]
    assert [original_ids(translator, text) for text in texts] == tokenizer(texts)["input_ids"]
    assert ours == theirs
    assert len(set(ours)) > 30  # they depend on the source


def test_every_piece_is_written_as_by_the_other_library(tmp_path: Path) -> None:
    """Also those that the joint vocabulary has from the SentencePiece model of the other side."""
    pytest.importorskip("transformers")
    models = trained_sentencepiece(LINES[:2] * 9, 60), trained_sentencepiece(LINES[2:4] * 9, 60)
    pieces = numbered_pieces(models)
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (tmp_path / name).write_bytes(model)
    (tmp_path / "vocab.json").write_text(json.dumps(pieces), encoding="utf-8")
    numbers = {"pad_id": pieces["<pad>"], "start_id": pieces["<pad>"], "eos_id": pieces["</s>"]}
    tgt = SentencePieceTokenizer(sentencepiece_description(models[1], pieces, unk_id=pieces["<unk>"], **numbers))
    of_target = {tgt._library.IdToPiece(id) for id in range(tgt._library.GetPieceSize())}
    ids = [id for id in range(4, tgt.size) if tgt.piece([id]).startswith("▁") and tgt.piece([id]) not in of_target]
    assert len(ids) > 2
    assert tgt.decode([ids[0], ids[1]]) == f"{tgt.piece([ids[0]])[1:]} {tgt.piece([ids[1]])[1:]}"
    assert differing_texts(tmp_path, tgt) == []


def test_an_import_that_writes_other_texts_is_refused(
    opus_folder: OpusFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = SentencePieceTokenizer.decode
    monkeypatch.setattr(SentencePieceTokenizer, "decode", lambda self, ids: written(self, ids).replace("d", "▁"))
    with pytest.raises(CheckpointError, match="writes other texts"):
        import_model(opus_folder(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def generated(tokenizer: Any, model: Any, texts: list[str]) -> list[str]:
    """Return the other library's greedy outputs, each of at most the length of its source and 50."""
    outputs = []
    for start in range(0, len(texts), 50):
        inputs = tokenizer(texts[start : start + 50], return_tensors="pt", padding=True)
        lengths = inputs["attention_mask"].sum(1).tolist()
        most = max(lengths) + 50
        rows = model.generate(**inputs, num_beams=1, do_sample=False, max_length=None, max_new_tokens=most)
        for row, length in zip(rows.tolist(), lengths, strict=True):
            output = row[1 : 1 + length + 50]
            outputs.append(normalise(tokenizer.decode(output, skip_special_tokens=True)))
    return outputs


def original_ids(translator: Translator, text: str) -> list[int]:
    """Return the other library's numbers of a source, EOS included."""
    src = translator.tokenizers.src
    assert isinstance(src, SentencePieceTokenizer)
    return [src.original_ids[id] for id in [*translator.source_ids(text), 2]]


def test_places_of_tokens_in_the_text(imported: Path) -> None:
    tokenizer = Translator.load(imported).tokenizers.src
    text = "the old dog, süß and 東"
    ids = tokenizer.encode(text)
    decoded, spans = tokenizer.decode(ids), tokenizer.spans(ids)
    known = [(piece, span) for piece, span in zip(tokenizer.pieces(ids), spans, strict=True) if piece != "<unk>"]
    assert len(known) > 3
    assert all(piece.removeprefix("▁") == decoded[start:end] for piece, (start, end) in known)


def test_an_export_has_the_same_weights_bit_for_bit(imported: Path, opus_folder: OpusFolder, tmp_path: Path) -> None:
    report = export_model(imported, "hf", tmp_path / "back")
    before, after = (load_file(folder / "model.safetensors") for folder in (opus_folder(), tmp_path / "back"))
    after = {name: weight for name, weight in after.items() if name in before}
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (tmp_path / "back" / "source.spm").read_bytes() == (opus_folder() / "source.spm").read_bytes()
    assert json.loads((tmp_path / "back" / "vocab.json").read_text()) == json.loads(
        (opus_folder() / "vocab.json").read_text()
    )
    assert report.comparison.equal_greedy == report.comparison.sentences > 4
    assert report.odd_texts_differing == ()


def test_two_imports_are_one(imported: Path, tmp_path: Path) -> None:
    export_model(imported, "hf", tmp_path / "back")
    import_model(tmp_path / "back", tmp_path / "again")
    first, second = (load_file(folder / "model.safetensors") for folder in (imported, tmp_path / "again"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.merge
def test_its_tokenizers_are_read_by_a_new_process_and_by_workers(imported: Path) -> None:
    """Neither has imported what reads SentencePiece models before it meets one."""
    program = "import sys; from pathlib import Path; from transduce.text import Tokenizers"
    program += "; print(Tokenizers.load(Path(sys.argv[1])).src.encode('a small dog'))"
    done = subprocess.run([sys.executable, "-c", program, imported], capture_output=True, text=True, check=False)
    tokenizers = Tokenizers.load(imported)
    assert done.stdout == f"{tokenizers.src.encode('a small dog')}\n", done.stderr
    chunks = [list(zip(LINES[:2], LINES[2:4], strict=True))]
    rows = []
    for n_workers in (1, 2):
        with chunk_encoder(tokenizers, max_length=50, n_workers=n_workers) as encoder:
            [encoded] = encoder.encode(chunks)
        rows.append((encoded.src.values_N.tolist(), encoded.tgt.values_N.tolist()))
    assert rows[0] == rows[1]


def test_it_is_a_model(imported: Path, transduce: Any, tmp_path: Path) -> None:
    """Translate, start a training from it, export to CTranslate2."""
    translator = Translator.load(imported)
    assert (translator.src_language, translator.tgt_language) == ("en", "de")
    assert translator.search.beam_size == 6
    assert transduce("translate", imported, stdin=b"a small dog\n").code == 0
    report = export_model(imported, "ct2", tmp_path / "ct2")
    assert report.comparison.is_same_function
    assert report.odd_texts == len(ODD_TEXTS)
    (code,) = re.findall(r"```python\n(.*?)```", (tmp_path / "ct2" / "README.md").read_text(), re.DOTALL)
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, {"folder": str(tmp_path / "ct2")})
    assert printed.getvalue().strip()
    assert "▁" not in printed.getvalue()
    with pytest.raises(ConfigError, match="SentencePiece"):
        export_model(imported, "onnx", tmp_path / "onnx")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in zip(LINES, LINES[2:], strict=False)))
    recipe = tmp_path / "tune.toml"
    values = json.loads((imported / "config.json").read_text())["model"]
    model = "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items() if "vocab" not in name)
    recipe.write_text(
        f"[model]\n{model}\n[data]\ncorpus = 'files'\ntrain_tsv = {str(pairs)!r}\ndirection = 'en-de'\n"
        f"[training]\nmax_updates = 2\nmax_tokens_per_batch = 500\n"
    )
    outcome = transduce("train", recipe, "--from", imported, "--out", tmp_path / "run", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    assert "drawn at random" not in outcome.err
    assert export_model(tmp_path / "run" / "model", "hf", tmp_path / "tuned").comparison.is_same_function


def test_a_language_code_begins_every_sentence(imported: Path) -> None:
    translator = Translator.load(imported)
    text = "A small dog runs. Two men are standing."
    assert [each.text for each in translator.split_line(f">>deu<< {text}")] == [
        ">>deu<< A small dog runs.",
        ">>deu<< Two men are standing.",
    ]
    sentences = ("A small dog runs.", "Two men are standing.")
    assert [each.strip() for each in translator.translate([f">>deu<< {text}"])] == [
        " ".join(translator.translate([f">>deu<< {sentence}" for sentence in sentences])).strip()
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"activation_function": "relu", "scale_embedding": False},
        {"tie_word_embeddings": False},
        {"share_encoder_decoder_embeddings": False},
    ],
    ids=str,
)
def test_other_configurations(changes: dict[str, Any], opus_folder: OpusFolder, tmp_path: Path) -> None:
    folder = opus_folder(**changes)
    if "share_encoder_decoder_embeddings" in changes:
        shutil.copy(folder / "vocab.json", folder / "target_vocab.json")
    report = import_model(folder, tmp_path / "model")
    assert report.comparison is not None
    assert report.comparison.max_logit_difference < 1e-4
    assert report.comparison.equal_greedy == 4


def test_weights_in_torchs_format_are_read_without_running_code(opus_folder: OpusFolder, tmp_path: Path) -> None:
    folder = copied(opus_folder(), tmp_path)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    assert import_model(folder, tmp_path / "model").parameters > 0
    mark = tmp_path / "executed"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Malicious(str(mark))))
    with pytest.raises(CheckpointError, match="nothing in it was run"):
        import_model(folder, tmp_path / "other")
    torch.save({"weight": Malicious(str(mark))}, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="nothing in it was run"):
        import_model(folder, tmp_path / "other")
    assert not mark.exists()
    assert not (tmp_path / "other").exists()


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.path),)


def copied(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of a folder, to be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "source"))


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: change_json(folder / "config.json", **changes)


def generation(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: change_json(folder / "generation_config.json", **changes)


def tensor(name: str, value: torch.Tensor | None) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        if value is None:
            del tensors[name]
        else:
            tensors[name] = value
        save_file(tensors, folder / "model.safetensors")

    return change


def pickled(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    """Puts a changed tensor into ``pytorch_model.bin``, which can hold kinds that safetensors cannot."""

    def damage(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        torch.save(tensors | {name: change(tensors[name])}, folder / "pytorch_model.bin")

    return damage


WEIGHT, BIAS = "model.decoder.layers.1.fc2.weight", "model.decoder.layers.1.fc2.bias"


def half_a_surrogate_pair(vocabulary: Path) -> None:
    """Give a piece a name that JSON can have, but no text."""
    pieces = json.loads(vocabulary.read_text(encoding="utf-8"))
    pieces["\ud800"] = pieces.pop(next(piece for piece in pieces if piece.startswith("▁")))
    vocabulary.write_text(json.dumps(pieces), encoding="utf-8")


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:torch.quantize_per_tensor")
@pytest.mark.reliability
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (pickled(WEIGHT, lambda weight: weight.to("meta")), "meta"),
        (pickled(WEIGHT, lambda weight: weight.to_sparse()), "sparse"),
        (pickled(WEIGHT, lambda weight: weight.to_sparse_csr()), "sparse|cannot be read"),
        (pickled(WEIGHT, lambda weight: weight.to(torch.int32)), "int32"),
        (pickled(WEIGHT, lambda weight: weight.to(torch.bool)), "bool"),
        (pickled(WEIGHT, lambda weight: weight.to(torch.complex64)), "complex64"),
        (
            pickled(WEIGHT, lambda weight: torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8)),
            "qint8|cannot be read",
        ),
        (pickled(WEIGHT, lambda weight: weight[0]), "shape"),
        (pickled(BIAS, lambda weight: weight.mul(1e300).double() * float("inf")), "not finite"),
        (tensor(WEIGHT, torch.zeros(32, 48, dtype=torch.int64)), "int64"),
        (config(bad_words_ids=[[10**9]]), "bad_words_ids"),
        (config(bad_words_ids=[[-1]]), "bad_words_ids"),
        (config(bad_words_ids=[[10**30]]), "bad_words_ids"),
        (config(eos_token_id=1), "eos_token_id"),
        (config(decoder_start_token_id=10**6), "decoder_start_token_id"),
        (generation(forced_bos_token_id=10**6), "transformers"),
        (generation(suppress_tokens="none"), "transformers"),
        (without("config.json"), "no model that can be imported"),
        (without("model.safetensors"), "pytorch_model.bin"),
        (without("source.spm"), "source.spm"),
        (without("vocab.json"), "vocab.json"),
        (lambda folder: (folder / "config.json").write_text("[1"), "not valid JSON"),
        (lambda folder: (folder / "target.spm").write_bytes(b"\x00garbage"), "target.spm"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"garbage" * 9), "model.safetensors"),
        (lambda folder: change_json(folder / "vocab.json", the=10**9), "rows 0 to"),
        (lambda folder: change_json(folder / "vocab.json", the=-1), "rows 0 to"),
        (lambda folder: half_a_surrogate_pair(folder / "vocab.json"), r"vocab\.json: the piece .* surrogate pair"),
        (config(model_type="t5"), "model_type"),
        (config(normalize_before=True), "normalize_before"),
        (config(d_model=10**7), "d_model"),
        (config(d_model=31), "not a multiple"),
        (config(encoder_layers=10**8), "n_encoder_layers"),
        (config(encoder_layers=3), "no tensor"),
        (config(encoder_layers=1), "without a place here"),
        (config(vocab_size=10**9), "vocabulary|rows|pieces"),
        (config(pad_token_id="0"), "pad_token_id"),
        (config(eos_token_id=10**6), "eos_token_id"),
        (config(activation_function="tanh"), "activation_function"),
        (config(bad_words_ids=[[1, 2]]), "bad_words_ids"),
        (tensor("model.decoder.layers.1.fc2.weight", None), "no tensor"),
        (tensor("model.decoder.layers.1.fc2.weight", torch.zeros(3, 3)), "shape"),
        (tensor("model.decoder.layers.1.fc2.bias", torch.full((32,), float("nan"))), "not finite"),
        (tensor("model.decoder.layer_norm.weight", torch.zeros(32)), "without a place here"),
    ],
)
def test_a_damaged_source_is_one_line(
    damage: Callable[[Path], None], message: str, opus_folder: OpusFolder, tmp_path: Path
) -> None:
    folder = copied(opus_folder(), tmp_path)
    damage(folder)
    with pytest.raises(TransduceError, match=message) as caught:
        import_model(folder, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert not (tmp_path / "out").exists()


@pytest.fixture
def marian_npz(opus_folder: OpusFolder, marian_values: dict[str, Any], tmp_path: Path) -> Callable[..., Path]:
    """``marian_npz(**changed settings)`` writes the same random model as Marian does."""
    yaml = pytest.importorskip("yaml")

    def write(**changes: Any) -> Path:
        folder = opus_folder()
        npz = tmp_path / "npz"
        npz.mkdir()
        for name in ("source.spm", "target.spm"):
            shutil.copy(folder / name, npz / name)
        vocabulary = json.loads((folder / "vocab.json").read_text())
        del vocabulary["<pad>"]
        (npz / "opus.vocab.yml").write_text(yaml.safe_dump(vocabulary, allow_unicode=True), encoding="utf-8")
        settings = np.frombuffer(yaml.safe_dump(MARIAN_SETTINGS | changes).encode() + b"\0", np.int8)
        arrays: dict[str, Any] = marian_arrays(folder, marian_values) | {"special:model.yml": settings}
        np.savez(npz / "model.npz", **arrays)
        return npz

    return write


def test_marians_own_files_give_the_same_model(marian_npz: Callable[..., Path], imported: Path, tmp_path: Path) -> None:
    npz = marian_npz()
    with pytest.raises(ConfigError, match="--direction"):
        import_model(npz, tmp_path / "model")
    report = import_model(npz / "model.npz", tmp_path / "model", direction="en-de")
    assert report.as_json()["max_logit_difference"] is None
    first, second = (load_file(folder / "model.safetensors") for folder in (imported, tmp_path / "model"))
    assert first.keys() == second.keys()
    bias = next(name for name in first if name.endswith("output.bias"))
    same = {name for name in first if torch.equal(first[name], second[name])}
    assert first.keys() - same <= {bias}  # the row of padding, which Marian does not have
    ours, again = (Translator.load(folder).translate(LINES[:6]) for folder in (imported, tmp_path / "model"))
    assert ours == again
    assert "sinusoids" in (tmp_path / "model" / "README.md").read_text()


def test_marians_gelu_is_a_scaled_swish(marian_npz: Callable[..., Path]) -> None:
    import torch.nn.functional as F

    npz = marian_npz(**{"transformer-ffn-activation": "gelu"}) / "model.npz"
    with np.load(npz) as arrays:
        w_1, b_1, w_2, b_2 = (torch.from_numpy(arrays[f"decoder_l2_ffn_{name}"]) for name in ("W1", "b1", "W2", "b2"))
    x_ND, order_D = torch.randn(7, 32), torch.argsort(sine_first(32))
    hidden = x_ND @ w_1 + b_1
    theirs = (hidden * torch.sigmoid(1.702 * hidden)) @ w_2 + b_2
    foreign = read_marian_npz(npz)
    layer = foreign.weights.decoder.layers[1]
    ours = F.linear(
        F.silu(F.linear(x_ND[:, order_D], layer.w_1.weight_OI, layer.w_1.bias_O)), layer.w_2.weight_OI, layer.w_2.bias_O
    )
    assert foreign.config.activation == "swish"
    torch.testing.assert_close(ours, theirs[:, order_D])


@pytest.mark.parametrize("larger", ["source", "target"])
def test_two_vocabularies_of_two_sizes_go_through_hugging_face(
    larger: str, marian_npz: Callable[..., Path], tmp_path: Path
) -> None:
    folder = marian_npz(**{"tied-embeddings-all": False, "tied-embeddings": True})
    with np.load(folder / "model.npz") as arrays:
        kept = dict(arrays)
    joint = kept.pop("Wemb")
    pieces = dict(sorted(_pieces_of_yaml(folder / "opus.vocab.yml").items(), key=lambda item: item[1]))
    (folder / "opus.vocab.yml").unlink()
    for side, name in (("encoder", "source"), ("decoder", "target")):
        n = len(joint) - (0 if name == larger else 30)
        kept[f"{side}_Wemb"] = joint[:n]
        lines = (f"{json.dumps(piece)}: {id}\n" for piece, id in pieces.items() if id < n)
        (folder / f"{name}.vocab.yml").write_text("".join(lines), encoding="utf-8")
    kept["decoder_ff_logit_out_b"] = kept["decoder_ff_logit_out_b"][:, : len(kept["decoder_Wemb"])]
    np.savez(folder / "model.npz", **kept)
    import_model(folder, tmp_path / "model", direction="en-de")
    assert export_model(tmp_path / "model", "hf", tmp_path / "hf").is_good
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert values["vocab_size"] == values["decoder_vocab_size"] == values["pad_token_id"] + 1 == len(joint) + 1


def test_pieces_that_yaml_has_types_for_are_texts(tmp_path: Path) -> None:
    """As Marian writes them, without quotes."""
    pytest.importorskip("yaml")
    pieces = ["</s>", "<unk>", "on", "no", "yes", "true", "00", "010", "8", "1e3", "<<", "~", "null", "=", "2001-01-01"]
    lines = "".join(f"{piece}: {id}\n" for id, piece in enumerate(pieces))
    (tmp_path / "vocab.yml").write_text(f'{lines}"": 15\n"#": 16\n', encoding="utf-8")
    assert list(_pieces_of_yaml(tmp_path / "vocab.yml").items()) == list(
        zip([*pieces, "", "#"], range(17), strict=True)
    )
    for odd in ("a: b", "a: 1.5", "a: -1", "- a", "? [a]\n: 1", "a: [1]"):
        (tmp_path / "vocab.yml").write_text(f"{odd}\n")
        with pytest.raises(CheckpointError, match=r"vocab\.yml"):
            _pieces_of_yaml(tmp_path / "vocab.yml")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("vocab.en.spm", "vocab.de.spm"), ("z.en-de.en.spm", "z.en-de.de.spm"), ("opus.src.spm", "opus.trg.spm"),
        ("source.spm", "target.spm"), ("de.source.spm", "en.target.spm"),
    ],
)  # fmt: skip
def test_names_tell_which_vocabulary_is_the_sources(source: str, target: str, tmp_path: Path) -> None:
    paths, where = sorted([tmp_path / source, tmp_path / target]), tmp_path / "model.npz"
    assert _two_sides(paths, where=where, direction="en-de") == [tmp_path / source, tmp_path / target]
    assert _two_sides(paths[:1], where=where, direction=None) == [paths[0], paths[0]]


def test_marians_settings_tell_which_vocabulary_is_the_sources(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    paths, where = [tmp_path / "a.de.spm", tmp_path / "b.en.spm"], tmp_path / "model.npz"
    with pytest.raises(CheckpointError, match=r"a\.de\.spm.*source.*model\.npz\.decoder\.yml"):
        _two_sides(paths, where=where, direction="en-fr")
    (tmp_path / "model.npz.decoder.yml").write_text("relative-paths: true\nvocabs:\n  - b.en.spm\n  - ./x/a.de.spm\n")
    assert _two_sides(paths, where=where, direction="de-en") == paths[::-1]


@pytest.mark.reliability
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transformer-preprocess": "n"}, "transformer-preprocess"),
        ({"transformer-train-position-embeddings": True}, "position-embeddings"),
        ({"type": "s2s"}, "type"),
        ({"transformer-heads": 5}, "not a multiple"),
        ({"transformer-ffn-activation": ["relu"]}, "transformer-ffn-activation"),
        ({"tied-embeddings-all": False}, "tied-embeddings"),
        ({"enc-depth": 3}, "no tensor"),
        ({"dec-depth": 1}, "without a place here"),
        ({"dim-emb": "32"}, "dim-emb"),
    ],
    ids=str,
)
def test_other_marian_models_are_refused(
    changes: dict[str, Any], message: str, marian_npz: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=message):
        import_model(marian_npz(**changes), tmp_path / "model", direction="en-de")


@pytest.mark.reliability
@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("Wemb", np.array(1.0), "no embeddings"),
        ("decoder_l1_self_Wq", np.array([["text"]]), "decoder_l1_self_Wq"),
        ("decoder_l1_self_Wq", np.zeros((32, 32), "M8[s]"), "decoder_l1_self_Wq"),
        ("decoder_l1_self_Wq", np.zeros((32, 32), [("a", "f4")]), "decoder_l1_self_Wq"),
        ("decoder_l1_self_Wq", np.zeros((32, 32), np.int32), "int32"),
        ("decoder_l1_self_Wq", np.zeros((32, 32), np.complex64), "complex64"),
        ("decoder_l1_self_Wq", np.zeros((32, 32), np.longdouble), "decoder_l1_self_Wq"),
        ("special:model.yml", np.array(7), "model.yml"),
    ],
)
def test_arrays_that_are_no_weights_are_named(
    name: str, array: Any, message: str, marian_npz: Callable[..., Path], tmp_path: Path
) -> None:
    path = marian_npz() / "model.npz"
    with np.load(path) as arrays:
        kept = dict(arrays)
    np.savez(path, **kept | {name: array})
    with pytest.raises(CheckpointError, match=message) as caught:
        import_model(path, tmp_path / "model", direction="en-de")
    assert "\n" not in str(caught.value)


@pytest.mark.reliability
def test_half_a_surrogate_pair_in_the_vocabulary_of_marian_is_named(
    marian_npz: Callable[..., Path], tmp_path: Path
) -> None:
    folder = marian_npz()
    vocabulary = folder / "opus.vocab.yml"
    first, _, rest = vocabulary.read_text(encoding="utf-8").partition("\n")
    vocabulary.write_text(f'{rest}"\\ud800": {first.rpartition(": ")[2]}\n', encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"opus\.vocab\.yml"):
        import_model(folder / "model.npz", tmp_path / "model", direction="en-de")


def test_a_folder_without_sentencepiece_is_named(opus_folder: OpusFolder, tmp_path: Path) -> None:
    folder = copied(opus_folder(), tmp_path)
    (folder / "source.spm").rename(folder / "tokenizer.json")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*SentencePiece"):
        import_model(folder, tmp_path / "model")


@pytest.mark.reliability
def test_a_malicious_npz_is_not_executed(marian_npz: Callable[..., Path], tmp_path: Path) -> None:
    path = marian_npz() / "model.npz"
    mark = tmp_path / "executed"
    np.savez(path, Wemb=np.array([Malicious(str(mark))], dtype=object))
    with pytest.raises(CheckpointError, match="npz"):
        import_model(path, tmp_path / "model", direction="en-de")
    assert not mark.exists()
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(CheckpointError, match="npz"):
        import_model(path, tmp_path / "model", direction="en-de")


def test_the_command(opus_folder: OpusFolder, transduce: Any, tmp_path: Path) -> None:
    outcome = transduce("import", opus_folder(), "--out", tmp_path / "model", "--json")
    assert outcome.code == 0, outcome.err
    values = json.loads(outcome.out)
    assert values["format"] == "Hugging Face Marian"
    assert values["max_logit_difference"] < 1e-4
    assert "compared with transformers" in (tmp_path / "model" / "README.md").read_text()
    assert transduce("import", opus_folder(), "--out", tmp_path / "model").code == 1  # exists
    assert transduce("import", tmp_path / "nothing", "--out", tmp_path / "x").code == 1
    assert transduce("import", opus_folder(), "--out", tmp_path / "x", "--direction", "english").code == 1
