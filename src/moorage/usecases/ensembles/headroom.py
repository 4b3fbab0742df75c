"""Headroom: a standing hold for members that a role does not have yet (ADR-0032).

Each place is held by a spare's own consumer. Spares are decided as members beside those that there
are, but they are no members: they are not counted, listed or claimed. They stay as long as a member
has a place: not beyond a release of the decision, the end of its hold without a server, or the last
server (`headroom_end`). Extending the role takes them first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.changes import (
    BoundHeld,
    Changeset,
    DropBookings,
    PutBookings,
    PutDecision,
    PutEnsemble,
)
from moorage.domain.decisions import DecisionState
from moorage.domain.errors import InvalidDescription, WrongState
from moorage.domain.period import FOREVER, SECOND
from moorage.domain.refusal_commands import to_place
from moorage.usecases.decide.loop import decide_proposal
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import Proposal, RefusalReader, RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.decide.writes import (
    current_decision,
    hold_bookings,
    member_consumer,
    options_like,
)
from moorage.usecases.ensembles.extend import extended, extension_selections
from moorage.usecases.ensembles.policy_checks import check_policies
from moorage.usecases.ensembles.size_changes import check_no_lease
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.limits import check_size
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_access import check_unshared
from moorage.usecases.waitlist_turn import turn_of_stay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.usecases.decide.loop import DecisionResult
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class HeadroomResult:
    """An ensemble with the headroom that was set."""

    ensemble: Ensemble


def set_headroom(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    role: str,
    count: int,
) -> HeadroomResult:
    """Hold places for so many more members of a role, until that is set to another number.

    The role could have them at once: all policies hold with them, and with the headroom of other
    roles. Spares that are there keep their places, unless they break a policy by now.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: no such role.
        Infeasible: there are no places for so many; nothing was changed.
        LimitExceeded, QuotaExceeded: the ensemble would become too large, or too much is held.
        WrongState: the ensemble's places belong to a lease, or the role to another project; or no
            member has a place.
        HoldExpired: the members' hold has lapsed meanwhile.
        Busy: time ran out, or there were too many conflicts.
    """
    with deadline.within(env.stopwatch, env.limits.time_limit / SECOND):
        return retry(
            env,
            lambda: _set(env, caller, own_ensemble(env.store, caller, ensemble_id), role, count),
        )


def headroom_of(ensemble: Ensemble) -> Mapping[str, int]:
    """Role -> how many places are held for more members of it."""
    counts: dict[str, int] = {}
    for spare in ensemble.headroom:
        counts[spare.name.role] = counts.get(spare.name.role, 0) + 1
    return counts


def _set(
    env: UseCaseEnvironment,
    caller: Caller,
    stored: Ensemble,
    role: str,
    count: int,
) -> HeadroomResult:
    if not any(one.name == role for one in stored.roles):
        raise InvalidDescription(f"no role {role}", path="role")
    check_unshared(stored, role)
    check_no_lease(env.store, stored)
    mine = [one for one in stored.headroom if one.name.role == role]
    if count <= len(mine):
        return _smaller(env, stored, frozenset(one.uuid for one in mine[count:]))
    counts = {**headroom_of(stored), role: count}
    grown, spares = extended(env.ids, stored, counts)
    fresh = frozenset(one.name for one in grown.members).difference(
        one.name for one in stored.members
    )
    check_size(env.limits, grown, stored)
    snapshot = env.store.snapshot()
    check_policies(snapshot.topology, grown, own=False)
    before = current_decision(env.store, stored)
    if not locate_members(snapshot, stored).places:
        remedy = to_place(stored.name, what="its members")
        raise WrongState(f"there is no headroom beside members without places{remedy}")
    options = DecisionOptions() if before is None else options_like(before)
    turn_of_stay(env, grown, options.until).give_way()
    found = decide_proposal(
        env.in_dry_run(explained=True),
        Proposal(
            grown,
            stored.generation,
            extension_selections(fresh, frozenset(spares)),
            before=stored,
            reader=RefusalReader(operator=caller.operator, resized_from={role: stored.count(role)}),
        ),
        options,
        RequestIdentity(env.ids.uuid()),
    )
    headroom = tuple(
        replace(one, choice=found.decision.places[one.name].choice)
        for one in grown.members
        if one.name in fresh
    )
    after = replace(stored, headroom=headroom, updated_at=found.snapshot.taken_at)
    env.store.commit(
        Changeset(
            (
                PutEnsemble(after, stored.generation),
                *_holds(after, found),
                *_as_it_was(before, found.snapshot.taken_at),
                BoundHeld(stored.project_id, env.limits.held_members, count - len(mine)),
            ),
            relies_on=_trees(after, found),
            exclusive_revision=found.snapshot.exclusive_revision,
            topology_revision=found.snapshot.topology_revision,
        )
    )
    return HeadroomResult(env.store.ensemble(stored.id))


def _smaller(env: UseCaseEnvironment, stored: Ensemble, gone: frozenset[str]) -> HeadroomResult:
    """The headroom without these spares, whose places are free then."""
    rest = tuple(one for one in stored.headroom if one.uuid not in gone)
    after = replace(stored, headroom=rest)
    if not gone:
        return HeadroomResult(after)
    after = replace(after, updated_at=env.store.now())
    env.store.commit(Changeset((PutEnsemble(after, stored.generation), DropBookings(gone))))
    return HeadroomResult(env.store.ensemble(stored.id))


def _holds(ensemble: Ensemble, found: DecisionResult) -> Iterator[Change]:
    """The bookings of all spares, which lapse with no decision."""
    for spare in ensemble.headroom:
        bookings = hold_bookings(spare, found.decision.places[spare.name], found.decision)
        standing = tuple(replace(one, lapses_at=FOREVER, decision=None) for one in bookings)
        yield PutBookings(member_consumer(ensemble, spare), standing)


def _as_it_was(decision: Decision | None, now: Instant) -> Iterator[Change]:
    """The condition that the decision has not ended meanwhile, or the headroom would outlive it."""
    if decision is not None:
        held = decision.state_at(now) is DecisionState.HELD
        yield PutDecision(decision, decision.generation, decision.expires_at if held else None)


def _trees(ensemble: Ensemble, found: DecisionResult) -> dict[str, int]:
    """Provider -> revision, of all that the spares' hosts and places consist of."""
    snapshot = found.snapshot
    rows: set[int] = set()
    for spare in ensemble.headroom:
        place = found.decision.places[spare.name]
        rows.update(snapshot.tree(snapshot.row_of[place.host]).tolist())
        rows.update(snapshot.row_of[provider] for provider in place.allocations)
    return {snapshot.uuids[row]: int(snapshot.revisions[row]) for row in sorted(rows)}
