"""A fleet whose hosts have cards (GPUs) below them, and the snapshot that the engine gets of it.

The shape is that of the public trace openb: two, four or eight cards of one model on each host, 5.1
of them on average, which servers take whole or in parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from benchmarks.joint.fleet import VCPU, make_fleet, snapshot_with, states_of

from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.engine.state.arrivals import AddedBookings
from moorage.engine.state.columns import ProviderState
from moorage.testing.problems import OTHER_PROJECT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]

CARD: Final = "CUSTOM_GPU_MILLI"
WHOLE: Final = 1_000
"""What a card has of its class."""
QUARTER: Final = WHOLE // 4
MODELS: Final = tuple(
    f"CUSTOM_GPU_{name}" for name in ("P100", "T4", "V100", "A10", "A100", "H100")
)
"""Traits of the cards; those of a host are alike."""
_COUNTS, _SHARES = (2, 4, 8), (0.25, 0.34, 0.41)
_WHOLE_TAKEN, _PARTLY_TAKEN = 0.75, 0.5
"""Of the fleet's load: the share of cards that are taken whole, and in part."""


@dataclass(frozen=True, eq=False)
class CardFleet:
    """H hosts with C cards."""

    hosts: Fleet
    host: Ints
    """[C] row of the card's host, ascending."""
    used: Ints
    """[C] thousandths of the card."""
    model: Ints
    """[H] number of the host's model."""

    @property
    def free(self) -> Ints:
        """[C] what is not used."""
        return WHOLE - self.used

    @cached_property
    def names(self) -> tuple[str, ...]:
        """[C] names of the cards, which are also their UUIDs."""
        first = np.searchsorted(self.host, self.host)
        numbers = (np.arange(len(self.host)) - first).tolist()
        rows = self.host.tolist()
        return tuple(f"{self.hosts.names[h]}-gpu{n}" for h, n in zip(rows, numbers, strict=True))

    @cached_property
    def card_of(self) -> Mapping[str, int]:
        """Name of a card -> its number."""
        return {name: card for card, name in enumerate(self.names)}

    def cards(self, row: int) -> range:
        """Numbers of a host's cards."""
        first, last = np.searchsorted(self.host, [row, row + 1]).tolist()
        return range(first, last)


def make_card_fleet(hosts: int, *, load: float, seed: int) -> CardFleet:
    """The hosts of `make_fleet` with cards, of which about `load` is used."""
    fleet = make_fleet(hosts, load=load, seed=seed)
    dice = np.random.default_rng([seed, 1])
    host = np.repeat(np.arange(hosts), dice.choice(_COUNTS, size=hosts, p=_SHARES))
    fate, parts = dice.random(len(host)), QUARTER * dice.integers(1, 4, len(host))
    taken = np.where(fate < load * (_WHOLE_TAKEN + _PARTLY_TAKEN), parts, 0)
    used = np.where(fate < load * _WHOLE_TAKEN, WHOLE, taken)
    return CardFleet(fleet, host, used, dice.integers(0, len(MODELS), hosts))


def snapshot_of_cards(cards: CardFleet) -> Snapshot:
    """The fleet as the engine knows it."""
    return snapshot_with(cards.hosts, (*states_of(cards.hosts), *_states(cards)))


def _states(cards: CardFleet) -> Iterator[ProviderState]:
    rows, used = cards.host.tolist(), cards.used.tolist()
    for name, row, taken in zip(cards.names, rows, used, strict=True):
        above = cards.hosts.names[row]
        provider = ResourceProvider(
            uuid=name,
            name=name,
            parent_uuid=above,
            root_uuid=above,
            inventories=(Inventory(CARD, WHOLE),),
            traits=frozenset({MODELS[int(cards.model[row])]}),
        )
        some = [_booking(f"on-{name}", name, CARD, taken)] if taken else []
        yield ProviderState(provider, tuple(some), tuple(map(_occupant, some)))


def _booking(consumer: str, provider: str, name: str, amount: int) -> Booking:
    return Booking(consumer, provider, MappingProxyType({name: amount}), Period(0))


def _occupant(booking: Booking) -> Occupant:
    return Occupant(booking.consumer, OTHER_PROJECT)


def after_a_card_commit(
    cards: CardFleet, snapshot: Snapshot, number: int, avoid: Collection[int]
) -> tuple[CardFleet, Snapshot]:
    """The fleet after somebody's server with a quarter of a card was built on any other host."""
    fleet = cards.hosts
    there = fleet.strangers & (fleet.free[:, fleet.classes.index(VCPU)] > 0)
    there[list(avoid)] = False
    able = np.flatnonzero(there[cards.host] & (cards.free >= QUARTER))
    card = int(able[(number * 7_919) % len(able)])
    row, consumer = int(cards.host[card]), f"commit-{number}"
    added = []
    for uuid, name, amount in (
        (fleet.names[row], VCPU, 1),
        (cards.names[card], CARD, QUARTER),
    ):
        old = snapshot.state(snapshot.row(uuid))
        one = _booking(consumer, uuid, name, amount)
        state = replace(
            old,
            provider=replace(old.provider, revision=old.provider.revision + 1),
            bookings=(*old.bookings, one),
            occupants=(*old.occupants, _occupant(one)),
        )
        added.append(AddedBookings(state, (one,)))
    taken, used = fleet.used.copy(), cards.used.copy()
    taken[row, fleet.classes.index(VCPU)] += 1
    used[card] += QUARTER
    changed = replace(cards, hosts=replace(fleet, used=taken), used=used)
    return changed, snapshot.with_states(added, revision=snapshot.revision + 1)
