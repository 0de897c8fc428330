"""The options of searches, made from the fields of their records."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic.fields import FieldInfo
from typer import Option

from transduce.cli.options import SEARCH
from transduce.config.decoding import SEARCH_FIELDS, DecodingOptions
from transduce.config.search import BeamSearchConfig, Flag
from transduce.errors import ConfigError

__all__ = ["SHARED_FIELDS", "decoding_options", "flags_of"]

FLAGS: Mapping[str, Flag] = {
    name: flag for name, field in SEARCH_FIELDS.items() for flag in field.metadata if isinstance(flag, Flag)
}

# Those that suit any number of requests together: of beam search, one result for each.
SHARED_FIELDS = tuple(name for name in FLAGS if name in BeamSearchConfig.model_fields.keys() - {"kind", "n_best"})


def decoding_options(*fields: str, **help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the options of these fields, or of all; it gets what was set as its parameter ``decoding``.

    ``help`` replaces the help of a field. The verb raises ConfigError for a beam beside ``--sample``.
    """
    fields = fields or tuple(FLAGS)

    def decorated(verb: Callable[..., Any]) -> Callable[..., Any]:
        parameters = {FLAGS[field].name.removeprefix("--").replace("-", "_"): field for field in fields}

        @wraps(verb)
        def called(**values: Any) -> Any:
            given = {field: values.pop(parameter) for parameter, field in parameters.items()}
            set_flags = {field: FLAGS[field].value for field, value in given.items() if value is True}
            decoding = DecodingOptions(
                **{field: each for field, each in given.items() if each is not False} | set_flags
            )
            if decoding.changes.get("kind") == "sampling":
                for option, value in flags_of(decoding, "beam_size", "n_best").items():
                    raise ConfigError(f"--sample writes one translation of each line; leave out {option} {value}")
            return verb(**values, decoding=decoding)

        signature = inspect.signature(verb, eval_str=True)
        made = [_parameter(name, SEARCH_FIELDS[field], help.get(field)) for name, field in parameters.items()]
        others = [each for name, each in signature.parameters.items() if name != "decoding"]
        place = list(signature.parameters).index("decoding")
        ordered = [*others[:place], *made, *others[place:]]
        called.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in ordered]
        )
        return called

    return decorated


def flags_of(decoding: DecodingOptions, *fields: str) -> dict[str, Any]:
    """Return the values of some fields, or of all, that were given, by the names of their options."""
    named = fields or tuple(FLAGS)
    return {FLAGS[field].name: value for field, value in decoding.changes.items() if field in named and field in FLAGS}


def _parameter(name: str, field: FieldInfo, help: str | None) -> inspect.Parameter:
    """Return the parameter of the option of a field."""
    [flag] = (each for each in field.metadata if isinstance(each, Flag))
    help, made = help or flag.help, partial(inspect.Parameter, name, inspect.Parameter.KEYWORD_ONLY)
    if flag.value is not None:
        return made(default=False, annotation=Annotated[bool, Option(flag.name, help=help, rich_help_panel=SEARCH)])
    least, most, kind = _bounds(field)
    has_default = flag.default is not None
    option = Option(
        flag.name, min=least, max=most if flag.max is None else flag.max, help=help, show_default=has_default,
        rich_help_panel=SEARCH,
    )  # fmt: skip
    annotation: Any = Annotated[kind if has_default else kind | None, option]
    return made(default=flag.default, annotation=annotation)


def _bounds(field: FieldInfo) -> tuple[Any, Any, Any]:
    """Return the least and the greatest value of a field, and its type, which may be a ``Literal`` of choices."""
    constraints, kind = list(field.metadata), field.annotation
    [kind] = (each for each in get_args(kind) if each is not NoneType) if NoneType in get_args(kind) else [kind]
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        constraints += [constraint for info in inner for constraint in getattr(info, "metadata", [info])]
    least = [getattr(each, name) for each in constraints for name in ("ge", "gt") if hasattr(each, name)]
    most = [each.le for each in constraints if hasattr(each, "le")]
    return next(iter(least), None), next(iter(most), None), kind
