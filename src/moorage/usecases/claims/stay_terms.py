"""Terms of servers written through Placement: their lifetime, and the end of preemptible ones.

That API has no field for an end. A flavor can state a lifetime by a virtual resource class
(`domain.virtual_classes`); for servers without one the operator can set one (`Lifetimes`).
Candidates are judged over that period, and the allocations end with it. A preemptible server may
use capacity that is promised to a lease: it ends in time for the lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

from moorage.domain.changes import ReplaceAllocations, Stay
from moorage.domain.errors import ConstraintViolated, InvalidDescription, NotFound
from moorage.domain.leases import Yielding
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.virtual_classes import HOURS, MOST, PREEMPTIBLE, declared_terms
from moorage.engine.state.bounded_view import with_period, with_unlimited
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.search_result import DisplacedConsumer
from moorage.usecases.preemption.eviction import warnings
from moorage.usecases.preemption.exclusive_leases import end_before_exclusive, exclusive_periods
from moorage.usecases.preemption.victims import NotALease, by_end, required_end
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration
    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import ForcedEnd
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.allocation_write import AllocationWrite, Lifetimes, Rest
    from moorage.usecases.shared.candidate_search import CandidateSearch


def query_period(snapshot: Snapshot, query: CandidateQuery, lifetimes: Lifetimes) -> Period:
    """The period for which a query needs capacity, by its virtual classes.

    A query names no project, so one without a lifetime is judged over the default lifetime.
    """
    declared = query.virtual_terms
    life = lifetimes.default if declared is None or declared.life is None else declared.life
    if declared is not None and declared.preemptible:
        # It needs capacity at least for the notice; after that it can be evicted.
        life = lifetimes.notice if life is None else min(life, lifetimes.notice)
    end = FOREVER if life is None else min(snapshot.taken_at + life, FOREVER)
    return Period(snapshot.taken_at, end)


def fleet_for_query(snapshot: Snapshot, query: CandidateQuery, lifetimes: Lifetimes) -> Snapshot:
    """The fleet over the period for which a query needs capacity; see `query_period`."""
    period = query_period(snapshot, query, lifetimes)
    if not period.open_ended:
        snapshot = with_period(snapshot, query.classes, period)
    return with_virtual_classes(snapshot, query)


def over_stay(search: CandidateSearch) -> CandidateSearch:
    """The search of what is free for as long as the query needs capacity; see `query_period`."""
    lifetimes = search.asked.settings.lifetimes
    return replace(search, fleet=fleet_for_query(search.fleet, search.query, lifetimes))


def with_virtual_classes(snapshot: Snapshot, query: CandidateQuery) -> Snapshot:
    """The fleet with unlimited inventories of the virtual classes that a query uses, if any.

    Only for searches: a snapshot made from this one by `with_states` has less of them.
    """
    declared = query.virtual_terms
    if declared is None or not declared.terms:
        return snapshot
    return with_unlimited(snapshot, {name: MOST[name] for name in declared.terms})


def declare_stays(asked: AllocationWrite, rest: Rest) -> Committed:
    """Write without virtual classes of terms, with the stays that they or the settings state.

    Raises:
        ConstraintViolated: more units of a virtual class than one server may have.
        InvalidDescription: the allocations consist of virtual classes only.
    """
    lifetimes = asked.settings.lifetimes
    return rest(replace(asked, writes=tuple(_with_stay(one, lifetimes) for one in asked.writes)))


def _with_stay(write: ReplaceAllocations, lifetimes: Lifetimes) -> ReplaceAllocations:
    declared = declared_terms(write.allocations.values())
    if declared is not None and declared.terms:
        _check_units(write)
        rest = _without(write.allocations, declared.terms)
        if not rest:
            raise InvalidDescription(
                "the allocations have virtual resource classes only: add real ones",
                path="allocations",
            )
        write = replace(write, allocations=rest)
    if declared is not None and declared.life is not None:
        life: Duration | None = declared.life
    else:
        life = lifetimes.of(write.consumer.project_id)
    preemptible = declared is not None and declared.preemptible
    if life is None and not preemptible:
        return write
    return replace(write, stay=Stay(life=life, preemptible=preemptible))


@dataclass(frozen=True, slots=True)
class PreemptibleWrite:
    """The write of a preemptible server with its warning, and the revisions it relies on."""

    changes: tuple[Change, ...]
    relies_on: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def preemptible_write(
    store: Store,
    snapshot: Snapshot,
    write: ReplaceAllocations,
    notice: Duration,
    exclusive: Sequence[Ensemble] = (),
) -> PreemptibleWrite:
    """A preemptible server's write, ending in time for the first lease that needs its place.

    A lease needs it for its capacity, or because it will have the host exclusively. The write ends
    earlier if its host is planned to be away before. It is unchanged if nothing needs the place,
    if the server could not run for the notice at least, or if the lease admits no preemptible
    servers before its start: then the commit checks capacity, but no policies.

    For `notice` see `last_end`; `exclusive` are ensembles that keep others out.
    """
    now = snapshot.taken_at
    declared = FOREVER if write.stay.life is None else now + write.stay.life
    taken = {uuid: of for uuid, of in write.allocations.items() if uuid in snapshot.row_of}

    def lease_of(decision_id: str) -> str | None:
        decision = if_stored(store.decision, decision_id)
        return None if decision is None else decision.lease_id

    stay = Period(now, declared)
    alone = _alone(lease_of, snapshot, write, stay, notice, exclusive) if exclusive else None
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


def end_in_time(asked: AllocationWrite, changeset: Changeset) -> Changeset:
    """End new preemptible servers in time for leases that need their places."""
    return ending_in_time(asked.store, changeset, asked.settings.lifetimes.notice)


def ending_in_time(store: Store, changeset: Changeset, notice: Duration) -> Changeset:
    """The changeset with an early end of each new preemptible server for whose place a lease waits.

    Servers that take a held place have its terms, and keep them. For `notice` see `last_end`.
    """
    if not any(map(_chooses_its_end, changeset.changes)):
        return changeset
    snapshot = store.snapshot()
    exclusive = store.exclusive_ensembles(snapshot)
    made: list[Change] = []
    relies_on: dict[str, int] = {}
    for one in changeset.changes:
        if _chooses_its_end(one):
            bounded = preemptible_write(store, snapshot, one, notice, exclusive.ensembles)
            made += bounded.changes
            relies_on |= bounded.relies_on
        else:
            made.append(one)
    return replace(
        changeset,
        changes=tuple(made),
        relies_on={**changeset.relies_on, **relies_on},
        exclusive_revision=snapshot.exclusive_revision,
    )


def _chooses_its_end(one: Change) -> TypeGuard[ReplaceAllocations]:
    """Whether it writes a preemptible server that takes no held place."""
    return (
        isinstance(one, ReplaceAllocations)
        and one.stay.preemptible
        and one.stay.decision is None
        and bool(one.allocations)
    )


def _revisions(snapshot: Snapshot, providers: Iterable[str]) -> Mapping[str, int]:
    return {uuid: int(snapshot.revisions[snapshot.row_of[uuid]]) for uuid in sorted(providers)}


def _alone(
    lease_of: Callable[[str], str | None],
    snapshot: Snapshot,
    write: ReplaceAllocations,
    stay: Period,
    notice: Duration,
    exclusive: Sequence[Ensemble],
) -> ForcedEnd | None:
    """The end of the stay before a lease has one of its hosts exclusively; None if none does.

    None also if a host is exclusive already, not for a lease, or too soon for the notice: such a
    server is written like any other, unless the host is leased whole.
    """
    owner = write.consumer
    rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
    stranger = Occupant(owner.uuid, owner.project_id)
    closed = exclusive_periods(lease_of, snapshot, stranger, exclusive, stay)
    try:
        return end_before_exclusive(closed, snapshot.root[rows].tolist(), snapshot.taken_at, notice)
    except NotALease:
        return None


def _without(
    allocations: Mapping[str, Amounts], classes: tuple[ResourceClass, ...]
) -> Mapping[str, Amounts]:
    """The allocations without these classes; providers left without amounts are dropped."""
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
