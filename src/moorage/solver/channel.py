"""The wire between HTTP workers and solver processes: one connection for each solve.

All solver processes accept from one listening socket, which the supervisor keeps. Its backlog is
the queue: it survives a dead solver, it is bounded, and a free process takes the next request
without any dispatcher. The address lies in Linux's abstract namespace, so no file is left behind;
both ends ask the kernel whose process is on the other side and accept only their own user's
(or root's).

A conversation: the solver says READY when it takes the request; the client sends one line of
JSON (time limit in microseconds, seed) and the instance; the solver answers OK and the outcome, or
FAILED. No pickles.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
from multiprocessing.connection import Connection
from typing import Final

from moorage.domain.errors import Busy

READY: Final = b"ready"
OK: Final = b"ok"
FAILED: Final = b"failed"

LONGEST_MESSAGE: Final = 512 * 1024 * 1024
"""Bytes of an instance or outcome; a fleet of 100,000 hosts needs about a tenth."""

_CREDENTIALS: Final = struct.Struct("3i")
_ROOT: Final = 0


class Stranger(Exception):
    """The process at the other end belongs to somebody else."""


def new_address() -> str:
    """A name nobody can guess, for one run of the server."""
    return f"moorage-solver-{secrets.token_hex(16)}"


def announce(address: str, number: int) -> socket.socket:
    """Say that solver process `number` is up: as long as what is returned is open."""
    sign = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sign.bind(_sign(address, number))
    return sign


def up(address: str, most: int) -> int:
    """How many of the processes numbered from 1 to `most` are up, free or not."""
    return sum(_is_up(address, number) for number in range(1, most + 1))


def _is_up(address: str, number: int) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as caller:
        try:
            caller.connect(_sign(address, number))
        except OSError:
            return False
        return True


def _sign(address: str, number: int) -> str:
    return f"\0{address}-{number}"


def listen(address: str, queue: int) -> socket.socket:
    """The socket solver processes inherit; about `queue` requests may wait on it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + address)
    listener.listen(queue)
    return listener


def accept(listener: socket.socket) -> Connection:
    """Wait for the next request.

    Raises:
        Stranger: another user's process called.
    """
    peer, _ = listener.accept()
    return _as_connection(peer)


def connect(address: str) -> Connection:
    """Join the queue.

    Raises:
        Busy: the queue is full, or nobody serves it.
        Stranger: another user's process has the address.
    """
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.setblocking(False)  # noqa: FBT003 - the standard library's signature
    try:
        caller.connect("\0" + address)
    except BlockingIOError as error:
        caller.close()
        raise Busy("the solver's queue is full", retry_after=2) from error
    except OSError as error:
        caller.close()
        raise Busy("no solver is running", retry_after=5) from error
    caller.setblocking(True)  # noqa: FBT003 - the standard library's signature
    return _as_connection(caller)


def _as_connection(peer: socket.socket) -> Connection:
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(packed)
    if user not in {_ROOT, os.getuid()}:
        peer.close()
        raise Stranger(f"a process of user {user} is at the other end")
    return Connection(peer.detach())
