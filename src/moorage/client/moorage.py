"""The client: one object per caller, one attribute per noun of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from moorage.client.capacity import Capacities
from moorage.client.ensembles import Claims, Decisions, Ensembles, Explanations
from moorage.client.errors import Forbidden
from moorage.client.events import EventCalls, Subscriptions
from moorage.client.fleets import Flavors, Fleets, Placement, Simulation, Topologies
from moorage.client.hot import Hot
from moorage.client.leases import LeaseCalls
from moorage.client.offers import OfferCalls
from moorage.client.quotas import QuotaCalls
from moorage.client.series import SeriesCalls
from moorage.client.templates import Templates
from moorage.client.transport import Transport
from moorage.client.waitlist import WaitlistCalls

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    import httpx

    from moorage.client.discovery import Access


class Moorage:
    """Everything one caller can ask of one service."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.ensembles = Ensembles(transport)
        self.decisions = Decisions(transport)
        self.claims = Claims(transport)
        self.leases = LeaseCalls(transport)
        self.offers = OfferCalls(transport)
        self.series = SeriesCalls(transport)
        self.waitlist = WaitlistCalls(transport)
        self.explanations = Explanations(transport)
        self.capacity = Capacities(transport)
        self.flavors = Flavors(transport)
        self.topology = Topologies(transport)
        self.fleet = Fleets(transport)
        self.placement = Placement(transport)
        self.simulation = Simulation(transport)
        self.hot = Hot(transport)
        self.quotas = QuotaCalls(transport)
        self.templates = Templates(transport)
        self.events = EventCalls(transport)
        self.subscriptions = Subscriptions(transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._transport.close()

    def elsewhere(self, path: str, params: Mapping[str, str | None]) -> bool:
        """Whether a listing has anything when it is of all projects; no, where one may not ask."""
        asked: dict[str, str | int] = {key: text for key, text in params.items() if text}
        try:
            body = self._transport.call(
                "GET", path, params={**asked, "limit": 1, "all_projects": "true"}
            ).body
        except Forbidden:
            return False
        return any(isinstance(part, list) and part for part in body.values())


def connect(access: Access, *, through: httpx.BaseTransport | None = None) -> Moorage:
    """A client for an endpoint and identity; see `discovery.find`. Connects when first asked."""
    return Moorage(Transport(access, through=through))
