"""What requests hold: JSON bodies, files and events; and the answers to requests that fail."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hscrf.studio.data.problems import Invalid
from hscrf.studio.server.security import problem

LIMIT = 4_000_000  # bytes of a body


class Malformed(ValueError):
    """A request that cannot be read."""

    def __init__(self, words: str, status: int = 400, kind: str = "malformed", **data: Any) -> None:
        super().__init__(words)
        self.answer = problem(status, kind, words, **data)


async def body_of(request: Request, limit: int = LIMIT) -> dict[str, Any]:
    """The JSON object of a request, which must say that it is one and not be too large."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Malformed("expected Content-Type: application/json", 415, "type")
    length = request.headers.get("content-length", "0")
    parts, size = [], int(length) if length.isdigit() else 0
    if size <= limit:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                break
            parts.append(part)
    if size > limit:
        raise Malformed(f"the body is larger than {limit} bytes", 413, "too_large", limit=limit)
    try:
        found = json.loads(b"".join(parts), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Malformed("the body is not a JSON object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def file_of(given: Mapping[str, Any]) -> tuple[str, bytes]:
    """The name of a file, without folders, and its content."""
    name, data = given.get("file"), given.get("data")
    if not isinstance(name, str) or not 0 < len(name) <= 500:
        raise Invalid("file is not a name of at most 500 characters", "file")
    try:
        if not isinstance(data, str):
            raise ValueError
        content = base64.b64decode(data, validate=True)
    except ValueError:
        raise Invalid("data is not a file in base64", "data") from None
    return name.replace("\\", "/").rpartition("/")[2], content


def event_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an event, each of the right type."""
    checks: dict[str, Callable[[Any], bool]] = {
        "uid": lambda v: isinstance(v, str) and 0 < len(v) <= 64 and v.isprintable(),
        "version": lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53,
        "kind": lambda v: isinstance(v, str),
        "body": lambda v: isinstance(v, dict),
    }
    for name, check in checks.items():
        if not check(given.get(name)):
            raise Malformed(f"{name} is missing or not what it should be")
    annotator = given.get("annotator", "")
    if not isinstance(annotator, str) or len(annotator) > 200 or not annotator.isprintable():
        raise Malformed("annotator is not a name of at most 200 characters")
    return {**{name: given[name] for name in checks}, "annotator": annotator, "length": given.get("length")}


async def http_problem(request: Request, error: HTTPException) -> Response:
    """The answer to requests that the routes refuse."""
    kinds = {404: ("missing", "there is nothing at this address"), 405: ("method", "not with this method")}
    kind, words = kinds.get(error.status_code, ("malformed", str(error.detail)))
    answer: Response = problem(error.status_code, kind, words)
    return answer


async def unexpected(request: Request, error: Exception) -> Response:
    """An internal error: the page shows a message; the server writes the traceback to the terminal."""
    if isinstance(error, (ClientDisconnect, asyncio.CancelledError)):
        return Response(status_code=499)
    answer: Response = problem(500, "internal", f"the studio made a mistake: {type(error).__name__}: {error}")
    return answer
