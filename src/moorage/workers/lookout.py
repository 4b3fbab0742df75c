"""Looks around every few seconds, in any number of server processes.

What is found is written as a changeset under an id or a generation that only one of them gets.
"""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import TYPE_CHECKING

from moorage.workers.expiry import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)


def run(look: Callable[[], bool], *, stop: Event, interval: float) -> None:
    """Look every `interval` seconds until `stop` is set; at once again while there is more.

    Nothing that goes wrong ends the loop, a database out of reach neither.
    """
    while not stop.is_set():
        more = False
        try:
            more = look()
        except Exception:  # noqa: BLE001 - the last one to hear of it; the next round tries again
            _log.exception("looking around failed")
        if not more:
            stop.wait(interval)


def start(look: Callable[[], bool], *, interval: float = 1.0) -> Worker:
    """Run the loop in a thread that does not keep the process alive."""
    stop = Event()
    thread = Thread(
        target=run,
        args=(look,),
        kwargs={"stop": stop, "interval": interval},
        name="moorage-lookout",
        daemon=True,
    )
    thread.start()
    return Worker(stop, thread)
