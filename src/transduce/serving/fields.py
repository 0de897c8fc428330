"""The fields that an endpoint takes, declared once: by this record they are read, refused and described."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Any, ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints

from transduce.serving.http import ApiError, FormValues, Upload

__all__ = ["Fields", "Names", "Texts", "Values", "field", "last_text"]

MAX_NAME_CHARACTERS = 50  # of a field, in a message
REQUIRED: Any = object()
TRUTH = {"true": True, "1": True, "false": False, "0": False}


class Texts(list[str]):
    """One or more texts."""

    is_list = False  # whether they came as a list


class Names(list[str]):
    """Names, in a list or as one string with commas."""


class Declared(NamedTuple):
    """A field of an endpoint."""

    hint: Any  # str, Texts, Names, Upload, bool, int, float, a Literal of strings, list[Values]; None if it is refused
    default: Any
    description: str
    low: float | None
    high: float | None


def field(
    default: Any = REQUIRED, description: str = "", *, low: float | None = None, high: float | None = None
) -> Any:
    """Declare a field of ``Fields``, whose type is its annotation.

    ``low`` and ``high`` are the limits of a number, ``low`` also the length of a string. What is absent, null or, with
    a default, empty, has the default.
    """
    return Declared(None, default, description, low, high)


class Values:
    """Values by name: a request, or an object in one. Subclasses declare them by ``field``."""

    takes_others: ClassVar[bool] = False  # whether an unknown field has no effect; else it is refused

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Read the values of a request. Raises ApiError, naming the field, for a missing, unknown or wrong one."""
        known = self.declared()
        for name, value in values.items():
            if name not in known and value is not None and not self.takes_others:
                shown = f" {name!r}" if name.isidentifier() and len(name) <= MAX_NAME_CHARACTERS else ""
                raise ApiError(400, f"Invalid request: the field{shown} is not supported")
        for name, declared in known.items():
            setattr(self, name, _read(name, declared, values.get(name)))

    @classmethod
    @cache
    def declared(cls) -> Mapping[str, Declared]:
        """The fields by name; those of a base class come last."""
        hints = get_type_hints(cls)
        found = (
            (name, each) for base in cls.__mro__ for name, each in vars(base).items() if isinstance(each, Declared)
        )
        return {name: each._replace(hint=hints[name]) for name, each in found}

    @classmethod
    def takes_file(cls) -> bool:
        """Whether a field is a file."""
        return any(each.hint is Upload for each in cls.declared().values())

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of a request."""
        declared = cls.declared()
        return {
            "type": "object",
            "properties": {name: _described(each) for name, each in declared.items()},
            "required": [name for name, each in declared.items() if each.default is REQUIRED],
        }


class Fields(Values):
    """What an endpoint takes, from JSON, a form or the query."""

    max_bytes: ClassVar[int | None] = None  # of a body; None: as for texts, or for a file
    api_key: str = field("", "API key; or the header Authorization: Bearer KEY")
    auth_key: str = field("", "API key, as older clients of DeepL send it")


def last_text(values: Mapping[str, Any], name: str) -> str | None:
    """Return a string of a request; None if it is missing. Raises ApiError for something else."""
    return None if values.get(name) is None else str(_read(name, Declared(str, "", "", None, None), values[name]))


def _described(declared: Declared) -> dict[str, Any]:
    """Return the JSON schema of a field."""
    hint, default, description, low, high = declared
    text = {"type": "string"}
    if hint in (Texts, Names):
        schema: dict[str, Any] = {"oneOf": [text, {"type": "array", "items": text}]}
    elif hint is Upload:
        schema = {**text, "format": "binary"}
    elif get_origin(hint) is list:
        schema = {"type": "array", "items": get_args(hint)[0].schema()}
    elif get_origin(hint) is Literal:
        schema = {**text, "enum": [each for each in get_args(hint) if each]}
    else:
        schema = {"type": {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}[hint]}
    limits = {"minLength": low} if hint is str else {"minimum": low, "maximum": high}
    schema |= {name: limit for name, limit in limits.items() if limit is not None}
    if default is not REQUIRED and default not in ("", None):
        schema["default"] = default
    return schema | ({"description": description} if description else {})


def _read(name: str, declared: Declared, value: Any) -> Any:
    """Return the value of a field. Raises ApiError for one that is missing, or not of its type or within its limits."""
    hint = declared.hint
    is_several = hint in (Texts, Names)
    if isinstance(value, FormValues) and not is_several:
        value = value[-1]
    if declared.default is not REQUIRED and value in (None, ""):
        return Names() if hint is Names else declared.default
    if value is None or (value == "" and hint is str and declared.low):
        raise ApiError(400, f"Invalid request: missing {name} parameter")
    if hint is Upload:
        if not isinstance(value, Upload):
            raise ApiError(400, f"Invalid request: {name} should be a file in a form (multipart/form-data)")
        return value
    if is_several:
        return _texts(name, value) if hint is Texts else _names(name, value)
    if get_origin(hint) is list:
        return _objects(name, value, get_args(hint)[0])
    if hint in (int, float):
        return _number(name, declared, value)
    if hint is str:
        if not isinstance(value, str):
            raise ApiError(400, f"Invalid request: {name} should be a string")
        return _writable(value)
    if hint is bool:
        if str(value).lower() not in TRUTH:
            raise ApiError(400, f"Invalid request: {name} should be true or false")
        return TRUTH[str(value).lower()]
    if hint is NoneType:
        if value not in ([], [""]):
            raise ApiError(400, f"'{name}' is not supported.")
        return None
    choices = get_args(hint)
    given = str(int(value)) if isinstance(value, int) else value
    if given not in choices:
        raise ApiError(400, f"Invalid request: {name} should be {' or '.join(filter(None, choices))}")
    return given


def _texts(name: str, value: Any) -> Texts:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in values):
        raise ApiError(400, f"Invalid request: {name} should be a string or a list of strings")
    texts = Texts(map(_writable, values))
    texts.is_list = len(value) > 1 if isinstance(value, FormValues) else isinstance(value, list)
    return texts


def _names(name: str, value: Any) -> Names:
    return Names(part.strip() for each in _texts(name, value) for part in each.split(",") if part.strip())


def _objects(name: str, value: Any, kind: type[Values]) -> list[Values]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ApiError(400, f"Invalid request: {name} should be a list of objects")
    return [kind(each) for each in value]


def _number(name: str, declared: Declared, value: Any) -> float:
    low, high = declared.low, declared.high
    assert low is not None
    assert high is not None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    is_whole = declared.hint is int
    if number is None or not low <= number <= high or (is_whole and number != int(number)):
        kind = "an integer" if is_whole else "a number"
        raise ApiError(400, f"Invalid request: {name} should be {kind} from {low:,g} to {high:,g}")
    return int(number) if is_whole else number


def _writable(text: str) -> str:
    """Return a text that can be written as UTF-8: JSON may have lone surrogates."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
