"""Valid files of every kind, created once; cases damage copies of them."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from marian_files import MARIAN_SETTINGS, marian_arrays, numbered_pieces, trained_sentencepiece
from talking_model import write_talking_model
from transduce.config import SearchConfig, TransformerConfig
from transduce.corpora import generate_pairs
from transduce.exchange.opus_layout import write_opus_folder
from transduce.inference import Translator
from transduce.model import Transformer
from transduce.recipes import RECIPES, read_recipe
from transduce.runs import train
from transduce.text import SentencePieceTokenizer, Tokenizers, train_bpe, train_wordpiece
from transduce.text.sentencepiece_tokenizer import sentencepiece_description

__all__ = ["DATA_PATHS", "RECIPES", "SMALL_RECIPE", "Sources", "make_sources"]


# A run of a second. Its paths are relative: to the folder of a case, which has the same texts.
SMALL_RECIPE = """\
preset = "tiny"

[model]
n_encoder_layers = 1
n_decoder_layers = 2
d_model = 32
d_ff = 48
n_heads = 4
d_k = 8
d_v = 8
embeddings = "three-way"

[data]
corpus = "files"
direction = "en-de"
train_src = "text/train.en"
train_tgt = "text/train.de"
dev_tsv = "text/dev.tsv"
test_src = "text/test.en"
test_tgt = "text/test.de"
vocab_size = 300

[training]
max_updates = 6
max_tokens_per_batch = 300
warmup_steps = 10
log_every_updates = 1
validate_every_updates = 3
validation_sentences = 2
checkpoint_every_updates = 2
keep_checkpoints = 2
average_last = 2

[search]
beam_size = 2
max_extra_tokens = 3
"""
DATA_PATHS = ("train_src", "train_tgt", "dev_tsv", "test_src", "test_tgt")
PARSER_SETTINGS = [
    "data.task=parsing", "data.shared_vocabulary=false", "model.embeddings=separate", "training.max_updates=2",
    "search.max_extra_tokens=60",
]  # fmt: skip
PAGE = '<!DOCTYPE html>\n<html><body><div id="DisplayArea">\n{body}\n</div></body></html>\n'
UPDATES = (6, 7, 8)  # to which the run, of 6, is gone on with
N_PAIRS = {"train": 120, "dev": 2, "test": 2}


@dataclass(frozen=True, slots=True)
class Sources:
    """The paths of the valid files below one folder."""

    folder: Path

    @property
    def run(self) -> Path:
        """A finished run: metrics, prepared text, checkpoints and a model folder."""
        return self.folder / "run"

    @property
    def model(self) -> Path:
        return self.folder / "run" / "model"

    @property
    def talker(self) -> Path:
        """The model folder of an untrained model whose output is never empty."""
        return self.folder / "talker"

    @property
    def parser(self) -> Path:
        """The model folder of a parser."""
        return self.folder / "parser" / "model"

    @property
    def text(self) -> Path:
        """Text of both languages, trees, and the same compressed."""
        return self.folder / "text"

    @property
    def recipe(self) -> Path:
        """The recipe of the run."""
        return self.folder / "small.toml"

    @property
    def tokenizers(self) -> Path:
        """Of both kinds."""
        return self.folder / "tokenizers"

    @property
    def packages(self) -> Path:
        """Debian packages with pages of help; empty where they cannot be made."""
        return self.folder / "packages"

    def resumed(self, updates: int) -> Path:
        """The run, resumed to this many updates."""
        return self.folder / f"resumed-{updates}"

    @property
    def expected(self) -> Path:
        """The undamaged model's translation of a valid line, as JSON."""
        return self.folder / "expected.json"

    @property
    def bombs(self) -> Path:
        """Small files that are large when decompressed."""
        return self.folder / "bombs"

    @property
    def only_run(self) -> Path:
        """A folder with ``run.json`` and nothing else."""
        return self.folder / "only-run"

    @property
    def opus(self) -> Path:
        """A random Marian model in the layout of Hugging Face, as OPUS-MT's."""
        return self.folder / "opus"

    @property
    def marian(self) -> Path:
        """The same as Marian's own files."""
        return self.folder / "marian"


def make_sources(folder: Path) -> Sources:
    """Make all of it in a new folder, which becomes the working folder of this process."""
    sources = Sources(folder)
    sources.text.mkdir(parents=True)
    os.chdir(folder)
    _write_texts(sources.text)
    sources.recipe.write_text(SMALL_RECIPE)
    train(read_recipe(sources.recipe), sources.run)
    for updates in UPDATES:
        shutil.copytree(sources.run, sources.resumed(updates))
        longer = read_recipe(sources.recipe, [f"training.max_updates={updates}"])
        train(longer, sources.resumed(updates), resume=True)
    _write_talker(sources)
    parser_text = [f"data.{name}_trees=text/{name}.ptb" for name in ("train", "dev", "test")]
    no_text = SMALL_RECIPE
    for name in DATA_PATHS:
        no_text = no_text.replace(f"\n{name} =", f"\n# {name} =")
    (folder / "parser.toml").write_text(no_text)
    train(read_recipe(folder / "parser.toml", [*PARSER_SETTINGS, *parser_text]), sources.parser.parent)
    lines = (sources.text / "train.en").read_text().splitlines()
    sources.tokenizers.mkdir()
    train_bpe(lines, vocab_size=300).save(sources.tokenizers / "bpe.json")
    train_wordpiece(lines, vocab_size=600).save(sources.tokenizers / "wordpiece.json")
    sources.only_run.mkdir()
    shutil.copy(sources.run / "run.json", sources.only_run)
    _write_marian(sources, lines)
    sources.packages.mkdir()
    if shutil.which("dpkg-deb"):
        for language, package in (("en", "libreoffice-help-en-us"), ("de", "libreoffice-help-de")):
            _make_package(sources.packages, package, {"en": "en-US"}.get(language, language))
    return sources


def _write_talker(sources: Sources) -> None:
    write_talking_model(sources.model, sources.talker)
    translator = Translator.load(sources.talker)
    greedy = translator.search.model_copy(update={"beam_size": 1})
    [translation] = translator.translate(["The dog sleeps."], search=greedy)
    sources.expected.write_text(json.dumps({"translation": translation}))


def _write_marian(sources: Sources, lines: Sequence[str]) -> None:
    """Write a random model of two layers with SentencePiece, in both formats."""
    models = [trained_sentencepiece(list(lines), vocab_size) for vocab_size in (90, 80)]
    numbers = numbered_pieces(models)
    special = {"pad_id": numbers["<pad>"], "start_id": numbers["<pad>"], "eos_id": 0, "unk_id": 1}
    sides = [SentencePieceTokenizer(sentencepiece_description(model, numbers, **special)) for model in models]
    config = TransformerConfig(
        n_encoder_layers=2, n_decoder_layers=2, d_model=32, d_ff=48, n_heads=4, d_k=8, d_v=8, activation="swish",
        attention_bias=True, output_bias=True, norm_eps=1e-5, embeddings="three-way", src_vocab_size=sides[0].size,
        tgt_vocab_size=sides[1].size,
    )  # fmt: skip
    torch.manual_seed(3)
    model = Transformer(config).eval()
    sources.opus.mkdir()
    sources.marian.mkdir()
    with torch.no_grad():
        write_opus_folder(sources.opus, model, Tokenizers(*sides), SearchConfig(), direction="en-de")
    for name in ("source.spm", "target.spm"):
        shutil.copy(sources.opus / name, sources.marian)
    del numbers["<pad>"]
    vocabulary = yaml.safe_dump(numbers, allow_unicode=True)
    (sources.marian / "opus.vocab.yml").write_text(vocabulary, encoding="utf-8")
    settings = np.frombuffer(yaml.safe_dump(MARIAN_SETTINGS).encode() + b"\0", np.int8)
    arrays: dict[str, Any] = marian_arrays(sources.opus, {"encoder_layers": 2, "decoder_layers": 2})
    np.savez(sources.marian / "model.npz", **arrays, **{"special:model.yml": settings})


def _write_texts(folder: Path) -> None:
    for split, n_pairs in N_PAIRS.items():
        pairs = list(generate_pairs(split, n_pairs=n_pairs * (1 if split == "train" else 20), seed=1))
        if split != "train":
            pairs = sorted(pairs, key=lambda pair: len(pair.en) + len(pair.de))[:n_pairs]  # short ones cost little
        by_name = {
            "en": [pair.en for pair in pairs],
            "de": [pair.de for pair in pairs],
            "tsv": [f"{pair.en}\t{pair.de}" for pair in pairs],
            "ptb": [pair.tree for pair in pairs],
        }
        for name, lines in by_name.items():
            (folder / f"{split}.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name in ("test.en", "test.de", "train.en", "train.de"):
        content = (folder / name).read_bytes()
        (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
        (folder / f"{name}.xz").write_bytes(lzma.compress(content))


def _make_package(folder: Path, package: str, language: str) -> None:
    """A package with a few pages, as Debian's packages of help have them."""
    tree = folder / package
    pages = tree / "usr" / "share" / "libreoffice" / "help" / language / "text" / "shared"
    pages.mkdir(parents=True)
    for number in range(4):
        body = "".join(
            f'<p id="par_id{number}{place}" class="paragraph" dir="auto">Word {language} {number} {place}.</p>\n'
            for place in range(3)
        )
        (pages / f"page{number}.html").write_text(PAGE.format(body=body))
    (tree / "DEBIAN").mkdir()
    control = f"Package: {package}\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody\nDescription: pages\n"
    (tree / "DEBIAN" / "control").write_text(control)
    built = folder / f"{package}_1.0_all.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, built], check=True, capture_output=True
    )
    shutil.rmtree(tree)
