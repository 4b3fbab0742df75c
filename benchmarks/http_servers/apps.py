"""What the servers serve: a small WSGI application that says what it saw, and the service's own."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PART = 64 * 1024
"""Bytes of a part of a streamed answer."""
LONGEST = 16 << 20
"""Bytes of the longest body."""
_DIGITS = 18


class Parts:
    """A streamed body that counts the parts made and that it was closed."""

    def __init__(self, parts: Iterator[bytes], counts: Counter[str]) -> None:
        self._parts, self._counts = parts, counts
        counts["streams"] += 1

    def __iter__(self) -> Parts:
        return self

    def __next__(self) -> bytes:
        part = next(self._parts)
        self._counts["parts"] += 1
        return part

    def close(self) -> None:
        """Count it."""
        self._counts["closed"] += 1


class Small:
    """Answers by path."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer one request."""
        path = environ["PATH_INFO"].strip("/").partition("/")[0]
        return getattr(self, f"do_{path or 'query'}", self.do_path)(environ, start_response)

    def do_path(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """The path and the query."""
        text = f"{environ['PATH_INFO']} {environ['QUERY_STRING']}"
        return _whole(start_response, text.encode("latin-1"))

    def do_query(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """The query."""
        return _whole(start_response, environ["QUERY_STRING"].encode("latin-1"))

    def do_header(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """What the environ has under the key that the query names."""
        return _whole(start_response, repr(environ.get(environ["QUERY_STRING"])).encode())

    def do_echo(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Digest of the body, or what the service says of one that is too long or not whole."""
        self.counts["echoes"] += 1
        length = environ.get("CONTENT_LENGTH") or ""
        if len(length) > _DIGITS or int(length or 0) > LONGEST:
            return _whole(start_response, b"too long", "413 Too Large")
        try:
            body = environ["wsgi.input"].read(int(length) if length else LONGEST + 1)
        except OSError:
            return _whole(start_response, b"not whole", "400 Bad Request")
        if length and len(body) < int(length):
            return _whole(start_response, b"not whole", "400 Bad Request")
        if len(body) > LONGEST:
            return _whole(start_response, b"too long", "413 Too Large")
        return _whole(start_response, hashlib.sha256(body).hexdigest()[:8].encode())

    def do_nothing(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """A status that has no body."""
        start_response(f"{environ['QUERY_STRING']} Nothing", [])
        return []

    def do_size(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """So many megabytes at once, of their own."""
        return _whole(start_response, b"w" * (int(environ["QUERY_STRING"]) << 20))

    def do_stream(self, environ: dict[str, Any], start_response: Any) -> Parts:
        """So many parts, made one by one."""
        start_response("200 OK", [("content-type", "text/plain")])
        made = (b"s" * PART for _ in range(int(environ["QUERY_STRING"])))
        return Parts(made, self.counts)

    def do_short(self, environ: dict[str, Any], start_response: Any) -> Any:
        """A body that ends before the length that was announced."""
        start_response("200 OK", [("content-length", "10")])
        return iter([b"one", b"two"])

    def do_breaks(self, environ: dict[str, Any], start_response: Any) -> Any:
        """A streamed body that raises in the middle."""

        def parts() -> Iterator[bytes]:
            yield b"one"
            raise ValueError("in the middle")

        start_response("200 OK", [])
        return parts()

    def do_error(self, environ: dict[str, Any], start_response: Any) -> Any:
        """An error instead of an answer."""
        raise ValueError("no answer")

    def do_sleep(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Answer after so many seconds."""
        self.counts["sleeping"] += 1
        time.sleep(float(environ["QUERY_STRING"]))
        return _whole(start_response, b"slept")

    def do_who(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """The process, and where the client is."""
        place = [environ.get("REMOTE_ADDR"), environ.get("REMOTE_PORT"), environ["wsgi.url_scheme"]]
        return _whole(start_response, json.dumps([os.getpid(), *place]).encode())

    def do_counts(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """What was counted."""
        told = {**self.counts, "threads": threading.active_count()}
        return _whole(start_response, json.dumps(told).encode())


def _whole(start_response: Any, body: bytes, status: str = "200 OK") -> list[bytes]:
    start_response(status, [("content-type", "text/plain"), ("content-length", str(len(body)))])
    return [body]


def small() -> Callable[..., Any]:
    """The small application."""
    return Small()


def moorage() -> Callable[..., Any]:
    """The service's application over a new SQLite file, without solver processes."""
    from dataclasses import asdict

    from moorage import app, settings
    from moorage.http import process_queue, process_status

    memory = "/dev/shm"  # noqa: S108 - a folder of its own there: how fast the disk is says nothing
    home = tempfile.mkdtemp("http-servers", dir=memory if Path(memory).is_dir() else None)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    database = f"sqlite:///{home}/ledger.db"
    effective = settings.read({"database": database, "log_level": "error"}, {}, ())
    return app.application(
        {
            "effective": asdict(effective),
            "solver": process_queue.new_address("solver"),
            "counts": home,
            "status": process_status.make(),
            "worker": "1",
        }
    )
