"""Readiness checks of a worker, and the metrics read along with them.

Each look raises when its part is not usable; readiness is made of them.
"""

from __future__ import annotations

import math
import os
import resource
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.changes import Changeset
from moorage.domain.effects import Lane
from moorage.domain.errors import MoorageError
from moorage.domain.period import SECOND
from moorage.domain.plans import PlanState
from moorage.domain.waitlist import EntryState
from moorage.http.process_status import Column
from moorage.telemetry import table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.http.process_status import ProcessStatus, Row
    from moorage.telemetry.instruments import Metrics, ReadSamples
    from moorage.usecases.compliance_ports import ComplianceRecords
    from moorage.usecases.plan_ports import PlanRecords

PATIENCE: Final = 10.0
"""Seconds a solver or planner may be away, once one was up, before its absence counts."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class NoProcess(MoorageError):
    """No process of a kind is running."""


class ProcessCheck:
    """A check that fails if no process of a kind has been up for `PATIENCE` seconds.

    One that is replaced, at a reload or after its death, is away for a moment, and requests wait
    for the next one; a replica that is taken out meanwhile would refuse them.
    """

    def __init__(
        self, kind: str, up: Callable[[], int], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`up` counts the running processes; `clock` gives seconds."""
        self._kind = kind
        self._up = up
        self._clock = clock
        self._seen_at = -math.inf

    def __call__(self) -> None:
        """Check.

        Raises:
            NoProcess: none is up, and none was for a while.
        """
        now = self._clock()
        if self._up():
            self._seen_at = now
        elif now - self._seen_at > PATIENCE:
            raise NoProcess(f"no {self._kind} process is up")


class Pool(Protocol):
    """The connection pool of one process."""

    @property
    def in_use(self) -> int:
        """Connections in use."""

    @property
    def idle(self) -> int:
        """Idle connections."""

    @property
    def limit(self) -> int:
        """The largest number of connections."""


class Ledger(Protocol):
    """The part of the store that the checks use."""

    def snapshot(self) -> Snapshot:
        """The present snapshot."""

    def check_schema(self) -> None:
        """Raise unless the schema is this version's."""

    def connections(self) -> Pool:
        """The connection pool."""

    def commit(self, changeset: Changeset) -> object:
        """Write a changeset."""

    def now(self) -> Instant:
        """The store's clock."""

    def held(self, project_id: str | None) -> int:
        """Places held or claimed; None means of every project."""

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        """Per lane the number of due effects, and the oldest's due time."""

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        """The number of waitlist entries by state."""

    @property
    def compliance(self) -> ComplianceRecords:
        """Violations."""

    @property
    def plans(self) -> PlanRecords:
        """Plans."""


@dataclass(frozen=True, slots=True)
class HealthChecks:
    """The checks of one worker or planner."""

    ledger: Ledger
    metrics: Metrics
    planners: bool
    """Whether planner processes are used."""
    unwritable: Collection[str]
    """Why commits have failed since the last successful one; kept by the store's observer."""
    status: ProcessStatus
    """The shared rows of all processes."""

    @property
    def checks(self) -> Mapping[str, Callable[[], object]]:
        """The checks by their names in /readyz."""
        looks: dict[str, Callable[[], object]] = {
            "database": self._database,
            "schema": self.ledger.check_schema,
            "writes": self._writes,
            "solver": ProcessCheck("solver", self._solvers_up),
        }
        if self.planners:
            looks["planner"] = ProcessCheck("planner", self._planners_up)
        return looks

    @property
    def on_scrape(self) -> Mapping[table.Row, ReadSamples]:
        """The metrics that are read at each scrape."""
        return {
            table.HELD: lambda: _one(self.ledger.held(None)),
            table.EFFECTS_DUE: lambda: _counts(self.ledger.pending_effects()),
            table.EFFECTS_AGE: self._ages,
            table.WAITLIST: self._waiting,
            table.VIOLATIONS: self._violations,
            table.PLANS: self._plans,
            table.SOLVERS: lambda: _one(self._solvers_up()),
            table.PLANNERS: lambda: _one(self._planners_up()),
            table.PLANNING: self._planning,
            table.REPLACED: self._replaced,
            table.OPEN: partial(self._each, Column.CONNECTIONS),
            table.UNSENT: partial(self._each, Column.UNSENT),
            table.ARRIVING: partial(self._each, Column.ARRIVING),
            table.READERS_ENDED: partial(self._each, Column.READERS_ENDED),
            table.BODIES_REFUSED: partial(self._each, Column.BODIES_REFUSED),
            table.INFO: lambda: [((version("moorage"),), 1)],
        }

    def record(self, name: str, good: bool) -> None:  # noqa: FBT001 - the health monitor's callback
        """Record the result of a check."""
        self.metrics.set(table.READY, float(good), self.metrics.worker, name)

    def round_done(self) -> None:
        """Record that a round of expiry has ended well."""
        self.metrics.set(table.EXPIRY_ROUND, time.time(), self.metrics.worker)

    def lane_done(self, lane: Lane) -> None:
        """Record that a round of effects has ended well."""
        self.metrics.set(table.EFFECTS_ROUND, time.time(), self.metrics.worker, lane.value)

    def _solvers_up(self) -> int:
        return self.status.up(self.status.solvers)

    def _planners_up(self) -> int:
        return self.status.up(self.status.planners)

    def _planning(self) -> Iterable[tuple[tuple[str, ...], float]]:
        rows = enumerate(self.status.planners, 1)
        return [((str(n),), row[Column.CONNECTIONS]) for n, row in rows if row[Column.BEATS]]

    def _each(self, column: Column) -> Iterable[tuple[tuple[str, ...], float]]:
        rows = enumerate(self.status.workers, 1)
        return [((str(number),), row[column]) for number, row in rows if _is_known(row, column)]

    def _replaced(self) -> Iterable[tuple[tuple[str, ...], float]]:
        status = self.status
        for name, rows in (
            ("worker", status.workers),
            ("solver", status.solvers),
            ("planner", status.planners),
        ):
            for number, row in enumerate(rows, 1):
                if _is_known(row, Column.REPLACED):
                    yield (f"{name} {number}",), row[Column.REPLACED]

    def _ages(self) -> Iterable[tuple[tuple[str, ...], float]]:
        now = self.ledger.now()
        pending = self.ledger.pending_effects()
        for lane in Lane:
            _, since = pending.get(lane, (0, now))
            yield (lane.value,), max(now - since, 0) / SECOND

    def _waiting(self) -> Iterable[tuple[tuple[str, ...], float]]:
        counts = self.ledger.waitlist_counts()
        return [((state.value,), counts.get(state, 0)) for state in EntryState]

    def _violations(self) -> Iterable[tuple[tuple[str, ...], float]]:
        counts = self.ledger.compliance.counts()
        return [((kind, str(required).lower()), n) for (kind, required), n in counts.items()]

    def _plans(self) -> Iterable[tuple[tuple[str, ...], float]]:
        counts = self.ledger.plans.counts()
        return [((state.value,), counts.get(state, 0)) for state in PlanState]

    def _database(self) -> None:
        """Bring the snapshot up to date with the ledger.

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
        """After a failed write, try whether the ledger can be written again; free otherwise.

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


def _is_known(row: Row, column: Column) -> bool:
    """Whether the row has data of a process, or of its predecessors with the number."""
    return bool(row[Column.BEATS] or row[column])


def _counts(
    pending: Mapping[Lane, tuple[int, Instant]],
) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((lane.value,), pending.get(lane, (0, 0))[0]) for lane in Lane]


def _one(value: float) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((), value)]


def _resident() -> int:
    """Resident memory in bytes: the present (Linux), else the peak."""
    try:
        with open("/proc/self/statm", encoding="ascii") as found:  # noqa: PTH123 - once a second
            return int(found.read().split()[1]) * _PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
