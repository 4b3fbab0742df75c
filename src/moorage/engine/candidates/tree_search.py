"""Every way to serve a query inside one tree, depth first, without walking equal failures twice.

Slots are filled one after the other, those with the fewest givers first. A state from which
nothing could be completed is remembered by what its providers have given, where providers of
one kind count as the same: devices that are equal are not tried in every order to fail in each.
What does complete is yielded in full, because candidates differ by names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from moorage.engine.candidates.search_rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.engine.candidates.query_shape import Shape
    from moorage.engine.candidates.tree_pattern import Terms

Picks: TypeAlias = "tuple[int, ...]"
"""Per slot of the shape: the position that gives it."""


def selections(shape: Shape, terms: Terms) -> Iterator[Picks]:
    """Every selection of one giver per slot that keeps all rules, each once."""
    if not all(terms.givers) or not has_room(shape, terms) or not has_places(shape, terms):
        return iter(())
    if not shape.slots:
        return iter(() if shape.required else ((),))
    order = sorted(range(len(shape.slots)), key=lambda n: len(terms.givers[n]))
    back = sorted(range(len(order)), key=order.__getitem__)
    found = _Search(shape, terms, order).run()
    if back == order == list(range(len(order))):
        return found
    return (tuple([picks[at] for at in back]) for picks in found)


class _Search:
    """The state of one search; depths count slots in its order."""

    def __init__(self, shape: Shape, terms: Terms, order: Sequence[int]) -> None:
        slots = [shape.slots[n] for n in order]
        self._givers = [terms.givers[n] for n in order]
        self._rules = list(rules(shape, terms, slots, self._givers))
        self._at = [
            [rule for rule in self._rules if rule.binds(depth)] for depth in range(len(order))
        ]
        self._twins = terms.twins
        self._hopeless: list[set[object]] = [set() for _ in order]
        """[depth] states from which nothing could be completed."""

    def run(self) -> Iterator[Picks]:
        last = len(self._givers) - 1
        picks, ways = [0] * (last + 1), [iter(self._givers[0])]
        fruitful = [False] * (last + 1)
        while ways:
            depth = len(ways) - 1
            giver = self._next(depth, ways[-1])
            if giver is None:
                self._leave(ways, picks, fruitful)
                continue
            picks[depth] = giver
            if depth == last:
                fruitful[depth] = True
                yield tuple(picks)
                continue
            for rule in self._at[depth]:
                rule.put(depth, giver)
            if self._hopeless[depth + 1] and self._state() in self._hopeless[depth + 1]:
                self._back(depth, giver)
                continue
            fruitful[depth + 1] = False
            ways.append(iter(self._givers[depth + 1]))

    def _next(self, depth: int, way: Iterator[int]) -> int | None:
        """The next giver that every rule admits."""
        binding = self._at[depth]
        for giver in way:
            for rule in binding:
                if not rule.admits(depth, giver):
                    break
            else:
                return giver
        return None

    def _leave(self, ways: list[Iterator[int]], picks: Sequence[int], fruitful: list[bool]) -> None:
        """Go up one depth; remember the state if it led to nothing."""
        depth = len(ways) - 1
        if not fruitful[depth]:
            self._hopeless[depth].add(self._state())
        ways.pop()
        if depth:
            fruitful[depth - 1] |= fruitful[depth]
            self._back(depth - 1, picks[depth - 1])

    def _back(self, depth: int, giver: int) -> None:
        for rule in self._at[depth]:
            rule.back(depth, giver)

    def _state(self) -> object:
        """What has been given, where twins that have given the same count as one another."""
        given = [
            tuple(sorted([tuple([rule.mark(one) for rule in self._rules]) for one in kind]))
            for kind in self._twins
        ]
        return tuple(given), tuple([rule.whole() for rule in self._rules])


def has_room(shape: Shape, terms: Terms) -> bool:
    """Whether all givers of a class together can give what all slots want of it.

    Spares the walk through every distribution of too much over many devices.
    """
    for number, (name, wanted) in enumerate(shape.summed):
        givers = {
            giver
            for slot, of in zip(shape.slots, terms.givers, strict=True)
            if name in dict(slot.amounts)
            for giver in of
        }
        if sum(terms.room[giver][number] for giver in givers) < wanted:
            return False
    return True


def has_places(shape: Shape, terms: Terms) -> bool:
    """Under `isolate`: whether every suffixed group can have a provider of its own.

    A bipartite matching by augmenting paths (Kuhn); one group at a time.
    """
    if not shape.isolate:
        return True
    of_giver: dict[int, int] = {}

    def settle(number: int, tried: set[int]) -> bool:
        for giver in terms.givers[number]:
            if giver in tried:
                continue
            tried.add(giver)
            if giver not in of_giver or settle(of_giver[giver], tried):
                of_giver[giver] = number
                return True
        return False

    return all(settle(number, set()) for number, slot in enumerate(shape.slots) if slot.suffix)
