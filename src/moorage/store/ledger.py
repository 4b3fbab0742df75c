"""The store that use cases see: `usecases.ports.Store` over one database."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from moorage.store import read, states
from moorage.store.alone import commit_alone
from moorage.store.commit import commit
from moorage.store.feed import Feed
from moorage.store.first import commit_first
from moorage.store.patience import WAIT
from moorage.store.recorded_placements import RecordedPlacements
from moorage.store.recorded_stays import RecordedStays
from moorage.store.told import ToldStore
from moorage.store.turnstile import Queue
from moorage.store.upgrade import check_schema
from moorage.store.watch import Unwatched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.changes import Changeset, Committed
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.providers import ResourceProvider
    from moorage.engine.snapshot import Snapshot
    from moorage.store.answers import Connections
    from moorage.store.backends import Backend
    from moorage.store.own import Ended
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock, Keepers

    T = TypeVar("T")

_UNWATCHED = Unwatched()


class Ledger(RecordedPlacements, RecordedStays):
    """Every method is a transaction of its own and may be called from any thread."""

    def __init__(self, backend: Backend, clock: Clock | None, watch: Watch = _UNWATCHED) -> None:
        super().__init__(backend, clock)
        self._watch = watch
        # By one statement the instant of a commit is the database's.
        self._at_once = backend.at_once if clock is None else None
        self._feed = Feed(backend, clock, watch)
        self._keepers: Keepers | None = None
        self._turns = Queue(WAIT)
        self.told = ToldStore(backend, self.now)
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

    def snapshot(self) -> Snapshot:
        """See `Store`."""
        return self._feed.snapshot()

    def commit(self, changeset: Changeset) -> Committed:
        """See `Store`.

        Raises:
            Busy: too many writers at once, or the database is away.
        """
        with self._backend.log.queue(changeset):
            committed, ended = self._watch.commit(partial(self._committed, changeset))
        self._feed.own.note(ended)
        return committed

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        """See `Store`. In each process one at a time, so that others come in between.

        Raises:
            Busy: too many before it, too many writers at once, or the database is away.
        """
        with self._turns:
            done = self._watch.commit(self._written(partial(commit_alone, propose=propose)))
        if done is not None:
            self._feed.own.note(done[1])
        return done and done[0]

    def _committed(self, changeset: Changeset) -> tuple[Committed, Ended]:
        write = self._written(partial(commit, changeset=changeset))
        if self._at_once is None:
            return write()
        return commit_first(self._at_once, changeset, write)

    def _written(self, work: Callable[..., T]) -> Callable[[], T]:
        """What does the work in a transaction of its own."""
        inside = partial(work, log=self._backend.log, clock=self._clock)
        return partial(self._backend.write, inside)

    def provider(self, uuid: str) -> ResourceProvider:
        """See `Store`."""
        return states.provider(self._backend, uuid)

    def keepers(self) -> Keepers:
        """See `Store`. Read in again only after one of them has changed."""
        known = self._keepers
        revision, waited = read.keepers_revision(self._backend)
        if known is None or known.revision != revision:
            known = self._keepers = self._backend.read(read.keepers)
        return replace(known, waited=waited)

    def due(self, limit: int) -> Sequence[Decision | Claim]:
        """See `Store`."""
        now = self.now()
        return self._backend.read(lambda connection: read.due_items(connection, now, limit))
