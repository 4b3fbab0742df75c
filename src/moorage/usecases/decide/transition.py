"""Where the servers of members may run while Nova moves them, for policies in transition.

Between the first and the last write of a move a server has allocations on two hosts and runs on one
of them; on which, only Nova knows. A policy with the phase `transition` must hold wherever the
servers that move are at the moment: for every combination of their hosts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Phase
from moorage.domain.errors import WrongState
from moorage.domain.placement import Placement
from moorage.domain.refusal_commands import to_see_places
from moorage.usecases.decide.member_places import hosts_occupied

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.rules import PolicyRule
    from moorage.usecases.decide.solution import VerifiedPlacement

MOST_MOVING: Final = 4
"""Moving members of one ensemble that are judged on both hosts, the first by their names; further
ones are judged where they go. Each doubles the work."""


def in_transition(ensemble: Ensemble) -> bool:
    """Whether a required policy of the ensemble is for the phase `transition`."""
    return any(one.required and Phase.TRANSITION in one.phases for one in ensemble.policies)


def moving_members(
    snapshot: Snapshot, ensemble: Ensemble, entered: Mapping[MemberName, str] = MappingProxyType({})
) -> Mapping[MemberName, tuple[str, ...]]:
    """The members whose servers move -> UUIDs of the hosts where each may be, sorted by member.

    `entered` are hosts that members enter by the write which is judged. A server whose allocations
    all are with its migration moves, too: it has no other host yet.
    """
    found: dict[MemberName, tuple[str, ...]] = {}
    for member in ensemble.members:
        if member.server_id is None:
            continue
        hosts = {*hosts_occupied(snapshot, member)}
        if member.name in entered:
            hosts.add(entered[member.name])
        elif hosts and not snapshot.rows_of_consumer(member.server_id):
            found[member.name] = tuple(sorted(hosts))
        if len(hosts) > 1:
            found[member.name] = tuple(sorted(hosts))
    return MappingProxyType(dict(sorted(found.items())))


def combinations(
    moving: Mapping[MemberName, tuple[str, ...]],
) -> Iterator[Mapping[MemberName, str]]:
    """Every combination of the hosts of the members that move; nothing if none moves."""
    judged = dict(islice(moving.items(), MOST_MOVING))
    if judged:
        for hosts in product(*judged.values()):
            yield MappingProxyType(dict(zip(judged, hosts, strict=True)))


def check_transition(snapshot: Snapshot, ensemble: Ensemble, placement: VerifiedPlacement) -> None:
    """Check a decision made while servers of the ensemble move: the new places, and both hosts.

    Raises:
        WrongState: a required policy of the phase `transition` would be broken meanwhile.
    """
    if not in_transition(ensemble):
        return
    moving = {
        name: hosts
        for name, hosts in moving_members(snapshot, ensemble).items()
        if name not in placement.places
    }
    for hosts in combinations(moving):
        broken = _broken(placement, hosts)
        if broken:
            names = ", ".join(map(str, moving))
            raise WrongState(
                f"{broken} would be broken while {names} of ensemble {ensemble.name} still moves:"
                " try again when Nova has confirmed or reverted the move, or leave out the phase"
                f" transition{to_see_places(ensemble.name)}"
            )


def _broken(placement: VerifiedPlacement, hosts: Mapping[MemberName, str]) -> str:
    """The first policy that new places break more with moving members on these hosts; or empty."""
    built = placement.built
    row_of = built.terrain.row_of
    found = {name: row_of[host] for name, host in placement.hosts.items()}
    there = {name: row_of[host] for name, host in hosts.items() if host in row_of}
    now, then = Placement(built.policy_view, found), Placement(built.policy_view, found | there)
    standing = frozenset(then.hosts) - frozenset(placement.places)
    for rule in built.rules:
        if not (rule.statement.required and Phase.TRANSITION in rule.statement.phases):
            continue
        before = max(_amount(rule, now), _amount(_among(rule, standing), then))
        if _amount(rule, then) > before:
            return rule.statement.name
    return ""


def _among(rule: PolicyRule, members: frozenset[MemberName]) -> PolicyRule:
    """The rule with only these members in its edges."""
    kept = (tuple(one for one in edge if one in members) for edge in rule.edges)
    return replace(rule, edges=tuple(edge for edge in kept if edge))


def _amount(rule: PolicyRule, placement: Placement) -> int:
    """By how much the placement violates the policy on those edges of whose members it has all."""
    return sum(
        violation.amount
        for edge in rule.edges
        for violation in rule.policy.violations(
            tuple(one for one in edge if one in placement.hosts), placement
        )
    )
