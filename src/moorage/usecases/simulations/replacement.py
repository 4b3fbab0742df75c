"""Places members that lost their hosts again, in a hypothetical ledger."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.errors import Busy, MoorageError
from moorage.domain.explain import Explanation
from moorage.domain.host_states import HostState
from moorage.domain.leases import LeaseState
from moorage.domain.period import SECOND
from moorage.engine.state.change_overlay import with_moved
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import (
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.search_plan import SearchPlan
from moorage.usecases.decide.search_result import Observation
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.decide.writes import current_decision, options_like
from moorage.usecases.relocation.lease_promise import promise
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import HypotheticalStore

_SHORTEST: Final = 0.01
"""Seconds below which no search is begun."""


class Verdict(StrEnum):
    """Whether the lost members of an ensemble can be placed again."""

    PLACED = "placed"
    REFUSED = "refused"
    """They cannot."""
    UNDECIDED = "undecided"
    """Time ran out before that was known."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Where the lost members of an ensemble would be, or why they cannot be placed."""

    verdict: Verdict
    hosts: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Member -> name of its new host."""
    explanation: Explanation | None = None
    why: str = ""
    """Instead of an explanation: why it was not searched for."""


def lost_members(snapshot: Snapshot, ensemble: Ensemble) -> frozenset[MemberName]:
    """The placed members whose hosts are down."""
    states = host_states(snapshot)
    places = locate_members(snapshot, ensemble).places
    return frozenset(
        name
        for name, place in places.items()
        if states.state(snapshot.row_of[place.host]) is HostState.DOWN
    )


def place_again(
    env: UseCaseEnvironment,
    store: HypotheticalStore,
    ensemble: Ensemble,
    lost: frozenset[MemberName],
    seconds: float,
    *,
    explained: bool,
) -> Replacement:
    """Place these members of an ensemble again by the search of a decision; all others stay.

    Nobody else moves or ends for them. Members that have servers keep them, as if these were built
    again on their new hosts. What is found is taken in the hypothetical ledger, over which the
    environment is. The search takes at most so many seconds.
    """
    if seconds < _SHORTEST:
        return Replacement(Verdict.UNDECIDED)
    decision = current_decision(store, ensemble)
    lease = _open_lease(env, decision)
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        (lambda _: lost,),
        promise=None if lease is None else promise(lease),
        reader=RefusalReader(
            operator=True, detail=RefusalDetail.UNSTORED if explained else RefusalDetail.NONE
        ),
    )
    snapshot = store.snapshot()
    options = _options(decision, snapshot)
    exclusive = store.exclusive_ensembles(snapshot).ensembles
    observation = Observation(snapshot, locate_members(snapshot, ensemble), exclusive)
    limit = int(seconds * SECOND)
    try:
        with deadline.within(env.stopwatch, seconds):
            plan = SearchPlan(env, proposal, options, limit)
            result = plan.search(observation, without_concessions=True)
            if result.placement is None:
                identity = RequestIdentity(env.ids.uuid())
                refused = env.strategies.explain(
                    env, proposal, options, identity, result, observation
                )
                found = refused.explanation
                return Replacement(
                    Verdict.REFUSED, explanation=found if isinstance(found, Explanation) else None
                )
    except Busy:
        return Replacement(Verdict.UNDECIDED)
    except MoorageError as error:
        return Replacement(Verdict.UNDECIDED, why=error.message)
    moved: dict[str, tuple[Booking, ...]] = {}
    hosts = {}
    for name in lost:
        place = result.placement.places[name]
        model = observation.member_places.bookings[name][0]
        moved[model.consumer] = tuple(
            replace(model, provider=provider, amounts=amounts)
            for provider, amounts in place.allocations.items()
        )
        hosts[name] = snapshot.names[snapshot.row_of[place.host]]
    store.suppose(lambda present: with_moved(present, moved))
    return Replacement(Verdict.PLACED, MappingProxyType(dict(sorted(hosts.items()))))


def _open_lease(env: UseCaseEnvironment, decision: Decision | None) -> Lease | None:
    """The lease whose places a decision holds."""
    if decision is None or decision.lease_id is None:
        return None
    found = if_stored(env.store.lease, decision.lease_id)
    return None if found is None or found.state is LeaseState.CLOSED else found


def _options(decision: Decision | None, snapshot: Snapshot) -> DecisionOptions:
    """The options of the present decision, as long as its stay lasts."""
    if decision is None or decision.period.end <= snapshot.taken_at:
        return DecisionOptions()
    return options_like(decision)
