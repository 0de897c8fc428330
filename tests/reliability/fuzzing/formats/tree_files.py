"""Trees: valid ones damaged, and random brackets, one tree per line or in any layout."""

from __future__ import annotations

import shutil
from random import Random

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.commands import run_command
from fuzzing.damage import BYTES
from fuzzing.sources import Sources
from fuzzing.strange_values import odd_line

__all__ = ["tree_format"]

STOP_AFTER_S = 15.0
PERCENTAGES = ("recall", "precision", "f1", "complete_match", "no_crossing", "two_or_less_crossing", "tagging_accuracy")
LABELS = (
    "S",
    "NP",
    "VP",
    "NP-SBJ-1",
    "VP=2",
    "-NONE-",
    "TOP",
    "ROOT",
    "",
    ".",
    ",",
    "-LRB-",
    "''",
    "XX",
    "A|B",
    "\u00a0",
)
WORDS = (
    "dog",
    "-LRB-",
    "*",
    "*T*-1",
    "\\/",
    "\u00a0",
    "日本",
    "é" * 50,
    "x" * 3000,
    "\x1b[31m",
    "\x00",
    "0",
    "-",
    "10\u00a0000",
)
VERBS: dict[str, list[str]] = {
    "parseval": ["parseval", "FILE", "GOOD", "--json"],
    "parseval-test": ["parseval", "GOOD", "FILE", "--json", "--details"],
    "parseval-same": ["parseval", "FILE", "FILE", "--json"],
    "parseval-plain": ["parseval", "FILE", "FILE", "--plain", "--details"],
    "parse": ["parse", "PARSER", "--trees", "FILE", "--device", "cpu", "--beam", "1"],
    "parse-svg": "parse PARSER --trees FILE --device cpu --beam 1 --svg a.svg --unconstrained".split(),
    "evaluate": ["evaluate", "PARSER", "--src", "FILE", "--ref", "FILE", "--device", "cpu", "--beam", "1"],
    "doctor": ["doctor", "FILE"],
    "prepare": ["prepare", "parser.toml", "--out", "out", "--set", "data.task=parsing", "--set",
                "data.shared_vocabulary=false", "--set", "model.embeddings=separate", "--set",
                "data.train_trees=FILE"],
}  # fmt: skip


def tree_format(sources: Sources) -> Format:
    """All cases of trees."""

    def play(case: Case, place: CaseFolders) -> str:
        verb, how = case.parts
        draw = case.draw()
        good = (sources.text / "train.ptb").read_bytes().splitlines(keepends=True)
        text = b"".join(draw.sample(good, 4))
        content = BYTES[how](text, draw) if how in BYTES else _SHAPES[how](draw, text)
        (place.folder / "trees.ptb").write_bytes(content)
        (place.folder / "good.ptb").write_bytes(text)
        shutil.copy(sources.folder / "parser.toml", place.folder / "parser.toml")
        known = {"PARSER": str(sources.parser), "FILE": "trees.ptb", "GOOD": "good.ptb"}
        words = [known.get(word, word.replace("FILE", "trees.ptb")) for word in VERBS[verb]]
        outcome = run_command(
            place, words, stop_after_s=STOP_AFTER_S, speaks_on_stdout=verb == "doctor", repeats=content
        )
        if outcome.code:
            return outcome.word
        if "--json" in words:
            figures = outcome.json()
            shares = [figures[name] for name in PERCENTAGES]
            require(all(share is None or 0 <= share <= 100 for share in shares), "a percentage is none", shares)
            if verb == "parseval-same":
                require(figures["f1"] in (None, 0, 100), "trees are not like themselves", figures)
        if verb == "parse":
            lines = outcome.out.split(b"\n")[:-1]
            require(
                all(line in (b"", b"()") or line.startswith(b"(TOP ") for line in lines), "a line is no tree", lines
            )
        return "sound"

    stems = [f"{verb}/{how}" for verb in VERBS for how in (*BYTES, *_SHAPES)]
    return Format("trees", stems, play)


def _random_tree(draw: Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.2:
        return f"({draw.choice(LABELS)} {draw.choice(WORDS)})"
    children = [_random_tree(draw, depth - 1) for _ in range(draw.randrange(4))]
    return f"({draw.choice(LABELS)}{draw.choice([' ', '', '  ', chr(9)])}{' '.join(children)})"


def _random(draw: Random, text: bytes) -> bytes:
    return "\n".join(_random_tree(draw, draw.randrange(6)) for _ in range(draw.randrange(6))).encode()


def _deep(draw: Random, text: bytes) -> bytes:
    n = draw.choice([100, 1000, 3000, 30_000])
    return b"(S " * n + b"(NN dog)" + b")" * draw.choice([n, n, n - 1, n + 1, 0]) + b"\n"


def _wide(draw: Random, text: bytes) -> bytes:
    return b"(S " + draw.choice([b"(NN dog) ", b"(NP (NN x)) ", b"() ", b"(X) "]) * draw.choice([100, 3000]) + b")\n"


def _odd_lines_between(draw: Random, text: bytes) -> bytes:
    lines = text.splitlines()
    lines.insert(draw.randrange(len(lines)), odd_line(draw))
    return b"\n".join(lines) + b"\n"


def _brackets(draw: Random, text: bytes) -> bytes:
    pieces = (b"(", b")", b" ", b"S", b"dog", b"\n", b"(NN", b"()", b"\t", b"\xc2\xa0", b"\xff", b"\0", b"\x1b")
    return b"".join(draw.choices(pieces, k=draw.randrange(60)))


def _other_padding(draw: Random, text: bytes) -> bytes:
    return draw.choice(
        [text.replace(b" ", b"\n"), text.replace(b"\n", b" "), text.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + text]
    )


def _word_changed(draw: Random, text: bytes) -> bytes:
    return text.replace(
        draw.choice([b"(NN ", b"(DT ", b"(NP ", b"(S "]), draw.choice([b"(", b"(" + draw.choice(WORDS).encode() + b" "])
    )


_SHAPES = {
    each.__name__.removeprefix("_"): each
    for each in (_random, _deep, _wide, _odd_lines_between, _brackets, _other_padding, _word_changed)
}
