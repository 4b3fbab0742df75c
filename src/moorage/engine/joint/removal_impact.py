"""How much policies are violated when one member is removed, for many members at once.

Evaluating a policy anew for every candidate costs members x members. Here its primitives are posted
once, without the first candidate; removing another candidate instead changes their counts by one.

This assumes that members of one role differ for a policy only by their hosts, as solvers that
exchange them assume. Where a statement pairs members (`zip`), removing one shifts the partners of
those after it: pairs before it stay as they are, pairs after it are the shifted ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import edges
from moorage.domain.placement import Placement
from moorage.engine.joint.problem import mask_of, permitted_hosts
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    NeverOn,
    OnlyOn,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.joint.policy_view import TerrainView
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive
    from moorage.policies.rules import PolicyRule

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RemovalCandidates:
    """A placement, and the members of one role of which one is to be removed."""

    roles: Sequence[Role]
    policy_view: TerrainView
    hosts: Mapping[MemberName, int]
    """Host row of every placed member."""
    candidates: Sequence[MemberName]
    """[n] the members that may be removed: at least one, all of one role."""

    @property
    def placement(self) -> Placement:
        """The placement as policies see it."""
        return Placement(self.policy_view, self.hosts)


def violations_without(rule: PolicyRule, removal: RemovalCandidates) -> Ints:
    """[n] the sum of a policy's violations if only this candidate was removed."""
    statement, candidates = rule.statement, removal.candidates
    names = list(removal.hosts)
    if statement.zip:
        columns = [
            edge
            for one in statement.members
            for edge in edges(replace(statement, members=(one,), zip=False), removal.roles, names)
            or ((),)
        ]
        return _zipped_violations(rule, columns, removal)
    found = np.zeros(len(candidates), dtype=np.int64)
    for edge in edges(statement, removal.roles, names):
        inside = set(edge)
        mine = np.array([one in inside for one in candidates], dtype=np.bool_)
        if not mine.all():
            found[~mine] += _violation_amount(rule, edge, removal.placement)
        if mine.any():
            some = [one for one in candidates if one in inside]
            found[mine] += _edge_without_one(rule, edge, replace(removal, candidates=some))
    return found


def _violation_amount(rule: PolicyRule, edge: Edge, placement: Placement) -> int:
    return sum(one.amount for one in rule.policy.violations(edge, placement))


# --- one edge -------------------------------------------------------------------------------


def _edge_without_one(rule: PolicyRule, edge: Edge, removal: RemovalCandidates) -> Ints:
    """[n] the same for one edge that contains all candidates."""
    first = removal.candidates[0]
    rest = tuple(one for one in edge if one != first)
    found = np.zeros(len(removal.candidates), dtype=np.int64)
    if not rest:
        return found
    for one in rule.policy.post(rest, removal.policy_view, name=rule.statement.name, weight=None):
        found += np.maximum(0, _excess_without(one, removal))
    return found


def _excess_without(primitive: Primitive, removal: RemovalCandidates) -> Ints:
    """[n] the excess without each candidate; the primitive is posted without the first one."""
    match primitive:
        case OnlyOn() | NeverOn():
            on = ~permitted_hosts(primitive, removal.policy_view.host_count)
            there, goes = _rows(primitive.members, removal)
            return _ints(on[there].sum() - on[goes])
        case Apart() | Near():
            ours = _domain_counts(primitive.members, primitive.level, removal)
            theirs = _domain_counts(primitive.others, primitive.level, removal)
            shared = _shared_domains(ours, theirs)
            return shared if isinstance(primitive, Apart) else _used_domains(*ours) - shared
        case _:
            return _ints(
                _excess_with_one_less(
                    primitive, *_domain_counts(primitive.members, primitive.level, removal)
                )
            )


def _rows(members: Edge, removal: RemovalCandidates) -> tuple[Ints, Ints]:
    """Rows of the members and the first candidate; [n] the row to subtract for each candidate.

    A candidate that is not among the members is not counted: for it the first one is subtracted, so
    that the members' counts stay.
    """
    hosts, candidates = removal.hosts, removal.candidates
    among = set(members)
    there = [hosts[one] for one in members] + [hosts[candidates[0]]]
    goes = [hosts[one if one in among else candidates[0]] for one in candidates]
    return np.array(there, dtype=np.int64), np.array(goes, dtype=np.int64)


def _domain_counts(members: Edge, level: Level, removal: RemovalCandidates) -> tuple[Ints, Ints]:
    """[D] counts per domain with the first candidate; [n] the domain to subtract from."""
    domain_of = removal.policy_view.terrain.domains(level)
    there, goes = _rows(members, removal)
    domains = domain_of[there]
    size = int(domain_of.max(initial=-1)) + 1
    return _ints(np.bincount(domains[domains >= 0], minlength=size)), _ints(domain_of[goes])


def _excess_with_one_less(
    primitive: AtMost | AtMostTogether | AtLeastDomains | SameDomain | Skew, n: Ints, goes: Ints
) -> Ints:
    """[n] the excess with one member less in domain `goes[i]`; -1: in no domain."""
    here = np.where(goes >= 0, n[goes], 0) if len(n) else np.zeros_like(goes)
    alone = here == 1
    match primitive:
        case AtMost(limit=limit):
            return _ints(np.maximum(0, n - limit).sum() - ((goes >= 0) & (here > limit)))
        case AtMostTogether(domains=lose, limit=limit):
            largest = np.sort(n)[::-1]
            next_ = int(largest[lose]) if len(largest) > lose else 0
            # If another domain has the same count, the sum of the largest stays.
            return _ints(largest[:lose].sum() - limit - (here > next_))
        case AtLeastDomains(limit=limit):
            return _ints(limit - ((n > 0).sum() - alone))
        case SameDomain():
            return _ints((n > 0).sum() - alone - 1)
        case Skew(domains=domains, limit=limit):
            most = int(n.max(initial=0))
            only = int((n == most).sum()) == 1
            eligible = mask_of(domains, len(n) + 1)
            least = int(n[list(domains)].min()) if domains else 0
            lower = np.where(eligible[goes], np.minimum(least, here - 1), least)
            return _ints(most - ((here == most) & only & (goes >= 0)) - lower - limit)


def _used_domains(n: Ints, goes: Ints) -> Ints:
    """[n] number of domains with members, with one less in domain `goes[i]`; -1: in no domain."""
    alone = (goes >= 0) & (n[goes] == 1) if len(n) else np.zeros_like(goes)
    return _ints((n > 0).sum() - alone)


def _shared_domains(ours: tuple[Ints, Ints], theirs: tuple[Ints, Ints]) -> Ints:
    """[n] number of domains with members of both sides, after one is removed from each side."""
    (mine, from_mine), (other, from_other) = ours, theirs
    both = (mine > 0) & (other > 0)
    if not len(both):
        return np.zeros_like(from_mine)

    def lost(at: Ints) -> Ints:
        left = (mine[at] - (from_mine == at) > 0) & (other[at] - (from_other == at) > 0)
        return np.where(at >= 0, both[at].astype(np.int64) - left, 0)

    twice = from_other == from_mine
    return _ints(both.sum() - lost(from_mine) - np.where(twice, 0, lost(from_other)))


# --- pairs ----------------------------------------------------------------------------------


def _zipped_violations(
    rule: PolicyRule, columns: Sequence[Edge], removal: RemovalCandidates
) -> Ints:
    """[n] the same for a statement that pairs the members of its columns (`zip`)."""
    candidates = removal.candidates
    among = [[one in members for one in candidates] for members in map(frozenset, columns)]
    if sum(map(any, among)) > 1:
        # A candidate is paired with members of its own role: each is evaluated alone.
        return _ints([_pair_violations(rule, columns, removal, {one}).sum() for one in candidates])
    before = np.concatenate(([0], np.cumsum(_pair_violations(rule, columns, removal, frozenset()))))
    found = np.full(len(candidates), before[-1], dtype=np.int64)
    for column, mine in zip(columns, among, strict=True):
        if not any(mine):
            continue
        moved = [one[1:] if one is column else one for one in columns]
        after = np.cumsum(_pair_violations(rule, moved, removal, frozenset())[::-1])[::-1]
        after = np.concatenate((after, np.zeros(len(before) - len(after), dtype=np.int64)))
        place = {one: at for at, one in enumerate(column)}
        at = np.minimum([place.get(one, 0) for one in candidates], len(before) - 1)
        found = np.where(mine, before[at] + after[at], found)
    return found


def _pair_violations(
    rule: PolicyRule,
    columns: Sequence[Edge],
    removal: RemovalCandidates,
    gone: AbstractSet[MemberName],
) -> Ints:
    """The violations of each pair, without the members in `gone`."""
    left = [[one for one in column if one not in gone] for column in columns]
    pairs = (tuple(dict.fromkeys(pair)) for pair in zip(*left, strict=False))
    return _ints([_violation_amount(rule, pair, removal.placement) for pair in pairs])


def _ints(values: object) -> Ints:
    return np.asarray(values, dtype=np.int64)
