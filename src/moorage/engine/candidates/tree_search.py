"""Depth-first search of all selections of providers for a query's slots within one tree.

Slots are assigned in order, those with the fewest providers first. A partial selection that cannot
be completed is recorded as a dead end by what has been allocated from its providers, where
interchangeable providers count as equal: equal devices are not tried in every order. Selections
that succeed are all yielded, because candidates differ by the providers' names.

Selections of sharing providers only come last: they are candidates of other trees, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from moorage.engine.candidates.search_rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from moorage.engine.candidates.query_shape import QueryShape
    from moorage.engine.candidates.tree_pattern import TreePattern

Selection: TypeAlias = "tuple[int, ...]"
"""Per slot of the shape: the position of its provider."""


def selections(
    shape: QueryShape, pattern: TreePattern, random: Random | None = None
) -> Iterator[Selection]:
    """Every selection of one provider per slot that obeys all rules, each once.

    With `random`, providers are tried in random order.
    """
    if not any(pattern.shares) or not shape.slots:
        yield from _searched(shape, pattern, random)
        return
    yield from _searched(shape, replace(pattern, needs_unshared=True), random)
    lenders = tuple(tuple(one for one in some if pattern.shares[one]) for some in pattern.providers)
    yield from _searched(shape, replace(pattern, providers=lenders), random)


def uses_sharing_only(pattern: TreePattern, picks: Selection) -> bool:
    """Whether every slot is allocated from a sharing provider."""
    return all(pattern.shares[position] for position in picks)


def _searched(
    shape: QueryShape, pattern: TreePattern, random: Random | None
) -> Iterator[Selection]:
    if (
        not all(pattern.providers)
        or not enough_capacity(shape, pattern)
        or not enough_providers(shape, pattern)
    ):
        return iter(())
    if not shape.slots:
        return iter(() if shape.required_sets else ((),))
    order = sorted(range(len(shape.slots)), key=lambda n: len(pattern.providers[n]))
    back = sorted(range(len(order)), key=order.__getitem__)
    found = _Search(shape, pattern, order, random).run()
    if back == order == list(range(len(order))):
        return found
    return (tuple([selected[at] for at in back]) for selected in found)


class _Search:
    """One search; a depth is the number of a slot in search order."""

    def __init__(
        self,
        shape: QueryShape,
        pattern: TreePattern,
        order: Sequence[int],
        random: Random | None,
    ) -> None:
        self._random = random
        slots = [shape.slots[n] for n in order]
        self._providers = [pattern.providers[n] for n in order]
        self._rules = list(rules(shape, pattern, slots, self._providers))
        self._rules_at = [
            [rule for rule in self._rules if rule.applies(depth)] for depth in range(len(order))
        ]
        self._interchangeable = pattern.interchangeable
        self._dead_ends: list[set[object]] = [set() for _ in order]
        """[depth] states that cannot be completed."""

    def run(self) -> Iterator[Selection]:
        last = len(self._providers) - 1
        selected, ways = [0] * (last + 1), [self._ways(0)]
        fruitful = [False] * (last + 1)
        while ways:
            depth = len(ways) - 1
            provider = self._next(depth, ways[-1])
            if provider is None:
                self._backtrack(ways, selected, fruitful)
                continue
            selected[depth] = provider
            if depth == last:
                fruitful[depth] = True
                yield tuple(selected)
                continue
            for rule in self._rules_at[depth]:
                rule.assign(depth, provider)
            if self._dead_ends[depth + 1] and self._state() in self._dead_ends[depth + 1]:
                self._undo(depth, provider)
                continue
            fruitful[depth + 1] = False
            ways.append(self._ways(depth + 1))

    def _ways(self, depth: int) -> Iterator[int]:
        some = self._providers[depth]
        return iter(some if self._random is None else self._random.sample(some, len(some)))

    def _next(self, depth: int, providers: Iterator[int]) -> int | None:
        """The next provider that every rule admits."""
        binding = self._rules_at[depth]
        for provider in providers:
            for rule in binding:
                if not rule.admits(depth, provider):
                    break
            else:
                return provider
        return None

    def _backtrack(
        self, ways: list[Iterator[int]], selected: Sequence[int], fruitful: list[bool]
    ) -> None:
        """Go up one depth; record the state as a dead end if it led to no selection."""
        depth = len(ways) - 1
        if not fruitful[depth]:
            self._dead_ends[depth].add(self._state())
        ways.pop()
        if depth:
            fruitful[depth - 1] |= fruitful[depth]
            self._undo(depth - 1, selected[depth - 1])

    def _undo(self, depth: int, provider: int) -> None:
        for rule in self._rules_at[depth]:
            rule.undo(depth, provider)

    def _state(self) -> object:
        """What has been allocated; interchangeable providers with equal use count as equal."""
        given = [
            tuple(
                sorted([tuple([rule.provider_state(one) for rule in self._rules]) for one in kind])
            )
            for kind in self._interchangeable
        ]
        return tuple(given), tuple([rule.common_state() for rule in self._rules])


def enough_capacity(shape: QueryShape, pattern: TreePattern) -> bool:
    """Whether the providers of each shared class together have what all slots request of it.

    Without this check, a request too large would be tried in every distribution over the devices.
    """
    for number, (name, demand) in enumerate(shape.shared_classes):
        providers = {
            provider
            for slot, of in zip(shape.slots, pattern.providers, strict=True)
            if name in dict(slot.amounts)
            for provider in of
        }
        if sum(pattern.free[provider][number] for provider in providers) < demand:
            return False
    return True


def enough_providers(shape: QueryShape, pattern: TreePattern) -> bool:
    """Whether, under `isolate`, every suffixed group can have a separate provider.

    A bipartite matching by augmenting paths (Kuhn); one group at a time.
    """
    if not shape.isolate:
        return True
    of_provider: dict[int, int] = {}

    def settle(number: int, tried: set[int]) -> bool:
        for provider in pattern.providers[number]:
            if provider in tried:
                continue
            tried.add(provider)
            if provider not in of_provider or settle(of_provider[provider], tried):
                of_provider[provider] = number
                return True
        return False

    return all(settle(number, set()) for number, slot in enumerate(shape.slots) if slot.suffix)
