"""What all records of the configuration share: they are frozen and strict, and what is wrong in one is one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeGuard, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from transduce.errors import ConfigError, TransduceError, quoted, shown

# Past such limits a run does not end in the time, or fit into the memory, that anybody has, or a number overflows.
# They are far above what is of use: who meets one has made a slip.
MAX_SEED = 2**63 - 1
MAX_VOCABULARY_SIZE = 10**7
Count = Annotated[int, Field(ge=1, le=10**12)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]

# Numbers that some would set to infinity: what says the same.
INFINITY_HINTS: Mapping[str, str] = {
    "max_length_ratio": "1e9 leaves all pairs in",
    "max_minutes": "leave it out for a run without limit",
    "checkpoint_every_minutes": "leave it out for none",
    "clip_norm": "leave it out for none",
}
MAX_COMPARED_CHARACTERS = 100  # of a name that is not known; comparing takes the square of its length

# What pydantic puts among the keys where a problem is: which of two kinds a corpus is, and that a key is the problem.
A_NAME, A_TABLE = "<name>", "<table>"
NOT_IN_RECIPES = frozenset({A_NAME, A_TABLE, "[key]"})


class Record(BaseModel):
    """A table of settings: nothing in it changes, no value becomes another, and no unknown key is taken."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


def matching(pattern: str, words: str) -> AfterValidator:
    """A check that all of a string is matching a pattern, which messages tell in words."""

    def check(name: str) -> str:
        if not re.fullmatch(pattern, name):
            raise ValueError(f"should be {words}, got {quoted(name)}")
        return name

    return AfterValidator(check)


class Tagged(Record):
    """The base of records of which a table is one: the field ``tag`` says which, ``default_tag`` where it does not.

    Calling the base makes the record that is named. A record is a member by having a default for that field.
    """

    tag: ClassVar[str]
    default_tag: ClassVar[str]
    members: ClassVar[dict[str, type[Tagged]]]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        field = cls.model_fields[cls.tag]
        if not field.is_required():
            cls.members[field.default] = cls

    def __new__(cls, **values: Any) -> Self:  # noqa: D102  (it speaks through its class)
        return super().__new__(cls.member(values) if cls.is_base() else cls)

    @classmethod
    def is_base(cls) -> bool:
        """Whether this stands for its members, and is none of them."""
        return "members" in vars(cls)

    @classmethod
    def member(cls, values: Mapping[str, Any]) -> type[Self]:
        """The record that values are of. Raises ConfigError if they name none."""
        name = values.get(cls.tag, cls.default_tag)
        if not isinstance(name, str) or name not in cls.members:
            raise ConfigError(f"{cls.tag}: should be {_one_of(cls.members)}, got {quoted(name)}")
        return cls.members[name]  # type: ignore[return-value]

    def carried_over(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The values that stay where some change: if the tag does, those that the record has, too, that it becomes."""
        kind = self.members.get(str(changes.get(self.tag)), type(self))
        return self.model_dump(include=set(kind.model_fields))

    @classmethod
    def named(cls, values: Any) -> Any:
        """The values of a table with their tag, for the union of the members."""
        return {cls.tag: cls.default_tag, **values} if isinstance(values, dict) else values


RecordT = TypeVar("RecordT", bound=Record)


def config_from_mapping(
    kind: type[RecordT], values: Mapping[str, Any], *, where: str | Path, error: type[TransduceError] = ConfigError
) -> RecordT:
    """Build a ``kind`` from plain values, as read from TOML or JSON.

    Raises ``error``, one line that begins with ``where``, for an unknown key (with the nearest known) or a bad value.

    >>> from transduce.config import ModelConfig
    >>> config_from_mapping(ModelConfig, {"d_modle": 512}, where="recipe.toml")
    Traceback (most recent call last):
    transduce.errors.ConfigError: recipe.toml: unknown key d_modle; did you mean d_model?
    """
    try:
        if issubclass(kind, Tagged) and kind.is_base():
            kind = kind.member(values)
        return kind.model_validate(dict(values))
    except ValidationError as cause:
        raise error(f"{where}: {_explain(kind, cause.errors()[0])}") from None
    except ConfigError as cause:
        raise error(f"{where}: {cause}") from None


def _explain(kind: type[Record], problem: ErrorDetails) -> str:
    names, kind = _key_path(kind, [str(part) for part in problem["loc"]])
    key, got = shown(".".join(names)) if names else "", problem["input"]
    match problem["type"]:
        case "extra_forbidden":
            members = kind.members if issubclass(kind, Tagged) else {}
            others = [name for name, member in members.items() if names[-1] in member.model_fields]
            if issubclass(kind, Tagged) and others:
                tag, mine = ".".join([*names[:-1], kind.tag]), kind.model_fields[kind.tag].default
                return f"{key} goes with {tag} = {_one_of(others)}, got {tag} = {mine!r}"
            return f"unknown key {key}; {nearest_name(names[-1], kind.model_fields)}"
        case "value_error":
            reason = problem["msg"].removeprefix("Value error, ")
            return f"{key}: {reason}" if key else reason
        case "union_tag_invalid":
            assert issubclass(kind, Tagged)
            key, got, reason = f"{key}.{kind.tag}", got[kind.tag], f"should be {_one_of(kind.members)}"
        case _:
            reason = problem["msg"][0].lower() + problem["msg"][1:]
    hint = INFINITY_HINTS.get(names[-1]) if problem["type"] == "finite_number" else None
    return f"{key}: {reason}, got {quoted(got)}{f'; {hint}' if hint else ''}"


def _key_path(kind: type[Record], parts: Sequence[str]) -> tuple[list[str], type[Record]]:
    """The keys of a recipe that lead to a problem, and the record in which the last of them is."""
    names: list[str] = []
    for part in parts:
        if issubclass(kind, Tagged) and kind.is_base():  # which of its members it is: no key
            kind = kind.members[part]
        elif "corpus" not in names or part not in NOT_IN_RECIPES:
            names.append(part)
            field = kind.model_fields.get(part)
            found = () if field is None else get_args(field.annotation) or (field.annotation,)
            for inner in filter(_is_record, found):
                kind = next((each for each in inner.__mro__ if "members" in vars(each)), inner)
    return names, kind


def _is_record(kind: object) -> TypeGuard[type[Record]]:
    return isinstance(kind, type) and issubclass(kind, Record)


def _one_of(names: Mapping[str, Any] | Sequence[str]) -> str:
    """Names as a choice.

    >>> _one_of(["a", "b", "c"])
    "'a', 'b' or 'c'"
    """
    *most, last = map(repr, names)
    return f"{', '.join(most)} or {last}" if most else last


def nearest_name(name: str, known: Mapping[str, Any] | list[str]) -> str:
    """A clause for error messages: the known name most matching ``name``, or all of them where none is matching it.

    >>> nearest_name("bsae", ["base", "big"])
    'did you mean base?'
    """
    names = list(known)
    near = difflib.get_close_matches(name[:MAX_COMPARED_CHARACTERS], names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
