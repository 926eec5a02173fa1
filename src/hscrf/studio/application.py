"""The routes: requests in, answers of the studio out."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from hscrf.studio import formats
from hscrf.studio.desk import Missing
from hscrf.studio.events import Invalid
from hscrf.studio.items import shown
from hscrf.studio.school import Running
from hscrf.studio.security import LOGIN, Gate, Keys, problem
from hscrf.studio.store import Behind, NotSaved
from hscrf.studio.studio import Studio

PAGE = Path(__file__).parent / "page"
LIMIT = 4_000_000  # bytes of a body
BARE = "<!doctype html><meta charset=utf-8><title>hscrf studio</title><p>The files of the page are not installed."
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
}


class Malformed(ValueError):
    """A request that cannot be read."""

    def __init__(self, words: str, status: int = 400, kind: str = "malformed", **data: Any) -> None:
        super().__init__(words)
        self.answer = problem(status, kind, words, **data)


def application(studio: Studio, keys: Keys) -> Any:
    """The ASGI application of a studio, behind its gate."""
    return Gate(Routes(studio, keys).app(), keys)


class Routes:
    """What each address answers. Work is done in threads; the loop only reads and writes."""

    def __init__(self, studio: Studio, keys: Keys) -> None:
        self.studio, self.keys = studio, keys
        self.files = page_files(PAGE)
        self.shown: dict[int, tuple[str, bytes]] = {}

    def app(self) -> Starlette:
        """All routes; an error anywhere becomes an answer with words."""
        get, post = ["GET"], ["POST"]
        routes = [
            Route("/", self.home, methods=get),
            Route("/favicon.ico", self.icon, methods=get),
            Route("/page/{name:path}", self.file, methods=get),
            Route("/api/project", self.project, methods=get),
            Route("/api/queue", self.queue, methods=get),
            Route("/api/progress", self.progress, methods=get),
            Route("/api/settings", self.settings, methods=post),
            Route("/api/news", self.news, methods=get),
            Route("/api/training", self.train, methods=post),
            Route("/api/training/stop", self.stop_training, methods=post),
            Route("/api/sequences/{id:int}", self.sequence, methods=get),
            Route("/api/sequences/{id:int}/observations", self.observations, methods=get),
            Route("/api/sequences/{id:int}/events", self.event, methods=post),
            Route("/api/sequences/{id:int}/alternatives", self.alternatives, methods=get),
            Route("/api/sequences/{id:int}/history", self.history, methods=get),
            Route("/api/export/{format}", self.export, methods=get),
            Route("/api/import", self.import_, methods=post),
        ]
        failures: dict[Any, Any] = {
            Malformed: lambda request, error: error.answer,
            Invalid: lambda request, error: problem(422, error.kind, str(error), field=error.field),
            Missing: lambda request, error: problem(404, "missing", error.args[0]),
            NotSaved: lambda request, error: problem(503, "not_saved", str(error), reason=error.reason),
            Running: lambda request, error: problem(409, "running", str(error)),
            HTTPException: http_problem,
            Exception: unexpected,
        }
        return Starlette(routes=routes, exception_handlers=failures)

    # -- files

    async def home(self, request: Request) -> Response:
        token = request.query_params.get("token")
        known = self.keys.knows(request.headers.get("cookie", ""))
        if token is not None and (known or self.keys.admit(token)):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.keys.name, self.keys.value, httponly=True, samesite="strict", path="/")
            return answer
        if not known:
            self.keys.renew()
            return HTMLResponse(LOGIN, 401)
        return self._file("index.html", request) if "index.html" in self.files else HTMLResponse(BARE)

    async def icon(self, request: Request) -> Response:
        return self._file("favicon.svg", request)

    async def file(self, request: Request) -> Response:
        return self._file(request.path_params["name"], request)

    def _file(self, name: str, request: Request) -> Response:
        """A file of the page: names come from a list, so that no path of a client is ever opened."""
        path = self.files.get(name)
        if path is None:
            raise HTTPException(404)
        content = path.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return _tagged(request, content, tag, KINDS[path.suffix], "no-cache")

    # -- the project

    async def project(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.studio.project_view))

    async def queue(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.studio.queue))

    async def progress(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.studio.progress))

    async def settings(self, request: Request) -> Response:
        given = await body_of(request)
        await run_in_threadpool(self.studio.settings, given)
        return await self.project(request)

    async def news(self, request: Request) -> Response:
        hello = await run_in_threadpool(self.studio.project_view)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.studio.news.listen(hello), media_type="text/event-stream", headers=headers)

    async def train(self, request: Request) -> Response:
        await body_of(request)
        return JSONResponse({"training": await run_in_threadpool(self.studio.school.train)}, 202)

    async def stop_training(self, request: Request) -> Response:
        await body_of(request)
        await run_in_threadpool(self.studio.school.stop)
        return JSONResponse({"training": self.studio.school.state()})

    # -- sequences

    async def sequence(self, request: Request) -> Response:
        opened = request.query_params.get("open") == "1"
        return plain(await run_in_threadpool(self.studio.view, request.path_params["id"], opened))

    async def observations(self, request: Request) -> Response:
        tag, content = await run_in_threadpool(self._observations, request.path_params["id"])
        return _tagged(request, content, tag, "application/json", "private, max-age=31536000, immutable")

    def _observations(self, sequence: int) -> tuple[str, bytes]:
        if sequence not in self.shown:
            self.studio.desk.sheet(sequence)
            tokens = json.loads(self.studio.store.observations(sequence))
            content = json.dumps(shown(tokens, self.studio.project.kind)).encode()
            if len(self.shown) > 50:
                self.shown.clear()
            self.shown[sequence] = (f'"{hashlib.sha256(content).hexdigest()[:32]}"', content)
        return self.shown[sequence]

    async def event(self, request: Request) -> Response:
        given = event_of(await body_of(request))
        sequence = request.path_params["id"]
        try:
            return plain(await run_in_threadpool(self.studio.post, sequence, given))
        except Behind as error:
            now = await run_in_threadpool(self.studio.view, sequence, False)
            return problem(409, "version", str(error), sequence=now)

    async def alternatives(self, request: Request) -> Response:
        asked = request.query_params
        try:
            level, start, stop = asked["level"], int(asked["start"]), int(asked["stop"])
            version = int(asked["version"]) if "version" in asked else None
        except (KeyError, ValueError):
            raise Malformed("expected level, start, stop and version") from None
        sequence, desk = request.path_params["id"], self.studio.desk
        current = desk.sheet(sequence).state.version
        try:
            if version not in (None, current):
                raise Behind(f"the sequence has version {current}")
            items = await run_in_threadpool(desk.alternatives, sequence, level, start, stop)
        except Behind as error:
            return problem(409, "version", str(error))
        return JSONResponse({"version": current, "items": items})

    async def history(self, request: Request) -> Response:
        events = await run_in_threadpool(self.studio.desk.history, request.path_params["id"])
        return JSONResponse({"events": events})

    # -- files in and out

    async def export(self, request: Request) -> Response:
        name = request.path_params["format"]
        if name not in formats.EXPORTS:
            raise Malformed(f"format is {name!r}, expected {', '.join(formats.EXPORTS)}", 404, "missing")
        accepted = request.query_params.get("accepted_only") == "1"
        export = await run_in_threadpool(formats.export, self.studio, name, accepted)
        headers = {"content-disposition": f'attachment; filename="{export.name}"', "cache-control": "no-store"}
        return Response(export.content, media_type=export.kind, headers=headers)

    async def import_(self, request: Request) -> Response:
        given = await body_of(request)
        if given.get("format") != "label-studio":
            raise Invalid(f"format is {given.get('format')!r}, expected 'label-studio'", "format")
        return JSONResponse(await run_in_threadpool(formats.take, self.studio, given.get("content")))


def page_files(folder: Path) -> dict[str, Path]:
    """The files of the page by the name that a browser asks for."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in KINDS:
            found[path.relative_to(folder).as_posix()] = path
    return found


def plain(content: Mapping[str, Any]) -> Response:
    """A view as JSON, without spaces: it is large."""
    return Response(json.dumps(content, separators=(",", ":")), media_type="application/json")


def _tagged(request: Request, content: bytes, tag: str, kind: str, cache: str) -> Response:
    """Content that a browser may keep, or the word that it has it already."""
    headers = {"etag": tag, "cache-control": cache}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request, which must say that it is one and not be too large."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Malformed("expected Content-Type: application/json", 415, "type")
    length = request.headers.get("content-length", "0")
    parts, size = [], int(length) if length.isdigit() else 0
    if size <= LIMIT:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > LIMIT:
                break
            parts.append(part)
    if size > LIMIT:
        raise Malformed(f"the body is larger than {LIMIT} bytes", 413, "too_large", limit=LIMIT)
    try:
        found = json.loads(b"".join(parts), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Malformed("the body is no JSON object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


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
        raise Malformed("annotator is no name of at most 200 characters")
    return {**{name: given[name] for name in checks}, "annotator": annotator}


async def http_problem(request: Request, error: HTTPException) -> Response:
    """What the routes themselves refuse."""
    kinds = {404: ("missing", "there is nothing at this address"), 405: ("method", "not with this method")}
    kind, words = kinds.get(error.status_code, ("malformed", str(error.detail)))
    answer: Response = problem(error.status_code, kind, words)
    return answer


async def unexpected(request: Request, error: Exception) -> Response:
    """A mistake of ours: the page is told in words; the server writes all of it to the terminal."""
    if isinstance(error, (ClientDisconnect, asyncio.CancelledError)):
        return Response(status_code=499)
    answer: Response = problem(500, "internal", f"the studio made a mistake: {type(error).__name__}: {error}")
    return answer
