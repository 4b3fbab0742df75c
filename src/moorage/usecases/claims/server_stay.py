"""How long a server stays that comes through Placement's dialect, and what it sees because of it.

The wire has no word for an end. A flavor may say one by a virtual class (`domain.virtual`); for
those that say none an operator may set one (`Lifetimes`). Candidates are judged until then, and the
allocations that follow end then. A preemptible server may take what a lease is promised: it ends
in time for the lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Stay
from moorage.domain.errors import ConstraintViolated, InvalidDescription, NotFound
from moorage.domain.leases import Yielding
from moorage.domain.period import FOREVER, MINUTE, Period
from moorage.domain.placement import Occupant
from moorage.domain.virtual_classes import HOURS, MOST, PREEMPTIBLE
from moorage.engine.state.bounded_view import with_period, with_unlimited
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.search_result import DisplacedConsumer
from moorage.usecases.preemption.eviction import warnings
from moorage.usecases.preemption.exclusive_leases import end_before_exclusive, exclusive_periods
from moorage.usecases.preemption.victims import NotALease, by_end, required_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moorage.domain.changes import Change, ReplaceAllocations
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration
    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.domain.virtual_classes import DeclaredTerms
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import StayEnd
    from moorage.usecases.ports import Store


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long consumers stay that declare no end, and how long preemptible ones are warned."""

    default: Duration | None = None
    """Of projects that are not named; None: for ever."""
    projects: Mapping[str, Duration | None] = field(default_factory=lambda: MappingProxyType({}))
    notice: Duration = 5 * MINUTE

    def of(self, project_id: str) -> Duration | None:
        """How long a project's consumer stays; None: for ever."""
        return self.projects.get(project_id, self.default)

    @property
    def bounded(self) -> bool:
        """Whether anybody stays less than for ever."""
        return self.default is not None or bool(self.projects)


def fleet_for_query(snapshot: Snapshot, query: CandidateQuery, lifetimes: Lifetimes) -> Snapshot:
    """The fleet as a query sees it that says by its classes how long it needs the room.

    A query names no project, so one that says nothing is judged over the default lifetime.
    """
    wish = query.virtual_terms
    life = lifetimes.default if wish is None or wish.life is None else wish.life
    if wish is not None and wish.preemptible:
        # It must be there for as long as it is warned; then it can make way.
        life = lifetimes.notice if life is None else min(life, lifetimes.notice)
    if life is not None:
        end = min(snapshot.taken_at + life, FOREVER)
        snapshot = with_period(snapshot, query.classes, Period(snapshot.taken_at, end))
    return with_virtual_classes(snapshot, query)


def with_virtual_classes(snapshot: Snapshot, query: CandidateQuery) -> Snapshot:
    """The fleet with plenty of the classes by which a query says its terms, if it does.

    Only for who looks for room: what follows from it by `with_states` has less of them.
    """
    wish = query.virtual_terms
    if wish is None or not wish.terms:
        return snapshot
    return with_unlimited(snapshot, {name: MOST[name] for name in wish.terms})


def with_declared_stay(
    write: ReplaceAllocations, wish: DeclaredTerms | None, lifetimes: Lifetimes
) -> ReplaceAllocations:
    """The write without the classes that say its terms, on these terms.

    Raises:
        ConstraintViolated: more units of such a class than one server may have.
        InvalidDescription: nothing else is asked for.
    """
    if wish is None and not lifetimes.bounded:
        return write
    if wish is not None and wish.terms:
        _check_units(write)
        rest = _without(write.allocations, wish.terms)
        if not rest:
            raise InvalidDescription("allocations of terms alone are none", path="allocations")
        write = replace(write, allocations=rest)
    if wish is not None and wish.life is not None:
        life: Duration | None = wish.life
    else:
        life = lifetimes.of(write.consumer.project_id)
    preemptible = wish is not None and wish.preemptible
    if life is None and not preemptible:
        return write
    return replace(write, stay=Stay(life=life, preemptible=preemptible))


@dataclass(frozen=True, slots=True)
class PreemptibleWrite:
    """How a preemptible server is written and warned, and the revisions of the providers."""

    changes: tuple[Change, ...]
    relies_on: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def preemptible_write(
    store: Store,
    snapshot: Snapshot,
    write: ReplaceAllocations,
    notice: Duration,
    keepers: Sequence[Ensemble] = (),
) -> PreemptibleWrite:
    """A preemptible server's write, ending in time for the first lease that needs its place.

    Or when its host is planned to be away, if that comes first. Such a lease is one which needs the
    room, or which will have the host to itself. The write stays as it is where neither is in its
    way, and where it could not run for the notice at least or the lease lets nobody in before;
    then the commit judges, which knows of room and of no policy.

    Args:
        store: where leases are.
        snapshot: the fleet.
        write: of a preemptible server.
        notice: see `last_end`.
        keepers: ensembles that keep others out.
    """
    now = snapshot.taken_at
    declared = FOREVER if write.stay.life is None else now + write.stay.life
    taken = {uuid: of for uuid, of in write.allocations.items() if uuid in snapshot.row_of}

    def lease_of(decision_id: str) -> str | None:
        try:
            return store.decision(decision_id).lease_id
        except NotFound:
            return None

    stay = Period(now, declared)
    alone = _alone(lease_of, snapshot, write, stay, notice, keepers) if keepers else None
    try:
        crowded = required_end(lease_of, snapshot, taken, stay, notice)
        found = min((one for one in (crowded, alone) if one is not None), key=by_end, default=None)
        if found is None:
            return PreemptibleWrite((write,))
        if found.yields_to is None:
            bounded = replace(write, stay=replace(write.stay, until=found.end))
            return PreemptibleWrite((bounded,), _revisions(snapshot, taken.keys()))
        lease = store.lease(found.yields_to)
        placement = store.decision(lease.decision_id)
    except (NotALease, NotFound):
        return PreemptibleWrite((write,))
    if Yielding.PREEMPTIBLE not in lease.terms.before_start:
        return PreemptibleWrite((write,))
    bounded = replace(write, stay=replace(write.stay, until=found.end, yields_to=lease.id))
    owner = write.consumer
    had = next((one.decision for one in bookings_of(snapshot, owner.uuid)), None)
    yields = DisplacedConsumer(owner.uuid, owner.project_id, found.end, declared, decision=had)
    told = warnings(store, (yields,), replace(placement, created_at=now))
    return PreemptibleWrite((bounded, *told), _revisions(snapshot, taken.keys() | found.on))


def _revisions(snapshot: Snapshot, providers: Iterable[str]) -> Mapping[str, int]:
    return {uuid: int(snapshot.revisions[snapshot.row_of[uuid]]) for uuid in sorted(providers)}


def _alone(
    lease_of: Callable[[str], str | None],
    snapshot: Snapshot,
    write: ReplaceAllocations,
    stay: Period,
    notice: Duration,
    keepers: Sequence[Ensemble],
) -> StayEnd | None:
    """Where the stay has to end for a lease that will have the host to itself.

    None also where it is alone there already, or too soon: Placement's wire knows no exclusive
    hosts, and such a server is there like any other.
    """
    owner = write.consumer
    rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
    stranger = Occupant(owner.uuid, owner.project_id)
    ahead = exclusive_periods(lease_of, snapshot, stranger, keepers, stay)
    try:
        return end_before_exclusive(ahead, snapshot.root[rows].tolist(), snapshot.taken_at, notice)
    except NotALease:
        return None


def _without(
    allocations: Mapping[str, Amounts], classes: tuple[ResourceClass, ...]
) -> Mapping[str, Amounts]:
    """The same but for some classes, and for providers that give nothing else."""
    rest = {
        provider: {name: amount for name, amount in amounts.items() if name not in classes}
        for provider, amounts in allocations.items()
    }
    return {provider: amounts for provider, amounts in rest.items() if amounts}


def _check_units(write: ReplaceAllocations) -> None:
    for provider, amounts in write.allocations.items():
        for name in (HOURS, PREEMPTIBLE):
            if amounts.get(name, 0) > MOST[name]:
                raise ConstraintViolated(provider, name, requested=amounts[name], rule="max_unit")
