"""What the kernel knows of this process's connections, which Granian does not tell."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAST_SENT: Final = struct.Struct("44xI")
"""Where Linux' `tcp_info` has the milliseconds since something was sent."""
_LONGEST_INFO: Final = 104
_NUMBER: Final = struct.Struct("i")


def sending() -> bool:
    """Whether a peer has not yet taken all that was sent to it."""
    for connection in _connections():
        with connection, contextlib.suppress(OSError):  # it listens, or was closed meanwhile
            connection.getpeername()
            waits = fcntl.ioctl(connection, termios.TIOCOUTQ, _NUMBER.pack(0))
            if _NUMBER.unpack(waits)[0]:
                return True
    return False


def cut(address: str, seconds: float) -> int:
    """Stop receiving from an address where nothing was sent for so long; return on how many."""
    number = 0
    for connection in _connections():
        with connection, contextlib.suppress(OSError):
            peer = connection.getpeername()[0].removeprefix("::ffff:")
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LONGEST_INFO)
            [silent] = _LAST_SENT.unpack_from(info)
            if peer == address.removeprefix("::ffff:") and silent / 1000 >= seconds:
                connection.shutdown(socket.SHUT_RD)
                number += 1
    return number


def _connections() -> Iterator[socket.socket]:
    """Every TCP socket of this process, as a second handle on it."""
    for name in _descriptors():
        with contextlib.suppress(OSError):  # no socket, or closed meanwhile
            own = socket.socket(fileno=os.dup(int(name)))
            if own.family in {socket.AF_INET, socket.AF_INET6} and own.type == socket.SOCK_STREAM:
                yield own
            else:
                own.close()


def _descriptors() -> list[str]:
    folder = Path("/proc/self/fd")
    return [entry.name for entry in folder.iterdir()] if hasattr(socket, "TCP_INFO") else []
