"""The HTTP routes of a studio."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from hscrf.studio.data import texts
from hscrf.studio.data.database import Behind, NotSaved
from hscrf.studio.data.problems import Invalid
from hscrf.studio.data.sequences import gaps, shown
from hscrf.studio.exchange import formats
from hscrf.studio.server.media import type_of
from hscrf.studio.server.requests import Malformed, body_of, event_of, file_of, http_problem, unexpected
from hscrf.studio.server.security import LOGIN, Gate, Keys, SameProject, problem
from hscrf.studio.server.studio import Studio
from hscrf.studio.work import bulk, label_set
from hscrf.studio.work.claims import LEAVE, Held
from hscrf.studio.work.trainer import Running
from hscrf.studio.work.workspace import Missing

PAGE = Path(__file__).parents[1] / "page"
IMPORT_LIMIT = 90_000_000  # bytes of a file that is imported, as base64
FOREVER = "private, max-age=31536000, immutable"
BARE = "<!doctype html><meta charset=utf-8><title>hscrf studio</title><p>The files of the page are not installed."
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
}


def application(studio: Studio, keys: Keys) -> Any:
    """The ASGI application of a studio, behind its gate."""
    return Gate(SameProject(Routes(studio, keys).app(), studio.database.identity), keys)


class Routes:
    """The handler of each address. Work is done in threads; the event loop only reads and writes."""

    def __init__(self, studio: Studio, keys: Keys) -> None:
        self.studio, self.keys = studio, keys
        self.files = page_files(PAGE)
        self.shown: dict[int, tuple[str, bytes]] = {}

    def app(self) -> Starlette:
        """All routes; errors become answers with a message."""
        get, post = ["GET"], ["POST"]
        routes = [
            Route("/", self.home, methods=get),
            Route("/favicon.ico", self.icon, methods=get),
            Route("/page/{name:path}", self.file, methods=get),
            Route("/api/project", self.project, methods=get),
            Route("/api/queue", self.queue, methods=get),
            Route("/api/queue/having", self.having, methods=get),
            Route("/api/bulk/preview", self.bulk_preview, methods=get),
            Route("/api/bulk/accept", self.bulk_accept, methods=post),
            Route("/api/bulk/undo", self.bulk_undo, methods=post),
            Route("/api/progress", self.progress, methods=get),
            Route("/api/labels/preview", self.labels_preview, methods=post),
            Route("/api/labels", self.labels_edit, methods=post),
            Route("/api/labels/undo", self.labels_undo, methods=post),
            Route("/api/tokens", self.tokens, methods=get),
            Route("/api/tokens", self.cut, methods=post),
            Route("/api/settings", self.settings, methods=post),
            Route("/api/news", self.notifications, methods=get),
            Route("/api/training", self.train, methods=post),
            Route("/api/training/stop", self.stop_training, methods=post),
            Route("/api/sequences/{id:int}", self.sequence, methods=get),
            Route("/api/sequences/{id:int}/observations", self.observations, methods=get),
            Route("/api/sequences/{id:int}/media", self.media, methods=get),
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
            Held: lambda request, error: problem(423, "held", str(error), by=error.by),
            Running: lambda request, error: problem(409, "running", str(error)),
            HTTPException: http_problem,
            Exception: unexpected,
        }
        return Starlette(routes=routes, exception_handlers=failures)

    # -- files

    async def home(self, request: Request) -> Response:
        token = request.query_params.get("token")
        known = request.state.who
        value = None if token is None else self.keys.admit(token) or (known and known.value)
        if value is not None:
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.keys.name, value, httponly=True, samesite="strict", path="/")
            return answer
        if known is None:
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

    # -- people

    def _browser(self, request: Request) -> str:
        """The key under which a browser holds sequences; "" if no other person was invited."""
        return request.state.who.value if len(self.keys.people) > 1 else ""

    def _name(self, request: Request) -> str:
        """The name of a person who was invited; "" for the one who started the studio."""
        return str(request.state.who.name)

    def _announced(self, request: Request) -> str:
        """The name under which others see a person."""
        return (
            self._name(request) or self.studio.database.setting("annotator", "") or "the person who started the studio"
        )

    # -- the project

    async def project(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.studio.project_view, self._name(request)))

    async def queue(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.studio.queue, self._browser(request)))

    async def having(self, request: Request) -> Response:
        asked = request.query_params
        ids = await run_in_threadpool(self.studio.having, asked.get("level", ""), asked.get("label", ""))
        return JSONResponse({"ids": ids})

    async def bulk_preview(self, request: Request) -> Response:
        try:
            confidence = float(request.query_params.get("confidence", ""))
        except ValueError:
            raise Malformed("expected confidence, a number from 0.5 to 1") from None
        return JSONResponse({"sequences": await run_in_threadpool(bulk.preview, self.studio.workspace, confidence)})

    async def bulk_accept(self, request: Request) -> Response:
        given = await body_of(request)
        who = self._name(request), self._browser(request)
        return JSONResponse(await run_in_threadpool(self.studio.accept_all, given, *who))

    async def bulk_undo(self, request: Request) -> Response:
        given = await body_of(request)
        annotator = self._name(request) or self.studio.database.setting("annotator", "")
        others = self.studio.claims.held_by_others(self._browser(request))
        undone = await run_in_threadpool(bulk.take_back, self.studio.workspace, given.get("batch"), annotator, others)
        return JSONResponse(undone)

    async def progress(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.studio.progress))

    async def labels_preview(self, request: Request) -> Response:
        given = await body_of(request)
        return JSONResponse({"words": await run_in_threadpool(label_set.preview, self.studio, given.get("changes"))})

    async def labels_edit(self, request: Request) -> Response:
        given = await body_of(request)
        await run_in_threadpool(label_set.apply, self.studio, given.get("changes"))
        return await self.project(request)

    async def labels_undo(self, request: Request) -> Response:
        await body_of(request)
        await run_in_threadpool(label_set.undo, self.studio)
        return await self.project(request)

    async def tokens(self, request: Request) -> Response:
        """The effect of another tokenization, and the new tokens of a sequence."""
        asked = request.query_params
        sequence = int(asked["sequence"]) if asked.get("sequence", "").isdigit() else None
        return JSONResponse(await run_in_threadpool(texts.preview, self.studio, asked.get("tokens"), sequence))

    async def cut(self, request: Request) -> Response:
        given = await body_of(request)
        await run_in_threadpool(texts.apply, self.studio, given.get("tokens"))
        return await self.project(request)

    async def settings(self, request: Request) -> Response:
        given = await body_of(request)
        if self._name(request):  # an invited person has the name of their address
            given.pop("annotator", None)
        await run_in_threadpool(self.studio.settings, given)
        return await self.project(request)

    async def notifications(self, request: Request) -> Response:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        key, name = self._browser(request), self._announced(request)

        async def hello() -> dict[str, Any]:
            return await run_in_threadpool(self.studio.project_view, self._name(request))

        async def listen() -> AsyncIterator[str]:
            self.studio.claims.arrive(key, name)
            try:
                async for text in self.studio.notifications.listen(hello):
                    yield text
            finally:
                self.studio.claims.depart(key)
                if key:  # its sequence becomes free after a while
                    asyncio.get_running_loop().call_later(LEAVE + 0.5, self.studio.notifications.send, "claims")

        return StreamingResponse(listen(), media_type="text/event-stream", headers=headers)

    async def train(self, request: Request) -> Response:
        await body_of(request)
        return JSONResponse({"training": await run_in_threadpool(self.studio.trainer.train)}, 202)

    async def stop_training(self, request: Request) -> Response:
        await body_of(request)
        await run_in_threadpool(self.studio.trainer.stop)
        return JSONResponse({"training": self.studio.trainer.state()})

    # -- sequences

    async def sequence(self, request: Request) -> Response:
        opened = request.query_params.get("open") == "1"
        sequence, key = request.path_params["id"], self._browser(request)
        found = await run_in_threadpool(self.studio.view, sequence, opened)
        if opened and self.studio.claims.open(sequence, key, self._announced(request)):
            self.studio.notifications.send("claims")
        return plain({**found, "held_by": self.studio.claims.holder(sequence, key)})

    async def observations(self, request: Request) -> Response:
        tag, content = await run_in_threadpool(self._observations, request.path_params["id"])
        asked = request.query_params  # an address that names database and content may be cached
        named = "project" in asked and asked.get("digest") == tag
        return _tagged(request, content, f'"{tag}"', "application/json", FOREVER if named else "no-cache")

    def _observations(self, sequence: int) -> tuple[str, bytes]:
        self.studio.workspace.tracked(sequence)
        if self.shown.get(sequence, ("", b""))[0] != self.studio.digest(sequence):
            tokens = json.loads(self.studio.database.observations(sequence))
            found = shown(tokens, self.studio.project.kind, self.studio.columns)
            times = self.studio.database.times(sequence)
            if times is not None and self.studio.rate is None:
                found["times"] = times
            text = self.studio.database.text(sequence)
            if text is not None and found["kind"] == "text":
                found["gaps"] = gaps(*text)
            content = json.dumps(found).encode()
            if len(self.shown) > 50:
                self.shown.clear()
            self.shown[sequence] = (self.studio.digest(sequence), content)
        return self.shown[sequence]

    async def media(self, request: Request) -> Response:
        """Sound or film, whole or in the parts that the browser asks for."""
        path = await run_in_threadpool(self.studio.media, request.path_params["id"])
        return FileResponse(path, media_type=type_of(path), headers={"cache-control": "no-cache"})

    async def event(self, request: Request) -> Response:
        given = event_of(await body_of(request))
        sequence = request.path_params["id"]
        given["annotator"] = self._name(request) or given["annotator"]
        if self.studio.database.find(given["uid"]) is None:  # a retry of what is saved changes nothing
            self.studio.claims.check(sequence, self._browser(request))
        try:
            return plain({**await run_in_threadpool(self.studio.post, sequence, given), "held_by": None})
        except Behind as error:
            now = {**await run_in_threadpool(self.studio.view, sequence, False), "held_by": None}
            return problem(409, "version", str(error), sequence=now)

    async def alternatives(self, request: Request) -> Response:
        asked = request.query_params
        try:
            level, start, stop = asked["level"], int(asked["start"]), int(asked["stop"])
            version = int(asked["version"]) if "version" in asked else None
        except (KeyError, ValueError):
            raise Malformed("expected level, start, stop and version") from None
        sequence, workspace = request.path_params["id"], self.studio.workspace
        current = workspace.tracked(sequence).state.version
        try:
            if version not in (None, current):
                raise Behind(f"the sequence has version {current}")
            items = await run_in_threadpool(workspace.alternatives, sequence, level, start, stop)
        except Behind as error:
            return problem(409, "version", str(error))
        return JSONResponse({"version": current, "items": items})

    async def history(self, request: Request) -> Response:
        events = await run_in_threadpool(self.studio.workspace.history, request.path_params["id"])
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
        """Labels from a file: its name and its content as base64, or tasks of Label Studio as they are."""
        given = await body_of(request, IMPORT_LIMIT)
        who = self._name(request), self._browser(request)
        if "file" in given:
            name, content = file_of(given)
            return JSONResponse(await run_in_threadpool(formats.take_file, self.studio, name, content, *who))
        if given.get("format") != "label-studio":
            raise Invalid(f"format is {given.get('format')!r}, expected 'label-studio', or a file", "format")
        return JSONResponse(await run_in_threadpool(formats.take_tasks, self.studio, given.get("content"), *who))


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
    """Content that a browser may cache, or the answer that its copy is current."""
    headers = {"etag": tag, "cache-control": cache}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
