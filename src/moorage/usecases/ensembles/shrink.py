"""Shrink an ensemble: choose who leaves so that its policies keep holding, and take them out.

A member that leaves gives a held place back. If it has a server, the server keeps its allocations
until it is deleted, as when a member is removed by its name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.changes import Changeset, DropBookings, PutEnsemble
from moorage.domain.ensembles import SETTLING
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import SECOND
from moorage.engine.joint.shrink import Shrinking, choose_members
from moorage.usecases.compliance.judgement import BreaksPolicies, broken_policies, standing_policies
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.writes import current_decision, member_departure_changes
from moorage.usecases.ensembles.change import without_members
from moorage.usecases.ensembles.size_changes import (
    RoleCounts,
    check_min_available,
    check_no_lease,
    made_before,
    with_size_change,
)
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_access import check_unshared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

_WITH_SERVER: Final = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
_NAMED: Final = 5
"""Most policies named in an error."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """How an ensemble is to shrink."""

    counts: RoleCounts
    prefer: tuple[MemberName, ...] = ()
    """Members that leave rather than others, the first most of all."""
    servers: bool = True
    """Whether members with a server may leave."""


class ShrinkBreaksPolicies(BreaksPolicies):
    """No choice of members was found that keeps every required policy."""


@dataclass(frozen=True, slots=True)
class ShrinkResult:
    """An ensemble after it has shrunk, and the members that left."""

    ensemble: Ensemble
    decision: Decision | None
    gone: tuple[Member, ...]
    snapshot: Snapshot


def shrink(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    reduction: Reduction,
    identity: RequestIdentity,
) -> ShrinkResult:
    """Take members out of one or several roles, all together.

    Required policies are violated no more by those that stay than they are now. Then preferred
    policies count, then `prefer`, then members without a place or a server, then the highest
    index. The same request with the same id takes nobody more out, and gets the same members.

    Raises:
        NotFound: no such ensemble, or preferred member of it, for this caller.
        InvalidDescription: no such role, or it has fewer members that may leave.
        BelowMinAvailable: fewer members of a role would remain than must be up.
        ShrinkBreaksPolicies: no choice keeps the required policies; nothing was changed.
        WrongState: the ensemble's places belong to a lease, or the role to another project.
        DuplicateName: the id was used by another request.
        TimeExpired: there was no time for a choice.
    """

    def attempt() -> ShrinkResult:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        if (made := made_before(ensemble, identity)) is not None:
            return ShrinkResult(
                ensemble,
                current_decision(env.store, ensemble),
                made.members,
                env.store.snapshot(),
            )
        return _shrink(env, ensemble, reduction, identity)

    with deadline.within(env.stopwatch, env.limits.time_limit / SECOND):
        return retry(env, attempt)


def _shrink(
    env: UseCaseEnvironment, ensemble: Ensemble, reduction: Reduction, identity: RequestIdentity
) -> ShrinkResult:
    check_no_lease(env.store, ensemble)
    now = env.store.now()
    decision = current_decision(env.store, ensemble)
    # The decision was read before the members' status: a claim in between changes its generation.
    snapshot = env.store.snapshot()
    names = leaving_members(snapshot, ensemble, reduction)
    gone = tuple(one for one in ensemble.members if one.name in names)
    if not gone:
        return ShrinkResult(ensemble, decision, (), snapshot)
    smaller = with_size_change(without_members(ensemble, set(names)), identity, gone)
    env.store.commit(
        Changeset(
            (
                PutEnsemble(replace(smaller, updated_at=now), ensemble.generation, ensemble),
                DropBookings(frozenset(one.uuid for one in gone)),
                *member_departure_changes(env.store, ensemble, names, now),
            )
        )
    )
    after = env.store.ensemble(ensemble.id)
    return ShrinkResult(after, current_decision(env.store, after), gone, env.store.snapshot())


def leaving_members(
    snapshot: Snapshot, ensemble: Ensemble, reduction: Reduction, *, kept: bool = True
) -> frozenset[MemberName]:
    """The members that leave; nothing is written.

    Unless policies and `Role.min_available` are to be `kept`, the least bad choice counts where
    none keeps the policies.

    Raises:
        NotFound, InvalidDescription, BelowMinAvailable, ShrinkBreaksPolicies: see `shrink`.
    """
    counts = reduction.counts.fewer(ensemble)
    for role in counts:
        check_unshared(ensemble, role)
    if kept:
        check_min_available(ensemble, {r: ensemble.count(r) - n for r, n in counts.items()})
    member_places = locate_members(snapshot, ensemble)
    order = _leaving_order(ensemble, reduction, member_places, counts)
    _check_enough(order, counts)
    rules, placement = standing_policies(snapshot, ensemble, member_places, SETTLING)
    unplaced = [one.name for one in ensemble.members if one.name not in placement.hosts]
    choice = choose_members(Shrinking(ensemble.roles, rules, placement, counts, order, unplaced))
    names = frozenset(choice.gone)
    if choice.broken and kept:
        rest = broken_policies(snapshot, without_members(ensemble, set(names)), SETTLING)
        told = ", ".join(choice.broken[:_NAMED])
        found = "every choice of members" if choice.proved else "every choice of members found"
        raise ShrinkBreaksPolicies(
            "ensemble",
            ensemble.id,
            f"{found} would break {told}",
            tuple(one for one in rest if one.policy in choice.broken),
        )
    return names


def _leaving_order(
    ensemble: Ensemble,
    reduction: Reduction,
    member_places: MemberPlaces,
    counts: Mapping[str, int],
) -> list[MemberName]:
    """The members that may leave, those first that leave rather than others."""
    preferred = {ensemble.member(name).name: at for at, name in enumerate(reduction.prefer)}
    cost = {MemberStatus.UNPLACED: 0, MemberStatus.HELD: 1}

    def rank(name: MemberName) -> tuple[int, int, int]:
        status = member_places.of(name)
        return preferred.get(name, len(preferred)), cost.get(status, 2), -name.index

    may = (
        one.name
        for one in ensemble.members
        if counts.get(one.name.role)
        and (reduction.servers or member_places.of(one.name) not in _WITH_SERVER)
    )
    return sorted(may, key=rank)


def _check_enough(order: Sequence[MemberName], counts: Mapping[str, int]) -> None:
    there = Counter(name.role for name in order)
    for role, count in counts.items():
        if count > there[role]:
            raise InvalidDescription(
                f"only {there[role]} members of {role} have no server, so {count} cannot leave",
                path="servers",
            )
