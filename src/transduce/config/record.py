"""What all records of the configuration share: they are frozen and strict, and what is wrong in one is one line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeGuard, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from transduce.config.limits import HOW_TO_SWITCH_OFF, PATTERNS_IN_WORDS
from transduce.errors import ConfigError, quoted, shown

__all__ = ["Record", "Tagged", "config_from_mapping", "nearest_name"]

LONGEST_COMPARED = 100  # of a name that is not known; comparing takes the square of its length

# What pydantic puts among the keys where a problem is: which of two kinds a corpus is, and that a key is the problem.
A_NAME, A_TABLE = "<name>", "<table>"
NOT_IN_RECIPES = frozenset({A_NAME, A_TABLE, "[key]"})


class Record(BaseModel):
    """A table of settings: nothing in it changes, no value becomes another, and no unknown key is taken."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    def fields_kept_with(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the fields that the record has, too, that it becomes by some changes."""
        del changes
        return self.model_dump()


class Tagged(Record):
    """The base of records of which a table is one: the field ``tag`` says which, ``usual`` where it does not.

    Calling the base makes the record that is named. A record is a member by having a default for that field.
    """

    tag: ClassVar[str]
    usual: ClassVar[str]
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
        return cls not in cls.members.values()

    @classmethod
    def member(cls, values: Mapping[str, Any]) -> type[Self]:
        """The record that values are of. Raises ConfigError if they name none."""
        name = values.get(cls.tag, cls.usual)
        if not isinstance(name, str) or name not in cls.members:
            raise ConfigError(f"{cls.tag}: should be {_one_of(cls.members)}, got {quoted(name)}")
        return cls.members[name]  # type: ignore[return-value]

    def fields_kept_with(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """All, unless the tag changes."""
        kind = self.members.get(str(changes.get(self.tag)), type(self))
        return self.model_dump(include=set(kind.model_fields))

    @classmethod
    def named(cls, values: Any) -> Any:
        """The values of a table with their tag, for the union of the members."""
        return {cls.tag: cls.usual, **values} if isinstance(values, dict) else values


RecordT = TypeVar("RecordT", bound=Record)


def config_from_mapping(kind: type[RecordT], values: Mapping[str, Any], *, where: str) -> RecordT:
    """Build a ``kind`` from plain values, as read from TOML or JSON.

    Raises ConfigError, one line that begins with ``where``, for an unknown key (with the nearest known) or a bad value.

    >>> from transduce.config import ModelConfig
    >>> config_from_mapping(ModelConfig, {"d_modle": 512}, where="recipe.toml")
    Traceback (most recent call last):
    transduce.errors.ConfigError: recipe.toml: unknown key d_modle; did you mean d_model?
    """
    try:
        if issubclass(kind, Tagged) and kind.is_base():
            kind = kind.member(values)
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(f"{where}: {_explain(kind, error.errors()[0])}") from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _explain(kind: type[Record], problem: ErrorDetails) -> str:
    names, kind = _way(kind, [str(part) for part in problem["loc"]])
    key, got = shown(".".join(names)) if names else "", problem["input"]
    match problem["type"]:
        case "extra_forbidden":
            others = [] if not issubclass(kind, Tagged) else [
                tag for tag, member in kind.members.items() if names[-1] in member.model_fields
            ]  # fmt: skip
            if issubclass(kind, Tagged) and others:
                tag, mine = ".".join([*names[:-1], kind.tag]), kind.model_fields[kind.tag].default
                return f"{key} goes with {tag} = {_one_of(others)}, got {tag} = {mine!r}"
            return f"unknown key {key}; {nearest_name(names[-1], kind.model_fields)}"
        case "value_error":
            reason = problem["msg"].removeprefix("Value error, ")
            return f"{key}: {reason}" if key else reason
        case "union_tag_invalid":
            tag = problem["ctx"]["discriminator"].strip("'")
            key, got, reason = f"{key}.{tag}", got[tag], f"should be one of {problem['ctx']['expected_tags']}"
        case "string_pattern_mismatch":
            reason = PATTERNS_IN_WORDS[problem["ctx"]["pattern"]]
        case _:
            reason = problem["msg"][0].lower() + problem["msg"][1:]
    hint = HOW_TO_SWITCH_OFF.get(names[-1]) if problem["type"] == "finite_number" else None
    return f"{key}: {reason}, got {quoted(got)}{f'; {hint}' if hint else ''}"


def _way(kind: type[Record], parts: Sequence[str]) -> tuple[list[str], type[Record]]:
    """The keys of a recipe that lead to a problem, and the record in which the last of them is."""
    names: list[str] = []
    members: Mapping[str, type[Record]] = {}
    inner: type[Record] | None = kind
    for part in parts:
        if members:  # which record it is: no key
            inner, members = members[part], {}
            continue
        kind, inner = inner or kind, None
        if "corpus" in names and part in NOT_IN_RECIPES:
            continue
        names.append(part)
        field = kind.model_fields.get(part)
        if field is not None:
            inner = next(filter(_is_record, get_args(field.annotation) or [field.annotation]), None)
            members = inner.members if inner is not None and issubclass(inner, Tagged) else {}
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
    """A clause for error messages: the known name most like ``name``, or all of them where none is like it.

    >>> nearest_name("bsae", ["base", "big"])
    'did you mean base?'
    """
    names = list(known)
    near = difflib.get_close_matches(name[:LONGEST_COMPARED], names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
