"""Searches for the moves that attain a goal, until what is found passes the check.

Where servers have no room, those on a bounded number of other hosts may move aside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.errors import Busy
from moorage.domain.providers import SHARING_TRAIT
from moorage.engine.joint.fleet_room import room_without
from moorage.engine.moves.plan import order_moves, plan_moves
from moorage.engine.moves.problem import MovePlan, NoPlan, Stuck, StuckCode
from moorage.engine.state.host_states import host_states
from moorage.usecases.plans.move_problem import StatedMoves, state_moves
from moorage.usecases.plans.move_units import (
    MOVING,
    MoveGoal,
    Newcomer,
    PlacedServer,
    fellows,
    servers_on,
)
from moorage.usecases.plans.plan_check import wrong_moves
from moorage.usecases.plans.room_moves import best_moves
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.shared.environment import Environment

NEIGHBOURS: Final = 64
"""Hosts whose servers may move aside for servers that otherwise have no room."""
ADMITTING: Final = 1_000
"""The same, of hosts on which members of a new ensemble could be."""
REBALANCED: Final = 400
"""Hosts whose servers a plan to rebalance may move: those with the fewest."""
SECONDS: Final = 5.0
"""The time of one search; what was found by then is taken."""
_ROUNDS: Final = 5
"""Searches for one plan, if what is found does not pass the check."""
_SEARCHED: Final = frozenset({"no-room", "policy", "undecided"})
"""Reasons that may go where others move aside."""
_OF_POLICIES: Final = frozenset({"policy", "no-order"})


@dataclass(frozen=True, eq=False)
class FoundMoves:
    """A search's answer, with the problem that it answers."""

    stated: StatedMoves
    plan: MovePlan
    stuck: tuple[Stuck, ...] = ()
    proved: bool = True


def _planned(stated: StatedMoves) -> MovePlan | NoPlan:
    return plan_moves(stated.problem)


def moves_to_admit(
    env: DecideEnvironment, ensemble: Ensemble, members: frozenset[MemberName]
) -> int | None:
    """How many moves of other servers make room for members; None: no such plan was found.

    Raises:
        TimeExpired: time ran out.
    """
    try:
        found = MoveSearch(env, env.store.snapshot()).admitted(ensemble, members)
    except TimeExpired:
        raise
    except Busy:
        return None
    return None if found.stuck else len(found.plan.steps)


@dataclass(frozen=True, eq=False)
class MoveSearch:
    """Searches on one snapshot."""

    env: Environment
    snapshot: Snapshot

    def emptied(self, hosts: Sequence[int]) -> FoundMoves:
        """Moves after which these hosts (rows) have no servers."""
        servers, ensembles = servers_on(self.env.store, self.snapshot, hosts)
        known = {one.consumer for one in servers}
        units = [*servers, *fellows(self.env.store, self.snapshot, ensembles, known)]
        goal = MoveGoal(leave=frozenset(hosts))
        found = self._searched(units, goal)
        if any(one.code in _OF_POLICIES for one in found.stuck):
            lenient = self._search(units, (), replace(goal, lenient=True))
            found = min(found, lenient, key=lambda one: len(one.stuck))
        return found

    def repaired(self, ensemble: Ensemble) -> FoundMoves:
        """Moves after which an ensemble's policies hold, and its hosts are in service."""
        servers = fellows(self.env.store, self.snapshot, (ensemble,), frozenset())
        in_service = host_states(self.snapshot).in_service
        lost = frozenset(one.host for one in servers if not in_service[one.host])
        return self._searched(servers, MoveGoal(leave=lost, mended=frozenset({ensemble.id})))

    def admitted(self, ensemble: Ensemble, members: frozenset[MemberName]) -> FoundMoves:
        """Moves after which members of an ensemble have room."""
        newcomers = tuple(
            Newcomer(ensemble, name, ensemble.role(name.role)) for name in sorted(members)
        )
        beside = fellows(self.env.store, self.snapshot, (ensemble,), frozenset())
        found = self._search(beside, newcomers, MoveGoal())
        if not found.stuck:
            return found
        return self._with_neighbours(beside, newcomers, MoveGoal(), found, ADMITTING)

    def rebalanced(self, least: float) -> tuple[FoundMoves, float]:
        """Moves that gain at least `least` each, and what all gain; see `room_moves`."""
        snapshot, store = self.snapshot, self.env.store
        servers, ensembles = servers_on(store, snapshot, sparse_hosts(snapshot, REBALANCED))
        known = {one.consumer for one in servers}
        beside = _staying(fellows(store, snapshot, ensembles, known))
        gained = 0.0

        def solve(stated: StatedMoves) -> MovePlan | NoPlan:
            nonlocal gained
            rows = stated.terrain.fleet_rows
            assert rows is not None  # the terrain is cut from a snapshot
            leaving = frozenset(one.consumer for one in servers if not one.pinned)
            room = room_without(snapshot, rows, stated.terrain.classes, leaving, store.flavors)
            gain = best_moves(stated, room, least)
            gained = gain.total
            targets = stated.problem.start.copy()
            targets[[*gain.targets]] = [*gain.targets.values()]
            return order_moves(stated.problem, targets)

        return self._search([*servers, *beside], (), MoveGoal(), solve), gained

    def _searched(self, units: Sequence[PlacedServer], goal: MoveGoal) -> FoundMoves:
        """The best that is found, with neighbours if needed."""
        found = self._search(units, (), goal)
        if any(one.code in _SEARCHED for one in found.stuck):
            found = self._with_neighbours(units, (), goal, found, NEIGHBOURS)
        return found

    def _with_neighbours(
        self,
        servers: Sequence[PlacedServer],
        newcomers: Sequence[Newcomer],
        goal: MoveGoal,
        before: FoundMoves,
        most: int,
    ) -> FoundMoves:
        """Search again where servers on hosts that could hold the stuck units may move aside."""
        stated, problem = before.stated, before.stated.problem
        stuck = np.array([one.unit for one in before.stuck], dtype=np.int64)
        masks = problem.masks[problem.mask_of[stuck]]
        least = problem.amounts[stuck].min(axis=0)
        could = masks.any(axis=0) & (stated.terrain.capacity >= least).all(axis=1)
        rows = np.flatnonzero(could)
        wants = np.maximum(problem.amounts[stuck].max(axis=0), 1)
        room = np.minimum(problem.free[rows] / wants, 1.0).min(axis=1)
        chosen = rows[np.argsort(-room, kind="stable")[:most]]
        known = {one.consumer for one in servers}
        hosts = [self.snapshot.row_of[stated.terrain.uuids[row]] for row in chosen.tolist()]
        more, ensembles = servers_on(self.env.store, self.snapshot, hosts)
        more = [one for one in more if one.consumer not in known]
        known |= {one.consumer for one in more}
        fixed = _staying(fellows(self.env.store, self.snapshot, ensembles, known))
        if not more:
            return before
        found = self._search([*servers, *more, *fixed], newcomers, goal)
        return found if len(found.stuck) < len(before.stuck) else before

    def _search(
        self,
        servers: Sequence[PlacedServer],
        newcomers: Sequence[Newcomer],
        goal: MoveGoal,
        solve: Callable[[StatedMoves], MovePlan | NoPlan] = _planned,
    ) -> FoundMoves:
        """Search until what is found passes the check."""
        snapshot, exclusive = self.snapshot, self._exclusive
        servers = [one for one in servers if snapshot.fleet[one.host]]
        barred: dict[str, frozenset[int]] = {}
        for _ in range(_ROUNDS):
            stated = state_moves(snapshot, exclusive, servers, newcomers, goal, barred)
            with deadline.anew(), deadline.within(self.env.stopwatch, SECONDS):
                answer = solve(stated)
            found = _as_found(stated, answer)
            moving = self._moving(found)
            if moving:
                servers = [
                    replace(one, pinned=MOVING) if one.consumer in moving else one
                    for one in servers
                ]
                continue
            wrong = wrong_moves(self.env, stated, found.plan, exclusive)
            if not wrong:
                return found
            for consumer, row in wrong:
                barred[consumer] = barred.get(consumer, frozenset()) | {row}
        raise Busy(
            "no plan that passes the check was found: another one may be, once the ledger changes"
        )

    @property
    def _exclusive(self) -> tuple[Ensemble, ...]:
        return self.env.store.exclusive_ensembles(self.snapshot).ensembles

    def _moving(self, found: FoundMoves) -> frozenset[str]:
        """The servers of the plan that Nova is moving already; migrations are none of servers."""
        consumers = {
            one.consumer
            for step in found.plan.steps
            if isinstance(one := found.stated.units[step.unit], PlacedServer)
            and one.ensemble is None
        }
        return frozenset(
            one
            for one in consumers
            if (known := if_stored(self.env.store.consumer, one)) is None
            or known[0].migration_of is not None
            or len(self._hosts(known[1])) > 1
        )

    def _hosts(self, bookings: Iterable[Booking]) -> set[int]:
        snapshot = self.snapshot
        rows = {int(snapshot.root[snapshot.row_of[one.provider]]) for one in bookings}
        return {row for row in rows if SHARING_TRAIT not in snapshot.traits_of(row)}


def _staying(servers: Iterable[PlacedServer]) -> list[PlacedServer]:
    """Servers that matter to policies alone: they stay where they are."""
    return [replace(one, pinned=one.pinned or "it stays where it is") for one in servers]


def sparse_hosts(snapshot: Snapshot, most: int) -> list[int]:
    """Rows of the hosts in service with the fewest bookings, of those that have any."""
    in_service = host_states(snapshot).in_service
    counted = [
        (len(snapshot.bookings_of(row)), row) for row in snapshot.hosts.tolist() if in_service[row]
    ]
    return [row for count, row in sorted(counted) if count][:most]


def _as_found(stated: StatedMoves, answer: MovePlan | NoPlan) -> FoundMoves:
    if isinstance(answer, MovePlan):
        return FoundMoves(stated, answer)
    problem = stated.problem
    partial = answer.partial or MovePlan((), problem.start, 0, 0)
    known = {one.unit for one in answer.stuck}
    left = (
        Stuck(unit, StuckCode.UNDECIDED)
        for unit in problem.leaving
        if problem.leave[partial.hosts[unit]] and unit not in known
    )
    return FoundMoves(stated, partial, (*answer.stuck, *left), answer.proved)
