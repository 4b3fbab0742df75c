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

    def count(self, exchange: Exchange, boots: Boots) -> tuple[str, ...]:
        """Count and return the servers that a write places, if their candidates were seen."""
        offers = self._offered.get(exchange.request_id)
        if offers is None or not exchange.path.startswith("/allocations"):
            return ()
        written = _written(exchange)
        for chosen in written.values():
            boots.seen += 1
            if chosen in offers:
                boots.possible_here += 1
                boots.first_here += chosen == offers[0]
            else:
                where = ", ".join(sorted(chosen))
                note(boots.elsewhere, exchange.example(f"on {where}, of {len(offers)} offers"))
        return tuple(written)


def _providers(allocation_request: Mapping[str, Any]) -> frozenset[str]:
    """The providers of one candidate, or of one consumer's allocations, in any version's form."""
    allocations = allocation_request.get("allocations", {})
    if isinstance(allocations, list):
        return frozenset(one["resource_provider"]["uuid"] for one in allocations)
    return frozenset(allocations)


def _written(exchange: Exchange) -> dict[str, frozenset[str]]:
    """Each consumer to which a write gives allocations, with their providers."""
    body = Answered(0, exchange.body).document
    if not isinstance(body, dict):
        return {}
    one = exchange.path.rpartition("/")[2]
    sets = {one: body} if "allocations" in body else body
    found = {
        consumer.lower(): _providers(each)
        for consumer, each in sets.items()
        if isinstance(each, dict)
    }
    return {consumer: providers for consumer, providers in found.items() if providers}
