"""What a running server reports of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ServerStatus(Protocol):
    """Receives a server's reports: from the accepting thread, and from others one at a time."""

    def beat(self) -> None:
        """Count a heartbeat: connections are accepted, and requests finish."""

    def set_accepting(self, *, accepts: bool) -> None:
        """Report whether connections are accepted."""

    def set_connections(self, number: int) -> None:
        """Report the number of open connections."""

    def set_arriving(self, size: int) -> None:
        """Report the bytes buffered of incomplete bodies."""

    def set_unsent(self, size: int) -> None:
        """Report the bytes buffered of answers that clients have not read."""

    def body_refused(self) -> None:
        """Count a body refused because others needed its buffer space."""

    def reader_ended(self) -> None:
        """Count a connection ended because others needed its buffer space."""

    def excess_connections(self, connections: int) -> int:
        """How many more connections a server with so many has than the least loaded one.

        A new connection is left to servers with fewer for a few milliseconds.
        """


@dataclass(slots=True)
class SingleServerStatus:
    """The status of the only server on its socket, as numbers."""

    beats: int = 0
    accepts: bool = False
    connections: int = 0
    arriving: int = 0
    unsent: int = 0
    bodies_refused: int = 0
    readers_ended: int = 0

    def beat(self) -> None:
        """Count one."""
        self.beats += 1

    def set_accepting(self, *, accepts: bool) -> None:
        """Keep the value."""
        self.accepts = accepts

    def set_connections(self, number: int) -> None:
        """Keep the value."""
        self.connections = number

    def set_arriving(self, size: int) -> None:
        """Keep the value."""
        self.arriving = size

    def set_unsent(self, size: int) -> None:
        """Keep the value."""
        self.unsent = size

    def body_refused(self) -> None:
        """Count one."""
        self.bodies_refused += 1

    def reader_ended(self) -> None:
        """Count one."""
        self.readers_ended += 1

    def excess_connections(self, connections: int) -> int:  # noqa: ARG002 - there is no other server
        """Zero: there is no other server."""
        return 0
