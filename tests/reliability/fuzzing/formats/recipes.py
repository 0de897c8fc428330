"""Recipes: valid ones damaged, new ones with random values, and the same with ``--set``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from random import Random
from typing import Any, Literal, get_args, get_origin

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.commands import run_command
from fuzzing.damage import BYTES, TOML
from fuzzing.sources import RECIPES, Sources
from fuzzing.strange_values import ODD_TEXTS, strange_toml
from transduce.config import RunConfig

__all__ = ["recipe_format"]

# The records that a table may be, and every field that one of them has.
TABLES: dict[str, tuple[Any, ...]] = {
    name: get_args(field.annotation) or (field.annotation,) for name, field in RunConfig.model_fields.items()
}
FIELDS = [
    (table, field)
    for table, records in TABLES.items()
    for field in dict.fromkeys(field for record in records for field in record.model_fields)
]
STOP_AFTER_S = 6.0
# What makes a run short, whatever the recipe says; the recipe is checked as it is before.
CUTS = {
    "model.n_encoder_layers": "1", "model.n_decoder_layers": "1", "model.d_model": "16", "model.d_ff": "16",
    "model.n_heads": "2", "model.d_k": "8", "model.d_v": "8", "data.corpus": '"files"', "data.vocab_size": "300",
    "data.train_src": '"text/test.en"', "data.train_tgt": '"text/test.de"', "training.max_updates": "2",
    "training.max_tokens_per_batch": "300", "search.beam_size": "1", "search.n_best": "1",
    "search.max_extra_tokens": "3",
    "training.validation_sentences": "1",
}  # fmt: skip


def recipe_format(sources: Sources) -> Format:
    """All cases of recipes."""
    recipes = {path.stem: path.read_bytes() for path in sorted(RECIPES.glob("*.toml"))}
    recipes["small"] = sources.recipe.read_bytes()
    stems = [f"damaged/{kind}" for kind in (*BYTES, *TOML)]
    stems += [f"{how}/{table}.{field}" for how in ("field", "set") for table, field in FIELDS]
    stems += [f"fields/{number}" for number in range(100)]  # so many, of values that may be

    def play(case: Case, place: CaseFolders) -> str:
        draw = case.draw()
        how, name = case.parts
        settings: list[str] = []
        content = recipes["small"]
        if how == "damaged":
            content = (BYTES | TOML)[name](recipes[draw.choice(list(recipes))], draw)
        elif how == "set":
            settings = [f"{name}={strange_toml(draw)}".replace("\0", ""), *_more_settings(draw)]
        else:
            content = _generated(draw, name, 3) if how == "field" else _generated(draw, None, int(name) // 10)
        (place.folder / "r.toml").write_bytes(content)
        return _read(place, sources, draw, settings, kept=name)

    return Format("recipe", stems, play)


def _more_settings(draw: Random) -> list[str]:
    if draw.random() < 0.7:
        return []
    table, field = draw.choice(FIELDS)
    odd = draw.choice(ODD_TEXTS).replace("\0", "")
    return [draw.choice([f"{table}.{field}", f"{table}.{odd}={odd}", f"{odd}.{field}=1", odd, "=", ".=", f"{table}=1",
                         f"{table}.{field}.x=1"])]  # fmt: skip


def _generated(draw: Random, strange: str | None, n_fields: int) -> bytes:
    """A recipe of random fields with values that may be; ``strange`` has one that mostly may not."""
    values: dict[str, dict[str, str]] = {}
    for table, field in draw.sample(FIELDS, draw.randint(0, n_fields)):
        values.setdefault(table, {})[field] = _likely(table, field, draw)
    if strange is not None:
        table, field = strange.split(".")
        values.setdefault(table, {})[field] = draw.choice([strange_toml, strange_toml, _likely_number])(draw)
    preset = draw.choice(
        ["", 'preset = "tiny"', 'preset = "tiny"', 'preset = "base"', f"preset = {strange_toml(draw)}"][
            : 4 + (draw.random() < 0.1)
        ]
    )
    tables = "".join(
        f"[{table}]\n" + "".join(f"{field} = {value}\n" for field, value in fields.items())
        for table, fields in values.items()
    )
    return f"{preset}\n{tables}".encode("utf-8", "surrogatepass")


def _likely(table: str, field: str, draw: Random) -> str:
    """A value of about the right kind."""
    info = draw.choice([record.model_fields[field] for record in TABLES[table] if field in record.model_fields])
    if get_origin(info.annotation) is Literal:
        return json.dumps(draw.choice(get_args(info.annotation)))
    match info.default:
        case bool():
            return draw.choice(["true", "false"])
        case int():
            return str(draw.choice([1, 2, 4, 8, 16, 64, 300, 512, 1000, info.default, info.default]))
        case float():
            return str(draw.choice([0.0, 0.1, 0.5, 0.9, 1.0, info.default]))
        case str():
            return json.dumps(draw.choice([info.default, info.default, "files", "en-fr", "text/train.en", "x"]))
        case _:
            likely = (
                ["1", "2.5"] if "int" in str(info.annotation) or "float" in str(info.annotation) else ['"text/test.en"']
            )
            return draw.choice(likely * 4 + ['"text/train.ptb"', '"nowhere"', "1", "{files = 1.0}"])


def _likely_number(draw: Random) -> str:
    return draw.choice(["1", "2", "4", "8", "0.5", "1.0", "100", "1000", "100000", "10000000"])


def _read(place: CaseFolders, sources: Sources, draw: Random, settings: Sequence[str], *, kept: str) -> str:
    """Have a verb read the recipe; some go on to train by it."""
    verbs = ["prepare", "train", "train"] if settings else ["model"] * 5 + ["doctor", "prepare", "train"]
    verb = draw.choice(verbs)
    words: list[object]
    if verb in ("prepare", "train"):
        shutil.copytree(sources.text, place.folder / "text")
        cuts = [f"{key}={value}" for key, value in CUTS.items() if key != kept]
        words = [verb, "r.toml", "--out", "out", *(word for each in (*settings, *cuts) for word in ("--set", each))]
        words += ["--device", "cpu"] if verb == "train" else []
        words += ["--store", sources.run / "store"] if verb == "train" and draw.random() < 0.5 else []
    else:
        words = [verb, "r.toml"]
    words += ["--json"] if verb != "doctor" and draw.random() < 0.5 else []
    outcome = run_command(
        place, words, stop_after_s=STOP_AFTER_S, speaks_on_stdout=verb == "doctor", codes=(0, 1, 2, 143)
    )
    if outcome.code == 0 and verb == "train":
        require((place.folder / "out" / "model" / "model.safetensors").is_file(), "trained, and there is no model")
    if outcome.code == 0 and verb == "model":
        require(len(outcome.out) > 100, "exit code 0 without a word", outcome.err)
    if outcome.code == 143:
        return "stopped"
    return outcome.word if outcome.code else f"{verb} done"
