"""The scope of a capacity query (period, hosts, member size), and what the caller may see of it.

Operators see exact numbers. A tenant sees a count rounded down to a bucket, so it is never more
than fits, and the busy share rounded up to eighths.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import Forbidden, InvalidDescription, UnknownName
from moorage.domain.nova.server_request import each_required
from moorage.domain.period import DAY, Period, format_instant, from_now_on
from moorage.domain.topology import HOST, Level, unknown_level
from moorage.engine.capacity.capacity_over_time import hosts_where, sharing_roots_of
from moorage.engine.state.host_states import host_states
from moorage.usecases.shared.limits import too_long
from moorage.usecases.shared.role_resolution import known_flavor, names_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.period import Duration, Instant
    from moorage.domain.resources import Amounts, Trait
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

    Bools: TypeAlias = NDArray[np.bool_]


EIGHTHS = 8
WHOLE = 10_000
"""The unit of shares: ten-thousandths."""


@dataclass(frozen=True, slots=True)
class CapacityDisclosure:
    """How exactly a caller sees capacity numbers."""

    exact: bool
    disclosure: Disclosure

    @property
    def instants(self) -> Disclosure:
        """How exactly instants are disclosed to the caller."""
        return replace(self.disclosure, exact=self.exact)

    def count(self, number: int) -> int:
        """The count that the caller sees."""
        return number if self.exact else self.disclosure.count(number)

    def whole(self, number: int) -> bool:
        """Whether the count that the caller sees is exact."""
        return self.exact or self.disclosure.whole(number)

    def busy(self, share: int) -> float:
        """The busy share that the caller sees, from ten-thousandths."""
        return share / WHOLE if self.exact else -(-share * EIGHTHS // WHOLE) / EIGHTHS


ZONE: Final = "zone"
"""The level whose domains tenants may name."""
MOST_HOSTS: Final = 200
"""Most hosts that are listed one by one."""
AHEAD: Final = 30 * DAY
"""The default length of a query's period."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The period, hosts and member size of a query."""

    since: Instant | None = None
    """None: now; a start in the past counts as now."""
    until: Instant | None = None
    """None: `AHEAD` after the start."""
    zone: str | None = None
    """The name of a domain."""
    flavor: str | None = None
    resources: Amounts = field(default_factory=lambda: MappingProxyType({}))
    required: tuple[frozenset[Trait], ...] = ()
    forbidden: frozenset[Trait] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class HostGroup:
    """A group of hosts: those of one domain, or all hosts of the query.

    The groups of a query have no host and no pool in common.
    """

    domain: str | None
    hosts: Bools
    """[P] root rows."""
    pools: Bools
    """[P] root rows of sharing providers whose capacity counts here."""
    shared_by: tuple[str, ...] = ()
    """The domains whose hosts use the pools, if the group is of pools that several domains use."""


@dataclass(frozen=True, slots=True)
class MemberSize:
    """The amounts of one member, and the traits that its host must have or lack."""

    resources: Amounts
    required: tuple[frozenset[Trait], ...]
    forbidden: frozenset[Trait]


def window_of(env: UseCaseEnvironment, scope: Scope, now: Instant) -> Period:
    """The period of the query.

    Raises:
        InvalidDescription: the period is over, or ends before it begins.
        LimitExceeded: the period ends beyond the horizon of leases.
    """
    start = from_now_on(scope.since, now)
    end = start + AHEAD if scope.until is None else scope.until
    if end <= start:
        raise InvalidDescription(
            f"the period must end after its start, {format_instant(start)}", path="to"
        )
    horizon = env.limits.horizon
    if end - now > horizon:
        raise too_long(
            "capacity is told ahead of now", "lease_horizon", limit=horizon, requested=end - now
        )
    return Period(start, end)


def size_of(env: UseCaseEnvironment, caller: Caller, scope: Scope) -> MemberSize:
    """The size of a query: a flavor, with amounts that replace or extend its own.

    Raises:
        NotFound: no such flavor. UnknownName: no such resource class or trait.
    """
    known = names_for(env.store, caller)
    known.check_classes(frozenset(scope.resources), "resources")
    known.check_traits(scope.forbidden.union(*scope.required), "required")
    if scope.flavor is None:
        return MemberSize(scope.resources, scope.required, scope.forbidden)
    flavor = known_flavor(env.store, scope.flavor)
    return MemberSize(
        MappingProxyType({**flavor.whole, **scope.resources}),
        (*flavor.required, *each_required(flavor.root_required), *scope.required),
        flavor.forbidden | scope.forbidden,
    )


def hosts_of(snapshot: Snapshot, caller: Caller, scope: Scope, size: MemberSize) -> Bools:
    """[P] The hosts of the query: in its domain, with its traits, and not closed.

    A host that is away counts: its capacity says when.

    Raises:
        UnknownName: there is no such domain, or the caller may not name it.
    """
    within = None if scope.zone is None else _domain(snapshot, caller, scope.zone)
    found = hosts_where(snapshot, required=size.required, forbidden=size.forbidden, within=within)
    return found & ~host_states(snapshot).lasting


def parts_by(
    snapshot: Snapshot, caller: Caller, hosts: Bools, level: str | None, zone: str | None
) -> tuple[HostGroup, ...]:
    """The hosts grouped by the domains of a level, and the pools that they use; else one group.

    A pool counts in the domain where it is, without one in the only domain that uses it; pools
    that several domains use are a group of their own, the last one.

    Raises:
        UnknownName: no tree has such a level.
        InvalidDescription: there are too many hosts to list one by one.
        Forbidden: a tenant named another level than zone.
    """
    pools = _pools_of(snapshot, caller, hosts, zone)
    if level is None:
        return (HostGroup(zone, hosts, pools),)
    if not caller.operator and level != ZONE:
        raise Forbidden("only operators see capacity by other levels than zone")
    if level == HOST:
        return _with_used(snapshot, _each(snapshot, hosts), pools)
    levels = {one.name: one for one in reversed(list(_levels(snapshot, caller)))}
    found = levels.get(level)
    if found is None:
        raise unknown_level(level, (*levels, HOST), path="by")
    numbers, names = snapshot.domains(found), snapshot.domain_names(found)
    every = (
        HostGroup(name, hosts & (numbers == n), pools & (numbers == n))
        for n, name in enumerate(names)
    )
    there = sorted(
        (one for one in every if (one.hosts | one.pools).any()), key=lambda one: str(one.domain)
    )
    return _with_used(snapshot, there, pools & (numbers < 0))


def _pools_of(snapshot: Snapshot, caller: Caller, hosts: Bools, zone: str | None) -> Bools:
    """[P] The pools that these hosts use; of a domain's hosts, none that is in another one."""
    pools = sharing_roots_of(snapshot, hosts)
    for level in _levels(snapshot, caller):
        names, numbers = snapshot.domain_names(level), snapshot.domains(level)
        if zone in names:
            pools &= (numbers < 0) | (numbers == names.index(zone))
    return pools


def _with_used(
    snapshot: Snapshot, groups: Sequence[HostGroup], pools: Bools
) -> tuple[HostGroup, ...]:
    """The groups with those of the pools that only one of them uses, and a group of the others."""
    used = [pools & sharing_roots_of(snapshot, one.hosts) for one in groups]
    several: Bools = np.add.reduce(used, axis=0, dtype=np.int64) > 1
    found = tuple(
        replace(one, pools=one.pools | (mine & ~several))
        for one, mine in zip(groups, used, strict=True)
    )
    if not several.any():
        return found
    users = (
        str(one.domain) for one, mine in zip(groups, used, strict=True) if (mine & several).any()
    )
    return (*found, HostGroup(None, np.zeros_like(pools), several, tuple(users)))


def _each(snapshot: Snapshot, hosts: Bools) -> tuple[HostGroup, ...]:
    rows = np.flatnonzero(hosts).tolist()
    if len(rows) > MOST_HOSTS:
        raise InvalidDescription(
            f"that is {len(rows)} hosts; at most {MOST_HOSTS} are told one by one: give a zone or"
            " another domain",
            path="by",
        )
    found = []
    for row in sorted(rows, key=lambda row: snapshot.names[row]):
        alone = np.zeros(len(hosts), dtype=np.bool_)
        alone[row] = True
        found.append(HostGroup(snapshot.names[row], alone, np.zeros_like(alone)))
    return tuple(found)


def grid(window: Period, step: Duration, most: int) -> NDArray[np.int64]:
    """The starts of the steps in a window; the last step may be shorter.

    Raises:
        InvalidDescription: there are more than `most`.
    """
    count = -(-(window.end - window.start) // step)
    if count > most:
        raise InvalidDescription(
            f"the period has {count} steps, more than {most}: give a longer step", path="step"
        )
    return window.start + step * np.arange(count, dtype=np.int64)


def check_domain(snapshot: Snapshot, caller: Caller, name: str, path: str) -> None:
    """Check that a domain exists and that the caller may name it.

    Raises:
        UnknownName: there is no such domain.
    """
    _domain(snapshot, caller, name, path)


def _domain(snapshot: Snapshot, caller: Caller, name: str, path: str = "zone") -> Bools:
    found = np.zeros(len(snapshot.alive), dtype=np.bool_)
    known: set[str] = set()
    for level in _levels(snapshot, caller):
        names = snapshot.domain_names(level)
        known.update(names)
        if name in names:
            found |= snapshot.domains(level) == names.index(name)
    if name not in known:
        raise UnknownName("domain", name, path=path, known=known)
    return found


def _levels(snapshot: Snapshot, caller: Caller) -> Iterator[Level]:
    """The levels whose domains the caller may name."""
    for tree, names in snapshot.topology.levels.items():
        above = (name for name in names if name != HOST)
        yield from (Level(tree, name) for name in above if caller.operator or name == ZONE)
