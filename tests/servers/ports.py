"""Ports for servers that a test starts, and starts again."""

import os
import random
import socket
from itertools import cycle
from typing import Final

# Below the range from which the kernel takes ports for outgoing connections (32768 and up): a
# port from there may be gone while the server that it was found for is down.
FIRST: Final = 20_000
LAST: Final = 32_000
SHARES: Final = 16
"""Processes of one test run that look for ports without meeting each other."""


def _share() -> list[int]:
    """This process's ports, in an order that another run on this machine does not have."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % SHARES
    size = (LAST - FIRST) // SHARES
    return random.SystemRandom().sample(
        range(FIRST + worker * size, FIRST + (worker + 1) * size), size
    )


_PORTS: Final = cycle(_share())


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that nobody else is given."""
    for port in _PORTS:
        with socket.socket() as found:
            # As a server listens: connections that have ended do not keep the port.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("a cycle does not end")
