"""Return the place of a deleted or moved server to its lease or held decision.

With the last server of an ensemble to which no place returns its headroom ends.

A place returns while the lease is active, or while the decision is held. The claim of a server that
is deleted ends.

During a migration Nova books the new host under the server's UUID and the old host under the
migration's. When one of the two allocations is deleted, its place goes back to the member that the
lease's plan gives it to, in the planned size, and the server belongs to the member whose place it
has now. Allocations outside of the plan take over the terms of the place that the server left: a
server that an operator migrates to a host outside of the lease still ends with the lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    BindAllocations,
    DeleteAllocations,
    PutBookings,
    PutDecision,
    PutEnsemble,
    PutLease,
    ReplaceAllocations,
)
from moorage.domain.decisions import DecisionState
from moorage.domain.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    ConstraintViolated,
    ConsumerConflict,
    PlaceLeft,
    ProviderConflict,
)
from moorage.domain.leases import LeaseState
from moorage.domain.resources import total
from moorage.usecases.claims.build_failures import placing_anew
from moorage.usecases.claims.headroom_end import headroom_end
from moorage.usecases.claims.server_claims import ServerClaims
from moorage.usecases.decide.member_places import bookings_of, place_of
from moorage.usecases.decide.request import ForcedEnd
from moorage.usecases.decide.writes import (
    current_decision,
    hold_bookings,
    member_consumer,
    with_server,
)
from moorage.usecases.relocation.lease_health import NOTHING, health_notice, with_missing
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import Amounts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

ATTEMPTS: Final = 100
"""Commits tried while the lease keeps changing; each conflict means that another commit succeeded.
"""


def commit_with_returns(store: Store, changeset: Changeset) -> Committed:
    """Commit; if servers leave places of leases or decisions, these places return.

    Raises:
        MoorageError: any error of the commit except PlaceLeft.
    """
    try:
        return store.commit(changeset)
    except PlaceLeft as error:
        return commit_returning(store, changeset, error.consumers)


def commit_returning(
    store: Store,
    changeset: Changeset,
    left: Sequence[str],
    *,
    commit: Callable[[Store, Changeset], Committed] = lambda store, whole: store.commit(whole),
) -> Committed:
    """Commit, with the changes that return the places which these consumers leave.

    If a server was resized down and other consumers have booked the freed amounts since, its place
    cannot be returned in the planned size: then the lease is written as degraded.

    Raises:
        MoorageError: any error of the commit except PlaceLeft.
    """
    fits = True
    for attempt in range(ATTEMPTS):
        try:
            return commit(store, _with_returns(store, changeset, left, fits=fits))
        except (ConsumerConflict, ProviderConflict):
            raise
        except (CapacityExceeded, ConstraintViolated):
            if not fits:
                raise  # it is the caller's changeset that does not fit
            fits = False
        except ConcurrentUpdate:
            own = any(isinstance(one, PutEnsemble) for one in changeset.changes)
            if own or attempt == ATTEMPTS - 1:
                raise  # the caller's own changes may be what conflicts
    raise ConcurrentUpdate("the lease changed too often meanwhile; retry", subject="lease")


def _with_returns(
    store: Store, changeset: Changeset, left: Sequence[str], *, fits: bool
) -> Changeset:
    """The changeset, with changes that return the places left by these consumers.

    Places without an active lease or a held decision are just freed. Without `fits`, a place whose
    planned amounts differ from those that were left is not returned either: its lease counts it as
    missing.
    """
    snapshot = store.snapshot()
    afterwards = _afterwards(changeset.changes)
    written = {one.ensemble.id: one for one in changeset.changes if isinstance(one, PutEnsemble)}
    taking = {
        one.consumer.uuid
        for one in changeset.changes
        if isinstance(one, ReplaceAllocations) and one.takes_over is not None
    }
    claims = ServerClaims(store, snapshot.taken_at)
    back = _Returns(store, snapshot, written, afterwards, claims, fits)
    for consumer in left:
        had = [one for one in bookings_of(snapshot, consumer) if _is_bound(one)]
        stays = afterwards.get(consumer, {})
        rest = [one for one in had if consumer in taking or one.provider not in stays]
        if rest:
            back.add(consumer, rest)
    again = {each.ensemble.id for each in back.placements.values() if each.changed}
    changes = (
        one
        for one in changeset.changes
        if not (isinstance(one, PutEnsemble) and one.ensemble.id in again)
    )
    return replace(changeset, changes=(*changes, *back.changes()), releases_places=True)


def _is_bound(booking: Booking) -> bool:
    """Whether it is an allocation in a decision's place."""
    return booking.decision is not None and booking.state is BookingState.ALLOCATED


def _afterwards(changes: Sequence[Change]) -> dict[str, Mapping[str, Amounts]]:
    """Consumer -> its allocations by provider, for the consumers that a changeset writes."""
    found: dict[str, Mapping[str, Amounts]] = {}
    for one in changes:
        if isinstance(one, ReplaceAllocations):
            found[one.consumer.uuid] = one.allocations
        elif isinstance(one, DeleteAllocations):
            found[one.consumer] = {}
    return found


def _amounts(place: Place) -> dict[str, dict[str, int]]:
    return {uuid: dict(amounts) for uuid, amounts in place.allocations.items()}


@dataclass(slots=True)
class _Returning:
    """The placement of a lease or held decision, and the places that return to it."""

    lease: Lease | None
    decision: Decision
    ensemble: Ensemble
    """The ensemble as it will be written."""
    generation: int | None
    """Generation of the stored ensemble."""
    plan: dict[MemberName, Place]
    """Member -> its place in the decision, as it will be written."""
    places: dict[str, Place] = field(default_factory=dict)
    """UUID of a member -> the place that it gets back."""
    ending: dict[str, ForcedEnd] = field(default_factory=dict)
    """UUID of a member of a held decision -> the early end that its server had, for a lease."""
    missing: int = 0
    """Number of places that cannot be returned."""
    moved: bool = False
    """Whether the server of any member changes."""

    @property
    def changed(self) -> bool:
        """Whether the placement has to be written."""
        return bool(self.places or self.missing or self.moved)

    def give_server(self, member: Member, server: str | None) -> None:
        """Set or clear the server of a member."""
        self.ensemble = with_server(self.ensemble, member.name, server)
        self.moved = True

    def promised(self, member: Member, left: Place) -> Place:
        """The planned place of this role on the host that was left; recorded as the member's.

        If the plan gives it to another member, the two exchange their places in the plan. If the
        plan has none there, it is the place as it was left, in the member's planned size if
        possible.
        """
        mine = self.plan.get(member.name)
        for name, place in sorted(self.plan.items(), key=lambda one: one[0] != member.name):
            if name.role == member.name.role and place.host == left.host:
                if name != member.name and mine is not None:
                    self.plan[name] = mine
                self.plan[member.name] = place
                return place
        found = left if mine is None else _resized(left, total(mine.allocations.values()))
        self.plan[member.name] = found
        return found


def _resized(left: Place, size: Amounts) -> Place:
    """The place with these total amounts; unchanged unless each class is on one provider."""
    if not size or total(left.allocations.values()) == size:
        return left
    on: dict[str, str] = {}
    for provider, amounts in left.allocations.items():
        for name in amounts:
            if name in on:
                return left
            on[name] = provider
    if not size.keys() <= on.keys():
        return left
    sized: dict[str, dict[str, int]] = {}
    for name, amount in size.items():
        sized.setdefault(on[name], {})[name] = amount
    return replace(left, allocations=MappingProxyType(sized))


@dataclass(slots=True)
class _Returns:
    """The returns of one changeset by ensemble, and servers that keep the terms of left places."""

    store: Store
    snapshot: Snapshot
    written: Mapping[str, PutEnsemble]
    """Ensemble id -> the change by which the caller's changeset writes it."""
    afterwards: Mapping[str, Mapping[str, Amounts]]
    claims: ServerClaims
    fits: bool
    placements: dict[str, _Returning] = field(default_factory=dict)
    bound: list[BindAllocations] = field(default_factory=list)
    abandoned: dict[str, Ensemble] = field(default_factory=dict)
    """By its id: an ensemble none of whose members has a place after the changeset."""

    def add(self, consumer: str, left: Sequence[Booking]) -> None:
        """Return the bookings that a consumer leaves, if its lease or decision still has them."""
        place = place_of(self.snapshot, left)
        decision = if_stored(self.store.decision, str(left[0].decision))
        if decision is None:
            return
        into, ensemble = self._into(decision)
        server = self._server_of_migration(consumer)
        outside = None if ensemble is None else self._outside(ensemble, server)
        if self.afterwards.get(consumer) == {} and outside is None:
            gone = consumer if server is None or self._stands(server) else server
            self.claims.end(decision, gone)
        if ensemble is None:
            # Nobody gets the place, but the server's claim ends with the server, wherever it went.
            if server is not None and self._is_unbound(server):
                self.bound.append(BindAllocations(server, left[0]))
            return
        if into is None:
            self._leave(ensemble, outside, left)
            return
        if self._is_place_again(into, consumer, place, left[0]):
            return
        heir = self._heir(into, consumer, place)
        if heir is not None:
            self._return(into, heir, place, left[0])
        elif outside is not None:
            # A lease's place keeps its planned size; a member of a held decision is its server's.
            if into.lease is None or self._size_of(outside) == total(place.allocations.values()):
                self._bind(outside, left)
            else:
                into.give_server(outside, None)
                self._return(into, outside, place, left[0])

    def changes(self) -> Iterator[Change]:
        """The changes that return the places."""
        now = self.snapshot.taken_at
        for each in self.placements.values():
            if each.changed:
                yield from _changes(each, now)
        for ensemble in self.abandoned.values():
            yield from headroom_end(ensemble, now)
        yield from self.bound
        yield from self.claims.ended

    def _into(self, decision: Decision) -> tuple[_Returning | None, Ensemble | None]:
        """The returns to a decision's ensemble, and the ensemble if it is still there.

        The returns are None unless its lease is active, or its newest decision is held.
        """
        own = self.written.get(decision.ensemble_id)
        ensemble = own.ensemble if own is not None else None
        if ensemble is None:
            ensemble = if_stored(self.store.ensemble, decision.ensemble_id)
        if ensemble is None:
            return None, None
        if ensemble.id not in self.placements:
            found = self._placement(decision, ensemble)
            if found is None:
                return None, ensemble
            generation = ensemble.generation if own is None else own.generation
            lease, present = found
            self.placements[ensemble.id] = _Returning(
                lease, present, ensemble, generation, dict(present.places)
            )
        into = self.placements[ensemble.id]
        return into, into.ensemble

    def _placement(
        self, decision: Decision, ensemble: Ensemble
    ) -> tuple[Lease | None, Decision] | None:
        """The active lease, if it is one's, and the decision to which places return."""
        now = self.snapshot.taken_at
        if decision.lease_id is None:
            present = current_decision(self.store, ensemble)
            if present is None or present.lease_id is not None:
                return None
            return (None, present) if present.state_at(now) is DecisionState.HELD else None
        lease = if_stored(self.store.lease, decision.lease_id)
        # The state decides: the clock may have been set back to before the lease's start.
        if lease is None or lease.state is not LeaseState.ACTIVE or lease.terms.expires_at <= now:
            return None
        present = if_stored(self.store.decision, lease.decision_id)
        return None if present is None else (lease, present)

    def _stands(self, consumer: str) -> bool:
        """Whether a consumer has bookings after the changeset."""
        if consumer in self.afterwards:
            return bool(self.afterwards[consumer])
        return bool(bookings_of(self.snapshot, consumer))

    def _is_unbound(self, consumer: str) -> bool:
        """Whether it has allocations, also after the changeset, and none in a decision's place."""
        there = bookings_of(self.snapshot, consumer)
        stays = self.afterwards.get(consumer, True)
        return bool(stays and there) and all(one.decision is None for one in there)

    def _leave(self, ensemble: Ensemble, outside: Member | None, left: Sequence[Booking]) -> None:
        """Leave bookings that return to no member."""
        if outside is not None:
            self._bind(outside, left)
        elif ensemble.id not in self.written and not self._is_any_left(ensemble):
            self.abandoned[ensemble.id] = ensemble

    def _is_any_left(self, ensemble: Ensemble) -> bool:
        """Whether any member has a place after the changeset, to which none returns."""
        consumers = (one for member in ensemble.members for one in (member.uuid, member.server_id))
        return any(one is not None and self._stands(one) for one in consumers)

    def _empty(self, into: _Returning) -> list[Member]:
        """Members without a place after the changeset and the returns so far."""
        return [
            one
            for one in into.ensemble.members
            if one.uuid not in into.places
            and not self._stands(one.uuid)
            and (one.server_id is None or not self._stands(one.server_id))
        ]

    def _is_place_again(
        self, into: _Returning, consumer: str, place: Place, terms: Booking
    ) -> bool:
        """Handle a server that moves back to its former place; False if it does not.

        The server is given to the member whose planned place that is, and the place that it leaves
        returns to the member that had the server until now.
        """
        stays = self.afterwards.get(consumer)
        own = next((one for one in into.ensemble.members if one.server_id == consumer), None)
        if not stays or own is None:
            return False
        empty = self._empty(into)
        if any(one.server_id is None and _is_at(into.plan, one, place) for one in empty):
            return False  # the left place is planned for a member without a server
        size = total(stays.values())
        former = _likest(into.plan, empty, set(stays), size)
        if former is None:
            return False
        into.give_server(own, None)
        into.give_server(former, consumer)
        self._return(into, own, place, terms)
        return True

    def _heir(self, into: _Returning, consumer: str, place: Place) -> Member | None:
        """The unplaced member that gets the place: the server's own, or the best match."""
        empty = self._empty(into)
        own = next((one for one in empty if one.server_id == consumer), None)
        if own is not None:
            return own
        size = total(place.allocations.values())
        return _likest(into.plan, empty, {place.host, *place.allocations}, size)

    def _server_of_migration(self, consumer: str) -> str | None:
        """The server whose migration gives up all its allocations; None: it is no migration."""
        known = None if self.afterwards.get(consumer) else self.store.consumer(consumer)
        return None if known is None else known[0].migration_of

    def _outside(self, ensemble: Ensemble, server: str | None) -> Member | None:
        """The member whose server was migrated to allocations outside of any decision."""
        if server is None or not self._is_unbound(server):
            return None
        return next((one for one in ensemble.members if one.server_id == server), None)

    def _size_of(self, member: Member) -> Amounts:
        return total(one.amounts for one in bookings_of(self.snapshot, str(member.server_id)))

    def _bind(self, member: Member, left: Sequence[Booking]) -> None:
        self.bound.append(BindAllocations(str(member.server_id), left[0]))

    def _stocked(self, place: Place) -> bool:
        """Whether the providers of a place have inventories of what it has on each."""
        snapshot = self.snapshot
        return all(
            uuid in snapshot.row_of
            and of.keys()
            <= {
                one.resource_class
                for one in snapshot.state(snapshot.row_of[uuid]).provider.inventories
            }
            for uuid, of in place.allocations.items()
        )

    def _return(self, into: _Returning, member: Member, left: Place, terms: Booking) -> None:
        """Return a place that was left; `terms` is one of its bookings."""
        promised = into.promised(member, left)
        if not self._stocked(promised):  # the host was reshaped
            promised = _resized(left, total(promised.allocations.values()))
            into.plan[member.name] = promised
        if member.server_id is not None:
            into.give_server(member, None)
        over = into.lease is None and terms.period.end <= self.snapshot.taken_at
        if over or (not self.fits and _amounts(promised) != _amounts(left)):
            into.missing += 1
            return
        into.places[member.uuid] = promised
        ending = ForcedEnd.of(terms)
        if into.lease is None and ending is not None:
            into.ending[member.uuid] = ending


def _is_at(plan: Mapping[MemberName, Place], member: Member, place: Place) -> bool:
    planned = plan.get(member.name)
    return planned is not None and planned.host == place.host


def _likest(
    plan: Mapping[MemberName, Place], members: Sequence[Member], providers: set[str], size: Amounts
) -> Member | None:
    """The member whose planned place is most alike: by its size first, then by its providers."""
    ranked: list[tuple[bool, bool, int, Member]] = []
    for number, one in enumerate(members):
        planned = plan.get(one.name)
        if planned is not None:
            elsewhere = providers.isdisjoint({planned.host, *planned.allocations})
            other = total(planned.allocations.values()) != size
            if not (elsewhere and other):
                ranked.append((other, elsewhere, number, one))
    return min(ranked, key=lambda one: one[:3])[3] if ranked else None


def _changes(each: _Returning, now: Instant) -> Iterator[Change]:
    decision, ensemble = each.decision, replace(each.ensemble, updated_at=now)
    returned = {one: each.places[one.uuid] for one in ensemble.members if one.uuid in each.places}
    yield PutDecision(
        replace(decision, places=MappingProxyType(each.plan), updated_at=now), decision.generation
    )
    for member, place in returned.items():
        ending = each.ending.get(member.uuid)
        bookings = hold_bookings(member, place, decision, ending=ending)
        yield PutBookings(member_consumer(ensemble, member), bookings)
        if each.lease is None:
            yield placing_anew(decision, member, place, now)
    # Written even if no server changes, so that decisions made from the former members conflict.
    yield PutEnsemble(ensemble, each.generation)
    if each.missing and each.lease is not None:
        lease = with_missing(each.lease, each.lease.missing + each.missing, NOTHING, now)
        yield from (PutLease(lease, each.lease.generation), health_notice(lease, now))
