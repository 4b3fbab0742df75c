"""Looks around every few seconds, in any number of server processes.

What is found is written as a changeset under an id or a generation that only one of them gets.
"""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from moorage.workers.expiry import Worker
from moorage.workers.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable


def run(
    look: Callable[[], bool], *, stop: Event, interval: float, name: str, trouble: Trouble
) -> None:
    """Look every `interval` seconds until `stop` is set; at once again while there is more.

    Nothing that goes wrong ends the loop, a database out of reach neither.
    """
    while not stop.is_set():
        more = False
        try:
            more = look()
        except Exception as error:  # noqa: BLE001 - the last to hear of it; the next round tries again
            trouble.met(name, error)
        else:
            trouble.over(name)
        if not more:
            stop.wait(interval)


def start(
    look: Callable[[], bool],
    *,
    interval: float = 1.0,
    name: str = "lookout",
    trouble: Trouble | None = None,
) -> Worker:
    """Run the loop in a thread that does not keep the process alive."""
    stop = Event()
    said = trouble or Trouble()
    thread = Thread(
        target=run,
        args=(look,),
        kwargs={"stop": stop, "interval": interval, "name": name, "trouble": said},
        name=f"moorage-{name}",
        daemon=True,
    )
    thread.start()
    return Worker(stop, thread)
