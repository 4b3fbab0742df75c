"""Virtual resource classes: terms of a server that a flavor requests, and no inventory has.

Nova asks for a flavor's `resources:CUSTOM_...=n` when it looks for hosts, and writes the same with
the server's allocations. Nothing of these is stored as a booking: they say how long a server
stays (`HOURS`), whether it yields to leases (`PREEMPTIBLE`), or that it takes a place of a lease
(`RESERVATION`) or of a held decision (`TICKET`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.period import HOUR, LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.period import Duration
    from moorage.domain.resources import Amounts, ResourceClass

HOURS: Final = "CUSTOM_MOORAGE_HOURS"
"""So many hours the server stays at most; its owner declares the end with the flavor."""
PREEMPTIBLE: Final = "CUSTOM_MOORAGE_PREEMPTIBLE"
"""One unit: the server may be ended early for a lease that needs its place."""
RESERVATION: Final = "CUSTOM_RESERVATION_"
"""How the classes of reservations begin; see `leases.reservation_class`."""
TICKET: Final = "CUSTOM_MOORAGE_TICKET_"
"""How ticket classes begin; see `tickets.ticket_class`."""

MOST: Final[Mapping[ResourceClass, int]] = MappingProxyType(
    {HOURS: LONGEST // HOUR, PREEMPTIBLE: 1}
)
"""The most of each class of terms that one server may ask for."""

_PREFIXES: Final = ("CUSTOM_MOORAGE_", RESERVATION)
_PLACES: Final = (RESERVATION, TICKET)


@dataclass(frozen=True, slots=True)
class DeclaredTerms:
    """The terms that the virtual classes of a request ask for."""

    hours: int | None = None
    preemptible: bool = False
    tickets: Mapping[ResourceClass, int] = field(default_factory=lambda: MappingProxyType({}))
    """Units by class, of reservations and of tickets.

    The class of a reservation that no lease has may be a class like any other.
    """

    @property
    def life(self) -> Duration | None:
        """The longest stay, as declared."""
        return None if self.hours is None else self.hours * HOUR

    @property
    def terms(self) -> tuple[ResourceClass, ...]:
        """The virtual classes of terms that are requested."""
        asked = ((HOURS, self.hours is not None), (PREEMPTIBLE, self.preemptible))
        return tuple(name for name, wanted in asked if wanted)


def declared_terms(requested: Iterable[Amounts]) -> DeclaredTerms | None:
    """The terms requested by virtual classes, over all groups or providers; None: none.

    The first look at every request: nearly all have none.
    """
    found: dict[ResourceClass, int] = {}
    for amounts in requested:
        for name, amount in amounts.items():
            if name.startswith(_PREFIXES):
                found[name] = found.get(name, 0) + amount
    if not found:
        return None
    declared = DeclaredTerms(
        hours=found.pop(HOURS, None),
        preemptible=found.pop(PREEMPTIBLE, 0) > 0,
        tickets=MappingProxyType(
            {name: amount for name, amount in found.items() if name.startswith(_PLACES)}
        ),
    )
    return declared if declared.terms or declared.tickets else None


def reservation_of(name: ResourceClass) -> str:
    """The id of the reservation that this class would name; see `leases.reservation_class`."""
    return name.removeprefix(RESERVATION).lower().replace("_", "-")
