"""A TCP proxy that a test can make fail: in the middle of a COMMIT, before or after it went out."""

import contextlib
import socket
from threading import Thread
from types import TracebackType
from typing import Literal, Self

ON_POSTGRESQL = b"COMMIT\x00"
ON_MARIADB = b";COMMIT"
"""How a COMMIT goes over the wire."""


class Proxy:
    """Forwards to a port of 127.0.0.1; `cut` says what becomes of the next COMMIT."""

    def __init__(self, port: int, commit: bytes = ON_POSTGRESQL) -> None:
        self.target = port
        """Where new connections lead to."""
        self._commit = commit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        self.cut: Literal["before", "after"] | None = None
        self.cuts = 0
        self.heard = 0
        """How often somebody sent something to the server."""
        self.deaf = False
        """New connections are refused."""
        self.mute = False
        """As a server that hangs: whatever is sent either way is lost, and nothing is closed."""
        Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Break every connection."""
        while self._open:
            one = self._open.pop()
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.deaf:
                    client.close()
                    continue
                try:
                    server = self._connect()
                except OSError:
                    client.close()
                    continue
                self._open += [client, server]
                Thread(target=self._forth, args=(client, server), daemon=True).start()
                Thread(target=self._back, args=(client, server), daemon=True).start()

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.target))

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                self.heard += 1
                if self.cut is not None and self._commit in data:
                    cut, self.cut = self.cut, None
                    self.cuts += 1
                    if cut == "after":
                        # The answer finds nobody, but the server has done it.
                        client.shutdown(socket.SHUT_RDWR)
                        server.sendall(data)
                        server.recv(65536)
                    break
                if not self.mute:
                    server.sendall(data)
        self._close(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not self.mute:
                    client.sendall(data)
        self._close(client, server)

    @staticmethod
    def _close(*both: socket.socket) -> None:
        for one in both:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
