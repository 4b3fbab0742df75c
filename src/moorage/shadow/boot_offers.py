"""Where new servers went, beside what Moorage had offered to the same request."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.shadow.comparison import Answered
from moorage.shadow.report import note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.shadow.exchange import Exchange
    from moorage.shadow.report import Boots

_MOST: Final = 1_000
"""Requests for candidates that are remembered until their servers are written."""


@dataclass(slots=True)
class BootOffers:
    """The candidates of the newest requests that have an id, as Nova gives each boot."""

    _offered: OrderedDict[str, list[frozenset[str]]] = field(default_factory=OrderedDict)

    def remember(self, exchange: Exchange, ours: Answered) -> None:
        """Keep what Moorage offers to a request."""
        document = ours.document
        if not exchange.request_id or not isinstance(document, dict):
            return
        found = [_providers(one) for one in document.get("allocation_requests", [])]
        self._offered[exchange.request_id] = found
        self._offered.move_to_end(exchange.request_id)
        while len(self._offered) > _MOST:
            self._offered.popitem(last=False)

    def count(self, exchange: Exchange, boots: Boots) -> None:
        """Count the servers that a write places, if their candidates were seen."""
        offers = self._offered.get(exchange.request_id)
        if offers is None or not exchange.path.startswith("/allocations"):
            return
        for chosen in _written(Answered(0, exchange.body).document):
            boots.seen += 1
            if chosen in offers:
                boots.possible_here += 1
                boots.first_here += chosen == offers[0]
            else:
                where = ", ".join(sorted(chosen))
                note(boots.elsewhere, exchange.example(f"on {where}, of {len(offers)} offers"))


def _providers(allocation_request: Mapping[str, Any]) -> frozenset[str]:
    """The providers of one candidate, or of one consumer's allocations, in any version's form."""
    allocations = allocation_request.get("allocations", {})
    if isinstance(allocations, list):
        return frozenset(one["resource_provider"]["uuid"] for one in allocations)
    return frozenset(allocations)


def _written(body: object) -> list[frozenset[str]]:
    """The providers of each consumer to which a write gives allocations."""
    if not isinstance(body, dict):
        return []
    sets = [body] if "allocations" in body else list(body.values())
    found = [_providers(one) for one in sets if isinstance(one, dict)]
    return [one for one in found if one]
