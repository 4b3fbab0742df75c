"""The rules that bind the slots of one candidate, each kept up to date while slots are filled.

Placement's (its API reference, "Allocation candidates"): groups may meet on a provider, their
amounts are then summed and judged against capacity and `max_unit`; the providers of the
unsuffixed group together have every required trait; `isolate` wants a provider of its own for
every suffixed group; in each `same_subtree` set one of the chosen providers is an ancestor of,
or is, all the others; before microversion 1.29 one provider per tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.engine.candidates.query_shape import Shape, Want
    from moorage.engine.candidates.tree_pattern import Terms


class Rule(Protocol):
    """One rule over a selection that is being made; depths count the slots in search order."""

    def binds(self, depth: int) -> bool:
        """Whether the slot at that depth has to do with it."""

    def admits(self, depth: int, giver: int) -> bool:
        """Whether a provider may fill the slot, so that the rest may still be filled."""

    def put(self, depth: int, giver: int) -> None:
        """The provider fills the slot."""

    def back(self, depth: int, giver: int) -> None:
        """It does no more; undoes the newest `put`."""

    def mark(self, giver: int) -> tuple[int, ...]:
        """What the rule remembers of one provider, always of one length."""

    def whole(self) -> int:
        """What it remembers beside."""


def rules(
    shape: Shape, terms: Terms, slots: Sequence[Want], givers: Sequence[Sequence[int]]
) -> Iterator[Rule]:
    """The rules that can bind at all, cheapest first."""
    if shape.isolate and sum(bool(slot.suffix) for slot in slots) > 1:
        yield _Apart(slots, terms.size)
    if shape.summed:
        yield _Sums(shape, terms, slots)
    if shape.required:
        yield _Cover(shape, terms, slots, givers)
    for names in shape.same_subtrees:
        yield _Family(names, terms, slots, givers)
    if shape.one_provider_per_tree:
        yield _OneHome(terms, slots)


class _Apart:
    """No provider for two suffixed groups."""

    def __init__(self, slots: Sequence[Want], size: int) -> None:
        self._suffixed = [bool(slot.suffix) for slot in slots]
        self._kept = [False] * size

    def binds(self, depth: int) -> bool:
        return self._suffixed[depth]

    def admits(self, _depth: int, giver: int) -> bool:
        return not self._kept[giver]

    def put(self, _depth: int, giver: int) -> None:
        self._kept[giver] = True

    def back(self, _depth: int, giver: int) -> None:
        self._kept[giver] = False

    def mark(self, giver: int) -> tuple[int, ...]:
        return (self._kept[giver],)

    def whole(self) -> int:
        return 0


class _Sums:
    """What slots take of one class together fits, and is at most the largest unit."""

    def __init__(self, shape: Shape, terms: Terms, slots: Sequence[Want]) -> None:
        number = {name: n for n, (name, _) in enumerate(shape.summed)}
        self._wants = [
            [(number[name], amount) for name, amount in slot.amounts if name in number]
            for slot in slots
        ]
        self._most = terms.most
        self._taken = [[0] * len(number) for _ in range(terms.size)]

    def binds(self, depth: int) -> bool:
        return bool(self._wants[depth])

    def admits(self, depth: int, giver: int) -> bool:
        taken, most = self._taken[giver], self._most[giver]
        return all(taken[of] + amount <= most[of] for of, amount in self._wants[depth])

    def put(self, depth: int, giver: int) -> None:
        taken = self._taken[giver]
        for of, amount in self._wants[depth]:
            taken[of] += amount

    def back(self, depth: int, giver: int) -> None:
        taken = self._taken[giver]
        for of, amount in self._wants[depth]:
            taken[of] -= amount

    def mark(self, giver: int) -> tuple[int, ...]:
        return tuple(self._taken[giver])

    def whole(self) -> int:
        return 0


class _Cover:
    """The unsuffixed group's providers together carry every required trait set."""

    def __init__(
        self,
        shape: Shape,
        terms: Terms,
        slots: Sequence[Want],
        givers: Sequence[Sequence[int]],
    ) -> None:
        self._full = (1 << shape.required) - 1
        self._carries = terms.carries
        self._bound = [not slot.suffix for slot in slots]
        self._later = [0] * (len(slots) + 1)
        for depth in reversed(range(len(slots))):
            more = 0
            for giver in givers[depth] if self._bound[depth] else ():
                more |= terms.carries[giver]
            self._later[depth] = self._later[depth + 1] | more
        self._covered = [0]

    def binds(self, depth: int) -> bool:
        return self._bound[depth]

    def admits(self, depth: int, giver: int) -> bool:
        able = self._covered[-1] | self._carries[giver] | self._later[depth + 1]
        return able == self._full

    def put(self, _depth: int, giver: int) -> None:
        self._covered.append(self._covered[-1] | self._carries[giver])

    def back(self, _depth: int, _giver: int) -> None:
        self._covered.pop()

    def mark(self, _giver: int) -> tuple[int, ...]:
        return ()

    def whole(self) -> int:
        return self._covered[-1]


class _Family:
    """One of the providers chosen for a `same_subtree` set is, or stands above, all of them."""

    def __init__(
        self,
        names: frozenset[str],
        terms: Terms,
        slots: Sequence[Want],
        givers: Sequence[Sequence[int]],
    ) -> None:
        self._above = terms.above
        self._bound = [slot.suffix in names for slot in slots]
        self._later = [0] * (len(slots) + 1)
        for depth in reversed(range(len(slots))):
            more = sum(1 << giver for giver in givers[depth]) if self._bound[depth] else 0
            self._later[depth] = self._later[depth + 1] | more
        everyone = (1 << terms.size) - 1
        self._stages = [(0, everyone)]
        """(bits of the chosen, bits of what is or stands above all of them)."""

    def binds(self, depth: int) -> bool:
        return self._bound[depth]

    def admits(self, depth: int, giver: int) -> bool:
        chosen, tops = self._stages[-1]
        return bool(tops & self._above[giver] & (chosen | 1 << giver | self._later[depth + 1]))

    def put(self, _depth: int, giver: int) -> None:
        chosen, tops = self._stages[-1]
        self._stages.append((chosen | 1 << giver, tops & self._above[giver]))

    def back(self, _depth: int, _giver: int) -> None:
        self._stages.pop()

    def mark(self, giver: int) -> tuple[int, ...]:
        return (self._stages[-1][0] >> giver & 1,)

    def whole(self) -> int:
        return 0


class _OneHome:
    """At most one provider of each tree gives anything."""

    def __init__(self, terms: Terms, slots: Sequence[Want]) -> None:
        self._home = terms.home
        self._bound = [bool(slot.amounts) for slot in slots]
        self._gives: dict[int, list[int]] = {home: [] for home in terms.home}

    def binds(self, depth: int) -> bool:
        return self._bound[depth]

    def admits(self, _depth: int, giver: int) -> bool:
        there = self._gives[self._home[giver]]
        return not there or there[-1] == giver

    def put(self, _depth: int, giver: int) -> None:
        self._gives[self._home[giver]].append(giver)

    def back(self, _depth: int, giver: int) -> None:
        self._gives[self._home[giver]].pop()

    def mark(self, giver: int) -> tuple[int, ...]:
        return (giver in self._gives[self._home[giver]],)

    def whole(self) -> int:
        return 0
