"""Training of one's own text: what is told before, and which model is left at the end."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path

from register import Setting, case, wrong


@case("bpe-text", "cr-line-ends", "tokenised-text", "tsv-3-columns")
def _doctor(setting: Setting) -> str | None:
    told = {}
    for name, files, fact in (
        ("bpe-text", ["bpe.en", "bpe.de"], "@@"),
        ("cr-line-ends", ["cr.en", "cr.de"], "CR"),
        ("tokenised-text", ["tok.en", "tok.de"], "tokenised"),
        ("tsv-3-columns", ["anki.tsv"], "column"),
    ):
        paths = [setting.cases / name / file for file in files]
        with tempfile.TemporaryDirectory() as folder:
            if name == "cr-line-ends":  # a copy of the case may have lost them
                for path in paths:
                    (Path(folder) / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r"))
                paths = [Path(folder) / path.name for path in paths]
            _, out, errors = setting.run("doctor", *paths)
        told[name] = fact in out + errors
    return None if all(told.values()) else wrong(told)


@case("hindi-tokens")
def _marks_belong_to_words(setting: Setting) -> str | None:
    from transduce.text import train_bpe

    lines = setting.input("hindi-tokens", "hi.hi").split("\n")
    tokenizer = train_bpe(lines * 50, vocab_size=4000)
    n_tokens = len(tokenizer.encode("किताब खिड़की विद्यार्थी"))
    return None if n_tokens <= 4 else wrong(n_tokens)


@case("region-code", "same-language")
def _directions(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        english, other = ("dog cat house tree book door".split(), "cão gato casa árvore livro porta".split())
        lines = [
            (f"the {english[i]} {n} sees the {english[j]} {m}", f"o {other[i]} {n} vê o {other[j]} {m}")
            for n, (i, j, m) in enumerate(product(range(6), range(6), range(30)))
        ]
        for column, name in enumerate(("a.en", "a.pt")):
            (Path(folder) / name).write_text("".join(f"{line[column]}\n" for line in lines), encoding="utf-8")
        typos = (Path(folder) / "a.en").read_text().replace("the ", "teh ", 700)
        (Path(folder) / "a.typos").write_text(typos)
        sides = {"en-pt_BR": ("a.en", "a.pt"), "en-pt-BR": ("a.en", "a.pt"), "en-en": ("a.typos", "a.en")}
        codes = {
            direction: setting.run(
                "init", "--src", f"{folder}/{src}", "--tgt", f"{folder}/{tgt}", "--direction", direction,
                "--minutes", 1, "--out", f"{folder}/{direction}.toml",
            )[::2]
            for direction, (src, tgt) in sides.items()
        }  # fmt: skip
    return None if not any(code for code, _ in codes.values()) else wrong(codes)
