"""The problem of moving units between hosts as columns, and its answers.

A state says where each unit stands. While a unit moves it takes room on its source and on its
target, and rules that are judged meanwhile hold whether it is on the one or on the other. Room that
is negative at the start may stay so, but nothing enters it; a rule that is violated by more than
`meanwhile` at the start is violated at most by as much meanwhile. A unit enters a host only if its
mask permits it and the host is not to be left; it may move more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


class Rule(Protocol):
    """One policy over some units, as the search sees it."""

    @property
    def name(self) -> str:
        """What answers call it."""

    @property
    def units(self) -> tuple[int, ...]:
        """The units that it concerns, movable or not."""

    @property
    def meanwhile(self) -> int | None:
        """Greatest amount permitted in any state between moves; None: not judged there."""

    @property
    def limit(self) -> int:
        """Greatest amount permitted at the end."""

    def amount(self, hosts: Mapping[int, int]) -> int:
        """By how much it is violated; `hosts` is unit -> host row, without those not placed."""

    def alike(self, unit: int, hosts: Mapping[int, int]) -> NDArray[np.int64]:
        """[H] labels: where this unit may go, hosts of equal label are equal to the rule."""


@dataclass(frozen=True, eq=False)
class MoveProblem:
    """U units of K resource classes, on H hosts."""

    free: Ints
    """[H, K] room beside everything present, the units included; may be negative."""
    amounts: Ints
    """[U, K] what each unit takes."""
    start: Rows
    """[U] host row now; -1: a newcomer, which is placed once all moves are done, and is no move."""
    cost: Ints
    """[U] cost of one move, at least 1."""
    movable: Bools
    """[U] the others stay; they matter to rules alone. Newcomers are placed in any case."""
    mask_of: Rows
    """[U] index into `masks`."""
    masks: Bools
    """[M, H] hosts that a unit may enter. It may stay where it stands now, unless in `leave`."""
    leave: Bools
    """[H] hosts that are empty of units at the end; none is entered."""
    rules: tuple[Rule, ...]
    fits: Callable[[int, int, Collection[int]], bool] | None = None
    """(unit, host, units there) -> whether it can enter, such as for devices; fewer units there
    never fit worse. Units that are leaving are still there. None: amounts decide."""

    @cached_property
    def rules_of(self) -> tuple[tuple[int, ...], ...]:
        """Unit -> the numbers of the rules that concern it."""
        found: list[list[int]] = [[] for _ in self.start]
        for number, rule in enumerate(self.rules):
            for unit in rule.units:
                found[unit].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def newcomers(self) -> tuple[int, ...]:
        """The units that are placed at the end."""
        return tuple(np.flatnonzero(self.start < 0).tolist())

    @cached_property
    def leaving(self) -> tuple[int, ...]:
        """The units on hosts that are to be left, movable or not."""
        present = np.flatnonzero(self.start >= 0)
        return tuple(present[self.leave[self.start[present]]].tolist())

    @cached_property
    def entries(self) -> Bools:
        """[M, H] hosts that a unit may enter: its mask, without hosts to be left."""
        return self.masks & ~self.leave

    @cached_property
    def placed(self) -> Mapping[int, int]:
        """Unit -> host row now, without newcomers."""
        return {unit: host for unit, host in enumerate(self.start.tolist()) if host >= 0}

    @cached_property
    def amounts_now(self) -> tuple[int, ...]:
        """Rule -> by how much it is violated now."""
        return tuple(rule.amount(self.placed) for rule in self.rules)

    @cached_property
    def meanwhile(self) -> tuple[int | None, ...]:
        """Rule -> the greatest amount that may be reached between moves; None: any."""
        return tuple(
            None if rule.meanwhile is None else max(rule.meanwhile, now)
            for rule, now in zip(self.rules, self.amounts_now, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One move of a unit."""

    unit: int
    source: int
    target: int
    after: tuple[int, ...] = ()
    """Positions of the moves that are done before it begins. Two moves of which neither waits for
    the other may overlap, in either order."""


@dataclass(frozen=True, eq=False)
class MovePlan:
    """Moves that attain what is wanted, or as much as can be attained (see `NoPlan`)."""

    steps: tuple[Step, ...]
    """In an order in which each may be carried out after those before it."""
    hosts: Rows
    """[U] host row at the end; -1: not placed, in a partial plan only."""
    cost: int
    lower_bound: int
    """No plan costs less."""

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no plan costs less."""
        return self.cost == self.lower_bound


class StuckCode(StrEnum):
    """Why a unit has no move or no place."""

    NO_ROOM = "no-room"
    """No host that it may enter has room for it."""
    POLICY = "policy"
    """Rules exclude each host that has room for it, or no move mends the rule."""
    PINNED = "pinned"
    """It would have to leave its host, and cannot be moved."""
    NO_ORDER = "no-order"
    """It has a target, but no order of moves was found that keeps everything meanwhile."""
    UNDECIDED = "undecided"
    """Alone it would have a target; none was found together with the others."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A unit that the plan would have to move or place and cannot."""

    unit: int
    code: StuckCode
    rules: tuple[str, ...] = ()
    """Names of the rules that exclude it."""


@dataclass(frozen=True, eq=False)
class NoPlan:
    """There is no plan, or none was found."""

    proved: bool
    """Whether there is none; otherwise the search ended before it found one."""
    stuck: tuple[Stuck, ...]
    partial: MovePlan | None = None
    """Moves that attain a part and keep everything; None: there are none."""
