"""The base classes of configuration records: frozen and strict, with one-line error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeGuard, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from transduce.errors import ConfigError, TransduceError, quoted, shown

# Upper limits far above any useful value: they catch typos before a number overflows or memory runs out.
MAX_SEED = 2**63 - 1
MAX_VOCABULARY_SIZE = 10**7
MAX_MINUTES = 10**6  # two years
Count = Annotated[int, Field(ge=1, le=10**12)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
ClosedFraction = Annotated[float, Field(ge=0.0, le=1.0)]

# What to write instead of infinity, by field.
INFINITY_HINTS: Mapping[str, str] = {
    "max_length_ratio": "1e9 keeps all pairs",
    "max_minutes": "omit it for a run without time limit",
    "checkpoint_every_minutes": "omit it for none",
    "clip_norm": "omit it for none",
}
# What other programs call a key, by its name here.
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "eps_ls": ("label_smoothing",),
    "p_drop": ("dropout", "dropout_rate"),
    "d_model": ("hidden_size", "hidden_dim", "embed_dim", "embedding_size"),
    "d_ff": ("ffn_dim", "intermediate_size", "dim_feedforward"),
    "n_heads": ("num_heads", "attention_heads", "heads"),
    "n_encoder_layers": ("encoder_layers", "num_encoder_layers", "num_layers"),
    "n_decoder_layers": ("decoder_layers", "num_decoder_layers"),
    "lr_factor": ("lr", "learning_rate"),
    "max_updates": ("epochs", "max_epochs", "max_steps", "train_steps"),
    "max_tokens_per_batch": ("batch_size", "max_tokens"),
    "n_accumulate": ("update_freq", "accumulate", "gradient_accumulation_steps"),
    "beam_size": ("beam", "num_beams"),
    "alpha": ("lenpen", "length_penalty"),
}
MAX_COMPARED_CHARACTERS = 100  # of an unknown key; comparing names takes quadratic time

# Parts of pydantic's error paths that are not recipe keys: tags of the ``corpus`` union, a marker for invalid keys.
A_NAME, A_TABLE = "<name>", "<table>"
NOT_IN_RECIPES = frozenset({A_NAME, A_TABLE, "[key]"})


class Record(BaseModel):
    """A table of settings: immutable, without type coercion, and without unknown keys."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False, defer_build=True
    )


def matching(pattern: str, words: str) -> AfterValidator:
    """Return a validator that requires a full match of ``pattern``, described in messages by ``words``."""

    def check(name: str) -> str:
        if not re.fullmatch(pattern, name):
            raise ValueError(f"should be {words}, got {quoted(name)}")
        return name

    return AfterValidator(check)


FileName = Annotated[str, Field(min_length=1), matching(r"[^\0]*", "a file name without NUL characters")]
FROM_LIST = BeforeValidator(lambda names: tuple(names) if isinstance(names, list) else names)


class Chosen(Record):
    """Base class of records, of which the field named ``tag`` chooses one. Calling the base creates that one."""

    tag: ClassVar[str]

    def __new__(cls, **values: Any) -> Self:  # noqa: D102  (documented by the class)
        return super().__new__(cls.member(values) if cls.is_base() else cls)

    @classmethod
    def is_base(cls) -> bool:
        """Return whether this is the base, not one of the records."""
        raise NotImplementedError

    @classmethod
    def member(cls, values: Mapping[str, Any]) -> type[Self]:
        """Return the record that ``values`` choose. Raises ConfigError for an unknown one."""
        raise NotImplementedError

    def carried_over(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the current values of the fields that the record chosen by ``changes`` has, too.

        A value that is not among those of that record's field of the same name is left out.
        """
        try:
            kind = self.member({self.tag: getattr(self, self.tag), **changes})
        except ConfigError:  # told when the changes are validated
            kind = type(self)
        values = self.model_dump(include=set(kind.model_fields))
        choices = {name: field.annotation for name, field in kind.model_fields.items()}
        return {
            name: value
            for name, value in values.items()
            if name == self.tag or get_origin(choices[name]) is not Literal or value in get_args(choices[name])
        }


class Tagged(Chosen):
    """Base class of a tagged union of records.

    ``default_tag`` selects the member if the field is missing. A subclass becomes a member by having a default for the
    tag field.
    """

    default_tag: ClassVar[str]
    members: ClassVar[dict[str, type[Tagged]]]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        field = cls.model_fields[cls.tag]
        if not field.is_required():
            cls.members[field.default] = cls

    @classmethod
    def is_base(cls) -> bool:
        """Return whether this is the base of a union, not a member."""
        return "members" in vars(cls)

    @classmethod
    def member(cls, values: Mapping[str, Any]) -> type[Self]:
        """Return the member that ``values`` select. Raises ConfigError for an unknown tag."""
        name = values.get(cls.tag, cls.default_tag)
        if not isinstance(name, str) or name not in cls.members:
            raise ConfigError(f"{cls.tag}: should be {one_of(cls.members)}, got {quoted(name)}")
        return cls.members[name]  # type: ignore[return-value]

    @classmethod
    def with_tag(cls, values: Any) -> Any:
        """Return the values of a table with their tag added, as the discriminated union needs it."""
        return {cls.tag: cls.default_tag, **values} if isinstance(values, dict) else values


RecordT = TypeVar("RecordT", bound=Record)


def config_from_mapping(
    kind: type[RecordT],
    values: Mapping[str, Any],
    *,
    where: str | Path,
    error: type[TransduceError] = ConfigError,
    shows_values: bool = True,
) -> RecordT:
    """Build a record from the values of a TOML or JSON table.

    Raises ``error``, one line that begins with ``where``, for an unknown key (with the closest known one) or an
    invalid value; ``shows_values`` = False keeps values, which may be secret, out of it.

    >>> from transduce.config import ModelConfig
    >>> config_from_mapping(ModelConfig, {"d_modle": 512}, where="recipe.toml")
    Traceback (most recent call last):
    transduce.errors.ConfigError: recipe.toml: unknown key d_modle; did you mean d_model?
    """
    try:
        if issubclass(kind, Chosen) and kind.is_base():
            kind = kind.member(values)
        return kind.model_validate(dict(values))
    except ValidationError as cause:
        raise error(f"{where}: {_explain(kind, cause.errors()[0], shows_values=shows_values)}") from None
    except ConfigError as cause:
        raise error(f"{where}: {cause}") from None


def _explain(kind: type[Record], problem: ErrorDetails, *, shows_values: bool) -> str:
    names, kind = _key_path(kind, [str(part) for part in problem["loc"]])
    key, got = shown(".".join(names)) if names else "", problem["input"]
    match problem["type"]:
        case "extra_forbidden":
            members = kind.members if issubclass(kind, Tagged) else {}
            others = [name for name, member in members.items() if names[-1] in member.model_fields]
            if issubclass(kind, Tagged) and others:
                tag, current = ".".join([*names[:-1], kind.tag]), kind.model_fields[kind.tag].default
                return f"{key} needs {tag} = {one_of(others)}, got {tag} = {current!r}"
            for name, synonyms in ELSEWHERE.items():
                if names[-1] in synonyms and name in kind.model_fields:
                    return f"unknown key {key}; it is {name} here"
            return f"unknown key {key}; {nearest_name(names[-1], kind.model_fields)}"
        case "value_error":
            reason = problem["msg"].removeprefix("Value error, ")
            return f"{key}: {reason}" if key and f"{key}." not in reason else reason
        case "union_tag_invalid":
            assert issubclass(kind, Tagged)
            key, got, reason = f"{key}.{kind.tag}", got[kind.tag], f"should be {one_of(kind.members)}"
        case "model_type" | "model_attributes_type":
            reason = "should be a table of keys"
        case _:
            reason = problem["msg"][0].lower() + problem["msg"][1:]
    hint = INFINITY_HINTS.get(names[-1]) if problem["type"] == "finite_number" else None
    found = f", got {quoted(got)}" if shows_values else ""
    return f"{key}: {reason}{found}{f'; {hint}' if hint else ''}"


def _key_path(kind: type[Record], parts: Sequence[str]) -> tuple[list[str], type[Record]]:
    """Return the recipe keys of an error's path, and the record that contains the last of them."""
    names: list[str] = []
    for part in parts:
        if issubclass(kind, Tagged) and kind.is_base():  # this part is a tag, not a key
            kind = kind.members[part]
        elif "corpus" not in names or part not in NOT_IN_RECIPES:
            names.append(part)
            field = kind.model_fields.get(part)
            types = () if field is None else get_args(field.annotation) or (field.annotation,)
            for inner in filter(_is_record, types):
                kind = next((each for each in inner.__mro__ if "members" in vars(each)), inner)  # or its union
    return names, kind


def _is_record(kind: object) -> TypeGuard[type[Record]]:
    return isinstance(kind, type) and issubclass(kind, Record)


def one_of(names: Mapping[str, Any] | Sequence[str]) -> str:
    """Join names with commas and "or".

    >>> one_of(["a", "b", "c"])
    "'a', 'b' or 'c'"
    """
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}" if others else last


def nearest_name(name: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str:
    """Return a hint for error messages: the known name closest to ``name``, or all names if none is close.

    Those ``elsewhere`` may be the closest, too, but are not listed.

    >>> nearest_name("bsae", ["base", "big"])
    'did you mean base?'
    """
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name[:MAX_COMPARED_CHARACTERS], [*names, *elsewhere], n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
