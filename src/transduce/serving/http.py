"""What all APIs share: reading requests of any size and speed, answers, and errors in each API's own shape."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

import transduce
from transduce.errors import ConfigError, DataError
from transduce.serving.access import Client, TooManyRequests
from transduce.serving.batching import Closed, DeadlineExceeded, QueueFull, TooLong

__all__ = [
    "ApiError", "Bodies", "FormValues", "Upload", "as_api_error", "counted", "json_response", "read_values", "report",
    "require_within", "too_long_if_data_error", "while_connected",
]  # fmt: skip

MAX_BODY_BYTES, MAX_UPLOAD_BYTES = 2 << 20, 64 << 20  # of a body without and with a file
MAX_HELD_BYTES, UNCOUNTED_BYTES = 256 << 20, 64 << 10  # of all bodies together, without the beginning of each
BODY_TIMEOUT_S, UPLOAD_TIMEOUT_S = 30.0, 300.0  # for a whole body to arrive
MAX_FIELDS = 5000
CODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # of a body, with the parameter of zlib

T = TypeVar("T")


class ApiError(Exception):
    """A request that is not fulfilled. The message is for the client: it does not repeat texts or keys."""

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None, closes: bool = False) -> None:
        """``closes``: the connection, where unread bytes may follow."""
        super().__init__(message)
        self.status, self.message, self.retry_after_s, self.closes = status, message, retry_after_s, closes

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        return headers | ({"Connection": "close"} if self.closes else {})


def as_api_error(error: Exception) -> ApiError:
    """Return what is answered when ``error`` was raised; a fault of our own is reported."""
    match error:
        case ApiError():
            return error
        case QueueFull() | TooManyRequests():
            return ApiError(429, f"Too many requests: {error}", retry_after_s=error.retry_after_s)
        case TooLong(n_jobs=n_jobs, n_possible=n_possible, timeout_s=timeout_s):
            return ApiError(
                413, f"The request has {n_jobs:,} sentences, of which about {n_possible:,} are done within the "
                f"{ceil(timeout_s):,} seconds that it may take here; send several smaller ones",
            )  # fmt: skip
        case DeadlineExceeded(n_done=n_done, n_jobs=n_jobs) if n_done:
            return ApiError(
                503, f"The server is too busy: {n_done:,} of {n_jobs:,} sentences were done in time; send fewer at "
                "once, or all later", retry_after_s=5,
            )  # fmt: skip
        case DeadlineExceeded() | TimeoutError():
            return ApiError(503, "The server is too busy: the request has waited too long", retry_after_s=5)
        case Closed():
            return ApiError(503, "The server is stopping", retry_after_s=5)
        case DataError():
            return ApiError(400, "Invalid request: the model that is served cannot read the text")
        case ConfigError():
            report(error)
            return ApiError(500, "The model that is served, or the settings of the server, cannot do this")
        case _:
            report(error)
            return ApiError(500, "Internal server error")


@contextmanager
def too_long_if_data_error(what: str) -> Iterator[None]:
    """Say what is too long for the model where nothing else can be wrong with a text."""
    try:
        yield
    except DataError as error:
        raise ApiError(400, f"Invalid request: {what} has more tokens than the model reads; shorten it") from error


def report(error: BaseException) -> None:
    """Print what happened and where: not the message, which may have text of a request."""
    home = Path(transduce.__file__).parent
    frames = [each for each in traceback.extract_tb(error.__traceback__) if home in Path(each.filename).parents]
    where = f" in {Path(frames[-1].filename).relative_to(home)}, line {frames[-1].lineno}" if frames else ""
    print(f"error: {type(error).__name__}{where}", file=sys.stderr, flush=True)


class FormValues(list[str]):
    """The values of one name in a form or a query."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a form."""

    name: str  # as the client has it
    data: bytes


class Bodies:
    """The bytes of the bodies of all requests under way, beyond UNCOUNTED_BYTES of each: short requests pass always."""

    def __init__(self) -> None:
        self.n_bytes = 0

    @contextmanager
    def held(self) -> Iterator[Callable[[int], None]]:
        """Yield what takes the bytes that a request holds until the block ends; ApiError if all hold too many."""
        own = 0

        def hold(n_bytes: int) -> None:
            nonlocal own
            more = max(own, n_bytes - UNCOUNTED_BYTES) - own
            if more and self.n_bytes + more > MAX_HELD_BYTES:
                message = "The server is too busy: it reads other large requests; send smaller ones, or this one later"
                raise ApiError(503, message, retry_after_s=5, closes=True)
            own, self.n_bytes = own + more, self.n_bytes + more

        try:
            yield hold
        finally:
            self.n_bytes -= own


async def read_values(
    request: Request, hold: Callable[[int], None], *, takes_file: bool = False, max_bytes: int | None = None
) -> dict[str, Any]:
    """Return the values of the fields of a request, in the query and the body: JSON, or a form of either kind.

    ``hold``: of ``Bodies``. ``takes_file``: a form of several parts may have one. ``max_bytes``: of the body, if not as
    for texts or files. Raises ApiError for a body that is too large, too slow or malformed.
    """
    values: dict[str, Any] = {
        name: FormValues(each) for name, each in _parsed_query(request.scope["query_string"]).items()
    }
    most, timeout_s = (MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S) if takes_file else (MAX_BODY_BYTES, BODY_TIMEOUT_S)
    body = await _body(request, hold, max_bytes or most, timeout_s)
    if not body:
        return values
    match request.headers.get("content-type", "").partition(";")[0].strip().lower():
        case "application/x-www-form-urlencoded":
            values |= {name: FormValues(each) for name, each in _parsed_query(body).items()}
        case "multipart/form-data":
            values |= await _multipart(request, body, max_files=int(takes_file))
        case _:  # also without a type, as some clients send it
            values |= _json(body)
    return values


async def _body(request: Request, hold: Callable[[int], None], max_bytes: int, timeout_s: float) -> bytes:
    declared = request.headers.get("content-length", "")
    too_large = ApiError(413, f"The request is larger than {max_bytes:,} bytes; send several smaller ones", closes=True)
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise too_large
                hold(len(body))
    except TimeoutError:
        raise ApiError(408, f"The request did not arrive within {timeout_s:g} seconds", closes=True) from None
    unpacked = _decompressed(
        bytes(body), request.headers.get("content-encoding", "identity").strip().lower(), max_bytes, too_large
    )
    hold(len(unpacked))
    return unpacked


def _decompressed(body: bytes, coding: str, max_bytes: int, too_large: ApiError) -> bytes:
    """Return a body without its content coding. Raises ApiError, ``too_large`` for what unpacks to too many bytes."""
    if coding == "identity":
        return body
    if coding not in CODINGS:
        raise ApiError(415, "The Content-Encoding of the request is not supported; use gzip, deflate or none")
    unpacker = zlib.decompressobj(wbits=CODINGS[coding])
    try:
        unpacked = unpacker.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise ApiError(400, f"Invalid request: the body is not valid {coding}") from error
    if len(unpacked) > max_bytes:
        raise too_large
    if not unpacker.eof:
        raise ApiError(400, f"Invalid request: the body ends in the middle of its {coding}")
    if unpacker.unused_data:
        raise ApiError(400, f"Invalid request: the body goes on behind the end of its {coding}; compress it as a whole")
    return unpacked


def _parsed_query(encoded: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(
            encoded.decode("utf-8", "replace"), keep_blank_values=True, encoding="utf-8", errors="replace",
            max_num_fields=MAX_FIELDS,
        )  # fmt: skip
    except ValueError as error:  # too many fields
        raise ApiError(400, "Invalid request: the form is malformed") from error


async def _multipart(request: Request, body: bytes, *, max_files: int) -> dict[str, Any]:
    async def stream() -> Any:
        yield body

    declared = request.headers["content-type"].lower().replace('"', "")
    if "charset" in declared.replace("charset=utf-8", ""):  # some of Python's decoders take quadratic time
        raise ApiError(415, "The form should be in UTF-8")
    try:
        form: FormData = await MultiPartParser(
            request.headers, stream(), max_files=max_files, max_fields=MAX_FIELDS, max_part_size=len(body)
        ).parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise ApiError(400, "Invalid request: the form is malformed") from error
    values = dict[str, Any]()
    for name in form:
        last = form.getlist(name)[-1]
        if isinstance(last, UploadFile):
            values[name] = Upload(last.filename or "", await last.read())
        else:
            values[name] = FormValues(str(each) for each in form.getlist(name))
    await form.close()
    return values


def _json(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid request: the body is not valid JSON") from error
    if not isinstance(values, dict):
        raise ApiError(400, "Invalid request: the body should be a JSON object")
    return values


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await work whose request has been read; cancel it if the client goes away (ClientDisconnect)."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def require_within(client: Client, n_texts: int, n_characters: int) -> None:
    """Raise ApiError for a request beyond the limits of a client."""
    limits = client.limits
    if n_texts > limits.texts:
        raise ApiError(400, f"Invalid request: {n_texts:,} texts, the limit is {limits.texts:,}")
    if n_characters > limits.characters:
        raise ApiError(
            400, f"Invalid request: {n_characters:,} characters exceed the limit of {limits.characters:,} characters"
        )


@contextmanager
def counted(
    client: Client, n_texts: int, n_characters: int, *, over_quota: ApiError, is_document: bool = False
) -> Iterator[None]:
    """Count characters of a client for the block: requests at once share a quota.

    A document has limits of its own, which were looked at before.

    They are taken back if the block raises before any work was done; not if the client has gone away meanwhile.
    Raises ApiError beyond the limits of the client, ``over_quota`` beyond its quota.
    """
    if not is_document:
        require_within(client, n_texts, n_characters)
    if not client.has_quota(n_characters):
        raise over_quota
    client.use(n_characters)
    try:
        yield
    except BaseException as error:
        is_begun = isinstance(error, ClientDisconnect | asyncio.CancelledError)
        if not is_begun and not (isinstance(error, DeadlineExceeded) and error.n_done):
            client.use(-n_characters)
        raise


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a JSON answer."""
    return JSONResponse(value, status, dict(headers or {}))
