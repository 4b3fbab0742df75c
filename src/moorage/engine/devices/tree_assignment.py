"""Exact search for assignments of one host's devices to the members on it.

Slots are assigned in order, member by member, those with the fewest providers first. Of
interchangeable providers with equal use only one is tried. A partial assignment that has been
searched is not entered again: it is recorded by what has been allocated, with interchangeable
providers counting as equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUDGET: Final = 20_000
"""Slots assigned in one search at most."""

Assignment: TypeAlias = "tuple[tuple[int, ...], ...]"
"""Per member, per slot: the position of its provider."""


class BudgetExceeded(Exception):
    """The search used up its `BUDGET` without an answer or a proof."""


@dataclass(frozen=True, slots=True)
class PatternSlot:
    """One slot in a pattern; `amounts` are (class number, amount)."""

    amounts: tuple[tuple[int, int], ...]
    providers: tuple[int, ...]
    is_group: bool
    """Whether it is a request group, not one of the member's own resources."""


@dataclass(frozen=True, slots=True)
class RoleMembers:
    """Members of one role. Sets hold slot numbers; see `RoleRequirements`."""

    count: int
    slots: tuple[PatternSlot, ...]
    subtrees: tuple[frozenset[int], ...]
    beside: frozenset[int]
    own: frozenset[int]
    traits_met: tuple[tuple[bool, ...], ...]
    """Per required trait set, per position: whether the provider has any of its traits."""
    isolate: bool


@dataclass(frozen=True)
class Pattern:
    """One host's tree with its sharing providers, by position, and the members to serve."""

    free: tuple[tuple[int, ...], ...]
    """[m][class] what is free."""
    max_amount: tuple[tuple[int, ...], ...]
    """[m][class] what one member may take."""
    parent: tuple[int, ...]
    """[m] position of the parent, or -1."""
    lender: tuple[int, ...]
    """[m] -1 for a provider of the tree itself; otherwise the number of the sharing provider."""
    roles: tuple[RoleMembers, ...]

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """[m] bits of the provider and its ancestors."""
        found = []
        for start in range(len(self.parent)):
            mask, at = 0, start
            while at >= 0:
                mask |= 1 << at
                at = self.parent[at]
            found.append(mask)
        return tuple(found)

    @cached_property
    def interchangeable(self) -> tuple[int, ...]:
        """[m] class number; providers of one class are equal and have no descendants."""
        inner = set(self.parent)
        numbers: dict[object, int] = {}
        found = []
        for at in range(len(self.parent)):
            features = (
                self.free[at],
                self.max_amount[at],
                self.parent[at],
                self.lender[at],
                tuple(at in slot.providers for role in self.roles for slot in role.slots),
                tuple(one[at] for role in self.roles for one in role.traits_met),
            )
            key: object = at if at in inner else features
            found.append(numbers.setdefault(key, len(numbers)))
        return tuple(found)


def assignments(pattern: Pattern) -> tuple[tuple[tuple[int, ...], Assignment], ...]:
    """Assignments that serve all members, one for each amount taken from sharing providers.

    Returns:
        Pairs of what is taken (per sharing position and class, flat) and the assignment. Empty if
        the members cannot be served; one pair if an assignment without sharing providers exists;
        otherwise all pairs whose amounts are not dominated by another's.

    Raises:
        BudgetExceeded: the search used up its `BUDGET`.
    """
    lenders = [at for at, number in enumerate(pattern.lender) if number >= 0]
    found: dict[tuple[int, ...], Assignment] = {}
    for taken, picks in _Search(pattern).run():
        borrowed = tuple(amount for at in lenders for amount in taken[at])
        found.setdefault(borrowed, picks)
        if not any(borrowed):
            # An assignment without sharing providers dominates all others.
            return ((borrowed, picks),)
    return tuple(
        (borrowed, picks) for borrowed, picks in found.items() if not _dominated(borrowed, found)
    )


def _dominated(borrowed: tuple[int, ...], others: dict[tuple[int, ...], Assignment]) -> bool:
    return any(
        other != borrowed and all(a <= b for a, b in zip(other, borrowed, strict=True))
        for other in others
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One slot of one member, in search order."""

    role: int
    member: int
    number: int
    start: int
    """The first step of the member."""


class _Search:
    """One search; its steps are the slots of all members in order."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._steps = tuple(_steps(pattern.roles))
        classes = len(pattern.free[0]) if pattern.free else 0
        self._taken = [[0] * classes for _ in pattern.free]
        self._picks: list[int] = []
        self._closed: list[set[object]] = [set() for _ in self._steps]
        """[step] states that have been searched completely."""
        self._left = BUDGET

    def run(self) -> Iterator[tuple[list[list[int]], Assignment]]:
        """Yield what is taken, and the assignment, for every distinguishable assignment."""
        if not self._steps:
            yield self._taken, self._assignment()
            return
        if not _enough_capacity(self._pattern):
            return
        open_ways = [self._candidates(0)]
        while open_ways:
            depth = len(open_ways) - 1
            provider = next(open_ways[-1], None)
            if provider is None:
                open_ways.pop()
                self._closed[depth].add(self._state(depth))
                if depth:
                    self._undo()
                continue
            self._assign(provider)
            if depth + 1 == len(self._steps):
                yield self._taken, self._assignment()
                self._undo()
            elif self._closed[depth + 1] and self._state(depth + 1) in self._closed[depth + 1]:
                self._undo()
            else:
                open_ways.append(self._candidates(depth + 1))

    def _assign(self, provider: int) -> None:
        step = self._steps[len(self._picks)]
        for k, amount in self._slot(step).amounts:
            self._taken[provider][k] += amount
        self._picks.append(provider)

    def _undo(self) -> None:
        provider = self._picks.pop()
        for k, amount in self._slot(self._steps[len(self._picks)]).amounts:
            self._taken[provider][k] -= amount

    def _slot(self, step: _Step) -> PatternSlot:
        return self._pattern.roles[step.role].slots[step.number]

    def _candidates(self, depth: int) -> Iterator[int]:
        """Providers that may serve the step; of interchangeable ones only the first."""
        step, tried = self._steps[depth], set()
        mine = self._member_slots(depth)
        for provider in self._slot(step).providers:
            mark = (
                self._pattern.interchangeable[provider],
                *self._taken[provider],
                *mine.get(provider, ()),
            )
            if mark not in tried:
                tried.add(mark)
                if self._admits(step, provider, mine):
                    self._left -= 1
                    if self._left < 0:
                        raise BudgetExceeded
                    yield provider

    def _member_slots(self, depth: int) -> dict[int, tuple[int, ...]]:
        """Provider -> slots of this step's member that are assigned to it already."""
        found: dict[int, tuple[int, ...]] = {}
        for at in range(self._steps[depth].start, depth):
            provider = self._picks[at]
            found[provider] = (*found.get(provider, ()), self._steps[at].number)
        return found

    def _state(self, depth: int) -> object:
        """What has been allocated; interchangeable providers with equal use count as equal."""
        mine = self._member_slots(depth)
        return tuple(
            sorted(
                (
                    self._pattern.interchangeable[at],
                    tuple(self._taken[at]),
                    tuple(sorted(mine.get(at, ()))),
                )
                for at in set(self._picks)
            )
        )

    # --- the rules ------------------------------------------------------------------------

    def _admits(self, step: _Step, provider: int, mine: dict[int, tuple[int, ...]]) -> bool:
        role = self._pattern.roles[step.role]
        slot = role.slots[step.number]
        given = mine.get(provider, ())
        room, most, taken = (
            self._pattern.free[provider],
            self._pattern.max_amount[provider],
            self._taken[provider],
        )
        for k, amount in slot.amounts:
            own = sum(a for n in given for c, a in role.slots[n].amounts if c == k)
            if taken[k] + amount > room[k] or own + amount > most[k]:
                return False
        if role.isolate and slot.is_group and any(role.slots[n].is_group for n in given):
            return False
        chosen = {n: at for at, numbers in mine.items() for n in numbers} | {step.number: provider}
        return (
            all(
                self._one_subtree(role, names, chosen)
                for names in role.subtrees
                if step.number in names
            )
            and self._beside(role, chosen)
            and self._traits_covered(role, chosen)
        )

    def _one_subtree(
        self, role: RoleMembers, names: frozenset[int], chosen: dict[int, int]
    ) -> bool:
        """Whether some provider is, or may become, the common ancestor of all chosen ones."""
        tops, able = -1, 0
        for number in names:
            if number in chosen:
                tops &= self._pattern.ancestors[chosen[number]]
                able |= 1 << chosen[number]
            else:
                for provider in role.slots[number].providers:
                    able |= 1 << provider
        return bool(tops & able)

    def _beside(self, role: RoleMembers, chosen: dict[int, int]) -> bool:
        """Whether `beside` holds; judged once all slots concerned are assigned.

        A provider of own resources that is an ancestor of another one is ignored: what the root
        provides does not say where in the tree the member is.
        """
        if not role.beside or not role.beside | role.own <= chosen.keys():
            return True
        above = self._pattern.ancestors
        own = {chosen[n] for n in role.own if self._pattern.lender[chosen[n]] < 0}
        low = {at for at in own if not any(one != at and above[one] >> at & 1 for one in own)}
        tops, able = -1, 0
        for at in low | {chosen[n] for n in role.beside}:
            tops &= above[at]
            able |= 1 << at
        return bool(tops & able)

    def _traits_covered(self, role: RoleMembers, chosen: dict[int, int]) -> bool:
        """Whether the providers of the own resources together meet every required trait set."""
        if not role.traits_met or not role.own <= chosen.keys():
            return True
        return all(any(one[chosen[n]] for n in role.own) for one in role.traits_met)

    def _assignment(self) -> Assignment:
        found = [[[0] * len(role.slots) for _ in range(role.count)] for role in self._pattern.roles]
        for step, provider in zip(self._steps, self._picks, strict=True):
            found[step.role][step.member][step.number] = provider
        return tuple(tuple(member) for role in found for member in role)


def _steps(roles: Sequence[RoleMembers]) -> Iterator[_Step]:
    """Roles with few providers first, and within a member slots with few providers first."""
    start = 0
    for number in sorted(range(len(roles)), key=lambda n: _min_providers(roles[n])):
        sizes = [(len(one.providers), n) for n, one in enumerate(roles[number].slots)]
        order = [n for _, n in sorted(sizes)]
        for member in range(roles[number].count):
            for one in order:
                yield _Step(number, member, one, start)
            start += len(order)


def _min_providers(role: RoleMembers) -> int:
    return min((len(slot.providers) for slot in role.slots), default=0)


def _enough_capacity(pattern: Pattern) -> bool:
    """Whether, per class, each set of providers has what the slots limited to it request."""
    demand: dict[tuple[int, tuple[int, ...]], int] = {}
    for role in pattern.roles:
        for slot in role.slots:
            for k, amount in slot.amounts:
                key = (k, tuple(sorted(slot.providers)))
                demand[key] = demand.get(key, 0) + role.count * amount
    return all(
        sum(pattern.free[at][k] for at in providers)
        >= sum(n for (c, few), n in demand.items() if c == k and set(few) <= set(providers))
        for k, providers in demand
    )
