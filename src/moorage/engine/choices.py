"""What each request group could take inside one tree, and how the groups' takings combine.

Placement's rules (its API reference, "Allocation candidates"): the groups of one candidate may
meet on a provider, their amounts are then summed and judged against capacity and `max_unit`;
`isolate` wants a provider of its own for every suffixed group; in each `same_subtree` set one
of the chosen providers is an ancestor of, or is, all the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.resources import ResourceClass
    from moorage.engine.snapshot import Bools, Snapshot


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to serve one group: who gives what."""

    suffix: str
    takes: tuple[tuple[int, ResourceClass, int], ...]
    """(provider row, resource class, amount)."""
    rows: tuple[int, ...]
    """Provider rows the group maps to, ascending."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What binds the groups of one candidate together."""

    isolate: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()


def unsuffixed_choices(
    suffix: str,
    wanted: Mapping[ResourceClass, int],
    givers: Mapping[ResourceClass, Sequence[int]],
    required: Sequence[Bools],
) -> Iterator[Choice]:
    """Each class from any of its givers; together they carry every required trait set.

    `required` holds, per required set, the mask of providers that have any of its traits.
    """
    for rows in product(*(givers[resource_class] for resource_class in wanted)):
        if all(any(mask[row] for row in rows) for mask in required):
            takes = tuple(
                (row, resource_class, amount)
                for row, (resource_class, amount) in zip(rows, wanted.items(), strict=True)
            )
            yield Choice(suffix, takes, tuple(sorted(set(rows))))


def suffixed_choices(
    suffix: str, wanted: Mapping[ResourceClass, int], givers: Sequence[int]
) -> Iterator[Choice]:
    """All classes from one giver."""
    for row in givers:
        yield Choice(suffix, tuple((row, name, amount) for name, amount in wanted.items()), (row,))


def combinations(
    snapshot: Snapshot, options: Sequence[Sequence[Choice]], rules: Rules
) -> Iterator[tuple[Choice, ...]]:
    """Yield every selection of one choice per group that keeps the rules, depth first.

    Each selection is judged by its own sums; a prefix that cannot be completed is cut off.
    """
    search = _Search(snapshot, options, rules)
    if search.has_room() and search.has_places():
        yield from search.extend((), {})


@dataclass(frozen=True, slots=True)
class _Search:
    snapshot: Snapshot
    options: Sequence[Sequence[Choice]]
    rules: Rules

    def has_room(self) -> bool:
        """Whether all givers of a class together can give what all groups want of it.

        Spares the walk through every distribution of too much over many equal devices.
        """
        wanted: dict[ResourceClass, int] = {}
        givers: dict[ResourceClass, set[int]] = {}
        for group in self.options:
            for choice in group:
                for row, resource_class, _ in choice.takes:
                    givers.setdefault(resource_class, set()).add(row)
            for _, resource_class, amount in group[0].takes if group else ():
                wanted[resource_class] = wanted.get(resource_class, 0) + amount
        return all(
            amount <= sum(self.free(row, name) for row in givers[name])
            for name, amount in wanted.items()
        )

    def free(self, row: int, resource_class: ResourceClass) -> int:
        columns = self.snapshot.classes[resource_class]
        at = columns.position[row]
        return int(columns.capacity[at] - columns.peak[at])

    def has_places(self) -> bool:
        """Under `isolate`: whether every suffixed group can have a provider of its own.

        A bipartite matching by augmenting paths (Kuhn); one group at a time.
        """
        if not self.rules.isolate:
            return True
        of_row: dict[int, int] = {}

        def settle(number: int, tried: set[int]) -> bool:
            for choice in self.options[number]:
                row = choice.rows[0]
                if row in tried:
                    continue
                tried.add(row)
                if row not in of_row or settle(of_row[row], tried):
                    of_row[row] = number
                    return True
            return False

        return all(
            settle(number, set())
            for number, group in enumerate(self.options)
            if group and group[0].suffix
        )

    def extend(
        self, chosen: tuple[Choice, ...], taken: Mapping[tuple[int, ResourceClass], int]
    ) -> Iterator[tuple[Choice, ...]]:
        if len(chosen) == len(self.options):
            yield chosen
            return
        for choice in self.options[len(chosen)]:
            if self.rules.isolate and not _apart(chosen, choice):
                continue
            sums = self.with_takes(taken, choice)
            longer = (*chosen, choice)
            if sums is not None and self.subtrees_possible(longer):
                yield from self.extend(longer, sums)

    def with_takes(
        self, taken: Mapping[tuple[int, ResourceClass], int], choice: Choice
    ) -> Mapping[tuple[int, ResourceClass], int] | None:
        """Add the choice's takings; None when a sum passes capacity or `max_unit`."""
        sums = dict(taken)
        for row, resource_class, amount in choice.takes:
            before = sums.get((row, resource_class), 0)
            sums[row, resource_class] = before + amount
            if before and not self.fits(row, resource_class, before + amount):
                return None
        return sums

    def fits(self, row: int, resource_class: ResourceClass, amount: int) -> bool:
        columns = self.snapshot.classes[resource_class]
        at = columns.position[row]
        return bool(
            columns.peak[at] + amount <= columns.capacity[at] and amount <= columns.max_unit[at]
        )

    def subtrees_possible(self, chosen: tuple[Choice, ...]) -> bool:
        """Whether each `same_subtree` set holds, or may still hold once it is complete."""
        suffix_now = chosen[-1].suffix
        return all(
            suffix_now not in together or self.subtree_possible(chosen, together)
            for together in self.rules.same_subtrees
        )

    def subtree_possible(self, chosen: tuple[Choice, ...], together: frozenset[str]) -> bool:
        rows = {row for choice in chosen if choice.suffix in together for row in choice.rows}
        tops = set.intersection(*(_ancestors(self.snapshot, row) for row in rows))
        if tops & rows:
            return True
        return any(
            row in tops
            for group in self.options[len(chosen) :]
            for choice in group
            if choice.suffix in together
            for row in choice.rows
        )


def _apart(chosen: tuple[Choice, ...], choice: Choice) -> bool:
    """Whether a suffixed choice uses no provider of another suffixed group."""
    return not choice.suffix or not any(
        set(other.rows) & set(choice.rows) for other in chosen if other.suffix
    )


def _ancestors(snapshot: Snapshot, row: int) -> set[int]:
    """The row itself and every row above it."""
    found = set()
    while row >= 0:
        found.add(row)
        row = int(snapshot.parent[row])
    return found
