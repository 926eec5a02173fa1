"""Nobody in: who may speak to the server, and what every answer says about itself."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
LOGIN = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>hscrf studio</title>"
    "<p>This page is for the person who started the studio. Open the address that <code>hscrf studio</code> printed; "
    "it works once, then this browser is known. If it was used already, a new one stands in the terminal now "
    "(from Python: <code>session.url</code>). Nothing is lost."
)


class Keys:
    """A token that lets one browser in once, and the cookie that it gets.

    A browser that has lost its cookie needs another token: ``renew`` makes one if the last is used, and tells whoever
    started the studio, nobody else.

    >>> keys = Keys(8000)
    >>> first = keys.token
    >>> keys.admit(first), keys.admit(first), keys.admit("guess")
    (True, False, False)
    >>> keys.tell = lambda: print("another one")
    >>> keys.renew(), keys.renew(), keys.admit(first), keys.admit(keys.token)
    another one
    (None, None, False, True)
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = secrets.token_urlsafe(24)
        self.used = False
        self.name = f"hscrf_studio_{port}"  # cookies do not know ports
        self.value = secrets.token_urlsafe(32)
        self.tell: Callable[[], None] = lambda: None

    def renew(self) -> None:
        """Make a new token, if the last one is used."""
        if self.used:
            self.token, self.used = secrets.token_urlsafe(24), False
            self.tell()

    def admit(self, token: str) -> bool:
        """Whether a token is the one, and not used yet; it is used then."""
        if self.used or not _same(token, self.token):
            return False
        self.used = True
        return True

    def knows(self, cookie: str) -> bool:
        """Whether a header of cookies has ours."""
        try:
            found = SimpleCookie(cookie).get(self.name)
        except CookieError:
            return False
        return found is not None and _same(found.value, self.value)

    def hosts(self) -> set[str]:
        """What the Host header may say."""
        return {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost")}


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class Gate:
    """ASGI middleware: foreign hosts, origins and strangers are turned away before anything is read.

    Host: a page of another name that leads here (DNS rebinding). Origin and Sec-Fetch-Site: a request that another site
    makes a browser send. Cookie: anybody else on this machine.
    """

    def __init__(self, app: Any, keys: Keys) -> None:
        self.app, self.keys = app, keys
        self.origins = {f"http://{host}" for host in keys.hosts()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        answer = self._refusal(scope)
        if answer is None:
            await self.app(scope, receive, guarded)
        else:
            await answer(scope, receive, guarded)

    def _refusal(self, scope: Any) -> Any:
        """The answer to somebody who may not come in; None for those who may."""
        headers: dict[str, list[str]] = {}
        for key, value in scope["headers"]:
            headers.setdefault(key.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.keys.hosts():
            return problem(403, "host", "this server answers only to its own address")
        origins = headers.get("origin", [])
        site = headers.get("sec-fetch-site", ["same-origin"])[0]
        navigation = scope["path"] == "/" and scope["method"] == "GET"
        foreign = any(origin.lower() not in self.origins for origin in origins)
        if foreign or (site not in ("same-origin", "none") and not navigation):
            return problem(403, "origin", "another site may not ask this server")
        if not navigation and not self.keys.knows("; ".join(headers.get("cookie", []))):
            return problem(401, "login", "open the address that hscrf studio printed")
        return None


def problem(status: int, kind: str, message: str, **data: Any) -> Any:
    """An answer that says what is wrong, in words and in data."""
    from starlette.responses import JSONResponse

    return JSONResponse({"error": {"kind": kind, "message": message, **data}}, status)
