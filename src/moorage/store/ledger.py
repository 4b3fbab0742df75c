"""The store that use cases see: `usecases.ports.Store` over one database."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import select

from moorage.domain.changes import (
    BoundHeld,
    Changeset,
    Committed,
    FinishExplanation,
    PutClaim,
    PutDecision,
    PutEnsemble,
    PutEntry,
    PutExplanation,
    PutLease,
    PutSeries,
)
from moorage.domain.decisions import Claim, Decision
from moorage.domain.ensembles import Ensemble
from moorage.domain.errors import NotFound
from moorage.domain.leases import Lease
from moorage.domain.series import Series
from moorage.domain.waitlist import WaitlistEntry
from moorage.store.commit.apply.ensembles import check_held
from moorage.store.commit.batch import ChangeBodies
from moorage.store.commit.commit import commit, commit_alone
from moorage.store.database.fifo_lock import FifoLock
from moorage.store.database.retry import WAIT
from moorage.store.feed.event_store import EventStore
from moorage.store.feed.snapshot_feed import Feed
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.actors import Actor
    from moorage.domain.changes import Change
    from moorage.domain.explain import Explanation
    from moorage.domain.providers import ResourceProvider
    from moorage.store.backend import Backend
    from moorage.store.changelog.entries import Connections
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock

    T = TypeVar("T")


_SESSION_KEY: Final = select(tables.session_keys.c.key)
_NOTHING: Final[Mapping[tuple[type, str], object]] = MappingProxyType({})


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

    def provider(self, uuid: str) -> ResourceProvider:
        return provider_states.provider(self._backend, uuid)

    def session_key(self) -> bytes:
        key: str = self._ask(_SESSION_KEY).scalar_one()
        return key.encode("ascii")


class DryRun(BookingQueries, EnsembleQueries, LeaseQueries):
    """A view of a ledger whose commits write nothing, take no lock and never conflict.

    What was put there is found by its id, with the generation that it still has. Listings, bookings
    and the snapshot stay the ledger's. Of all that a commit judges, only the bound of held places
    is, by those that the ledger has now.
    """

    def __init__(
        self,
        ledger: Ledger,
        backend: Backend,
        clock: Clock | None,
        put: Mapping[tuple[type, str], object] = _NOTHING,
        *,
        explained: bool,
    ) -> None:
        super().__init__(backend, clock)
        self.snapshot = ledger.snapshot
        self.last_snapshot = ledger.last_snapshot
        self.event_log = ledger.event_log
        self.records = ledger.records
        self.compliance = ledger.compliance
        self.plans = ledger.plans
        self.provider = ledger.provider
        self.session_key = ledger.session_key
        self._ledger = ledger
        self._put = dict(put)
        """What was put, by its type and id."""
        self.left_out: list[Change] = []
        """The changes of its commits, in their order."""
        self._explaining = explained
        """Whether explanations of refusals are written; no event reports them."""

    def by(self, actor: Actor) -> DryRun:
        view = copy(self)
        view._ledger = self._ledger.by(actor)  # noqa: SLF001 - a copy of this one
        return view

    def dry_run(self, *, explained: bool = False) -> DryRun:
        inner = explained and self._explaining
        return DryRun(self._ledger, self._backend, self._clock, self._put, explained=inner)

    def commit(self, changeset: Changeset) -> Committed:
        """Note what is put; the ledger stays as it is, but for explanations if they are written.

        Raises:
            QuotaExceeded, OtherQuotaExceeded: see `BoundHeld`.
        """
        if self._explaining and (kept := tuple(_explanations(changeset))):
            return self._ledger.commit(Changeset(kept))
        self.left_out += changeset.changes
        for one in changeset.changes:
            match one:
                case (
                    PutEnsemble(ensemble=put)
                    | PutDecision(decision=put)
                    | PutClaim(claim=put)
                    | PutLease(lease=put)
                    | PutSeries(series=put)
                    | PutEntry(entry=put)
                ):
                    self._put[type(put), put.id] = put
                case BoundHeld():
                    held = self.held(one.project_id) + one.requested
                    check_held(one, held, self.quota(one.project_id))
        return Committed(revision=self.last_snapshot().revision, at=self.now(), written=False)

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        """As `commit`: nobody has to be shut out."""
        changeset = propose()
        return None if changeset is None else self.commit(changeset)

    def ensemble(self, ensemble_id: str) -> Ensemble:
        return self._found(Ensemble, ensemble_id, super().ensemble)

    def decision(self, decision_id: str) -> Decision:
        return self._found(Decision, decision_id, super().decision)

    def claim(self, claim_id: str) -> Claim:
        return self._found(Claim, claim_id, super().claim)

    def lease(self, lease_id: str) -> Lease:
        return self._found(Lease, lease_id, super().lease)

    def leases_of(self, ensemble_id: str) -> Sequence[Lease]:
        stored, read = super().leases_of(ensemble_id), super().lease
        return [self._found(Lease, one.id, read) for one in stored]

    def series(self, series_id: str) -> Series:
        return self._found(Series, series_id, super().series)

    def waitlist_entry(self, entry_id: str) -> WaitlistEntry:
        return self._found(WaitlistEntry, entry_id, super().waitlist_entry)

    def refusal(
        self,
        request: str,
        *,
        project_id: str | None,  # noqa: ARG002 - the protocol's
        digest: str | None = None,  # noqa: ARG002
    ) -> tuple[Explanation, str, str]:
        """None is found: a request that was refused before is judged anew.

        Raises:
            NotFound: in any case.
        """
        raise NotFound("explanation", request)

    def _found(self, kind: type[T], id_: str, read: Callable[[str], T]) -> T:
        """What was put under this id, or else what the ledger has."""
        put = self._put.get((kind, id_))
        return put if isinstance(put, kind) else read(id_)


def _explanations(changeset: Changeset) -> Iterator[Change]:
    """The explanations of a changeset, without their events."""
    for one in changeset.changes:
        if isinstance(one, PutExplanation):
            yield replace(one, silent=True)
        elif isinstance(one, FinishExplanation):
            yield one
