"""Views of a ledger that write nothing: what would be.

A `DryRun` says what a use case would write. A `HypotheticalLedger` goes on from there: hosts may be
supposed to be otherwise, and what one use case would hold, the next one finds taken.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain.actors import UNKNOWN
from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    BoundHeld,
    Changeset,
    Committed,
    DeleteEnsemble,
    FinishExplanation,
    PutBookings,
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
from moorage.engine.state.change_overlay import with_changes
from moorage.store.commit.apply.ensembles import check_held
from moorage.store.read.bookings import BookingQueries
from moorage.store.read.compliance import ComplianceStore
from moorage.store.read.ensemble_queries import EnsembleQueries, keeping_out
from moorage.store.read.lease_queries import LeaseQueries
from moorage.usecases.compliance_ports import WrittenEnsemble
from moorage.usecases.paging import WHOLE_LEDGER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.actors import Actor
    from moorage.domain.changes import Change
    from moorage.domain.explain import Refusal
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.store.backend import Backend
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Clock, ExclusiveEnsembles, Store

    T = TypeVar("T")

    Records = Mapping[tuple[type, str], object]
    """What was put, by its type and id."""

_NOTHING: Final[Mapping[tuple[type, str], object]] = MappingProxyType({})
_HELD: Final = frozenset({BookingState.HELD, BookingState.CLAIMED})


class DryRun(BookingQueries, EnsembleQueries, LeaseQueries):
    """A view of a ledger whose commits write nothing, take no lock and never conflict.

    What was put there is found by its id, with the generation that it still has. Listings, bookings
    and the snapshot stay the ledger's. Of all that a commit judges, only the bound of held places
    is, by those that the ledger has now.
    """

    def __init__(
        self,
        ledger: Store,
        backend: Backend,
        clock: Clock | None,
        put: Records = _NOTHING,
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

    def hypothetical(self, at: Instant | None = None) -> HypotheticalLedger:
        return HypotheticalLedger(
            self._ledger, self._backend, with_changes(self.snapshot(), self.left_out), self, at
        )

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
    ) -> tuple[Refusal, str]:
        """None is found: a request that was refused before is judged anew.

        Raises:
            NotFound: in any case.
        """
        raise NotFound("explanation", request)

    def _found(self, kind: type[T], id_: str, read: Callable[[str], T]) -> T:
        """What was put under this id, or else what the ledger has."""
        put = self._put.get((kind, id_))
        return put if isinstance(put, kind) else read(id_)


@dataclass(frozen=True, slots=True)
class _StoppedClock:
    """A clock that shows one instant."""

    instant: Instant

    def now(self) -> Instant:
        """The instant."""
        return self.instant


class HypotheticalLedger(DryRun):
    """A dry run whose snapshot has what its commits hold, and what is supposed of hosts.

    It begins with the ledger's snapshot, or with what a dry run has left out laid over it, at the
    ledger's instant or a later one, and sees no later commit of others. A dry run of it is another
    one that begins where it is.
    """

    def __init__(
        self,
        ledger: Store,
        backend: Backend,
        snapshot: Snapshot,
        before: DryRun | None,
        at: Instant | None = None,
    ) -> None:
        self._state = snapshot if at is None else snapshot.at(at)
        clock = _StoppedClock(self._state.taken_at)
        put = _NOTHING if before is None else before._put  # noqa: SLF001 - a view like this one
        super().__init__(ledger, backend, clock, put, explained=False)
        self.left_out = [] if before is None else list(before.left_out)
        self._begun = self._state if before is None else before.snapshot()
        """Where the changes that are left out begin."""
        self.compliance = _HypotheticalRecords(backend, clock, self)
        self.snapshot = self.last_snapshot = self._now_supposed

    def _now_supposed(self) -> Snapshot:
        return self._state

    def suppose(self, change: Callable[[Snapshot], Snapshot]) -> None:
        """Replace the snapshot by what `change` makes of it."""
        self._state = change(self._state)

    def by(self, actor: Actor) -> HypotheticalLedger:  # noqa: ARG002 - nothing is written
        return self

    def dry_run(self, *, explained: bool = False) -> HypotheticalLedger:  # noqa: ARG002 - none is
        return self.hypothetical()

    def hypothetical(self, at: Instant | None = None) -> HypotheticalLedger:
        return HypotheticalLedger(self._ledger, self._backend, self._state, self, at)

    def commit(self, changeset: Changeset) -> Committed:
        done = super().commit(changeset)
        self._state = with_changes(self._state, changeset.changes)
        return done

    def held(self, project_id: str | None) -> int:
        """As the ledger says, with what its own commits hold and free."""
        mine = {
            one.consumer.uuid
            for one in self.left_out
            if isinstance(one, PutBookings) and one.consumer.project_id == project_id
        }
        before, after = (_held(one, mine) for one in (self._begun, self._state))
        return super().held(project_id) + after - before

    def decisions(
        self, *, project_id: str | None, ensemble_id: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Decision]:
        """As the ledger says; of one ensemble with those that were put, newest first."""
        stored = super().decisions(project_id=project_id, ensemble_id=ensemble_id, page=page)
        if ensemble_id is None:
            return stored
        known = {one.id for one in stored}
        fresh = [one for one in self.put(Decision) if one.ensemble_id == ensemble_id]
        new = [one for one in reversed(fresh) if one.id not in known]
        return [*new, *(self.decision(one.id) for one in stored)][: page.limit]

    def exclusive_ensembles(self, snapshot: Snapshot) -> ExclusiveEnsembles:
        """As the ledger says, with those that were put."""
        known = super().exclusive_ensembles(snapshot)
        put = {one.id: one for one in self.put(Ensemble)}
        if not put:
            return known
        fresh = (one for one in put.values() if one.keeps_others_out)
        stay = (one for one in known.ensembles if one.id not in put)
        return keeping_out((*stay, *fresh), known.targets)

    def put(self, kind: type[T]) -> list[T]:
        """What was put of a kind."""
        return [one for one in self._put.values() if isinstance(one, kind)]

    @property
    def gone(self) -> frozenset[str]:
        """Ids of the ensembles that were deleted."""
        return frozenset(one.id for one in self.left_out if isinstance(one, DeleteEnsemble))


class _HypotheticalRecords(ComplianceStore):
    """The ensembles as they would be; violations stay those that are recorded."""

    def __init__(self, backend: Backend, clock: Clock, ledger: HypotheticalLedger) -> None:
        super().__init__(backend, clock)
        self._ledger = ledger

    def every_ensemble(self) -> Sequence[str]:
        gone = self._ledger.gone
        stored = [one for one in super().every_ensemble() if one not in gone]
        return [*stored, *self._new(set(stored) | gone)]

    def ensembles_of(self, servers: Iterable[str], decisions: Iterable[str]) -> frozenset[str]:
        there, decided = set(servers), set(decisions)
        put = {one.ensemble_id for one in self._ledger.put(Decision) if one.id in decided}
        put |= {one.id for one in self._ledger.put(Ensemble) if one.consumers & there}
        return (super().ensembles_of(there, decided) | put) - self._ledger.gone

    def ensembles_by_id(self, ids: Collection[str]) -> Sequence[WrittenEnsemble]:
        put, gone = {one.id: one for one in self._ledger.put(Ensemble)}, self._ledger.gone
        stored = super().ensembles_by_id(ids)
        found = [
            replace(
                one, ensemble=_with_references(put.get(one.ensemble.id), one.ensemble, put, gone)
            )
            for one in stored
            if one.ensemble.id not in gone
        ]
        known = gone | {one.ensemble.id for one in stored}
        new = (put[one] for one in self._new(known) if one in ids)
        return [*found, *(WrittenEnsemble(one, unjudged=True, actor=UNKNOWN) for one in new)]

    def _new(self, known: Collection[str]) -> list[str]:
        return [one.id for one in self._ledger.put(Ensemble) if one.id not in known]


def _held(snapshot: Snapshot, consumers: Collection[str]) -> int:
    """How many of these consumers have held or claimed places."""
    found = snapshot.live_bookings(consumers)
    return sum(any(one.state in _HELD for one in some) for some in found.values())


def _with_references(
    put: Ensemble | None,
    stored: Ensemble,
    others: Mapping[str, Ensemble],
    gone: frozenset[str],
) -> Ensemble:
    """The ensemble as it was put, if it was, with the consumers of those that it refers to."""
    one = put or stored
    references = {
        id_: others[id_].consumers if id_ in others else consumers
        for id_, consumers in one.references.items()
        if id_ not in gone
    }
    return replace(one, references=MappingProxyType(references))


def _explanations(changeset: Changeset) -> Iterator[Change]:
    """The explanations of a changeset, without their events."""
    for one in changeset.changes:
        if isinstance(one, PutExplanation):
            yield replace(one, silent=True)
        elif isinstance(one, FinishExplanation):
            yield one
