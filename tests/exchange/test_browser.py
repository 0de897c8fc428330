"""The page for browsers: what it reads and writes is ours. Node runs its JavaScript, where there is one."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from said import naming
from small_models import write_model
from transduce.config import GreedySearchConfig, SampledSearchConfig, SearchConfig
from transduce.errors import CheckpointError, ConfigError
from transduce.exchange import browser, export_page
from transduce.exchange.probes import KEPT_TEXTS, ODD_TEXTS
from transduce.inference import Translator
from transduce.inference.engines import native
from transduce.inference.folder import read_model_folder
from transduce.inference.native.binding import library
from transduce.inference.native.model import NativeModel
from transduce.inference.translation.line_statistics import LineStatistics
from transduce.inference.translation.word_loops import is_repetitive
from transduce.search import n_repeats
from transduce.text import (
    EOS_ID,
    Tokenizer,
    Tokenizers,
    byte_tokenizer,
    is_all_caps,
    mask,
    normalise,
    to_sentence_case,
    train_bpe,
    train_characters,
    train_wordpiece,
    unmask,
)
from transduce.text.quotes import QuoteStyle

from .conftest import LINES
from .test_export import random_translator

pytestmark = pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
STATISTICS = LineStatistics(sentences=1, tokens=50, longest=60, least_ratio=0.5, caps=0.0, quotes="’“”")
TEXTS = [*LINES[:6], "A dog.", "the red ball and the green grass, two men"]

# Reads a list of calls from its input: the name of a method of the translator, and what it is given.
PROGRAM = """
import { readFileSync } from 'node:fs';
const page = process.argv[1];
const code = readFileSync(`${page}/translator.js`).toString('base64');
const { Translator, ...functions } = await import(`data:text/javascript;base64,${code}`);
const { calls, bytes } = JSON.parse(readFileSync(0, 'utf8'));
const read = async (name) => {
  const whole = readFileSync(`${page}/${name}`);
  return new Response(name === 'model.bin' ? whole.subarray(0, bytes ?? Infinity) : whole);
};
const settings = JSON.parse(readFileSync(`${page}/model.json`, 'utf8'));
const noEngine = { malloc: () => 8, memory: new WebAssembly.Memory({ initial: 1 }) };
try {
  const translator = bytes === 0 ? new Translator(settings, noEngine) : await Translator.load('', { read });
  const results = [];
  for (const [name, ...given] of calls) {
    const [method, owner = 'self'] = name.split('.').reverse();
    const object = { self: translator, functions, ...translator }[owner];
    results.push(await object[method](...given));
  }
  console.log(JSON.stringify(results));
} catch (error) {
  console.log(JSON.stringify(error.message));
}
"""


def in_node(page: Path, calls: Sequence[Sequence[Any]], *, bytes: int | None = None) -> Any:
    """The results of calls; with ``bytes`` of the model only, or 0: without the engine."""
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", PROGRAM, str(page)],
        input=json.dumps({"calls": calls, "bytes": bytes}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def written(
    folder: Path, *variant: Any, task: str = "translation", tokenizer: Tokenizer | None = None, **changes: Any
) -> Path:
    model, tokenizers = random_translator(*(variant or ("post", "sinusoidal", "three-way", 8)), **changes)
    if tokenizer is not None:
        model, _ = random_translator(
            "post", "sinusoidal", "three-way", 8, src_vocab_size=tokenizer.size, tgt_vocab_size=tokenizer.size
        )
        tokenizers = Tokenizers(tokenizer, tokenizer)
    search = SearchConfig(max_extra_tokens=10)
    return write_model(folder, model, tokenizers, search=search, task=task, statistics=STATISTICS)


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in place of the engine."""
    (tmp_path / "engine").write_bytes(b"\0asm")
    monkeypatch.setattr(browser, "engine_for_browsers", lambda: tmp_path / "engine")


@pytest.fixture(scope="session")
def engine() -> Path:
    try:
        return browser.engine_for_browsers()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("no_engine")
def test_a_page_is_a_folder_without_other_hosts(tmp_path: Path) -> None:
    model = written(tmp_path / "model")
    report = export_page(model, tmp_path / "page", precision="bf16")
    files = {each.name: each for each in (tmp_path / "page").iterdir()}
    assert sorted(files) == ["engine.wasm", "index.html", "model.bin", "model.json", "translator.js"]
    assert report.all_bytes == sum(each.stat().st_size for each in files.values())
    for name in ("index.html", "translator.js"):
        assert not re.search(r"\w+://", files[name].read_text("utf-8"))
    weights = gzip.decompress(files["model.bin"].read_bytes())
    settings = json.loads(files["model.json"].read_text("utf-8"))
    assert (settings["bytes"], settings["precision"]) == (len(weights), "bf16")
    (tmp_path / "packed").write_bytes(weights)
    config = Translator.load(model).model.config
    assert NativeModel.mapped(config, tmp_path / "packed", "", "bf16") is not None
    assert NativeModel.mapped(config, tmp_path / "packed", "", "int8") is None


@pytest.mark.usefixtures("no_engine")
def test_what_a_page_cannot_run_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=naming("n_experts")):
        export_page(written(tmp_path / "experts", n_experts=2), tmp_path / "page")
    with pytest.raises(CheckpointError, match=naming("parsing")):
        export_page(written(tmp_path / "parser", task="parsing"), tmp_path / "page")
    assert not (tmp_path / "page").exists()
    loaded = read_model_folder(written(tmp_path / "model"), device="cpu")
    for changes, fact in (
        ({"config": loaded.config.model_copy(update={"positions": "words"})}, "positions = 'words'"),
        ({"search": SampledSearchConfig()}, "search.kind = 'sampling'"),
    ):
        assert fact in str(browser._reason_against(replace(loaded, **changes)))
    limited = replace(loaded, search=SearchConfig(min_length=2, max_tokens_per_batch=99))
    assert browser._reason_against(limited) is None
    with monkeypatch.context() as patch:
        patch.setattr(native, "library", lambda: None)
        assert "a C compiler" in str(browser._reason_against(limited))
    monkeypatch.setattr(browser, "SEARCH_FIELDS", ("beam_size", "max_extra_tokens"))  # it was not told of a setting
    assert "search.min_length" in str(browser._reason_against(limited))


def test_it_needs_no_pytorch() -> None:
    program = "import sys; from transduce.exchange import export_page; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_where_no_engine_can_be_compiled_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "ENGINE_FILE", "none.wasm")
    monkeypatch.setattr(browser, "is_installed", lambda name: False)
    with pytest.raises(ConfigError, match=naming("pip install ziglang")):
        browser.engine_for_browsers()
    monkeypatch.setattr(browser, "FOLDER", tmp_path / "a/b/c/d")
    with pytest.raises(ConfigError, match=naming("none.wasm")):
        browser.engine_for_browsers()


@needs_node
@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(
    "tokenizer",
    [
        train_bpe(LINES, vocab_size=300),
        train_wordpiece(LINES, vocab_size=600),
        train_characters(LINES, vocab_size=400),
        byte_tokenizer(),
    ],
    ids=["bpe", "wordpiece", "characters", "bytes"],
)
def test_text_becomes_the_same_ids_and_back(tokenizer: Tokenizer, tmp_path: Path) -> None:
    page = tmp_path / "page"
    export_page(written(tmp_path / "model", tokenizer=tokenizer), page)
    style = QuoteStyle("’", "“", "”")
    texts = [*ODD_TEXTS, *TEXTS]
    ids = [[*tokenizer.encode(normalise(style.apply(text))), EOS_ID] for text in texts]
    assert in_node(page, [("encode", text) for text in texts], bytes=0) == ids
    back = [normalise(tokenizer.decode(each)) for each in ids]
    assert in_node(page, [("decode", each) for each in ids], bytes=0) == back


@needs_node
@pytest.mark.usefixtures("no_engine")
def test_lines_are_divided_into_sentences_and_long_ones_into_clauses(tmp_path: Path) -> None:
    export_page(written(tmp_path / "model"), tmp_path / "page")
    line = "  Dr. Smith paid 3.50 dollars.  He left, and then he came again, and left" + ", and so on" * 5
    [parts] = in_node(tmp_path / "page", [("sentences", line)], bytes=0)
    assert "".join(each["sentence"] + each["space"] for each in parts) == line
    assert [each["sentence"] for each in parts[:2]] == ["", "Dr. Smith paid 3.50 dollars."]
    assert len(parts) > 3


@needs_node
@pytest.mark.parametrize(
    "variant",
    [
        ("post", "sinusoidal", "three-way", 8), ("pre", "learned", "target", 5), ("post", "learned", "separate", 8),
    ],
    ids=str,
)  # fmt: skip
def test_the_engine_gives_the_ids_and_texts_of_python(
    variant: tuple[Any, ...], engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSDUCE_ISA", "portable")  # whose products are rounded as a browser's
    model = written(tmp_path / "model", *variant)
    for precision in ("fp32", "int8"):
        page = tmp_path / precision
        export_page(model, page, precision=precision)
        translator = Translator.load(model, precision=precision)
        for search in (GreedySearchConfig(max_extra_tokens=10), translator.search):
            found = translator._text_search(TEXTS, search)
            assert found is not None
            sources = [[*ids, EOS_ID] for ids in translator._text_search.source_ids(TEXTS)]
            is_greedy = search.beam_size == 1
            outputs = in_node(page, [("hypotheses", source, {"greedy": is_greedy}) for source in sources])
            assert [best for best, *_ in outputs] == [list(each.hypotheses[0].ids) for each in found]
    text = "the dog . 1 2 3\n\n  the dog"
    [whole] = in_node(page, [("translate", text)])
    assert whole.count("\n") == 2


@needs_node
@pytest.mark.usefixtures("no_engine")
def test_strings_that_are_copied_become_masks_and_come_back(tmp_path: Path) -> None:
    tokenizer = train_bpe(LINES, vocab_size=400, masks=True)
    export_page(written(tmp_path / "model", tokenizer=tokenizer), tmp_path / "page")
    texts = [
        *KEPT_TEXTS, "see <b>x.txt</b>, https://x.org/a?b=(1). 在2024-11-26。", "no strings", "%s and %s: v2.1, $Name",
        "on Monday: http://a.org/ HTTP://B.ORG/", "🙂 a\ue000b 1,000,000 {a}", "AB-1234, #fff, 0x1F & &amp; 3.5 kg",
    ]  # fmt: skip
    masked = list(map(mask, texts))
    calls = [("masks.masked", text) for text in texts]
    found = in_node(tmp_path / "page", calls, bytes=0)
    assert [each["text"] for each in found] == [each.text for each in masked]
    outputs = [(each.text, each.text[::-1], f"{each.text} \ue000", "a word more.") for each in masked]
    pairs = [(output, each, theirs) for row, each, theirs in zip(outputs, masked, found, strict=True) for output in row]
    back = in_node(tmp_path / "page", [("masks.restored", output, theirs) for output, _, theirs in pairs], bytes=0)
    for (output, each, _), got in zip(pairs, back, strict=True):
        text, is_complete = unmask(output, each)
        assert got["isComplete"] == is_complete
        assert Counter("".join(got["text"].split())) == Counter("".join(text.split()))  # at about the same places
    for words in ("the {a} dog", "{a} dog runs on", "a dog runs {a}."):
        [shown] = in_node(tmp_path / "page", [("masks.masked", words)], bytes=0)
        [restored] = in_node(tmp_path / "page", [("masks.restored", "der Hund rennt weiter.", shown)], bytes=0)
        assert restored["text"] == unmask("der Hund rennt weiter.", mask(words))[0]


@needs_node
@pytest.mark.usefixtures("no_engine")
def test_capitals_are_known_as_in_python(tmp_path: Path) -> None:
    export_page(written(tmp_path / "model"), tmp_path / "page")
    texts = [
        "READ THIS FIRST!",
        "NATO",
        "The USA",
        "使用 GPU 和 CPU 训练模型",
        "DO I KNOW YOU?",
        "12 34",
        "ÄRGER MIT DEM E-MAIL",
        "",
    ]
    calls = [("functions.isAllCaps", text) for text in texts]
    assert in_node(tmp_path / "page", calls, bytes=0) == list(map(is_all_caps, texts))
    for language in ("en", "de", "tr"):
        calls = [("functions.toSentenceCase", text, language) for text in (*texts, "IŞIK İYİ")]
        lowered = [to_sentence_case(text, language) for text in (*texts, "IŞIK İYİ")]
        assert in_node(tmp_path / "page", calls, bytes=0) == lowered


@needs_node
@pytest.mark.usefixtures("no_engine")
def test_a_loop_is_known_as_in_python(tmp_path: Path) -> None:
    export_page(written(tmp_path / "model"), tmp_path / "page")
    pairs = [
        ("behind", "derrière " * 4), ("No, no, no, no!", "Nein, nein, nein, nein!"), ("a b", "Bahn-Bahn-Bahn a"),
        ("a word", "lalalalala"), ("a word", "mississippi"), ("Wow!", "Oh!!!!!"), ("a b", "x y x y x y"),
        ("hm", "Raaaaaaa"), ("I see", ""), ("字", "字字字字"),
    ]  # fmt: skip
    found = in_node(tmp_path / "page", [("loops.isRepetitive", *pair) for pair in pairs], bytes=0)
    assert found == [is_repetitive(*pair) for pair in pairs]


@needs_node
def test_an_output_that_loops_is_searched_again(engine: Path, tmp_path: Path) -> None:
    export_page(written(tmp_path / "model"), tmp_path / "page")
    source, limits = [5, 6, EOS_ID], [3, *[2] * 7]
    [[first, *_], others] = in_node(
        tmp_path / "page", [("hypotheses", source), ("hypotheses", source, {"n_best": 4, "limits": limits})]
    )
    assert max(map(len, others)) > 4
    assert len(others) == 4
    for ids in others:
        assert all(n_repeats(ids, unit) <= limits[unit - 1] for unit in range(1, 9))
    assert any(n_repeats(first, unit) > limits[unit - 1] for unit in range(1, 9))


@needs_node
def test_damage_is_one_clear_message(engine: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    export_page(written(tmp_path / "model"), page)
    n = (page / "model.bin").stat().st_size
    message = in_node(page, [], bytes=n // 2)
    assert all(each in message for each in ("model.bin is damaged", f"{n // 2} of {n} bytes", "load the page again"))
    weights = bytearray(gzip.decompress((page / "model.bin").read_bytes()))
    weights[-300] ^= 1
    (page / "model.bin").write_bytes(gzip.compress(bytes(weights)))
    assert "damaged" in in_node(page, [])
    (page / "engine.wasm").write_bytes(b"\0asm\2\0\0\0")
    assert "WebAssembly" in in_node(page, [])
