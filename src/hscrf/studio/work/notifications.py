"""Messages to all open pages: any thread sends them, the loop of the server delivers them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

PAUSE = 15.0  # seconds of silence after which a comment keeps the connection open
LONGEST = 1000  # messages that a page may be behind before its connection is closed


class Notifications:
    """Server-sent events to every open page."""

    def __init__(self) -> None:
        self.number = 0
        self._guard = threading.Lock()
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Queue[str | None]]] = set()
        self._closed = False

    def send(self, name: str, data: dict[str, Any] | None = None) -> None:
        """Send a message to all pages; from any thread."""
        with self._guard:
            self.number += 1
            text = event(name, data or {}, self.number)
            for listener in list(self._listeners):
                self._deliver(listener, text)

    def _deliver(self, listener: tuple[asyncio.AbstractEventLoop, asyncio.Queue[str | None]], text: str | None) -> None:
        loop, queue = listener
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_put, queue, text)

    def close(self) -> None:
        """Close all connections."""
        with self._guard:
            self._closed = True
            for listener in list(self._listeners):
                self._deliver(listener, None)

    async def listen(self, hello: Callable[[], Awaitable[dict[str, Any]]]) -> AsyncIterator[str]:
        """The news from now on as server-sent events, after a greeting: no message is lost in between."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(LONGEST)
        listener = (asyncio.get_running_loop(), queue)
        with self._guard:
            if self._closed:
                return
            self._listeners.add(listener)
        try:
            yield event("hello", await hello(), self.number)
            while True:
                try:
                    text = await asyncio.wait_for(queue.get(), PAUSE)
                except asyncio.TimeoutError:
                    text = ": here\n\n"
                if text is None:
                    return
                yield text
        finally:
            with self._guard:
                self._listeners.discard(listener)


def _put(queue: asyncio.Queue[str | None], text: str | None) -> None:
    """Queue a message for one page; a page that has not read for long is disconnected, and connects again."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        text = None
    queue.put_nowait(text)


def event(name: str, data: dict[str, Any], number: int) -> str:
    r"""One server-sent event.

    >>> event("queue", {}, 3)
    'id: 3\nevent: queue\ndata: {}\n\n'
    """
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
