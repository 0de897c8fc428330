"""Exports compute the same function in the other library, read by that library alone."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from said import says
from small_models import write_model
from transduce.config import LanguageModelConfig, ModelConfig, SearchConfig, TransformerConfig
from transduce.errors import ConfigError, TransduceError
from transduce.exchange import export_model, exporting
from transduce.exchange.ctranslate2 import check_ctranslate2, token_names, write_ctranslate2
from transduce.exchange.hugging_face import check_hugging_face, write_hugging_face
from transduce.exchange.hugging_face_causal import check_hugging_face_causal, write_hugging_face_causal
from transduce.exchange.hugging_face_tokenizer import causal_tokenizer_files, tokenizer_files
from transduce.exchange.onnx import check_onnx, write_onnx
from transduce.exchange.plain_weights import plain_model, reordered
from transduce.exchange.probes import (
    KEPT_TEXTS,
    ODD_TEXTS,
    Comparison,
    Greedy,
    Probes,
    n_with_losses,
    sentences_of_tokens,
)
from transduce.exchange.refusals import require_exportable
from transduce.inference import Translator
from transduce.inference.trained_model import TrainedModel
from transduce.inference.translation.line_statistics import LineStatistics
from transduce.model import Transformer, TransformerLM
from transduce.text import (
    EOS_ID,
    Tokenizer,
    Tokenizers,
    byte_tokenizer,
    normalise,
    train_bpe,
    train_characters,
    train_wordpiece,
)
from transduce.text.documents import DocumentCodec
from transduce.text.masks import MASKS

from .conftest import LINES

BPE, SMALLER_BPE = train_bpe(LINES, vocab_size=300), train_bpe(LINES[:2], vocab_size=290)
SMALL = {"n_encoder_layers": 1, "n_decoder_layers": 2, "d_model": 32, "d_ff": 48, "n_heads": 4, "n_positions": 64}
# Norms, positions and ties, each with each; the second width has heads narrower than d_model / h, and two vocabularies
# where possible.
VARIANTS = [
    ("post", "sinusoidal", "three-way", 8), ("pre", "learned", "three-way", 5),
    ("post", "learned", "target", 5), ("pre", "sinusoidal", "target", 8),
    ("post", "learned", "separate", 8), ("pre", "sinusoidal", "separate", 5),
]  # fmt: skip


def random_translator(
    norm: str, positions: str, embeddings: str, d_k: int, **changes: Any
) -> tuple[Transformer, Tokenizers]:
    two = embeddings != "three-way" and d_k == 5
    tgt = SMALLER_BPE if two else BPE
    values: dict[str, Any] = {
        **SMALL, "norm": norm, "positions": positions, "embeddings": embeddings, "d_k": d_k,
        "d_v": 7 if d_k == 5 else d_k, "src_vocab_size": BPE.size, "tgt_vocab_size": tgt.size,
    }  # fmt: skip
    torch.manual_seed(1)
    config = ModelConfig(**(values | changes))
    assert isinstance(config, TransformerConfig)
    model = Transformer(config).eval()
    with torch.no_grad():  # biases and norms as in a trained model
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(0.2 * torch.randn_like(weight))
    return model, Tokenizers(BPE, tgt)


def probes_of(model: Transformer, tokenizers: Tokenizers, n: int = 3) -> Probes:
    return Probes.of_translator(model, tokenizers, sentences_of_tokens(BPE, n))


def to_ctranslate2(folder: Path, model: Transformer, tokenizers: Tokenizers) -> None:
    names = [token_names(side.vocabulary) for side in (tokenizers.src, tokenizers.tgt)]
    write_ctranslate2(folder, model, src_tokens=names[0], tgt_tokens=names[1])


def require_equal(comparison: Comparison, tolerance: float) -> None:
    assert comparison.max_logit_difference < tolerance
    assert comparison.equal_greedy == comparison.sentences > 0


def require_complete(class_name: str, folder: Path) -> None:
    """Require that transformers finds each weight in the file: it tells at every load what is missing."""
    import transformers

    _, found = getattr(transformers, class_name).from_pretrained(folder, output_loading_info=True)
    assert not any(found[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys")), found


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_hugging_face(variant: tuple[str, str, str, int], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model, tokenizers = random_translator(*variant)
    write_hugging_face(tmp_path, model, tokenizers, SearchConfig())
    require_complete("AutoModelForSeq2SeqLM", tmp_path)
    require_equal(check_hugging_face(tmp_path, probes_of(model, tokenizers, 1)), 1e-4)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_ctranslate2(variant: tuple[str, str, str, int], tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    model, tokenizers = random_translator(*variant)
    to_ctranslate2(tmp_path, model, tokenizers)
    probes = probes_of(model, tokenizers)
    require_equal(check_ctranslate2(tmp_path, probes, tokenizers, quantization="float32"), 1e-5)


@pytest.mark.parametrize("variant", VARIANTS[:4], ids=str)
def test_onnx(variant: tuple[str, str, str, int], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model, tokenizers = random_translator(*variant)
    write_onnx(tmp_path, model, tokenizers, SearchConfig())
    probes = probes_of(model, tokenizers)
    require_equal(check_onnx(tmp_path, probes, model.config), 1e-5)
    quantised = check_onnx(tmp_path, probes, model.config, precision="q8")
    assert 0 < quantised.max_logit_difference < 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "gelu", "attention_bias": True},
        {"activation": "gelu-tanh", "output_bias": True},
        {"activation": "swish", "scale_embeddings": False, "norm_eps": 1e-5},
    ],
    ids=str,
)
def test_switches_of_later_models(changes: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model, tokenizers = random_translator("pre", "sinusoidal", "three-way", 8, **changes)
    probes = probes_of(model, tokenizers)
    for name in ("hf", "ct2", "onnx"):
        (tmp_path / name).mkdir()
    write_hugging_face(tmp_path / "hf", model, tokenizers, SearchConfig())
    require_equal(check_hugging_face(tmp_path / "hf", probes), 1e-4)
    to_ctranslate2(tmp_path / "ct2", model, tokenizers)
    require_equal(check_ctranslate2(tmp_path / "ct2", probes, tokenizers, quantization="float32"), 1e-5)
    write_onnx(tmp_path / "onnx", model, tokenizers, SearchConfig())
    require_equal(check_onnx(tmp_path / "onnx", probes, model.config), 1e-5)


@pytest.mark.parametrize(
    ("norm", "positions", "tied", "scale", "d_k"),
    [
        ("pre", "learned", True, False, 8),  # GPT-2 as it is
        ("pre", "sinusoidal", True, True, 8),
        ("pre", "learned", False, True, 5),
        ("post", "learned", True, False, 8),  # OPT
        ("post", "sinusoidal", True, True, 5),
        ("post", "sinusoidal", False, False, 8),
    ],
)
def test_causal_language_models(norm: str, positions: str, tied: bool, scale: bool, d_k: int, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = ModelConfig(
        system="language-model", n_layers=1, d_model=32, d_ff=48, n_heads=4, d_k=d_k, d_v=d_k, norm=norm,
        n_positions=64, positions=positions, tied_embeddings=tied, scale_embeddings=scale, vocab_size=BPE.size,
        activation="gelu-tanh",
    )  # fmt: skip
    assert isinstance(config, LanguageModelConfig)
    model = TransformerLM.from_config(config).eval()
    write_hugging_face_causal(tmp_path, model, config, BPE)
    require_complete("AutoModelForCausalLM", tmp_path)
    probes = Probes.of_language_model(model, BPE, sentences_of_tokens(BPE, 3))
    require_equal(check_hugging_face_causal(tmp_path, probes), 1e-4)


@pytest.mark.parametrize(
    "tokenizer",
    [
        BPE,
        train_wordpiece(LINES, vocab_size=600),
        train_characters(LINES, vocab_size=400),
        byte_tokenizer(extra_tokens=["<mask>"]),
    ],
    ids=["bpe", "wordpiece", "characters", "bytes"],
)
def test_tokenizers_agree_on_odd_text(tokenizer: Tokenizer) -> None:
    from tokenizers import Tokenizer as LibraryTokenizer

    theirs = LibraryTokenizer.from_str(json.dumps(tokenizer_files(tokenizer, max_length=99)["tokenizer.json"]))
    theirs.encode_special_tokens = True  # as "split_special_tokens" asks for
    for text in ODD_TEXTS:
        ids = [*tokenizer.encode(normalise(text)), EOS_ID]
        assert theirs.encode(text).ids == ids
        assert theirs.decode(ids, skip_special_tokens=True) == tokenizer.decode(ids)
    codec = DocumentCodec(tokenizer)
    theirs = LibraryTokenizer.from_str(json.dumps(causal_tokenizer_files(tokenizer, max_length=99)["tokenizer.json"]))
    for text in ("a dog\nruns \n over\n", "one\n\n two", "\n x", "one line"):
        *lines, last = text.split("\n")
        ids = [*codec.encode(lines), *(tokenizer.encode(normalise(last)) if last.strip() else [])]
        assert theirs.encode(text).ids == [1, *ids]
        assert theirs.decode([1, *ids], skip_special_tokens=True) == codec.decode(ids)


def test_reordered_features_give_the_same_order_back() -> None:
    model, _ = random_translator("pre", "learned", "separate", 8)
    order_D = torch.randperm(32)
    plain = plain_model(model)
    back = reordered(reordered(plain, order_D), torch.argsort(order_D))
    assert torch.equal(back.decoder.layers[1].w_2.weight_OI, plain.decoder.layers[1].w_2.weight_OI)
    assert not torch.equal(reordered(plain, order_D).output.weight_OI, plain.output.weight_OI)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder with random weights."""
    model, tokenizers = random_translator("post", "sinusoidal", "three-way", 8)
    card = "# A Transformer for en to de\n\n## Scores on test: grammar (2 sentences)\n\n" + (
        "| metric | score | signature |\n| --- | --- | --- |\n| sacrebleu | 12.50 | `nrefs:1 case:mixed` |\n"
    )
    return write_model(tmp_path / "model", model, tokenizers, card=card)


@pytest.mark.parametrize(
    ("target", "library"), [("hf", "transformers"), ("ct2", "ctranslate2"), ("onnx", "onnxruntime")]
)
def test_the_command(target: str, library: str, folder: Path, transduce: Any, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    pytest.importorskip(library)
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES[:3]))
    outcome = transduce("export", folder, "--to", target, "--out", tmp_path / "out", "--text", text, "--json")
    assert outcome.code == 0, outcome.err
    values = json.loads(outcome.out)
    n_sentences = 3 + len(KEPT_TEXTS)
    assert (values["format"], values["sentences"], values["equal_greedy"]) == (target, n_sentences, n_sentences)
    lost = values["sentences_with_losses"]
    assert lost == {"sentences": len(KEPT_TEXTS), "lost": len(KEPT_TEXTS)}  # random weights keep nothing
    assert says(outcome.err, "warning", len(KEPT_TEXTS), "URLs", tmp_path / "out" / "README.md")
    assert values["odd_texts_equal"] == len(ODD_TEXTS)
    _, front, body = (tmp_path / "out" / "README.md").read_text().split("---\n", 2)
    matter = yaml.safe_load(front)
    assert matter["language"] == ["en", "de"]
    assert matter["pipeline_tag"] == "translation"
    assert matter["model-index"][0]["results"][0]["metrics"] == [
        {"type": "sacrebleu", "value": 12.5, "name": "nrefs:1 case:mixed"}
    ]
    assert f"{n_sentences} of {n_sentences} greedy outputs equal" in body
    different = body.split("## What is different")[1]
    assert says(different, "URLs", "placeholders", "emoji", "transduce", len(KEPT_TEXTS))
    assert "U+E000" not in different  # a model without masks
    if target == "ct2":
        (code,) = re.findall(r"```python\n(.*?)```", body, re.DOTALL)
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, {"folder": str(tmp_path / "out")})
        assert printed.getvalue().strip().isprintable()
        assert "\u0120" not in printed.getvalue()  # text, no tokens with marks of spaces
    again = transduce("export", folder, "--to", target, "--out", tmp_path / "out")
    assert again.code == 1
    assert "exists already" in again.err


def test_the_card_says_what_masks_and_capitals_need(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    bpe = train_bpe(LINES, vocab_size=300, masks=True)
    model, _ = random_translator("post", "sinusoidal", "three-way", 8, src_vocab_size=bpe.size, tgt_vocab_size=bpe.size)
    statistics = LineStatistics(sentences=1, tokens=20, longest=30, least_ratio=0.5, caps=0.0)
    write_model(tmp_path / "model", model, Tokenizers(bpe, bpe), card="# A model\n", statistics=statistics)
    (tmp_path / "model" / "README.md").write_bytes("# A model\n\n## Größe\n".encode("latin-1"))  # as people save it
    told = list[str]()
    export_model(tmp_path / "model", "ct2", tmp_path / "out", log=told.append)
    assert any(says(line, "warning", "URLs") for line in told)
    card = (tmp_path / "out" / "README.md").read_text()
    assert says(card, f"U+{ord(MASKS[0]):04X}", f"U+{ord(MASKS[-1]):04X}")
    assert says(card, "capitals", "lower-case")


def test_losses_are_counted_by_sentence() -> None:
    outputs = [[*BPE.encode(text)] for text in KEPT_TEXTS]
    outputs[1] = BPE.encode("Write to and wait.")
    greedy = [Greedy(tuple(ids), (1.0,) * len(ids)) for ids in outputs]
    assert n_with_losses(Probes([], [], [], [Greedy((5,), (1.0,)), *greedy]), BPE) == 1


def test_a_wrong_export_is_not_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")

    def wrong(out: Path, model: Transformer, *rest: Any, **options: Any) -> None:
        with torch.no_grad():
            model.encoder[0].feed_forward.w_1.weight[0, 0] += 5.0
        write_hugging_face(out, model, *rest, **options)

    monkeypatch.setattr(exporting, "write_hugging_face", wrong)
    with pytest.raises(TransduceError, match="computes something else"):
        export_model(folder, "hf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


REFUSED: Mapping[str, dict[str, Any]] = {
    "experts": {"n_experts": 4},
    "positions = 'words'": {"positions": "words"},
    "compatibility = 'additive'": {"compatibility": "additive"},
    "attention = 'restricted'": {"attention": "restricted"},
    "d_k 16": {"d_k": 16},
    "not a multiple": {"n_heads": 5},
    "system = 'recurrent'": {"system": "recurrent"},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_carried_is_refused_by_name(reason: str) -> None:
    values = SMALL | {"d_k": 8, "d_v": 8} if "system" not in REFUSED[reason] else {"d_model": 32}
    config = ModelConfig(**(values | REFUSED[reason]))
    with pytest.raises(ConfigError, match=re.escape(reason)):
        require_exportable(config, Translator.capabilities, "hf", where=Path("model"))


@pytest.mark.parametrize(
    ("task", "target", "reason"),
    [
        ("parsing", "hf", "parser"), ("masked-lm", "hf", "BERT"), ("reward", "hf", "number"),
        ("causal-lm", "ct2", "--to hf"), ("causal-lm", "onnx", "--to hf"),
    ],
)  # fmt: skip
def test_tasks_without_a_counterpart_are_refused(task: str, target: Any, reason: str) -> None:
    kind = TrainedModel.class_of(task)
    assert kind is not None
    with pytest.raises(ConfigError, match=reason):
        require_exportable(ModelConfig(**SMALL), kind.capabilities, target, where=Path("model"))


def test_a_missing_library_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *, needed_for: str) -> Any:
        raise ConfigError(f"{needed_for} needs {name}")

    monkeypatch.setattr(exporting, "library", missing)
    with pytest.raises(ConfigError, match="needs ctranslate2"):
        export_model(folder, "ct2", tmp_path / "out")


def test_near_ties_count_as_equal() -> None:
    model, tokenizers = random_translator("post", "sinusoidal", "three-way", 8)
    probes = probes_of(model, tokenizers)
    from transduce.exchange.probes import compared

    others = [list(each.ids) for each in probes.greedy]
    others[0][0] += 1
    assert not compared(probes, 0.0, others).is_same_function
    first = replace(probes.greedy[0], margins=(1e-5, *probes.greedy[0].margins[1:]))
    tied = Probes(probes.sources, probes.targets, probes.logits, [first, *probes.greedy[1:]])
    assert compared(tied, 0.0, others).is_same_function
    assert not compared(tied, 1.0, others).is_same_function
