"""The rules between the slots of one candidate, updated incrementally during the search.

They are Placement's (its API reference, "Allocation candidates"): several groups may use one
provider, and their summed amounts are judged against capacity and `max_unit`; the providers of the
unsuffixed group together have every required trait; `isolate` requires a separate provider for
every suffixed group; in each `same_subtree` set one of the chosen providers is an ancestor of, or
is, all the others; before microversion 1.29 one provider per tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.engine.candidates.query_shape import QueryShape, SlotRequest
    from moorage.engine.candidates.tree_pattern import TreePattern


class Rule(Protocol):
    """One rule over a partial selection; `depth` is the number of a slot in search order."""

    def applies(self, depth: int) -> bool:
        """Whether the rule concerns the slot."""

    def admits(self, depth: int, provider: int) -> bool:
        """Whether the slot may use the provider, and the later slots may still be filled."""

    def assign(self, depth: int, provider: int) -> None:
        """Assign the provider to the slot."""

    def undo(self, depth: int, provider: int) -> None:
        """Undo the newest `assign`."""

    def provider_state(self, provider: int) -> tuple[int, ...]:
        """The rule's state of one provider; a tuple of fixed length."""

    def common_state(self) -> int:
        """The rule's state that is not of a single provider."""


def rules(
    shape: QueryShape,
    pattern: TreePattern,
    slots: Sequence[SlotRequest],
    providers: Sequence[Sequence[int]],
) -> Iterator[Rule]:
    """The rules that this shape has, cheapest first."""
    if shape.isolate and sum(bool(slot.suffix) for slot in slots) > 1:
        yield _Isolate(slots, pattern.size)
    if shape.shared_classes:
        yield _SharedClasses(shape, pattern, slots)
    if shape.required_sets:
        plain = [not slot.suffix for slot in slots]
        yield _Covered(pattern.traits_met, (1 << shape.required_sets) - 1, plain, providers)
    if pattern.used:
        yield _Used(pattern, len(slots), providers)
    if pattern.needs_unshared:
        unshared = [not shares for shares in pattern.shares]
        yield _Covered(unshared, 1, [True] * len(slots), providers)
    for names in shape.same_subtrees:
        yield _SameSubtree(names, pattern, slots, providers)
    if shape.one_provider_per_tree:
        yield _OneProviderPerTree(pattern, slots)


class _SlotRule:
    """A rule that concerns some of the slots."""

    def __init__(self, bound: Sequence[bool]) -> None:
        self._bound = bound
        """[depth] whether the rule concerns the slot."""

    def applies(self, depth: int) -> bool:
        return self._bound[depth]

    def common_state(self) -> int:
        return 0


class _Isolate(_SlotRule):
    """`isolate`: no provider serves two suffixed groups."""

    def __init__(self, slots: Sequence[SlotRequest], size: int) -> None:
        super().__init__([bool(slot.suffix) for slot in slots])
        self._taken = [False] * size

    def admits(self, _depth: int, provider: int) -> bool:
        return not self._taken[provider]

    def assign(self, _depth: int, provider: int) -> None:
        self._taken[provider] = True

    def undo(self, _depth: int, provider: int) -> None:
        self._taken[provider] = False

    def provider_state(self, provider: int) -> tuple[int, ...]:
        return (self._taken[provider],)


class _SharedClasses(_SlotRule):
    """The summed amounts of slots on one provider fit, and are at most `max_unit`."""

    def __init__(
        self, shape: QueryShape, pattern: TreePattern, slots: Sequence[SlotRequest]
    ) -> None:
        number = {name: n for n, (name, _) in enumerate(shape.shared_classes)}
        self._amounts = [
            [(number[name], amount) for name, amount in slot.amounts if name in number]
            for slot in slots
        ]
        super().__init__([bool(some) for some in self._amounts])
        self._max_amount = pattern.max_amount
        self._taken = [[0] * len(number) for _ in range(pattern.size)]

    def admits(self, depth: int, provider: int) -> bool:
        taken, most = self._taken[provider], self._max_amount[provider]
        return all(taken[of] + amount <= most[of] for of, amount in self._amounts[depth])

    def assign(self, depth: int, provider: int) -> None:
        taken = self._taken[provider]
        for of, amount in self._amounts[depth]:
            taken[of] += amount

    def undo(self, depth: int, provider: int) -> None:
        taken = self._taken[provider]
        for of, amount in self._amounts[depth]:
            taken[of] -= amount

    def provider_state(self, provider: int) -> tuple[int, ...]:
        return tuple(self._taken[provider])


class _Covered(_SlotRule):
    """The providers of some slots together have every one of a number of properties.

    The unsuffixed group's have every required trait set.
    """

    def __init__(
        self,
        properties: Sequence[int],
        every: int,
        bound: Sequence[bool],
        providers: Sequence[Sequence[int]],
    ) -> None:
        """Bits of properties per provider, and of all; the slots that are bound."""
        super().__init__(bound)
        self._properties, self._every = properties, every
        self._later = [0] * (len(bound) + 1)
        for depth in reversed(range(len(bound))):
            more = 0
            for provider in providers[depth] if bound[depth] else ():
                more |= properties[provider]
            self._later[depth] = self._later[depth + 1] | more
        self._covered = [0]

    def admits(self, depth: int, provider: int) -> bool:
        able = self._covered[-1] | self._properties[provider] | self._later[depth + 1]
        return able == self._every

    def assign(self, _depth: int, provider: int) -> None:
        self._covered.append(self._covered[-1] | self._properties[provider])

    def undo(self, _depth: int, _provider: int) -> None:
        self._covered.pop()

    def provider_state(self, _provider: int) -> tuple[int, ...]:
        return ()

    def common_state(self) -> int:
        return self._covered[-1]


class _Used(_Covered):
    """All providers that are to be used are."""

    def __init__(
        self, pattern: TreePattern, slots: int, providers: Sequence[Sequence[int]]
    ) -> None:
        bits = [0] * pattern.size
        for number, provider in enumerate(pattern.used):
            bits[provider] = 1 << number
        super().__init__(bits, (1 << len(pattern.used)) - 1, [True] * slots, providers)
        self._slots = slots

    def admits(self, depth: int, provider: int) -> bool:
        # Each of the later slots uses one more at most.
        missing = self._every & ~(self._covered[-1] | self._properties[provider])
        return missing.bit_count() < self._slots - depth and super().admits(depth, provider)


class _SameSubtree(_SlotRule):
    """`same_subtree`: one of the set's providers is, or is an ancestor of, all of them."""

    def __init__(
        self,
        names: frozenset[str],
        pattern: TreePattern,
        slots: Sequence[SlotRequest],
        providers: Sequence[Sequence[int]],
    ) -> None:
        self._ancestors = pattern.ancestors
        super().__init__([slot.suffix in names for slot in slots])
        self._later = [0] * (len(slots) + 1)
        for depth in reversed(range(len(slots))):
            more = sum(1 << provider for provider in providers[depth]) if self._bound[depth] else 0
            self._later[depth] = self._later[depth + 1] | more
        everyone = (1 << pattern.size) - 1
        self._states = [(0, everyone)]
        """(bits of the chosen providers, bits of their common ancestors or selves)."""

    def admits(self, depth: int, provider: int) -> bool:
        chosen, tops = self._states[-1]
        return bool(
            tops & self._ancestors[provider] & (chosen | 1 << provider | self._later[depth + 1])
        )

    def assign(self, _depth: int, provider: int) -> None:
        chosen, tops = self._states[-1]
        self._states.append((chosen | 1 << provider, tops & self._ancestors[provider]))

    def undo(self, _depth: int, _provider: int) -> None:
        self._states.pop()

    def provider_state(self, provider: int) -> tuple[int, ...]:
        return (self._states[-1][0] >> provider & 1,)


class _OneProviderPerTree(_SlotRule):
    """At most one provider of each tree is used."""

    def __init__(self, pattern: TreePattern, slots: Sequence[SlotRequest]) -> None:
        self._tree = pattern.tree
        super().__init__([bool(slot.amounts) for slot in slots])
        self._used: dict[int, list[int]] = {tree: [] for tree in pattern.tree}

    def admits(self, _depth: int, provider: int) -> bool:
        there = self._used[self._tree[provider]]
        return not there or there[-1] == provider

    def assign(self, _depth: int, provider: int) -> None:
        self._used[self._tree[provider]].append(provider)

    def undo(self, _depth: int, provider: int) -> None:
        self._used[self._tree[provider]].pop()

    def provider_state(self, provider: int) -> tuple[int, ...]:
        return (provider in self._used[self._tree[provider]],)
