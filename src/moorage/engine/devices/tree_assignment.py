"""Whether one tree can serve some members: an exact search; equal devices count as one.

Slots are filled one after the other, member by member, those with the fewest givers first. Of
providers that nothing tells apart only one is tried, and a state from which nothing could be
completed is not entered again: it is remembered by what has been given, equal providers
counting as the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUDGET: Final = 20_000
"""Slots filled in one search at most."""

Picks: TypeAlias = "tuple[tuple[int, ...], ...]"
"""Per member, per slot: the position that gives it."""


class GaveUp(Exception):
    """The search ended without an answer or a proof."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One slot in a pattern; `amounts` are (class number, amount)."""

    amounts: tuple[tuple[int, int], ...]
    givers: tuple[int, ...]
    named: bool
    """Whether it is a group's, not of the member's own resources."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Members of one role. Sets hold numbers of pieces; see `engine.wishes.Wish`."""

    count: int
    pieces: tuple[Piece, ...]
    subtrees: tuple[frozenset[int], ...]
    beside: frozenset[int]
    own: frozenset[int]
    carries: tuple[tuple[bool, ...], ...]
    """Per required trait set, per position: whether it has any of it."""
    isolate: bool


@dataclass(frozen=True)
class Pattern:
    """One tree with those that share with it, by position."""

    room: tuple[tuple[int, ...], ...]
    """[m][class] what is left."""
    most: tuple[tuple[int, ...], ...]
    """[m][class] what one member may take."""
    parent: tuple[int, ...]
    """[m] -1 for none."""
    lender: tuple[int, ...]
    """[m] -1 for one of the tree itself; otherwise a number that names who shares."""
    kinds: tuple[Kind, ...]

    @cached_property
    def above(self) -> tuple[int, ...]:
        """[m] bits of itself and its ancestors."""
        found = []
        for start in range(len(self.parent)):
            mask, at = 0, start
            while at >= 0:
                mask |= 1 << at
                at = self.parent[at]
            found.append(mask)
        return tuple(found)

    @cached_property
    def twin(self) -> tuple[int, ...]:
        """[m] number of the kind of provider: equal ones that no other stands below."""
        inner = set(self.parent)
        numbers: dict[object, int] = {}
        found = []
        for at in range(len(self.parent)):
            features = (
                self.room[at],
                self.most[at],
                self.parent[at],
                self.lender[at],
                tuple(at in piece.givers for kind in self.kinds for piece in kind.pieces),
                tuple(one[at] for kind in self.kinds for one in kind.carries),
            )
            key: object = at if at in inner else features
            found.append(numbers.setdefault(key, len(numbers)))
        return tuple(found)


def ways(pattern: Pattern) -> tuple[tuple[tuple[int, ...], Picks], ...]:
    """How the members can be served, told apart by what they take from those who share.

    Returns:
        Pairs of what is taken (per lending position and class, flat) and the picks; none where
        they cannot be served, one where nobody shares, and otherwise all that take not more of
        everything than another does.

    Raises:
        GaveUp: it was not found out within `BUDGET`.
    """
    lenders = [at for at, number in enumerate(pattern.lender) if number >= 0]
    found: dict[tuple[int, ...], Picks] = {}
    for taken, picks in _Search(pattern).run():
        borrowed = tuple(amount for at in lenders for amount in taken[at])
        found.setdefault(borrowed, picks)
        if not any(borrowed):
            # Nothing takes less than nothing.
            return ((borrowed, picks),)
    return tuple(
        (borrowed, picks) for borrowed, picks in found.items() if not _worse(borrowed, found)
    )


def _worse(borrowed: tuple[int, ...], others: dict[tuple[int, ...], Picks]) -> bool:
    return any(
        other != borrowed and all(a <= b for a, b in zip(other, borrowed, strict=True))
        for other in others
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One slot of one member, at its place in the search."""

    kind: int
    member: int
    number: int
    start: int
    """The step at which the member begins."""


class _Search:
    """The state of one search; steps are the slots of all members in a row."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._steps = tuple(_steps(pattern.kinds))
        classes = len(pattern.room[0]) if pattern.room else 0
        self._taken = [[0] * classes for _ in pattern.room]
        self._picks: list[int] = []
        self._closed: list[set[object]] = [set() for _ in self._steps]
        """[step] states from which everything has been looked at."""
        self._left = BUDGET

    def run(self) -> Iterator[tuple[list[list[int]], Picks]]:
        """What is taken, and the picks, of every way that is worth telling from the others."""
        if not self._steps:
            yield self._taken, self._members()
            return
        if not _has_room(self._pattern):
            return
        open_ways = [self._givers(0)]
        while open_ways:
            depth = len(open_ways) - 1
            giver = next(open_ways[-1], None)
            if giver is None:
                open_ways.pop()
                self._closed[depth].add(self._state(depth))
                if depth:
                    self._back()
                continue
            self._put(giver)
            if depth + 1 == len(self._steps):
                yield self._taken, self._members()
                self._back()
            elif self._closed[depth + 1] and self._state(depth + 1) in self._closed[depth + 1]:
                self._back()
            else:
                open_ways.append(self._givers(depth + 1))

    def _put(self, giver: int) -> None:
        step = self._steps[len(self._picks)]
        for k, amount in self._piece(step).amounts:
            self._taken[giver][k] += amount
        self._picks.append(giver)

    def _back(self) -> None:
        giver = self._picks.pop()
        for k, amount in self._piece(self._steps[len(self._picks)]).amounts:
            self._taken[giver][k] -= amount

    def _piece(self, step: _Step) -> Piece:
        return self._pattern.kinds[step.kind].pieces[step.number]

    def _givers(self, depth: int) -> Iterator[int]:
        """Whoever may fill the step now; of those that nothing tells apart only the first."""
        step, tried = self._steps[depth], set()
        mine = self._mine(depth)
        for giver in self._piece(step).givers:
            mark = (self._pattern.twin[giver], *self._taken[giver], *mine.get(giver, ()))
            if mark not in tried:
                tried.add(mark)
                if self._admits(step, giver, mine):
                    self._left -= 1
                    if self._left < 0:
                        raise GaveUp
                    yield giver

    def _mine(self, depth: int) -> dict[int, tuple[int, ...]]:
        """Giver -> slots of the member at this step that it fills already."""
        found: dict[int, tuple[int, ...]] = {}
        for at in range(self._steps[depth].start, depth):
            giver = self._picks[at]
            found[giver] = (*found.get(giver, ()), self._steps[at].number)
        return found

    def _state(self, depth: int) -> object:
        """What has been given, where twins that have given the same count as one another."""
        mine = self._mine(depth)
        return tuple(
            sorted(
                (self._pattern.twin[at], tuple(self._taken[at]), tuple(sorted(mine.get(at, ()))))
                for at in set(self._picks)
            )
        )

    # --- the rules ------------------------------------------------------------------------

    def _admits(self, step: _Step, giver: int, mine: dict[int, tuple[int, ...]]) -> bool:
        kind = self._pattern.kinds[step.kind]
        piece = kind.pieces[step.number]
        given = mine.get(giver, ())
        room, most, taken = (
            self._pattern.room[giver],
            self._pattern.most[giver],
            self._taken[giver],
        )
        for k, amount in piece.amounts:
            own = sum(a for n in given for c, a in kind.pieces[n].amounts if c == k)
            if taken[k] + amount > room[k] or own + amount > most[k]:
                return False
        if kind.isolate and piece.named and any(kind.pieces[n].named for n in given):
            return False
        chosen = {n: at for at, numbers in mine.items() for n in numbers} | {step.number: giver}
        return (
            all(
                self._hangs_together(kind, names, chosen)
                for names in kind.subtrees
                if step.number in names
            )
            and self._beside(kind, chosen)
            and self._covered(kind, chosen)
        )

    def _hangs_together(self, kind: Kind, names: frozenset[int], chosen: dict[int, int]) -> bool:
        """Whether some giver is, or may still be, the top of all that are chosen."""
        tops, able = -1, 0
        for number in names:
            if number in chosen:
                tops &= self._pattern.above[chosen[number]]
                able |= 1 << chosen[number]
            else:
                for giver in kind.pieces[number].givers:
                    able |= 1 << giver
        return bool(tops & able)

    def _beside(self, kind: Kind, chosen: dict[int, int]) -> bool:
        """Judged once all who have a part in it are chosen.

        Who gives own resources and stands above another that does is passed over: what the
        root gives beside says nothing of where in the tree the member is.
        """
        if not kind.beside or not kind.beside | kind.own <= chosen.keys():
            return True
        above = self._pattern.above
        own = {chosen[n] for n in kind.own if self._pattern.lender[chosen[n]] < 0}
        low = {at for at in own if not any(one != at and above[one] >> at & 1 for one in own)}
        tops, able = -1, 0
        for at in low | {chosen[n] for n in kind.beside}:
            tops &= above[at]
            able |= 1 << at
        return bool(tops & able)

    def _covered(self, kind: Kind, chosen: dict[int, int]) -> bool:
        """Whether the givers of the own resources together carry every required trait set."""
        if not kind.carries or not kind.own <= chosen.keys():
            return True
        return all(any(one[chosen[n]] for n in kind.own) for one in kind.carries)

    def _members(self) -> Picks:
        found = [
            [[0] * len(kind.pieces) for _ in range(kind.count)] for kind in self._pattern.kinds
        ]
        for step, giver in zip(self._steps, self._picks, strict=True):
            found[step.kind][step.member][step.number] = giver
        return tuple(tuple(member) for kind in found for member in kind)


def _steps(kinds: Sequence[Kind]) -> Iterator[_Step]:
    """Kinds with little choice first, and within a member slots with few givers."""
    start = 0
    for number in sorted(range(len(kinds)), key=lambda n: _choice(kinds[n])):
        sizes = [(len(one.givers), n) for n, one in enumerate(kinds[number].pieces)]
        order = [n for _, n in sorted(sizes)]
        for member in range(kinds[number].count):
            for one in order:
                yield _Step(number, member, one, start)
            start += len(order)


def _choice(kind: Kind) -> int:
    return min((len(piece.givers) for piece in kind.pieces), default=0)


def _has_room(pattern: Pattern) -> bool:
    """Whether those who can give a class have as much of it as those slots want together."""
    wanted: dict[tuple[int, tuple[int, ...]], int] = {}
    for kind in pattern.kinds:
        for piece in kind.pieces:
            for k, amount in piece.amounts:
                key = (k, tuple(sorted(piece.givers)))
                wanted[key] = wanted.get(key, 0) + kind.count * amount
    return all(
        sum(pattern.room[at][k] for at in givers)
        >= sum(n for (c, few), n in wanted.items() if c == k and set(few) <= set(givers))
        for k, givers in wanted
    )
