"""The description of all routes for programs (OpenAPI), made from the endpoints: their types and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args

from starlette.responses import Response

from transduce import __version__
from transduce.serving.api import Api, Endpoint, all_apis, endpoints_of, fields_of
from transduce.serving.fields import Fields

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
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", dict: "object"}


@cache
def openapi() -> dict[str, Any]:
    """Return the description."""
    paths: dict[str, dict[str, Any]] = {}
    for api in all_apis():
        for name, declared in endpoints_of(api):
            for path in declared.paths:
                for method in declared.methods:
                    operation = _operation(api, getattr(api, name), declared, path, method)
                    paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "transduce serve",
            "version": __version__,
            "description": "Translation, parsing and generation with models of transduce. The root has LibreTranslate's"
            " API, /v2 and /v3 DeepL's. null is as if absent.",
        },
        "paths": paths,
    }


def _operation(
    api: type[Api], function: Callable[..., Any], declared: Endpoint, path: str, method: str
) -> dict[str, Any]:
    summary, _, more = (inspect.getdoc(function) or "").partition("\n\n")
    operation: dict[str, Any] = {"tags": [declared.tag or api.tag], "summary": summary.removesuffix(".")}
    if more:
        operation["description"] = " ".join(more.split())
    fields, statuses = fields_of(function), dict(declared.statuses)
    if fields is not None:
        statuses = dict([api.over_quota]) | STATUSES | statuses
        operation |= _request(fields, path, method, declared.example)
    content = {} if declared.gives is None else {"content": _content(declared.gives)}
    answers = {declared.status: {"description": "Success"} | content}
    refused = {"application/json": {"schema": _schema(api.error)}}
    answers |= {code: {"description": statuses[code], "content": refused} for code in sorted(statuses)}
    return operation | {"responses": {str(code): each for code, each in answers.items()}}


def _request(fields: type[Fields], path: str, method: str, example: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the fields of a request: in the path, in the query, or in a body of any form."""
    schema = fields.schema()
    in_path = [name for name in schema["properties"] if f"{{{name}}}" in path]
    parameters = [_parameter(schema, name, "path") for name in in_path]
    for name in in_path:
        del schema["properties"][name]
    schema["required"] = [name for name in schema["required"] if name not in in_path]
    if method in ("POST", "PUT", "PATCH"):
        content = {"schema": schema} | ({"example": example} if example else {})
        kinds = FORMS[-1:] if fields.takes_file() else FORMS
        body = {"requestBody": {"required": bool(schema["required"]), "content": dict.fromkeys(kinds, content)}}
        return body | ({"parameters": parameters} if parameters else {})
    return {"parameters": parameters + [_parameter(schema, name, "query") for name in schema["properties"]]}


def _parameter(schema: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": name in schema["required"], "schema": schema["properties"][name]}


def _content(gives: Any) -> dict[str, Any]:
    """Return the kinds of an answer: JSON, and the media types of responses."""
    shapes = gives if isinstance(gives, tuple) else (gives,)
    responses = [each for each in shapes if isinstance(each, type) and issubclass(each, Response)]
    content: dict[str, Any] = {str(each.media_type): {"type": "string"} for each in responses}
    of_json = tuple(each for each in shapes if each not in responses)
    if of_json:
        content["application/json"] = _schema(of_json if len(of_json) > 1 else of_json[0])
    return {kind: {"schema": schema} for kind, schema in content.items()}


def _schema(shape: Any) -> dict[str, Any]:
    """Return the JSON schema of a shape."""
    if isinstance(shape, UnionType):
        shape = get_args(shape)
    match shape:
        case tuple():
            return {"oneOf": [_schema(each) for each in shape]}
        case [each]:
            return {"type": "array", "items": _schema(each)}
        case dict():
            properties = {name.removesuffix("?"): _schema(each) for name, each in shape.items()}
            return {"type": "object", "properties": properties, "required": [each for each in shape if each[-1] != "?"]}
        case _:
            return {"type": JSON_TYPES[shape]}
