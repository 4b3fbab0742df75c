"""Telling systemd, where it started this process, that it answers and that it ends.

The protocol is one datagram a message to the socket that `NOTIFY_SOCKET` names (sd_notify(3)).
"""

from __future__ import annotations

import logging
import socket
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


def teller(environment: MutableMapping[str, str]) -> Callable[[str], None]:
    """What tells systemd a message; nobody, where it did not ask for any.

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
            _log.warning("systemd cannot be told %s: %s", message, error)

    return tell
