"""Contradictions between policies that are visible without a fleet or a search.

Everything is read from the primitives the policies compile to, so a plug-in's policies are
checked as well, in time that grows with the description alone. Only required policies that
hold at creation count. What passes may still be impossible.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from moorage.domain.topology import HOST, SERVER, Level
from moorage.policies.hypothetical_fleet import HypotheticalFleet
from moorage.policies.primitives import Near, NeverOn, OnlyOn, SameDomain, Skew
from moorage.policies.shared_domains import JoinedMembers, others_too_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from moorage.domain.ensembles import Role
    from moorage.domain.member_names import MemberName
    from moorage.policies.primitives import Primitive
    from moorage.policies.rules import PolicyRule


def contradictory(
    roles: Iterable[Role],
    rules: Collection[PolicyRule],
    *,
    levels: Mapping[str, tuple[str, ...]] | None = None,
) -> bool:
    """Whether these policies contradict each other on every fleet, as far as primitives show it.

    They are required, and hold at creation.

    `levels` are the trees' levels from the top down, if known; otherwise region > zone > row > rack
    is assumed, and other names cannot be compared.
    """
    fleet = HypotheticalFleet(levels)
    posted = [one for rule in rules for one in rule.post(fleet)]
    if fleet.names:
        # Now that they are all known the fleet has a host for every combination of them.
        posted = [one for rule in rules for one in rule.post(fleet)]

    @cache
    def together(level: Level) -> JoinedMembers:
        joining = (one for one in posted if isinstance(one, SameDomain))
        return JoinedMembers.by(one for one in joining if fleet.implies(one.level, level))

    uncounted = OnlyOn | NeverOn | SameDomain | Skew | Near
    counted = (one for one in posted if not isinstance(one, uncounted))
    if any(together(one.level).violate(one) for one in counted) or others_too_few(posted):
        return True
    if any(isinstance(one, Near) and one.members and not one.others for one in posted):
        return True
    slices = any(one.is_slice for role in roles for one in role.choices)
    # Slices on one host need not be on one server of it.
    alone = together(Level("", SERVER if slices else HOST))
    return fleet.complete and _has_no_host(posted, alone, fleet)


def _has_no_host(
    posted: list[Primitive], together: JoinedMembers, fleet: HypotheticalFleet
) -> bool:
    """Whether all hosts are excluded for a member, or for members joined on one host."""
    left: dict[MemberName, frozenset[int]] = {}
    every = frozenset(range(fleet.host_count))
    for one in posted:
        if not isinstance(one, OnlyOn | NeverOn):
            continue
        hosts = one.hosts if isinstance(one, OnlyOn) else every - one.hosts
        for member in one.members:
            head = together.head.get(member, member)
            left[head] = left.get(head, every) & hosts
            if not left[head]:
                return True
    return False
