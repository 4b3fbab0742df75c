"""Backtracking search for a placement on an ideal fleet that satisfies given primitives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    NeverOn,
    OnlyOn,
    SameDomain,
    Sided,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.policies.ideal_fleet import IdealFleet
    from moorage.policies.primitives import Primitive

MAX_STEPS: Final = 8_000
"""Hosts tried before giving up."""


class BudgetExceeded(Exception):
    """The search used up `MAX_STEPS` without an answer."""


@dataclass
class _ConstraintState:
    """The search state of one primitive: its placed members, counted per domain."""

    primitive: Primitive
    column: Sequence[int]
    remaining: int
    """Members that are not placed; of a `Near` the others."""
    counts: dict[int, int] = field(default_factory=dict)
    others: dict[int, int] = field(default_factory=dict)

    def update(self, domain: int, *, as_other: bool, step: int) -> None:
        """Add a member to a domain (`step` 1) or remove it (-1)."""
        counts = self.others if as_other else self.counts
        counts[domain] = counts.get(domain, 0) + step
        if not counts[domain]:
            del counts[domain]
        if as_other is isinstance(self.primitive, Near):
            self.remaining -= step

    def infeasible(self) -> bool:
        """Whether no placement of the remaining members can satisfy the primitive."""
        infeasible = False  # OnlyOn, NeverOn name hosts of a real fleet
        match self.primitive:
            case AtMost(limit=limit):
                infeasible = any(count > limit for count in self.counts.values())
            case AtMostTogether(limit=limit, domains=domains):
                fullest = sorted(self.counts.values(), reverse=True)[:domains]
                infeasible = sum(fullest) > limit
            case AtLeastDomains(limit=limit):
                infeasible = len(self.counts) + self.remaining < limit
            case SameDomain():
                infeasible = len(self.counts) > 1
            case Skew(limit=limit, domains=eligible):
                most = max(self.counts.values(), default=0)
                missing = sum(max(0, most - limit - self.counts.get(d, 0)) for d in eligible)
                infeasible = missing > self.remaining
            case Apart():
                infeasible = not self.counts.keys().isdisjoint(self.others)
            case Near():
                infeasible = len(self.counts.keys() - self.others.keys()) > self.remaining
        return infeasible


def search(
    fleet: IdealFleet, members: Sequence[MemberName], primitives: Sequence[Primitive]
) -> Mapping[MemberName, int] | None:
    """A placement that satisfies all primitives, or None if there is none.

    Raises:
        BudgetExceeded: neither was found within `MAX_STEPS` steps.
    """
    states = [
        _ConstraintState(
            one,
            fleet.domains(one.level),
            len(one.others if isinstance(one, Near) else one.members),
        )
        for one in primitives
        if not isinstance(one, OnlyOn | NeverOn)
    ]
    if any(state.infeasible() for state in states):
        return None
    return _Search(fleet, _search_order(members, states), states).run()


def _search_order(
    members: Sequence[MemberName], states: Sequence[_ConstraintState]
) -> list[MemberName]:
    """An order in which members that must share a domain follow one another."""
    together: dict[MemberName, list[MemberName]] = {}
    for state in states:
        if isinstance(state.primitive, SameDomain):
            for member in state.primitive.members:
                together.setdefault(member, []).extend(state.primitive.members)
    found: dict[MemberName, None] = {}
    for member in sorted(members):
        waiting = [member]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = None
                waiting += reversed(together.get(one, []))
    return list(found)


class _Search:
    """One depth-first search."""

    def __init__(
        self, fleet: IdealFleet, order: Sequence[MemberName], states: Sequence[_ConstraintState]
    ) -> None:
        self._fleet = fleet
        self._order = order
        self._hosts: dict[MemberName, int] = {}
        self._on: dict[int, int] = {}
        """Host -> members on it."""
        self._left = MAX_STEPS
        self._of: dict[MemberName, list[tuple[_ConstraintState, bool]]] = {
            member: [] for member in order
        }
        for state in states:
            for member in state.primitive.members:
                self._of[member].append((state, False))
            if isinstance(state.primitive, Sided):
                for member in state.primitive.others:
                    self._of[member].append((state, True))

    def run(self) -> Mapping[MemberName, int] | None:
        """Search depth first, without recursion: ensembles may be larger than the stack."""
        choices: list[Iterator[int]] = []
        while len(self._hosts) < len(self._order):
            if len(choices) == len(self._hosts):
                choices.append(self._candidates(self._order[len(self._hosts)]))
            if not self._advance(choices[-1]):
                choices.pop()
                if not choices:
                    return None
                self._undo(self._order[len(choices) - 1])
        return self._hosts

    def _advance(self, candidates: Iterator[int]) -> bool:
        member = self._order[len(self._hosts)]
        for host in candidates:
            self._left -= 1
            if self._left < 0:
                raise BudgetExceeded
            self._assign(member, host)
            if not any(state.infeasible() for state, _ in self._of[member]):
                return True
            self._undo(member)
        return False

    def _assign(self, member: MemberName, host: int) -> None:
        self._hosts[member] = host
        self._on[host] = self._on.get(host, 0) + 1
        for state, as_other in self._of[member]:
            state.update(state.column[host], as_other=as_other, step=1)

    def _undo(self, member: MemberName) -> None:
        host = self._hosts.pop(member)
        self._on[host] -= 1
        if not self._on[host]:
            del self._on[host]
        for state, as_other in self._of[member]:
            state.update(state.column[host], as_other=as_other, step=-1)

    def _candidates(self, member: MemberName) -> Iterator[int]:
        """Hosts to try: one of each set of equivalent hosts, the least used first."""
        leaves = self._fleet.leaf_count
        used: dict[int, list[int]] = {}
        for host in self._on:
            used.setdefault(host % leaves, []).append(host)
        fresh = self._fresh_leaves(set(used))
        rows = [row for leaf in used for row in used[leaf]]
        for leaf, hosts in used.items():
            rows += self._first_free(leaf, hosts)
        mine = [state for state, as_other in self._of[member] if not as_other]

        def load(host: int) -> tuple[int, int, int]:
            crowd = sum(state.counts.get(state.column[host], 0) for state in mine)
            return (crowd, self._on.get(host, 0), host)

        yield from sorted([*rows, *fresh], key=load)

    def _first_free(self, leaf: int, hosts: Sequence[int]) -> list[int]:
        taken = set(hosts)
        leaves = self._fleet.leaf_count
        rows = range(leaf, self._fleet.host_count, leaves)
        return [next(row for row in rows if row not in taken)] if len(taken) < len(rows) else []

    def _fresh_leaves(self, used: set[int]) -> list[int]:
        """The first host of one unused leaf for each combination of the domains above it."""
        found: dict[tuple[object, ...], int] = {}
        touched = {
            (level, self._fleet.domains(level)[leaf]) for leaf in used for level in self._above
        }
        for leaf in range(self._fleet.leaf_count):
            if leaf in used:
                continue
            place = tuple(
                domain if (level, domain) in touched else None
                for level in self._above
                for domain in (self._fleet.domains(level)[leaf],)
            )
            found.setdefault(place, leaf)
        return list(found.values())

    @property
    def _above(self) -> list[Level]:
        return list(self._fleet.counts)
