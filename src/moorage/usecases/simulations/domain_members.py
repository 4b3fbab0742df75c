"""Where all members are, by domain, and which sets of them a loss leaves too small."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import LimitExceeded
from moorage.domain.topology import HOST
from moorage.engine.capacity.survivability import DomainCounts
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import consumer_of, host_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

    Bools: TypeAlias = NDArray[np.bool_]

MOST_PAIRED: Final = 1_000
"""Domains of a level of which every two are considered."""
LISTED: Final = 100
"""Losses that are looked at if every two domains are considered: the worst."""
_AT_ONCE: Final = 200
"""Ensembles that are read together."""


@dataclass(frozen=True, slots=True)
class SetLeft:
    """The members of a role, or of an edge of a policy, of which too few are left."""

    role: str | None
    policy: str | None
    total: int
    """Members in service before the loss."""
    left: int
    needed: int


@dataclass(frozen=True, slots=True)
class LostDomains:
    """A loss of domains, and the sets of members that are too small after it."""

    domains: tuple[int, ...]
    sets: dict[int, int] = field(default_factory=dict)
    """Number of the set -> how many are left."""


class DomainMembers:
    """Where all members in service are, and which sets of them must not become too small."""

    def __init__(self, store: Store, snapshot: Snapshot, level: Level, lose: int) -> None:
        self.store = store
        self.snapshot = snapshot
        self.level = level
        self.lose = lose
        self.numbers = snapshot.domains_of_hosts(level).astype(np.int64)
        """[P] domain of each provider, or -1."""
        self.numbers[~snapshot.fleet] = -1
        self.ensembles: list[Ensemble] = []
        self.placed: list[Mapping[MemberName, int]] = []
        """Of each ensemble: member in service -> row of its host."""
        self._sets: list[tuple[int, str | None, str | None]] = []
        """Of each set: the ensemble, and the role or the policy."""
        self._count()

    def _count(self) -> None:
        set_of: list[int] = []
        rows: list[int] = []
        needed: list[int] = []
        for ensemble, placed in self._read():
            number = len(self.ensembles)
            self.ensembles.append(ensemble)
            self.placed.append(placed)
            for role, policy, members, least in _sets(ensemble, placed, self.level, self.lose):
                set_of += [len(needed)] * len(members)
                rows += [placed[name] for name in members]
                needed.append(least)
                self._sets.append((number, role, policy))
        domain_of = self.numbers[np.array(rows, dtype=np.int64)]
        self.counts = DomainCounts(
            np.array(set_of, dtype=np.int64),
            domain_of,
            np.array(needed, dtype=np.int64),
            int(self.numbers.max(initial=-1)) + 1,
        )
        self._members = [
            (number, int(self.numbers[row]))
            for number, placed in enumerate(self.placed)
            for row in placed.values()
        ]

    def _read(self) -> Iterator[tuple[Ensemble, Mapping[MemberName, int]]]:
        """The ensembles with members in service, and the locations of these."""
        records, snapshot = self.store.compliance, self.snapshot
        in_service, at = host_states(snapshot).in_service, snapshot.locations.hosts
        ids = records.every_ensemble()
        for start in range(0, len(ids), _AT_ONCE):
            some = [one.ensemble for one in records.ensembles_by_id(ids[start : start + _AT_ONCE])]
            booked = snapshot.live_bookings(consumer_of(m) for one in some for m in one.members)
            for one in some:
                placed = {}
                for member in one.members:
                    bookings = booked.get(consumer_of(member))
                    if bookings:
                        host = host_row(snapshot, (snapshot.row_of[b.provider] for b in bookings))
                        if in_service[host] and at[host] >= 0:
                            placed[member.name] = int(at[host])
                if placed:
                    yield one, placed

    @property
    def already(self) -> int:
        """How many ensembles have too few members in service as it is."""
        return len({self._sets[one][0] for one in np.flatnonzero(self.counts.short).tolist()})

    def of_named(self, domains: tuple[int, ...]) -> list[LostDomains]:
        """The loss of these domains together, if it is fatal."""
        counts = self.counts
        stay = ~np.isin(counts.domain_of, domains)
        left = np.bincount(counts.set_of[stay], minlength=len(counts.needed))
        lost = np.flatnonzero((left < counts.needed) & ~counts.short & (left < counts.size))
        case = LostDomains(domains, {one: int(left[one]) for one in lost.tolist()})
        return [case] if case.sets else []

    def of_any(self) -> list[LostDomains]:
        """The fatal losses of one domain, those that concern most sets first."""
        alone: dict[int, dict[int, int]] = {}
        sets, domains, left = (some.tolist() for some in self.counts.lost_alone())
        for one, domain, number in zip(sets, domains, left, strict=True):
            alone.setdefault(domain, {})[one] = number
        losses = (LostDomains((domain,), found) for domain, found in alone.items())
        return sorted(losses, key=lambda one: (-len(one.sets), one.domains))

    def of_any_two(self) -> tuple[list[LostDomains], int]:
        """The worst of the fatal losses of two domains, and how many of these there are.

        Raises:
            LimitExceeded: there are too many domains to consider every two.
        """
        used = np.unique(self.numbers[self.numbers >= 0])
        if len(used) > MOST_PAIRED:
            raise LimitExceeded(
                "domains of the level, of which every two are considered; name two of them",
                limit=MOST_PAIRED,
                requested=len(used),
            )
        at = np.full(self.counts.domains, -1, dtype=np.int64)
        at[used] = np.arange(len(used))
        sets, domains, _ = self.counts.lost_alone()
        alone = np.bincount(at[domains], minlength=len(used))
        number = alone[:, None] + alone[None, :]
        fatal_in: dict[int, list[int]] = {}
        for one, domain in zip(sets.tolist(), at[domains].tolist(), strict=True):
            fatal_in.setdefault(one, []).append(domain)
        for some in fatal_in.values():
            number[np.ix_(some, some)] -= 1  # they are counted for both
        _, a, b, _ = self.counts.lost_together()
        np.add.at(number, (at[a], at[b]), 1)
        first, second = np.nonzero(np.triu(number, 1))
        worst = np.argsort(-number[first, second], kind="stable")[:LISTED]
        pairs = zip(used[first[worst]].tolist(), used[second[worst]].tolist(), strict=True)
        return [loss for pair in pairs for loss in self.of_named(pair)], len(first)

    def without_quorum(self, case: LostDomains) -> Iterator[tuple[int, tuple[SetLeft, ...]]]:
        """Numbers of the ensembles without quorum, those that miss most members first."""
        found: dict[int, list[SetLeft]] = {}
        for one, left in case.sets.items():
            number, role, policy = self._sets[one]
            size, needed = int(self.counts.size[one]), int(self.counts.needed[one])
            found.setdefault(number, []).append(SetLeft(role, policy, size, left, needed))

        def missing(number: int) -> tuple[int, int]:
            return -max(one.needed - one.left for one in found[number]), number

        for number in sorted(found, key=missing):
            yield number, tuple(found[number])

    def lost(self, number: int, hosts: Bools) -> frozenset[MemberName]:
        """The members of an ensemble that are lost with [P] these hosts."""
        return frozenset(name for name, row in self.placed[number].items() if hosts[row])

    def concerned(self, domains: Iterable[int]) -> tuple[int, int]:
        """How many members are in these domains, and of how many ensembles."""
        gone = set(domains)
        there = Counter(number for number, domain in self._members if domain in gone)
        return there.total(), len(there)

    def hosts(self, domains: Iterable[int]) -> Bools:
        """[P] the hosts in these domains."""
        found: Bools = np.isin(self.numbers, list(domains)) & (self.snapshot.parent < 0)
        return found & self.snapshot.alive


def _sets(
    ensemble: Ensemble, placed: Mapping[MemberName, int], level: Level, lose: int
) -> Iterator[tuple[str | None, str | None, list[MemberName], int]]:
    """The sets of members in service, with their role or policy, and how many are needed."""
    by_role: dict[str, list[MemberName]] = {}
    for name in placed:
        by_role.setdefault(name.role, []).append(name)
    for role in ensemble.roles:
        if role.name in by_role:
            yield role.name, None, by_role[role.name], max(1, role.min_available)
    for one in ensemble.policies:
        keep = one.parameters.get("keep")
        if (
            one.type == "survive"
            and one.required
            and isinstance(keep, int)
            and one.parameters.get("level", HOST) == level.name
            and one.parameters.get("tree", level.tree) == level.tree
            and _number(one.parameters.get("lose", 1)) >= lose
        ):
            for edge in ensemble.edges(one):
                members = [name for name in edge if name in placed]
                if members:
                    yield None, one.name, members, keep


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
