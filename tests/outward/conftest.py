"""Real receivers on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from moorage.usecases.effect_dispatch import Message

MESSAGE = Message("effect-1", "server-1", {"id": "effect-1", "kind": "delete", "n": 1})


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int = 204
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Answering = Callable[[Request], Answer]


@dataclass
class Receiver:
    """Where it is, and what it was sent."""

    url: str
    requests: list[Request]


@contextmanager
def receiving(answering: Answering) -> Iterator[Receiver]:
    """A server that answers so."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self.rfile.read(length))
            requests.append(request)
            answer = answering(request)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_DELETE = _do  # noqa: N815 - named by the library

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Receiver(f"http://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server that hears everything."""
    with receiving(lambda _: Answer()) as found:
        yield found


def told(request: Request) -> Any:
    """The JSON of a request."""
    return json.loads(request.body)
