"""The store that use cases see: `usecases.ports.Store` over one database."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import select

from moorage.store.commit.batch import ChangeBodies
from moorage.store.commit.commit import commit, commit_alone
from moorage.store.database.fifo_lock import FifoLock
from moorage.store.database.retry import WAIT
from moorage.store.feed.event_store import EventStore
from moorage.store.feed.snapshot_feed import Feed
from moorage.store.hypothetical_ledger import DryRun, HypotheticalLedger
from moorage.store.read import provider_states
from moorage.store.read.bookings import BookingQueries
from moorage.store.read.compliance import ComplianceStore
from moorage.store.read.ensemble_queries import EnsembleQueries
from moorage.store.read.lease_queries import LeaseQueries
from moorage.store.read.plans import PlanStore
from moorage.store.read.records import RecordStore
from moorage.store.schema import tables
from moorage.store.schema.upgrade import check_schema
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.actors import Actor
    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.period import Instant
    from moorage.domain.providers import ResourceProvider
    from moorage.store.backend import Backend
    from moorage.store.changelog.entries import Connections
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock

    T = TypeVar("T")


_SESSION_KEY: Final = select(tables.session_keys.c.key)


class Ledger(BookingQueries, EnsembleQueries, LeaseQueries):
    """Every method is a transaction of its own and may be called from any thread."""

    def __init__(self, backend: Backend, clock: Clock | None, watch: Watch | None = None) -> None:
        super().__init__(backend, clock)
        self._watch = watch
        self._feed = Feed(backend, clock, watch)
        self.snapshot = self._feed.snapshot
        """See `Store`."""
        self.last_snapshot = self._feed.last_snapshot
        """See `Store`."""
        self._turns = FifoLock(WAIT)
        self._actor: str | None = None
        """The stored text of who commits."""
        self.event_log = EventStore(backend, self.now)
        """See `Store`."""
        self.records = RecordStore(backend)
        """See `Store`."""
        self.compliance = ComplianceStore(backend, clock)
        """See `Store`."""
        self.plans = PlanStore(backend, clock)
        """See `Store`."""

    def close(self) -> None:
        """Let go of the database; the ledger cannot be used afterwards."""
        self._backend.close()

    def check_schema(self) -> None:
        """Return if the database has the schema that this version of the program works with.

        Raises:
            InvalidDescription: it has not: some other version has changed it meanwhile.
            Busy: the database is away.
        """
        self._backend.read(check_schema)

    def connections(self) -> Connections:
        """How many connections this process has to the database now."""
        return self._backend.connections()

    def commit(self, changeset: Changeset) -> Committed:
        """See `Store`.

        Raises:
            Busy: too many writers at once, or the database is away.
        """
        bodies = ChangeBodies(changeset)
        with self._backend.log.queue(changeset):
            work = self._written(partial(commit, changeset=changeset, bodies=bodies))
            return work() if self._watch is None else self._watch.commit(work)

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        """See `Store`. In each process one at a time, so that others come in between.

        Raises:
            Busy: too many before it, too many writers at once, or the database is away.
        """
        with self._turns:
            work = self._written(partial(commit_alone, propose=propose))
            return work() if self._watch is None else self._watch.commit(work)

    def _written(self, work: Callable[..., T]) -> Callable[[], T]:
        """What does the work in a transaction of its own."""
        inside = partial(work, log=self._backend.log, clock=self._clock, actor=self._actor)
        return partial(self._backend.write, inside)

    @property
    def left_out(self) -> Sequence[Change]:
        return ()

    def by(self, actor: Actor) -> Ledger:
        view = Ledger.__new__(Ledger)  # as `copy`, which takes ten times as long
        view.__dict__ = {**self.__dict__, "_actor": stored_bodies.ACTOR.encode(actor)}
        return view

    def dry_run(self, *, explained: bool = False) -> DryRun:
        return DryRun(self, self._backend, self._clock, explained=explained)

    def hypothetical(self, at: Instant | None = None) -> HypotheticalLedger:
        return HypotheticalLedger(self, self._backend, self.snapshot(), None, at)

    def provider(self, uuid: str) -> ResourceProvider:
        return provider_states.provider(self._backend, uuid)

    def session_key(self) -> bytes:
        key: str = self._ask(_SESSION_KEY).scalar_one()
        return key.encode("ascii")
