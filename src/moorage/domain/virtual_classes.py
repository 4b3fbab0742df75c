"""Virtual resource classes: terms of a server that a flavor requests, and no inventory has.

Nova asks for a flavor's `resources:CUSTOM_...=n` when it looks for hosts, and writes the same with
the server's allocations. Nothing of these is stored as a booking: they say how long a server
stays (`HOURS`), whether it yields to leases (`PREEMPTIBLE`), or that it takes a place of a lease
(`RESERVATION`) or of a held decision (`TICKET`).
"""

from __future__ import annotations

import re
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

_MOORAGE: Final = "CUSTOM_MOORAGE_"
_PREFIXES: Final = (_MOORAGE, RESERVATION)
_PLACES: Final = (RESERVATION, TICKET)
_EXTRA_SPEC: Final = re.compile(r"resources([A-Za-z0-9_-]*):(.+)")


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


def may_be_virtual(name: ResourceClass) -> bool:
    """Whether a name is of the form of virtual classes; those of reservations are Blazar's, too."""
    return name.startswith(_PREFIXES)


def is_of_moorage(name: ResourceClass) -> bool:
    """Whether a name is one that nobody but Moorage gives."""
    return name.startswith(_MOORAGE)


def classes_of_flavor(extra_specs: Mapping[str, str]) -> frozenset[ResourceClass]:
    """The virtual classes that a flavor's extra specs request, in whichever group."""
    found = ((_EXTRA_SPEC.fullmatch(key), amount) for key, amount in extra_specs.items())
    return frozenset(
        spec[2]
        for spec, amount in found
        if spec is not None and may_be_virtual(spec[2]) and amount.strip() != "0"
    )


def reservation_of(name: ResourceClass) -> str:
    """The id of the reservation that this class would name; see `leases.reservation_class`."""
    return name.removeprefix(RESERVATION).lower().replace("_", "-")
