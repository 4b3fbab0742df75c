"""Files in which the workers of one service share their counts, so that any can show the sum.

Prometheus' library maps one file per kind of metric and process. A worker's files are called after
its number, not its process id: the worker that replaces a dead one goes on counting where that one
stopped, and files never pile up. They are given their whole room at once: a disk that fills up
later then costs no worker its life, as a hole in a mapped file would.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)

_PREFIX: Final = "moorage-metrics-"
_GAUGE: Final = "gauge_livesum"
_KINDS: Final = ("counter", "histogram", _GAUGE)
_ROOM: Final = 4 * 1024 * 1024
"""Bytes of each file; all routes with all their statuses need about half of one."""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder for the files of one service.

    Folders of killed services are removed too: these are no longer locked.

    Raises:
        OSError: none can be made.
    """
    _tidy(Path(tempfile.gettempdir()))
    made, lock = _locked()
    try:
        yield made
    finally:
        os.close(lock)
        shutil.rmtree(made, ignore_errors=True)


def prepare(where: Path, worker: str) -> None:
    """Create and allocate the files of a worker.

    Raises:
        OSError: there is no room.
    """
    for kind in _KINDS:
        descriptor = os.open(where / f"{kind}_{worker}.db", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size == 0:
                os.posix_fallocate(descriptor, 0, _ROOM)
        except OSError:
            os.ftruncate(descriptor, 0)
            raise
        finally:
            os.close(descriptor)


def forget(where: Path, worker: str) -> None:
    """Delete the gauges of a worker that has ended; its counters stay."""
    (where / f"{_GAUGE}_{worker}.db").unlink(missing_ok=True)


def _locked() -> tuple[Path, int]:
    """A new folder and the lock on it, which marks its service as running."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Another service, starting now, may tidy it away before it is locked.
        try:
            lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():
            return made, lock
        os.close(lock)


def _tidy(parent: Path) -> None:
    for old in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or gone meanwhile
            if old.stat().st_uid != os.getuid():
                continue
            lock = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
                _log.debug("removed %s, left by a service that was killed", old)
            finally:
                os.close(lock)
