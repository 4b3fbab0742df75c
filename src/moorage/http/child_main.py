"""Entry point of the supervisor's children: `python -m moorage.http.child_main MODULE:FUNCTION`.

Before anything heavy is imported it makes sure that it never outlives its parent; then it reads
one line of JSON from standard input and calls the function with it. Standard input stays open as a
lifeline: it ends when the parent does, however the parent dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from moorage.domain.errors import InvalidDescription, MoorageError

if TYPE_CHECKING:
    from collections.abc import Callable

CANNOT_START: Final = 78
"""Exit status of a child that has printed why it cannot start; another try would not help."""
NOT_NOW: Final = 75
"""Exit status of a child that has printed why it cannot start now."""
ORPHANED: Final = 79
"""Exit status of a child whose parent is gone."""
TELL_STACKS: Final = signal.SIGUSR1
"""A child that gets it writes the stacks of its threads to standard error, and goes on."""

_TURN: Final = 0.0005
"""Seconds after which a thread that computes lets another one go on. With the interpreter's own
five milliseconds a commit, which gives way at each of its statements, keeps all other writers out
for a tenth of a second while others of its process search."""
_NICER: Final = 5
"""By how much the niceness of a process that computes is above an HTTP worker's: it gets a third of
the worker's share of a processor that both want."""
_PR_SET_PDEATHSIG: Final = 1
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEPT: Final = 32 * 1024 * 1024
"""Bytes of free memory that a child keeps, for its next snapshot."""
_BIG: Final = 16 * 1024 * 1024
"""Bytes from which a piece of memory is the system's own, and goes back at once."""
_NAMES: Final = frozenset(
    {
        *("GLIBC_TUNABLES", "MALLOC_ARENA_MAX"),
        *("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"),
    }
)


def run(target: str) -> None:
    """Run the function `target` (`module:name`) as a child process.

    The function gets the dictionary the parent sent, and calls `collect_seldom` when it has loaded
    what it needs. A `MoorageError` or `OSError` it raises is
    printed in one line, and ends the process with `CANNOT_START` or `NOT_NOW`.
    """
    _die_with_parent()
    faulthandler.register(TELL_STACKS)
    sys.setswitchinterval(_TURN)
    _keep_memory()
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        os._exit(ORPHANED)
    config: dict[str, Any] = json.loads(line)
    if os.getppid() != config["parent"]:
        os._exit(ORPHANED)
    threading.Thread(target=_watch_lifeline, name="lifeline", daemon=True).start()
    gc.disable()  # what is loaded stays: looking through it again and again is a sixth of the start
    module, _, name = target.partition(":")
    work: Callable[[dict[str, Any]], None] = getattr(import_module(module), name)
    try:
        work(config)
    except (MoorageError, OSError) as error:
        sys.stderr.write(f"moorage: {error}\n")
        sys.stderr.flush()
        exit_now(CANNOT_START if _lasts(error) else NOT_NOW)
    exit_now(0)


def _lasts(error: Exception) -> bool:
    """Whether the error stays until a setting or a file is changed.

    What is wrong about the database, not about its URL, may be mended there: an account made, a
    disk mounted.
    """
    return isinstance(error, InvalidDescription) and error.path != "database"


def collect_seldom(new_objects: int) -> None:
    """End the start: look for cycles only among later objects, and after so many new ones."""
    # Not among all that is loaded: at 100,000 hosts that takes a second, to find 5,000 objects.
    gc.set_threshold(new_objects, 10, 10)
    gc.freeze()
    gc.enable()


def lower_priority() -> None:
    """Lower the process's priority below that of HTTP workers, whose answers take milliseconds."""
    os.nice(_NICER)


def report(descriptor: int) -> None:
    """Report readiness once, on the descriptor that the parent gave."""
    with contextlib.suppress(BrokenPipeError):  # the parent has stopped listening
        os.write(descriptor, b"\1")
    os.close(descriptor)


def exit_now(status: int) -> NoReturn:
    """Exit at once, without waiting for threads that are blocked on a client or a solver."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _die_with_parent() -> None:
    """Ask the kernel to kill this process with its parent, where it can (Linux)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _keep_memory() -> None:
    """Configure glibc's allocator, where it is used, to keep freed memory.

    Left alone it gives the columns of an old snapshot back to the system as soon as they are free,
    and gets as much anew for the next one, page by page: at 10,000 hosts two thirds of what a new
    inventory costs. It would also give every thread an arena of its own, which grows and shrinks
    with each write: all are asked of one interpreter, so one arena is warmer and smaller. An
    operator's own word in the environment goes before ours.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not _NAMES.isdisjoint(os.environ):
        return
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    mallopt(_M_MMAP_THRESHOLD, _BIG)


def _watch_lifeline() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(ORPHANED)


if __name__ == "__main__":
    run(sys.argv[1])
