"""Checks a plan's moves on the ledger's own arithmetic and by the judgement of policies.

It shares nothing with the search but the moves: capacity is that of bookings over time, and
policies are judged as the compliance monitor does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.engine.state.change_overlay import with_moved
from moorage.engine.state.overlay import worsens_overage
from moorage.usecases.compliance.impact import newly_broken
from moorage.usecases.plans.move_units import PlacedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.resources import Amounts
    from moorage.engine.moves.problem import MovePlan
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.plans.move_problem import StatedMoves
    from moorage.usecases.shared.environment import Environment

Bookings = tuple["Booking", ...]


def wrong_moves(
    env: Environment,
    stated: StatedMoves,
    plan: MovePlan,
    exclusive: Sequence[Ensemble],
) -> frozenset[tuple[str, int]]:
    """The moves that must not be made: server, and row of the host in the snapshot.

    Those that would take room that is not there at their turn, and those that policies forbid.
    """
    if not plan.steps:
        return frozenset()
    over = frozenset(_over_full(stated, plan))
    return over or frozenset(_breaking(env, stated, plan, exclusive))


def _over_full(stated: StatedMoves, plan: MovePlan) -> Iterator[tuple[str, int]]:
    """The moves at whose turn the target has no room, source and target both taken."""
    snapshot = stated.snapshot
    now: dict[str, Bookings] = {}
    at: dict[int, set[str]] = {}
    for step, taken in zip(plan.steps, stated.allocations_of(plan), strict=True):
        server = stated.units[step.unit]
        assert isinstance(server, PlacedServer)
        row = int(stated.rows[step.target])
        if taken is None:
            yield server.consumer, row
            continue
        here = now.get(server.consumer, server.bookings)
        there = booked(server.bookings, taken)
        beside = {one: now[one] for one in at.get(row, ()) if one in now}
        if worsens_overage(snapshot, {**beside, server.consumer: (*here, *there)}):
            yield server.consumer, row
        now[server.consumer] = there
        at.setdefault(row, set()).add(server.consumer)
        at.setdefault(int(stated.rows[step.source]), set()).add(server.consumer)


def booked(bookings: Bookings, taken: Mapping[str, Amounts]) -> Bookings:
    """A server's bookings on other providers, with the same period and terms."""
    return tuple(
        replace(bookings[0], provider=uuid, amounts=amounts) for uuid, amounts in taken.items()
    )


def after_moves(stated: StatedMoves, plan: MovePlan) -> Snapshot:
    """The snapshot with all servers where the plan takes them."""
    fresh: dict[str, Bookings] = {}
    for step, taken in zip(plan.steps, stated.allocations_of(plan), strict=True):
        server = stated.units[step.unit]
        assert isinstance(server, PlacedServer)
        fresh[server.consumer] = booked(server.bookings, taken or {})
    return with_moved(stated.snapshot, fresh)


def _breaking(
    env: Environment,
    stated: StatedMoves,
    plan: MovePlan,
    exclusive: Sequence[Ensemble],
) -> Iterator[tuple[str, int]]:
    """The moves of ensembles that have a required policy broken at the end that holds now."""
    moved = {
        server.consumer: (server, int(stated.rows[host]))
        for unit, host in enumerate(plan.hosts.tolist())
        if host != stated.problem.start[unit]
        and isinstance(server := stated.units[unit], PlacedServer)
    }
    concerned = {one.ensemble.id for one, _ in moved.values() if one.ensemble is not None}
    concerned |= {one.id for one in exclusive}
    concerned |= env.store.compliance.referring(concerned)
    after = after_moves(stated, plan)
    impact = newly_broken(env, stated.snapshot, after, ensembles=concerned)
    for violation in impact.violations:
        if not violation.required:
            continue
        mine = {
            consumer: row
            for consumer, (server, row) in moved.items()
            if server.ensemble is not None and server.ensemble.id == violation.ensemble_id
        }
        # Of an ensemble that does not move itself, others have come too near.
        yield from (mine or {one: row for one, (_, row) in moved.items()}).items()
