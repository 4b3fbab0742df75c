"""Private ledgers that begin as copies of what this process made before.

Most tests begin with a ledger of their own, and most of its cost are Alembic, the standard names
and the fleet that is loaded into it. Each combination of fleet and instant is made once, in the
way in which a service makes it; whoever asks for it again gets the bytes of its file.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moorage.client.fleet_file import read_fleet
from moorage.domain.fleet_expansion import expand
from moorage.domain.fleet_parts import parts
from moorage.store import open_store
from moorage.store.ledger import Ledger
from moorage.store.sqlite.backend import SqliteBackend
from moorage.usecases.ledger.fleet_loading import load_fleet
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Clock, Store

OPERATOR: Final = Caller("op", "operations", frozenset({"admin"}))
"""Who loads the fleets."""
_KEPT: Final = 32
"""Copies kept: a process's tests begin with a few fleets and a few instants."""


@dataclass(frozen=True, slots=True)
class _StandingClock:
    """Always the same instant."""

    instant: Instant

    def now(self) -> Instant:
        """That instant."""
        return self.instant


def private_ledger(clock: Clock | None = None, fleet: str = "") -> Ledger:
    """Return a ledger of its own, which is gone when it is closed, with the fleet loaded.

    Args:
        clock: as of `open_store`.
        fleet: the text of a fleet file; empty: no hosts.
    """
    folder = Path(tempfile.mkdtemp(prefix="moorage-"))
    path = folder / "ledger.db"
    write_ledger(path, clock, fleet)
    return Ledger(SqliteBackend(path, private=folder), clock)


def new_database(folder: Path, clock: Clock | None = None, fleet: str = "") -> str:
    """Return the URL of a new ledger in a file in the folder, with the fleet loaded."""
    path = folder / "ledger.db"
    write_ledger(path, clock, fleet)
    return f"sqlite:///{path}"


def write_ledger(path: Path, clock: Clock | None = None, fleet: str = "") -> None:
    """Write a new ledger into a file that does not exist, with the fleet loaded."""
    path.touch(0o600, exist_ok=False)
    path.write_bytes(_made(_started() if clock is None else clock.now(), fleet))


def fill(store: Store, fleet: str) -> None:
    """Load the text of a fleet file into a ledger, as the operator."""
    for part in parts(expand(read_fleet(fleet))):
        load_fleet(store, OPERATOR, part)


@lru_cache(1)
def _started() -> Instant:
    """An instant of this process: without a clock nobody asks for the same microsecond twice."""
    return time.time_ns() // 1000


@lru_cache(_KEPT)
def _made(now: Instant, fleet: str) -> bytes:
    """The file of a ledger that was made at an instant and has the fleet, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        path = Path(folder) / "ledger.db"
        clock = _StandingClock(now)
        if fleet:
            write_ledger(path, clock)
        with closing(open_store(f"sqlite:///{path}", clock=clock)) as store:
            if fleet:
                fill(store, fleet)
        with closing(sqlite3.connect(path)) as file:
            return file.serialize()
