"""Instances: fleets of hosts in racks, with units that leave, come, or break rules."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from benchmarks.plans.rules import DomainRule

from moorage.engine.moves.problem import MoveProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

CAPACITY: Final = (64, 256, 2000)
"""VCPU, GiB of memory, GB of disk of a host."""
FLAVORS: Final = ((1, 4, 20), (2, 8, 40), (2, 16, 40), (4, 8, 80), (4, 16, 80), (8, 32, 100))
LARGE: Final = (16, 64, 200)
LARGES: Final = (LARGE, (12, 48, 100), (8, 64, 100))
TIGHT: Final = ((10, 40, 100), (12, 32, 100), (14, 56, 100))
TIGHT_LARGE: Final = ((40, 120, 100), (48, 128, 100))
RACK: Final = 40
"""Hosts of a rack."""


@dataclass
class Fleet:
    """Hosts, and the units that are drawn for them."""

    hosts: int
    dice: random.Random
    free: Ints = field(init=False)
    amounts: list[tuple[int, ...]] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    movable: list[bool] = field(default_factory=list)
    rules: list[DomainRule] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = np.tile(np.array(CAPACITY, dtype=np.int64), (self.hosts, 1))

    @property
    def racks(self) -> Ints:
        """[H] the rack of each host."""
        return np.arange(self.hosts, dtype=np.int64) // RACK

    def take(self, host: int, flavor: tuple[int, ...]) -> bool:
        """Take so much of a host, if it has room."""
        if (self.free[host] < flavor).any():
            return False
        self.free[host] -= flavor
        return True

    def fill(self, part: float, hosts: range | None = None) -> None:
        """Fill hosts up to a part of their processors, with units that are not listed."""
        for host in hosts or range(self.hosts):
            until = int(CAPACITY[0] * (1 - part * self.dice.uniform(0.9, 1.1)))
            while self.free[host][0] > until and self.take(host, self.dice.choice(FLAVORS)):
                pass

    def add(self, host: int, flavor: tuple[int, ...], *, movable: bool = True) -> int:
        """List a unit, for which room is taken already; returns its number."""
        self.amounts.append(flavor)
        self.start.append(host)
        self.movable.append(movable)
        return len(self.start) - 1

    def problem(self, leave: NDArray[np.bool_] | None = None) -> MoveProblem:
        """The problem of moving the units."""
        units = len(self.start)
        return MoveProblem(
            free=self.free,
            amounts=np.array(self.amounts, dtype=np.int64).reshape(units, len(CAPACITY)),
            start=np.array(self.start, dtype=np.int32),
            cost=np.ones(units, dtype=np.int64),
            movable=np.array(self.movable, dtype=np.bool_),
            mask_of=np.zeros(units, dtype=np.int32),
            masks=np.ones((1, self.hosts), dtype=np.bool_),
            leave=np.zeros(self.hosts, dtype=np.bool_) if leave is None else leave,
            rules=tuple(self.rules),
        )


@dataclass(frozen=True)
class Instance:
    """A problem, and a cost at which it can be solved."""

    problem: MoveProblem
    planted: int


def drain(seed: int, *, hosts: int, leave: int, units: int, full: float = 0.8) -> Instance:
    """The first hosts leave; a third of their units are in ensembles with rules.

    Ensembles of ten are kept apart by host, also meanwhile, or spread over racks together with
    ten units elsewhere; groups of four are to be in one rack.
    """
    fleet = Fleet(hosts, random.Random(seed))
    fleet.fill(full, range(leave, hosts))
    small = FLAVORS[:4]
    leaving = []
    for number in range(units):
        host = number % leave
        flavor = fleet.dice.choice(small)
        while not fleet.take(host, flavor):
            flavor = FLAVORS[0]
            if (fleet.free[host] < flavor).any():
                fleet.free[host] += flavor
        leaving.append(fleet.add(host, flavor))
    fleet.dice.shuffle(leaving)
    rows = np.arange(hosts, dtype=np.int64)
    for number in range(units // 30):
        some, leaving = leaving[:10], leaving[10:]
        if number % 3 == 0:
            apart = _distinct(fleet, some)
            fleet.rules.append(
                DomainRule(f"apart{number}", "apart", apart, rows, fleet.racks, meanwhile=0)
            )
        elif number % 3 == 1:
            # Of each rack at most one, so that they break nothing.
            racks = fleet.dice.sample(range(-(-leave // RACK), hosts // RACK), 10)
            others = [fleet.add(rack * RACK, FLAVORS[0], movable=False) for rack in racks]
            units_of = (*some, *others)
            fleet.rules.append(
                DomainRule(f"skew{number}", "skew", units_of, fleet.racks, fleet.racks, bound=2)
            )
        else:
            fleet.rules.append(
                DomainRule(f"near{number}", "together", tuple(some[:4]), fleet.racks, fleet.racks)
            )
    leaves = np.zeros(hosts, dtype=np.bool_)
    leaves[:leave] = True
    return Instance(fleet.problem(leaves), units)


def _distinct(fleet: Fleet, units: list[int]) -> tuple[int, ...]:
    """Those of these units that stand on different hosts."""
    found = {fleet.start[unit]: unit for unit in units}
    return tuple(sorted(found.values()))


def lost_rack(seed: int, *, hosts: int = 2000, ensembles: int = 100, size: int = 20) -> Instance:
    """A rack leaves; ensembles have members there, are kept apart by host, and spread by rack."""
    fleet = Fleet(hosts, random.Random(seed))
    fleet.fill(0.75)
    racks = hosts // RACK
    rows = np.arange(hosts, dtype=np.int64)
    for number in range(ensembles):
        others = fleet.dice.sample(range(1, racks), size - 1)
        units = [_member(fleet, rack, fleet.dice.choice(FLAVORS[:4])) for rack in (0, *others)]
        fleet.rules.append(
            DomainRule(f"hosts{number}", "apart", tuple(units), rows, fleet.racks, meanwhile=0)
        )
        fleet.rules.append(
            DomainRule(f"racks{number}", "skew", tuple(units), fleet.racks, fleet.racks)
        )
    leaves = fleet.racks == 0
    return Instance(fleet.problem(leaves), ensembles)


def _member(fleet: Fleet, rack: int, flavor: tuple[int, ...]) -> int:
    """A unit on some host of a rack that has room."""
    while True:
        host = rack * RACK + fleet.dice.randrange(RACK)
        if fleet.take(host, flavor):
            return fleet.add(host, flavor)
        # Something that is not listed makes way.
        fleet.free[host] += flavor


def broken(
    seed: int, *, hosts: int = 2000, ensembles: int = 100, size: int = 20, moved: int = 2
) -> Instance:
    """Ensembles are kept apart by host and by rack, but some members were moved beside others."""
    fleet = Fleet(hosts, random.Random(seed))
    fleet.fill(0.75)
    racks = hosts // RACK
    rows = np.arange(hosts, dtype=np.int64)
    for number in range(ensembles):
        own = fleet.dice.sample(range(racks), size)
        units = [_member(fleet, rack, fleet.dice.choice(FLAVORS[:4])) for rack in own]
        for unit in fleet.dice.sample(units, moved):
            beside = fleet.dice.choice([one for one in units if one != unit])
            fleet.free[fleet.start[unit]] += fleet.amounts[unit]
            fleet.start[unit] = fleet.start[beside]
            fleet.free[fleet.start[unit]] -= fleet.amounts[unit]
            np.maximum(fleet.free, 0, out=fleet.free)
        for kind, domains in (("hosts", rows), ("racks", fleet.racks)):
            name = f"{kind}{number}"
            fleet.rules.append(DomainRule(name, "apart", tuple(units), domains, fleet.racks))
    return Instance(fleet.problem(), ensembles * moved)


def admit(seed: int, *, hosts: int = 1000, newcomers: int = 20, tight: bool = False) -> Instance:
    """Newcomers fitted, until units were moved into their places; they are kept apart by host.

    Each place took units until no newcomer had room there any more. Hosts are full to nine tenths.
    If tight, what is left of a host is too small for any unit: units fit only where others left.
    """
    fleet = Fleet(hosts, random.Random(seed))
    dice = fleet.dice
    flavors, large = (TIGHT, TIGHT_LARGE) if tight else ((*FLAVORS, *LARGES), LARGES)
    sizes = [dice.choice(large) for _ in range(newcomers)]
    places = dice.sample(range(hosts), newcomers)
    for place, size in zip(places, sizes, strict=True):
        fleet.take(place, size)
    least = np.min(large, axis=0)
    for host in range(hosts):
        until = CAPACITY[0] * (0 if tight else 1 - 0.9 * dice.uniform(0.95, 1.05))
        while fleet.free[host][0] > until or (fleet.free[host] >= least).all():
            fitting = [one for one in flavors if (fleet.free[host] >= one).all()]
            if not fitting:
                break
            flavor = dice.choice(fitting)
            fleet.take(host, flavor)
            fleet.add(host, flavor)
    for place, size in zip(places, sizes, strict=True):
        fleet.free[place] += size
    moved = _fill_places(fleet, places, least)
    newly = tuple(fleet.add(-1, size) for size in sizes)
    fleet.rules.append(
        DomainRule("apart", "apart", newly, np.arange(hosts, dtype=np.int64), fleet.racks)
    )
    return Instance(fleet.problem(), moved)


def _fill_places(fleet: Fleet, places: list[int], least: Ints) -> int:
    """Move units into these places until none has room for a newcomer; returns how many."""
    moved = 0
    order = [
        unit
        for unit, host in enumerate(fleet.start)
        if host not in places and not (fleet.free[host] + fleet.amounts[unit] >= least).all()
    ]
    fleet.dice.shuffle(order)
    for place in places:
        while (fleet.free[place] >= least).all():
            unit = next(one for one in order if (fleet.free[place] >= fleet.amounts[one]).all())
            order.remove(unit)
            fleet.free[fleet.start[unit]] += fleet.amounts[unit]
            fleet.free[place] -= fleet.amounts[unit]
            fleet.start[unit] = place
            moved += 1
    return moved


def cycles(seed: int, *, pairs: int = 1000) -> tuple[MoveProblem, list[int]]:
    """Pairs of full hosts whose large units change places, and one host with room for one."""
    fleet = Fleet(2 * pairs + 1, random.Random(seed))
    targets = []
    for host in range(2 * pairs):
        fleet.take(host, LARGE)
        fleet.add(host, LARGE)
        targets.append(host ^ 1)
        fleet.free[host] = np.minimum(fleet.free[host], 8)
    return fleet.problem(), targets
