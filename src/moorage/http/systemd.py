"""Notifies systemd of readiness, reload and end (sd_notify).

The protocol is one datagram a message to the socket that `NOTIFY_SOCKET` names (sd_notify(3)).
"""

from __future__ import annotations

import logging
import socket
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

_log = logging.getLogger(__name__)

READY: Final = "READY=1"
"""It answers: `systemctl start` returns, and what comes after this unit starts."""
STOPPING: Final = "STOPPING=1"
"""It has begun to end."""
_VARIABLE: Final = "NOTIFY_SOCKET"
_SECONDS: Final = 1.0
"""How long to wait for systemd to take a message."""


def reloading() -> str:
    """The message that a reload has begun; READY follows when it is finished."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}"


def notifier(environment: MutableMapping[str, str]) -> Callable[[str], None]:
    """A function that sends systemd a message; it does nothing without `NOTIFY_SOCKET`.

    The variable is taken out of the environment: children have nothing to tell.
    """
    place = environment.pop(_VARIABLE, "")
    if place.startswith("@"):  # a name that is no file's
        place = f"\0{place[1:]}"

    def tell(message: str) -> None:
        if not place:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SECONDS)
                sender.sendto(message.encode(), place)
        except OSError as error:
            _log.warning("sending %s to systemd failed: %s", message, error)

    return tell
