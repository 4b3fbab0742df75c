"""The lock of SQLite's writers: threads queue in their process, processes at a lock on a file."""

from __future__ import annotations

import fcntl
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.errors import Busy
from moorage.store.database.fifo_lock import TOO_MANY_WRITERS, FifoLock

if TYPE_CHECKING:
    from pathlib import Path


class WriterLock:
    """Shuts out every other writer, of this process and of others, while it is entered.

    Nobody waits past the deadline of its request. The system's lock on a file knows no time limit,
    so where another process has it, a thread of its own waits for it; what that one gets when
    nobody wants it any more, it releases.
    """

    def __init__(self, gate: Path, timeout: float) -> None:
        """`gate` is beside the database, and never unlinked: a lock on a lost file locks nothing.

        `timeout` is how many seconds each of the two locks is waited for at most.

        Raises:
            OSError: it cannot be made.
        """
        self._gate = gate.open("ab")
        self._descriptor = self._gate.fileno()
        self._timeout = timeout
        self._queue = FifoLock(timeout)
        self._mutex = Lock()
        self._waits = False
        """Whether a thread waits for the file's lock."""
        self._wanted: Event | None = None
        """Set when that thread has the lock; threads that wait for this are woken."""

    def __enter__(self) -> None:
        """Wait for the lock.

        Raises:
            Busy: it could not be had in time.
        """
        self._queue.acquire()
        try:
            self._lock_file()
        except BaseException:
            self._queue.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        finally:
            self._queue.release()

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._gate.close()

    def _lock_file(self) -> None:
        """Lock the file against other processes; one thread at a time.

        Raises:
            Busy: it could not be had in time.
        """
        with self._mutex:
            # While a thread waits, both would have the lock by the same open file.
            if not self._waits and self._locked_at_once():
                return
            self._wanted = wanted = Event()
            if not self._waits:
                self._waits = True
                Thread(target=self._wait, name="writer-lock", daemon=True).start()
        if wanted.wait(max(deadline.left(self._timeout), 0.0)):
            return
        with self._mutex:
            self._wanted = None
            if wanted.is_set():  # between the timeout and this line
                return
        raise Busy(TOO_MANY_WRITERS)

    def _locked_at_once(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(self) -> None:
        """Wait for the lock, for as long as that takes, and hand it to the next thread."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._mutex:
            self._waits = False
            if self._wanted is not None:
                self._wanted.set()
                self._wanted = None
            elif not self._gate.closed:  # its number may be another file's by now
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
