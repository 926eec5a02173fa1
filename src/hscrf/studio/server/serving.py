"""The server: a socket on this machine only, in this thread or in another one."""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from hscrf.studio.server.security import Keys
from hscrf.studio.server.studio import Studio

HOST = "127.0.0.1"
GRACE = 2  # seconds that open requests have to end


class Server:
    """A studio that is served.

    ``url`` has the token that admits one browser. If another browser comes without a token, a new token is made:
    ``on_new_address`` is called with its address, or ``on_new_address_of`` with the name of an invited person and the
    address. The default port is that of the last time, if it is free, so that an open page finds its server again. Port
    0 takes any free one.
    """

    def __init__(self, studio: Studio, port: int | None = None) -> None:
        try:
            import uvicorn

            from hscrf.studio.server.application import application
        except ImportError as error:
            raise ImportError(f"the studio needs more packages: pip install 'hscrf[studio]' ({error})") from None
        self.studio = studio
        self.socket = bound_socket(port if port is not None else studio.database.setting("port", 0), port is None)
        self.port: int = self.socket.getsockname()[1]
        if port is None and not studio.database.read_only:
            studio.database.set("port", self.port)
        self.keys = Keys(self.port)
        self.on_new_address: Callable[[str], None] = lambda url: None
        self.on_new_address_of: Callable[[str, str], None] = lambda name, url: None
        self.keys.on_new_token = lambda name: (
            self.on_new_address_of(name, self.invite(name)) if name else self.on_new_address(self.url)
        )
        config = uvicorn.Config(
            application(studio, self.keys),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http="h11",
            timeout_graceful_shutdown=GRACE,
        )
        self._server = _quiet(uvicorn.Server)(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/?token={self.keys.token}"

    def invite(self, name: str) -> str:
        """An address that lets in one browser of another person, under their name."""
        return f"http://{HOST}:{self.port}/?token={self.keys.invite(name)}"

    def run(self) -> None:
        """Serve until Ctrl-C or a signal to end, then close everything."""
        with stopping_at_signals(self._at_signal):
            self.studio.start()
            gc.freeze()  # keeps garbage collection from visiting permanent objects during an answer
            self._server.run(sockets=[self.socket])
        self.studio.close()

    def start(self) -> None:
        """Serve in a thread of its own."""
        self.studio.start()
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self.socket]}, name="studio server", daemon=True
        )
        self._thread.start()

    def _at_signal(self) -> None:
        """Ask the server to end, in another thread: the interrupted one may hold a lock that is needed."""
        threading.Thread(target=self.stop_soon, daemon=True).start()

    def stop_soon(self) -> None:
        """Ask the server to end."""
        self.studio.notifications.send("stopping")
        self.studio.notifications.close()
        self._server.should_exit = True

    def stop(self) -> None:
        """End the server and close the database."""
        self.stop_soon()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.socket.close()
        self.studio.close()


def _quiet(server: Any) -> Any:
    """Uvicorn's server without its handlers of signals: it raises Ctrl-C again after it has ended."""

    class Quiet(server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet


@contextlib.contextmanager
def stopping_at_signals(stop: Any) -> Iterator[None]:
    """Call ``stop`` at Ctrl-C and at the signal to end, where signals can be caught."""
    names = (signal.SIGINT, signal.SIGTERM)
    former = {}
    if threading.current_thread() is threading.main_thread():
        former = {name: signal.signal(name, lambda *_: stop()) for name in names}
    try:
        yield
    finally:
        for name, handler in former.items():
            signal.signal(name, handler)


def bound_socket(port: int, any_else: bool = False) -> socket.socket:
    """A listening socket; ``any_else`` takes any port if the one asked for is taken.

    Its protocol is named: asyncio leaves Nagle's algorithm on for a socket of protocol 0, and a click takes 50 ms.
    """
    try:
        return _bound(port)
    except OSError as error:
        if any_else and port:
            return _bound(0)
        raise OSError(error.errno, f"port {port} cannot be opened: {error.strerror}") from None


def _bound(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.bind((HOST, port))
        found.listen(128)
    except BaseException:
        found.close()
        raise
    return found
