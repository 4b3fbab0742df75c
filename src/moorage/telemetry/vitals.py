"""Whether a worker's parts are usable, and what can be said of them on the way.

Each look raises when its part is not usable; readiness is made of them.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.changes import Changeset
from moorage.domain.effects import Lane
from moorage.domain.errors import MoorageError
from moorage.domain.period import SECOND
from moorage.domain.waitlist import EntryState
from moorage.telemetry import table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.telemetry.instruments import Ask, Metrics
    from moorage.telemetry.table import Row

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class NoSolver(MoorageError):
    """No solver process is up."""


class Pool(Protocol):
    """The connections of one process to its database."""

    @property
    def in_use(self) -> int:
        """Doing something."""

    @property
    def idle(self) -> int:
        """Kept for the next one."""

    @property
    def limit(self) -> int:
        """How many there may be."""


class Ledger(Protocol):
    """What is asked of the store."""

    def snapshot(self) -> Snapshot:
        """The ledger as it stands."""

    def check_schema(self) -> None:
        """Return if the schema is this version's."""

    def connections(self) -> Pool:
        """The connections there are."""

    def commit(self, changeset: Changeset) -> object:
        """Write a changeset."""

    def now(self) -> Instant:
        """The store's clock."""

    def held(self, project_id: str | None) -> int:
        """Places held or claimed; None means of every project."""

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        """Per lane how many effects are due, and since when."""

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        """How many entries of the waitlist there are in each state."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """The looks of one worker."""

    ledger: Ledger
    metrics: Metrics
    solvers_up: Callable[[], int]
    """Counts the solver processes that are up."""
    unwritable: Collection[str]
    """Why commits cannot be written since the last one that was; kept up to date by others."""

    @property
    def looks(self) -> Mapping[str, Callable[[], object]]:
        """By the names that /readyz shows."""
        return {
            "database": self._database,
            "schema": self.ledger.check_schema,
            "writes": self._writes,
            "solver": self._solver,
        }

    @property
    def asked(self) -> Mapping[Row, Ask]:
        """How to find out what no worker keeps."""
        return {
            table.HELD: lambda: _one(self.ledger.held(None)),
            table.EFFECTS_DUE: lambda: _counts(self.ledger.pending_effects()),
            table.EFFECTS_AGE: self._ages,
            table.WAITLIST: self._waiting,
            table.SOLVERS: lambda: _one(self.solvers_up()),
            table.INFO: lambda: [((version("moorage"),), 1)],
        }

    def told(self, name: str, good: bool) -> None:  # noqa: FBT001 - what the pulse says
        """A look has found a part usable, or not."""
        self.metrics.set(table.READY, float(good), self.metrics.worker, name)

    def round_done(self) -> None:
        """A round of expiry has ended well."""
        self.metrics.set(table.EXPIRY_ROUND, time.time(), self.metrics.worker)

    def lane_done(self, lane: Lane) -> None:
        """A round of effects has ended well."""
        self.metrics.set(table.EFFECTS_ROUND, time.time(), self.metrics.worker, lane.value)

    def _ages(self) -> Iterable[tuple[tuple[str, ...], float]]:
        now = self.ledger.now()
        pending = self.ledger.pending_effects()
        for lane in Lane:
            _, since = pending.get(lane, (0, now))
            yield (lane.value,), max(now - since, 0) / SECOND

    def _waiting(self) -> Iterable[tuple[tuple[str, ...], float]]:
        counts = self.ledger.waitlist_counts()
        return [((state.value,), counts.get(state, 0)) for state in EntryState]

    def _database(self) -> None:
        """Bring the snapshot into step with the ledger.

        Raises:
            MoorageError: that is not possible now.
        """
        metrics, worker = self.metrics, self.metrics.worker
        self._process()
        pool = self.ledger.connections()
        for state, number in (("in_use", pool.in_use), ("idle", pool.idle), ("limit", pool.limit)):
            metrics.set(table.CONNECTIONS, number, worker, state)
        begun = time.time()
        snapshot = self.ledger.snapshot()
        metrics.set(table.REVISION, snapshot.revision, worker)
        metrics.set(table.IN_STEP, begun, worker)

    def _writes(self) -> None:
        """Find out if the ledger can be written again; while it can, this costs nothing.

        A changeset that changes nothing is a commit all the same, with its line in the log.

        Raises:
            MoorageError: it cannot be written now.
        """
        if self.unwritable:
            self.ledger.commit(Changeset(()))

    def _process(self) -> None:
        metrics, worker = self.metrics, self.metrics.worker
        used = resource.getrusage(resource.RUSAGE_SELF)
        metrics.set(table.CPU, used.ru_utime + used.ru_stime, worker)
        metrics.set(table.MEMORY, _resident(), worker)

    def _solver(self) -> None:
        if not self.solvers_up():
            raise NoSolver("no solver process is up")


def _counts(
    pending: Mapping[Lane, tuple[int, Instant]],
) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((lane.value,), pending.get(lane, (0, 0))[0]) for lane in Lane]


def _one(value: float) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((), value)]


def _resident() -> int:
    """Bytes in RAM: now where the system tells it (Linux), else the most there have been."""
    try:
        with open("/proc/self/statm", encoding="ascii") as found:  # noqa: PTH123 - once a second
            return int(found.read().split()[1]) * _PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
