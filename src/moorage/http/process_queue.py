"""Local sockets between the processes of one service: one connection for each request.

All processes of a kind (solvers, planners) accept from one listening socket, which the supervisor
keeps. Its backlog is the queue: it survives a process that dies, it is bounded, and a free process
takes the next request without any dispatcher. The address lies in Linux's abstract namespace, so no
file is left behind; both ends ask the kernel whose process is on the other side and accept only
their own user's (or root's).

A conversation: the server says READY when it takes the request; the client sends its messages; the
server answers OK and one message, or FAILED. Before that it may send INTERIM and one message, any
number of times.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import struct
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

READY: Final = b"ready"
INTERIM: Final = b"interim"
OK: Final = b"ok"
FAILED: Final = b"failed"

LONGEST_MESSAGE: Final = 512 * 1024 * 1024
"""Bytes of one message; the instance of a fleet of 100,000 hosts needs about a tenth."""
ASKING_SECONDS: Final = 10.0
"""How long a client may take to send its request once it has its turn."""

_CREDENTIALS: Final = struct.Struct("3i")
_ROOT: Final = 0


class NoAnswer(Busy):
    """No process became free in time, or the one that had the request gave no answer."""


class WrongUser(Exception):
    """The process at the other end runs as another user."""


class ProcessFailed(RuntimeError):
    """The process met an internal error; its log has the traceback."""


@dataclass(frozen=True, slots=True)
class ProcessPool:
    """A pool of processes of one kind that answer requests."""

    kind: str
    """As texts name it: `solver`."""
    address: str

    def ask(
        self,
        messages: Callable[[], Iterable[bytes]],
        *,
        until: float,
        margin: float,
        interim: Callable[[bytes], None] = lambda message: None,  # noqa: ARG005 - ignored
    ) -> bytes:
        """Send the messages, made when a process is free, and return its answer.

        It has until then (monotonic), its wait for a turn included, and so many seconds more to
        hand over what it has. `interim` gets what it sends before its answer.

        Raises:
            NoAnswer: no process became free in time, or the one that had the request died or did
                not answer.
            Busy: the queue is full, or no process serves it.
            Failed: the process met an error of its own.
        """
        connection = self._turn(until)
        try:
            for message in messages():
                connection.send_bytes(message)
            late = max(until, time.monotonic()) + margin
            word = INTERIM
            while word == INTERIM:
                if not connection.poll(max(late - time.monotonic(), 0)):
                    raise NoAnswer(f"the {self.kind} went past its time limit", retry_after=5)
                word = connection.recv_bytes(LONGEST_MESSAGE)
                if word == INTERIM:
                    interim(connection.recv_bytes(LONGEST_MESSAGE))
            if word != OK:
                raise ProcessFailed(f"the {self.kind} process failed; its log says more")
            return connection.recv_bytes(LONGEST_MESSAGE)
        except (EOFError, OSError) as error:
            ended = f"the {self.kind} process ended before its answer"
            raise NoAnswer(ended, retry_after=2) from error
        finally:
            connection.close()

    def connect(self) -> Connection:
        """Connect to the queue.

        Raises:
            Busy: the queue is full, or no process serves it.
            Stranger: another user's process has the address.
        """
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        caller.setblocking(False)  # noqa: FBT003 - the standard library's signature
        try:
            caller.connect("\0" + self.address)
        except BlockingIOError as error:
            caller.close()
            raise Busy(f"the {self.kind}'s queue is full", retry_after=2) from error
        except OSError as error:
            caller.close()
            raise Busy(f"no {self.kind} is running", retry_after=5) from error
        caller.setblocking(True)  # noqa: FBT003 - the standard library's signature
        return _as_connection(caller)

    def _turn(self, until: float) -> Connection:
        """A connection that a process has accepted from the queue.

        A process that dies between taking it and the first word costs nothing: queue again.
        """
        while True:
            connection = self.connect()
            try:
                if connection.poll(max(until - time.monotonic(), 0)):
                    connection.recv_bytes(len(READY))
                    return connection
            except (EOFError, OSError):
                connection.close()
                continue
            connection.close()
            raise NoAnswer(f"no {self.kind} became free in time", retry_after=2)


def new_address(kind: str) -> str:
    """A random, unguessable socket address for one run of the server."""
    return f"moorage-{kind}-{secrets.token_hex(16)}"


def listen(address: str, queue: int) -> socket.socket:
    """The listening socket that the processes inherit; its backlog holds about `queue` requests."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + address)
    listener.listen(queue)
    # A waiting process may be asked to leave, so it must not block in the call that accepts.
    listener.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return listener


def accept(listener: socket.socket) -> Connection | None:
    """Accept the next request; None if another process has taken it.

    Raises:
        Stranger: another user's process called.
    """
    try:
        peer, _ = listener.accept()
    except (BlockingIOError, ConnectionAbortedError):
        return None
    peer.setblocking(True)  # noqa: FBT003 - the standard library's signature
    return _as_connection(peer)


def sighup_descriptor() -> int:
    """A descriptor that becomes readable on SIGHUP: accept nothing new, finish, and exit."""
    signalled, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    return signalled


def _as_connection(peer: socket.socket) -> Connection:
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(packed)
    if user not in {_ROOT, os.getuid()}:
        peer.close()
        raise WrongUser(f"a process of user {user} is at the other end")
    return Connection(peer.detach())
