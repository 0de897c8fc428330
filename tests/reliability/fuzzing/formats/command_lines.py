"""Command lines with random options and values, of whatever verbs and options the command has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import typer

from fuzzing.cases import Case, CaseFolders, Format
from fuzzing.commands import run_command
from fuzzing.sources import Sources
from fuzzing.strange_values import odd_lines, strange_word
from transduce.cli.verbs import VERBS, make_app

__all__ = ["command_line_format"]

STOP_AFTER_S = 3.0
STEMS_PER_VERB = 20
FEW_STEMS_PER_VERB = 3
LONG = frozenset({"demo", "init"})  # verbs that are asked to stop more often than they end
ABOUT_THE_SHELL = frozenset({"install_completion", "show_completion"})  # of typer: they ask which shell has called
NETWORKED = frozenset({"corpus get", "demo", "serve"})  # they may try to use the network, where there is none
REPEATING = frozenset({"translate", "parse", "evaluate"})  # their output repeats text, which is random here
CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0)))).encode()
# What a path may be: of each kind that transduce reads, and of some that it does not.
PATHS = (
    "model", "model", "talker", "parser", "run", "run", "run/store", "run/checkpoints/update-00000006", "small.toml",
    "small.toml", "text/test.en", "text/test.de", "text/test.en.gz", "text/test.de.xz", "text/dev.tsv",
    "text/test.ptb",
    "text/test.ptb", "text", "new", "new/folder", "new.xz", "empty", "odd", "nowhere", "-", ".", "/dev/null",
    "/dev/full",
    "model/config.json", "", "run/run.json", "packages",
)  # fmt: skip
# What parameters of these names mostly are; any other takes of all.
LIKELY = {
    "folders": ("model", "talker"), "folder": ("model", "talker", "parser"), "rerank": ("model", "talker"),
    "recipe": ("small.toml",), "run": ("run",), "store": ("run/store",), "source": ("text/test.en",
    "text/test.de.xz", "odd"),
    "src": ("text/test.en", "odd"), "ref": ("text/test.de", "text/test.en", "odd"), "tgt": ("text/test.de", "odd"),
    "hypotheses": ("text/test.de", "odd", "-"), "against": ("text/test.de",), "tsv": ("text/dev.tsv",),
    "gold": ("text/test.ptb",), "test": ("text/test.ptb",), "trees": ("text/test.ptb", "-"), "out": ("new",
    "new/folder", "run"),
    "from_folder": ("packages", "text"), "data": (".", "text"), "direction": ("en-de", "de-en"),
    "precision": ("fp32", "bf16"),
    "scale": ("cpu", "gpu"), "corpus": ("grammar", "multi30k"), "name": ("small.toml", "tiny", "grammar",
    "figure1", "run/model"),
    "what": ("run", "model", "run/store", "text/test.en", "small.toml"), "on_nan": ("stop", "skip:3"),
    "work": ("new",),
    "language": ("de", "fr"), "text": ("multi30k/test", "text/test"), "svg": ("new.svg",), "treebank": ("text",),
}  # fmt: skip
WORDS = (
    "tiny", "base", "grammar", "multi30k", "libreoffice-help", "tatoeba", "table1", "figure1", "curves",
    "notes", "all",
    "en-de", "de", "cpu", "cpu", "fp32", "bf16", "int8", "auto", "multi30k/test", "The dog sleeps.", "stop", "skip:3",
    "skip:99999999999999999999999", "cuda", "cuda:9", "meta", "mps",
)  # fmt: skip
SETTINGS = ("training.max_updates=1", "data.n_pairs=20", "search.beam_size=2", "data.vocab_size=300", "x", "=",
            "model.d_ff=8",
            "model.x=1", "training.seed=-1", "data.corpus={grammar=1.0}", "search.alpha=nan")  # fmt: skip


def command_line_format(sources: Sources) -> Format:
    """A case for each verb, many times."""
    stems = [
        f"{verb}/{number}"
        for verb in verbs()
        for number in range(FEW_STEMS_PER_VERB if verb.split(" ")[0] in LONG else STEMS_PER_VERB)
    ]

    def play(case: Case, place: CaseFolders) -> str:
        draw = case.draw()
        _fill(place, sources, draw)
        verb = case.parts[0]
        words = words_of(verb, draw)
        outcome = run_command(
            place,
            words,
            stdin=b"\n".join(odd_lines(draw, most=3)),
            stop_after_s=STOP_AFTER_S,
            codes=(0, 1, 2, 143),
            may_connect=verb in NETWORKED,
            speaks_on_stdout=verb == "doctor",
            repeats=CONTROLS if verb in REPEATING else b"",
        )
        return {0: "done", 143: "stopped"}.get(outcome.code, "refused")

    return Format("command", stems, play)


def _fill(place: CaseFolders, sources: Sources, draw: Random) -> None:
    """The folder of a case: something of each kind."""
    for name in ("run", "text", "talker"):
        shutil.copytree(getattr(sources, name), place.folder / name)
    shutil.copytree(sources.model, place.folder / "model")
    shutil.copytree(sources.parser, place.folder / "parser")
    shutil.copytree(sources.packages, place.folder / "packages")
    recipe = sources.recipe.read_text().replace("max_updates = 6", "max_updates = 2")
    (place.folder / "small.toml").write_text(recipe)
    (place.folder / "empty").touch()
    (place.folder / "odd").write_bytes(b"\n".join(odd_lines(draw)))
    os.environ["PATH"] = str(place.folder)  # no program is there: nothing is fetched by apt-get


@cache
def verbs() -> dict[str, Any]:
    """Every built-in verb with its parser, and the command itself, as the application has them."""
    return {"": _root()} | {name: verb for name, verb in _verbs_of(_root(), "") if name.split(" ")[0] in VERBS}


@cache
def _root() -> Any:
    return typer.main.get_command(make_app())


def _verbs_of(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield f"{prefix}{name}", command
        if hasattr(command, "commands"):
            yield from _verbs_of(command, f"{prefix}{name} ")


def words_of(verb: str, draw: Random) -> list[str]:
    """A command line of a verb: mostly what it needs, and some of what it knows."""
    command = verbs()[verb]
    words = verb.split()
    options = [each for each in command.params if each.param_type_name == "option" and each.name not in ABOUT_THE_SHELL]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    has_device = False
    for option in options:
        if option.required or draw.random() < min(0.3, 2.0 / len(options)):
            words += _option(option, draw)
            has_device |= "--device" in option.opts
    if not has_device and any("--device" in option.opts for option in options):
        words += ["--device", "cpu"]
    for argument in arguments:
        n_values = 1 if argument.nargs == 1 else draw.choice([1, 1, 2])
        if argument.required or draw.random() < 0.6:
            words += [_value(argument, draw) for _ in range(n_values)]
    match draw.randrange(25):
        case 0:
            words.insert(draw.randrange(len(words) + 1), strange_word(draw))
        case 1:
            words += [draw.choice(["--", "--help", "-h", "--x", "-x", "--json", "--json=1", "-", "--version"])]
        case 2 if words:
            words.pop(draw.randrange(len(words)))
        case 3 if words:
            words.append(draw.choice(words))
    return words


def _option(option: Any, draw: Random) -> list[str]:
    name = draw.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [name]
    value = _value(option, draw)
    return draw.choice([[name, value], [name, value], [name, value], [f"{name}={value}"]])


def _value(parameter: Any, draw: Random) -> str:
    """A value, by the type that the parser gives it: mostly one that may be."""
    if draw.random() < 0.06:
        return strange_word(draw)
    if parameter.name in LIKELY and draw.random() < 0.75:
        return draw.choice(LIKELY[parameter.name])
    if "--set" in parameter.opts:
        return draw.choice(SETTINGS)
    if "--device" in parameter.opts:
        return draw.choice(["cpu", "cpu", "cpu", draw.choice(WORDS)])
    kind = str(parameter.type_descriptor.annotation)
    if "int" in kind:
        return draw.choice(["1", "1", "2", "2", "3", "4", "8", "0", "-1", "100000000000"])
    if "float" in kind:
        return draw.choice(["0.001", "0.5", "1", "1", "2.5", "1e30", "0", "nan", "-1"])
    return draw.choice(PATHS if ("Path" in kind) != (draw.random() < 0.15) else WORDS)
