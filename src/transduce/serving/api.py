"""The APIs of the server: each is a class in ``serving/apis`` whose methods say which routes they answer."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from transduce.serving import apis
from transduce.serving.access import Client
from transduce.serving.fields import Fields, last_text
from transduce.serving.http import ApiError, as_api_error, counted, json_response, read_values, while_connected
from transduce.serving.state import ServerState

__all__ = ["Api", "Ask", "Endpoint", "all_apis", "endpoint", "endpoints_of", "error_response"]

CLIENT_GONE = 499  # as nginx calls it: nobody reads the answer

T = TypeVar("T")
FieldsT = TypeVar("FieldsT", bound=Fields)
Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a method of an API is called."""

    methods: Sequence[str]
    paths: Sequence[str]
    gives: Any  # the shape of its answer
    example: Mapping[str, Any] = field(default_factory=dict)  # fields of a request
    tag: str = ""  # of the description; that of the API by default
    status: int = 200  # of its answer
    statuses: Mapping[int, str] = field(default_factory=dict)  # further ones
    is_open: bool = False  # also to requests without an API key where one is needed


def endpoint(methods: str, *paths: str, gives: Any, **options: Any) -> Callable[[Method], Method]:
    """Declare that a method of an ``Api`` answers routes: ``methods`` as in "GET POST", ``options`` of ``Endpoint``.

    The method takes nothing, or an ``Ask`` with the fields that it reads; its docstring describes it. ``gives`` is an
    example of its JSON with types for values, as in {"words": [str], "score?": float | None}, where "?" marks a key
    that may be absent; or the class of a response; or a tuple of several of these; or None: there is no content.
    """

    def declared(method: Method) -> Method:
        method.endpoint = Endpoint(methods.split(), paths, gives, **options)  # type: ignore[attr-defined]
        return method

    return declared


@dataclass(frozen=True, slots=True)
class Ask(Generic[FieldsT]):
    """A request with its fields and its client."""

    api: Api
    request: Request
    fields: FieldsT
    client: Client
    headers: dict[str, str] = field(default_factory=dict)  # of the answer

    def counted(self, n_texts: int, n_characters: int, *, is_document: bool = False) -> AbstractContextManager[None]:
        """Count characters of the client, as ``http.counted``."""
        over_quota = ApiError(*self.api.over_quota)
        return counted(self.client, n_texts, n_characters, over_quota=over_quota, is_document=is_document)

    async def done(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work; cancel it if the client goes away."""
        return await while_connected(self.request, work)


class Api:
    """The endpoints of one API, and the shape of its errors."""

    name: ClassVar[str]  # in measurements
    tag: ClassVar[str]  # in the description
    prefixes: ClassVar[tuple[str, ...]] = ()  # of paths whose errors have its shape; all others have LibreTranslate's
    over_quota: ClassVar[tuple[int, str]] = (403, "The quota of this month is used up")
    error: ClassVar[Any] = {"error": str}  # the shape of an error

    def __init__(self, state: ServerState, prefix: str) -> None:
        """``prefix``: what all paths begin with, as in "/translator"."""
        self.state, self.prefix = state, prefix

    @classmethod
    def error_body(cls, error: ApiError) -> object:
        """Return an error as the API writes it."""
        return {"error": error.message}

    def routes(self) -> Iterator[Route]:
        """Yield the routes that the methods answer."""
        for name, declared in endpoints_of(type(self)):
            for path in declared.paths:
                yield Route(path, self._answered(path, getattr(self, name), declared), methods=list(declared.methods))

    def _answered(
        self, path: str, method: Callable[..., Awaitable[Any]], declared: Endpoint
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that answers any error in the shape of the API, and is measured."""
        kind = fields_of(method)

        async def answer(request: Request) -> Response:
            begun = time.monotonic()
            try:
                response = await self._called(request, method, kind, declared)
            except ClientDisconnect:
                response = Response(status_code=CLIENT_GONE)
            except Exception as error:
                response = error_response(self, as_api_error(error))
            self.state.metrics.request(self.name, path, response.status_code, time.monotonic() - begun)
            return response

        return answer

    async def _called(
        self, request: Request, method: Callable[..., Awaitable[Any]], kind: type[Fields] | None, declared: Endpoint
    ) -> Response:
        if kind is None:
            result, headers = await method(), {}
        else:
            client = self.state.access.guest if declared.is_open else self.state.client_before_body(request)
            with self.state.bodies.held() as hold:
                values = await read_values(request, hold, takes_file=kind.takes_file(), max_bytes=kind.max_bytes)
                values |= request.path_params
                key = last_text(values, "api_key") or last_text(values, "auth_key")
                ask = Ask(self, request, kind(values), client or self.state.client(request, key))
                result, headers = await method(ask), ask.headers
        if result is None:
            return Response(status_code=declared.status)
        return result if isinstance(result, Response) else json_response(result, declared.status, headers)


def error_response(api: Api | type[Api], error: ApiError) -> Response:
    """Return an error in the shape of an API."""
    return json_response(api.error_body(error), error.status, error.headers)


def fields_of(method: Callable[..., Any]) -> type[Fields] | None:
    """Return the fields that an endpoint reads; None if it does not read its request."""
    hint = get_type_hints(method).get("ask")
    return None if hint is None else get_args(hint)[0]


def endpoints_of(api: type[Api]) -> Iterator[tuple[str, Endpoint]]:
    """Yield the methods of an API that answer routes, by name."""
    return ((name, each.endpoint) for name, each in vars(api).items() if hasattr(each, "endpoint"))


@cache
def all_apis() -> tuple[type[Api], ...]:
    """Return the classes of all APIs: those that the modules of ``serving/apis`` define."""
    modules = [importlib.import_module(f"{apis.__name__}.{each.name}") for each in pkgutil.iter_modules(apis.__path__)]
    return tuple(
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Api) and each.__module__ == module.__name__
    )
