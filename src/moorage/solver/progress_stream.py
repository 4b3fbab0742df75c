"""Sends the progress of a solve to the client that waits for its answer."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from moorage.domain.search_progress import listening
from moorage.http.process_queue import INTERIM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from moorage.domain.search_progress import SearchProgress

EVERY: Final = 0.25
"""Seconds between two messages. The newest progress is repeated even if nothing has changed: what
the client makes of it is for the client."""


@contextmanager
def progress_sent(connection: Connection) -> Iterator[None]:
    """Run a solve whose progress goes to the client; nothing is sent of short ones.

    Afterwards the connection is free for the answer.
    """
    newest: list[SearchProgress] = []
    over = Event()

    def hear(progress: SearchProgress) -> None:
        newest[:] = [progress]

    def send() -> None:
        while not over.wait(EVERY):
            for progress in newest:
                try:
                    connection.send_bytes(INTERIM)
                    connection.send_bytes(json.dumps(asdict(progress)).encode())
                except OSError:
                    return  # the client has left; sending the answer finds out, too

    sender = Thread(target=send, name="progress", daemon=True)
    sender.start()
    try:
        with listening(hear):
            yield
    finally:
        over.set()
        sender.join()
