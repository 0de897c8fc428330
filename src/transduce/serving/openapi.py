"""The description of all routes for programs (OpenAPI), made from the endpoints: their types and docstrings."""

from __future__ import annotations

import importlib.metadata
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from starlette.responses import Response

from transduce.serving.api import Api, Endpoint, all_apis, endpoints_of, fields_of

__all__ = ["openapi"]

FORMS = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
STATUSES = {
    400: "The request is invalid",
    403: "The API key is wrong or missing, or its quota is used up",
    408: "The request arrived too slowly",
    413: "The request is too large, or takes longer than it may",
    415: "The content coding of the body is not supported",
    429: "Too many requests; Retry-After says when to try again",
    500: "An error of the server",
    503: "The server is busy or stopping",
}
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


@cache
def openapi() -> dict[str, Any]:
    """Return the description."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for api in all_apis():
        for name, declared in endpoints_of(api):
            for path in declared.paths:
                for method in declared.methods:
                    operation = _operation(api, getattr(api, name), declared, method, schemas)
                    paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "transduce serve",
            "version": importlib.metadata.version("transduce"),
            "description": "Translation, parsing and generation with models of transduce. The root has LibreTranslate's"
            " API, /v2 DeepL's. null is as if absent.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(
    api: type[Api], function: Callable[..., Any], declared: Endpoint, method: str, schemas: dict[str, Any]
) -> dict[str, Any]:
    summary, _, more = (inspect.getdoc(function) or "").partition("\n\n")
    operation: dict[str, Any] = {"tags": [declared.tag or api.tag], "summary": summary.removesuffix(".")}
    if more:
        operation["description"] = " ".join(more.split())
    fields, statuses = fields_of(function), dict(declared.statuses)
    if fields is not None:
        statuses = dict([api.over_quota]) | STATUSES | statuses
        operation |= _request(fields.schema(), method, declared.example)
    answers = {200: {"description": "Success", "content": _content(get_type_hints(function)["return"], schemas)}}
    refused = {"application/json": {"schema": _schema(api.error, schemas)}}
    answers |= {code: {"description": statuses[code], "content": refused} for code in sorted(statuses)}
    return operation | {"responses": {str(code): each for code, each in answers.items()}}


def _request(schema: dict[str, Any], method: str, example: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the fields of a request: in the query, or in a body of any form."""
    if method == "POST":
        content = {"schema": schema} | ({"example": example} if example else {})
        return {"requestBody": {"required": bool(schema["required"]), "content": dict.fromkeys(FORMS, content)}}
    parameters = [
        {"name": name, "in": "query", "required": name in schema["required"], "schema": each}
        for name, each in schema["properties"].items()
    ]
    return {"parameters": parameters}


def _content(hint: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the kinds of an answer: JSON, and the media types of responses."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    responses = [each for each in kinds if isinstance(each, type) and issubclass(each, Response)]
    of_json = [_schema(each, schemas) for each in kinds if each not in responses]
    content: dict[str, Any] = {str(each.media_type): {"type": "string"} for each in responses if each.media_type}
    if of_json:
        content["application/json"] = of_json[0] if len(of_json) == 1 else {"oneOf": of_json}
    return {kind: {"schema": schema} for kind, schema in content.items()}


def _schema(hint: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a type; those of typed dictionaries are added to ``schemas``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], schemas)}
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"oneOf": [_schema(each, schemas) for each in arguments]}
    if not is_typeddict(hint):
        return {"type": "object"}
    if hint.__name__ not in schemas:
        schemas[hint.__name__] = {}
        hints = get_type_hints(hint, include_extras=True)
        optional = {name for name, each in hints.items() if get_origin(each) is NotRequired}
        properties = {
            name: _schema(get_args(each)[0] if name in optional else each, schemas) for name, each in hints.items()
        }
        required = [name for name in hints if name not in optional]
        schemas[hint.__name__] |= {"type": "object", "properties": properties, "required": required}
    return {"$ref": f"#/components/schemas/{hint.__name__}"}
