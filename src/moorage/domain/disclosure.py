"""What tenants may see of the fleet and of others: rounded counts and instants, few names.

Of an ensemble of several projects each one sees its own members; see `as_seen_by`.

One rule for each, in every answer: a count is the largest of a series that it reaches, so it
is never more than there is; an instant that comes from another consumer is a multiple of a grid,
beginnings rounded down and ends up, so that what is busy never looks free. A tenant's own numbers
and instants are exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.actors import Actor
from moorage.domain.ensembles import Role
from moorage.domain.period import FOREVER, HOUR
from moorage.domain.topology import HOST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant
    from moorage.domain.topology import Topology

COUNTS: Final = (
    *(0, 1, 2, 3, 4, 5, 8, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000),
)
"""The series by default."""
HOST_PROPERTIES: Final = frozenset(
    {"vcpus", "memory_mb", "local_gb", "availability_zone", "hypervisor_type"}
)
"""Properties by default that every host has and that name no single one."""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """How much of the fleet tenants may see."""

    counts: tuple[int, ...] = COUNTS
    """Ascending, from 0."""
    times: Duration = HOUR
    """The grid of instants."""
    levels: frozenset[str] = frozenset({"zone"})
    """Levels whose domains tenants may name; never hosts."""
    host_properties: frozenset[str] = HOST_PROPERTIES
    """What tenants may ask of a host, beside what operators have added to hosts for all to see."""
    exact: bool = False
    """Whether counts and instants are exact: for operators."""

    def count(self, number: int) -> int:
        """A count, rounded down to the series."""
        if self.exact:
            return number
        return self.counts[max(bisect_right(self.counts, number) - 1, 0)]

    def count_text(self, number: int) -> str:
        """The rounded count as text: `0`, `5+`."""
        told = self.count(number)
        return str(told) if self.exact or not told else f"{told}+"

    def whole(self, number: int) -> bool:
        """Whether the rounded count stands for this count only."""
        if self.exact:
            return True
        at = bisect_left(self.counts, number)
        following = self.counts[at + 1 : at + 2]
        return self.counts[at : at + 1] == (number,) and following == (number + 1,)

    def since(self, at: Instant) -> Instant:
        """The start of another consumer's time, rounded down."""
        return at if self.exact else at - at % self.times

    def until(self, at: Instant) -> Instant:
        """The end of another consumer's time, rounded up."""
        return at if self.exact or at == FOREVER else -(-at // self.times) * self.times

    def sizes(self, most: int) -> Sequence[int]:
        """Ascending from 0, the member counts that a change may propose below `most`."""
        return range(most) if self.exact else [one for one in self.counts if one < most]

    def changed(self, before: object, after: object) -> object:
        """The value that a proposed change shows: rounded away from the present value.

        None: there is none. Only numbers are rounded.
        """
        plain = type(before) is int and type(after) is int
        if self.exact or not plain:
            return after
        assert isinstance(before, int) and isinstance(after, int), "checked"  # noqa: PT018
        return on_series(after, before, self.counts)

    def names_of(self, topology: Topology) -> frozenset[str]:
        """Names of the domains that tenants may name."""
        return frozenset(
            name for (_, name), one in topology.domains.items() if self.may_name(one.level)
        )

    def may_name(self, level: str) -> bool:
        """Whether tenants may name the domains of a level."""
        return level in self.levels and level != HOST

    def words(self) -> str:
        """The levels in a message: `zone or rack`."""
        return " or ".join(sorted(self.levels - {HOST})) or "domain"


EXACT: Final = Disclosure(exact=True)
"""Nothing rounded: for operators."""

ZONE: Final = "zone"
"""The level whose domains texts name to everybody: availability zones are public."""
PLACES: Final = "the places it names"


def said_names(topology: Topology, names: Iterable[str]) -> str:
    """The names in a policy for a text that tenants read too: zones by name, others not.

    A policy's author knows what it names; other tenants must not learn of racks and hosts by it.
    """
    zones = {name for (_, name), one in topology.domains.items() if one.level == ZONE}
    names = sorted(names)
    others = [name for name in names if name not in zones]
    return ", ".join((*(name for name in names if name in zones), *([PLACES] if others else [])))


def actor_seen_by(actor: Actor, project_id: str) -> Actor:
    """An actor as a tenant of a project may see it: of others only whether it is an operator."""
    if actor.user_id is None or actor.project_id == project_id:
        return actor
    return Actor("operator" if actor.operator else "another project")


def as_seen_by(ensemble: Ensemble, project_id: str) -> Ensemble:
    """The ensemble as one of its projects may see it.

    The project that owns it does not see other projects' servers. Another one sees its own roles
    whole, with the policies that bind their members; of the others only names, kinds and how many
    members there are.
    """
    if not ensemble.shared_roles:
        return ensemble
    own = {one.name for one in ensemble.roles if ensemble.project_of(one.name) == project_id}
    seen = replace(
        ensemble,
        members=tuple(
            one if one.name.role in own else replace(one, server_id=None, migration=None)
            for one in ensemble.members
        ),
    )
    if project_id == ensemble.project_id:
        return seen
    return replace(
        seen,
        user_id="",
        roles=tuple(
            one if one.name in own else Role(one.name, MappingProxyType({}), one.kind)
            for one in ensemble.roles
        ),
        policies=tuple(
            one
            for one in ensemble.policies
            if any(member.role in own for edge in ensemble.edges(one) for member in edge)
        ),
        metadata=MappingProxyType({}),
        digest="",
        additions=(),
        template=None,
        paths=None,
        scaling=MappingProxyType({}),
        headroom=(),
        size_changes=(),
        references=MappingProxyType({}),
    )


def on_series(number: int, before: int, series: Iterable[int]) -> int | None:
    """The nearest value of a series that is at least as far from `before` as the number.

    None: there is none on its side.
    """
    if number > before:
        return min((one for one in series if one >= number), default=None)
    return max((one for one in series if one <= number), default=None)
