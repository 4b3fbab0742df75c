"""Shared by the policies: phrases for members and levels, and hosts without a domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.policies.contract import Violation
from moorage.policies.primitives import OnlyOn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Level
    from moorage.policies.contract import Edge


def members_text(edge: Edge) -> str:
    """The members as a phrase: `4 x db`, or `app[0] and db[0]` for single members."""
    counts: dict[str, int] = {}
    for member in edge:
        counts[member.role] = counts.get(member.role, 0) + 1
    if len(counts) > 1 and len(edge) <= len(counts):
        return " and ".join(str(member) for member in edge)
    return " and ".join(f"{count} x {role}" for role, count in counts.items())


def domains_text(level: Level, count: int) -> str:
    """A count of domains as a phrase: `1 rack`, `4 racks`, `2 power:feeds`."""
    return f"{count} {level}" if count == 1 else f"{count} {level}s"


def members_without_domain(edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
    """One violation for each member whose host is in no domain of the level."""
    for member, domain in zip(edge, placement.domains(edge, level), strict=True):
        if domain < 0:
            yield Violation((member,), f"{member} stands in no {level}", named=False)


def hosts_with_domain(
    edge: Edge, fleet: PolicyView, level: Level, *, name: str, weight: int | None
) -> Iterator[OnlyOn]:
    """Restrict the members to hosts in a domain of the level; nothing if all hosts are in one."""
    outside = fleet.hosts_without_domain(level)
    if outside:
        hosts = frozenset(range(fleet.host_count)) - outside
        yield OnlyOn(policy=name, members=edge, weight=weight, hosts=hosts)
