"""A place whose server goes, or moves away, is its lease's again while that is active."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    DeleteAllocations,
    PutBookings,
    PutDecision,
    PutEnsemble,
    ReplaceAllocations,
)
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    NotFound,
    PlaceLeft,
    ProviderConflict,
)
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER
from moorage.domain.resources import total
from moorage.usecases.standing import bookings_of, place_of
from moorage.usecases.writing import member_consumer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.ports import Store

ATTEMPTS: Final = 100
"""How often a place is returned while the lease changes; each time another has got on."""


@dataclass(slots=True)
class _Returning:
    """A lease's placement, and what of it comes back."""

    decision: Decision
    ensemble: Ensemble
    """As it will be."""
    generation: int | None
    """Of the ensemble as it is stored."""
    places: dict[str, Place]
    """By the UUID of the member that gets the place."""


def commit(store: Store, changeset: Changeset) -> Committed:
    """Commit; where a server leaves a place of a lease, with the place's return.

    Raises:
        MoorageError: what the commit raises, but no PlaceLeft.
    """
    try:
        return store.commit(changeset)
    except PlaceLeft as error:
        left = error.consumers
    for _ in range(ATTEMPTS - 1):
        try:
            return store.commit(_with_returns(store, changeset, left))
        except (ConsumerConflict, ProviderConflict):
            raise
        except ConcurrentUpdate:
            if any(isinstance(one, PutEnsemble) for one in changeset.changes):
                raise  # it may be the caller's own that came too late
    return store.commit(_with_returns(store, changeset, left))


def _with_returns(store: Store, changeset: Changeset, left: Sequence[str]) -> Changeset:
    """The changeset, in which the places that these consumers leave go back to their leases.

    A server's own member gets the place again. One that a server left behind on its way elsewhere
    goes to a member without a place, of those that the server's new place was taken from. What is
    of no active lease is let go.
    """
    snapshot = store.snapshot()
    stays = _stays(changeset.changes)
    written = {one.ensemble.id: one for one in changeset.changes if isinstance(one, PutEnsemble)}
    back = _Returns(store, snapshot, written, {})
    for consumer in left:
        rest = tuple(
            one
            for one in bookings_of(snapshot, consumer)
            if one.decision is not None
            and one.period.end != FOREVER
            and one.state is BookingState.ALLOCATED
            and one.provider not in stays.get(consumer, frozenset())
        )
        if rest:
            back.add(consumer, rest, gone=not stays.get(consumer))
    again = {each.ensemble.id for each in back.leases.values()}
    changes = (
        one
        for one in changeset.changes
        if not (isinstance(one, PutEnsemble) and one.ensemble.id in again)
    )
    return replace(changeset, changes=(*changes, *back.changes()), lets_go=True)


def _stays(changes: Sequence[Change]) -> dict[str, frozenset[str]]:
    """Consumer -> the providers on which it has allocations afterwards."""
    found: dict[str, frozenset[str]] = {}
    for one in changes:
        if isinstance(one, ReplaceAllocations):
            found[one.consumer.uuid] = frozenset(one.allocations)
        elif isinstance(one, DeleteAllocations):
            found[one.consumer] = frozenset()
    return found


@dataclass(slots=True)
class _Returns:
    """What comes back to which leases."""

    store: Store
    snapshot: Snapshot
    written: Mapping[str, PutEnsemble]
    """Ensembles that the changeset writes already."""
    leases: dict[str, _Returning]

    def add(self, consumer: str, left: Sequence[Booking], *, gone: bool) -> None:
        """Let a consumer's bookings return, if they are of a lease that is active."""
        into = self._into(str(left[0].decision))
        if into is None:
            return
        place = place_of(self.snapshot, left)
        member = _heir(self.snapshot, into, consumer, place, gone=gone)
        if member is None:
            return
        into.places[member.uuid] = place
        if member.server_id is not None:
            members = tuple(
                replace(one, server_id=None) if one.uuid == member.uuid else one
                for one in into.ensemble.members
            )
            into.ensemble = replace(
                into.ensemble, members=members, updated_at=self.snapshot.taken_at
            )

    def changes(self) -> Iterator[Change]:
        """The holds, and those who have them."""
        now = self.snapshot.taken_at
        for each in self.leases.values():
            if each.places:
                yield from _changes(each, now)

    def _into(self, decision_id: str) -> _Returning | None:
        now = self.snapshot.taken_at
        try:
            lease_id = self.store.decision(decision_id).lease_id
            lease = None if lease_id is None else self.store.lease(lease_id)
            # Active is enough, also where the clock has gone back behind its start.
            if lease is None or lease.state is not LeaseState.ACTIVE:
                return None
            if lease.terms.expires_at <= now:
                return None
            if lease.id not in self.leases:
                own = self.written.get(lease.ensemble_id)
                ensemble = self.store.ensemble(lease.ensemble_id) if own is None else own.ensemble
                generation = ensemble.generation if own is None else own.generation
                decision = self.store.decision(lease.decision_id)
                self.leases[lease.id] = _Returning(decision, ensemble, generation, {})
        except NotFound:
            return None
        return self.leases[lease.id]


def _heir(
    snapshot: Snapshot, into: _Returning, consumer: str, place: Place, *, gone: bool
) -> Member | None:
    """The member that gets the place: the server's own, or one of those like it that have none."""
    heirs = [one for one in into.ensemble.members if one.uuid not in into.places]
    own = next((one for one in heirs if one.server_id == consumer), None)
    if own is not None and gone:
        return own
    size = total(place.allocations.values())
    for one in heirs:
        planned = into.decision.places.get(one.name)
        if one.server_id is None and planned is not None:
            alike = total(planned.allocations.values()) == size
            if alike and not bookings_of(snapshot, one.uuid):
                return one
    return None


def _changes(each: _Returning, now: Instant) -> Iterator[Change]:
    decision, ensemble = each.decision, each.ensemble
    returned = {one: each.places[one.uuid] for one in ensemble.members if one.uuid in each.places}
    places = {**decision.places, **{one.name: place for one, place in returned.items()}}
    yield PutDecision(
        replace(decision, places=MappingProxyType(places), updated_at=now), decision.generation
    )
    for member, place in returned.items():
        bookings = tuple(
            Booking(
                consumer=member.uuid,
                provider=provider,
                amounts=amounts,
                period=decision.period,
                state=BookingState.RESERVED,
                lapses_at=decision.expires_at,
                decision=decision.id,
            )
            for provider, amounts in place.allocations.items()
        )
        yield PutBookings(member_consumer(ensemble, member), bookings)
    # Written even where no server goes: who looked at the members before must look again.
    yield PutEnsemble(ensemble, each.generation)
