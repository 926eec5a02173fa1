"""Access control: which requests the server accepts, and the security headers of every answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PROJECT = b"x-studio-project"
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


@dataclass
class Key:
    """The address of one person: a token that works once, and the cookie that their browser gets for it."""

    name: str = ""  # "" is the person who started the studio
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    value: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    used: bool = False


class Keys:
    """A token and a cookie for each person: the token admits one browser once, which then gets the cookie.

    A browser that has lost its cookie needs another token: ``renew`` makes new ones for those that are used, and tells
    only the person who started the studio.

    >>> keys = Keys(8000)
    >>> first = keys.token
    >>> keys.admit(first) is not None, keys.admit(first), keys.admit("guess")
    (True, None, None)
    >>> keys.on_new_token = lambda name: print("another one")
    >>> keys.renew(), keys.renew(), keys.admit(first), keys.admit(keys.token) is not None
    another one
    (None, None, None, True)
    >>> token = keys.invite("Ann")
    >>> keys.who(f"{keys.name}={keys.admit(token)}").name
    'Ann'
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.name = f"hscrf_studio_{port}"  # cookies do not know ports
        self.people: dict[str, Key] = {"": Key()}
        self.on_new_token: Callable[[str], None] = lambda name: None

    @property
    def token(self) -> str:
        """The token of the person who started the studio."""
        return self.people[""].token

    def invite(self, name: str) -> str:
        """A token for another person; the one they have, if it is not used yet."""
        if not name or len(name) > 200 or not name.isprintable():
            raise ValueError(f"annotator is {name!r}, expected a name of at most 200 characters")
        key = self.people.setdefault(name, Key(name))
        if key.used:
            key.token, key.used = secrets.token_urlsafe(24), False
        return key.token

    def renew(self) -> None:
        """Make a new token for each person whose last one is used."""
        for key in list(self.people.values()):
            if key.used:
                key.token, key.used = secrets.token_urlsafe(24), False
                self.on_new_token(key.name)

    def admit(self, token: str) -> str | None:
        """The cookie for a token that is not used yet, None for any other; it is used then."""
        for key in list(self.people.values()):
            if not key.used and _same(token, key.token):
                key.used = True
                return key.value
        return None

    def who(self, cookie: str) -> Key | None:
        """The person whose cookie a header has."""
        try:
            found = SimpleCookie(cookie).get(self.name)
        except CookieError:
            return None
        if found is None:
            return None
        return next((key for key in list(self.people.values()) if _same(found.value, key.value)), None)

    def hosts(self) -> set[str]:
        """The accepted values of the Host header."""
        return {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost")}


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class Gate:
    """ASGI middleware: requests with foreign hosts, origins or without a cookie are refused before they are read.

    The Host header excludes pages of other names that resolve to this machine (DNS rebinding). Origin and
    Sec-Fetch-Site exclude requests that another site makes a browser send. The cookie excludes other users of this
    machine.
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
            cookies = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == b"cookie"]
            scope.setdefault("state", {})["who"] = self.keys.who("; ".join(cookies))
            await self.app(scope, receive, guarded)
        else:
            await answer(scope, receive, guarded)

    def _refusal(self, scope: Any) -> Any:
        """The refusal of a request; None if it is accepted."""
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
        if not navigation and self.keys.who("; ".join(headers.get("cookie", []))) is None:
            return problem(401, "login", "open the address that hscrf studio printed")
        return None


class SameProject:
    """ASGI middleware: a request that was meant for another database is refused.

    Pages outlive servers: the next server on the same port may have another database open. So each page sends the
    identity of its database, as the header ``X-Studio-Project`` or as ``project`` in the query. A request that changes
    something must have it.
    """

    def __init__(self, app: Any, identity: str) -> None:
        self.app, self.identity = app, identity

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        refused = scope["type"] == "http" and scope["path"].startswith("/api/") and self._refusal(scope)
        await (refused or self.app)(scope, receive, send)

    def _refusal(self, scope: Any) -> Any:
        """The answer to a request for another database; None for one that is meant for this one."""
        named = {value.decode("latin-1") for key, value in scope["headers"] if key == PROJECT}
        named.update(parse_qs(scope["query_string"].decode("latin-1")).get("project", ()))
        if named == {self.identity} or (not named and scope["method"] == "GET"):
            return None
        meant = "another database" if named else "a database it does not name"
        return problem(409, "project", f"the request is meant for {meant}: reload the page")


def problem(status: int, kind: str, message: str, **data: Any) -> Any:
    """An answer with an error, as a message and as data."""
    from starlette.responses import JSONResponse

    return JSONResponse({"error": {"kind": kind, "message": message, **data}}, status)
