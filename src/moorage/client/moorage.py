"""The client: one object per caller, one attribute per noun of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from moorage.client import lookup
from moorage.client.capacity import Capacities
from moorage.client.discovery import Access
from moorage.client.ensembles import Claims, Decisions, Ensembles, Explanations, Violations
from moorage.client.errors import Forbidden
from moorage.client.events import EventCalls, Subscriptions
from moorage.client.fleets import Flavors, Fleets, Hosts, Placement, Simulation, Topologies
from moorage.client.leases import LeaseCalls, OfferCalls, SeriesCalls, WaitlistCalls
from moorage.client.plans import PlanCalls
from moorage.client.quotas import QuotaCalls
from moorage.client.request_mix import RequestMixCalls
from moorage.client.server_providers import ServerProviderCalls
from moorage.client.shares import ShareCalls
from moorage.client.simulations import SimulationCalls, SurvivabilityCalls
from moorage.client.stacks import StackCalls
from moorage.client.templates import HotCalls, Templates
from moorage.client.transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    import httpx

    from moorage.client.session import SessionServices
    from moorage.client.transport import Transport


class Moorage:
    """The API of one service for one caller."""

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
        self.violations = Violations(transport)
        self.capacity = Capacities(transport)
        self.flavors = Flavors(transport)
        self.topology = Topologies(transport)
        self.fleet = Fleets(transport)
        self.hosts = Hosts(transport)
        self.plans = PlanCalls(transport)
        self.placement = Placement(transport)
        self.simulation = Simulation(transport)
        self.simulations = SimulationCalls(transport)
        self.survivability = SurvivabilityCalls(transport)
        self.hot = HotCalls(transport)
        self.stacks = StackCalls(transport)
        self.quotas = QuotaCalls(transport)
        self.request_mix = RequestMixCalls(transport)
        self.server_providers = ServerProviderCalls(transport)
        self.shares = ShareCalls(transport)
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

    def explain_within(self, seconds: int | None) -> None:
        """Set how long the next requests wait for changes that help if they are refused.

        A refusal then says `pending` where more follows under its explanation's id. None: they wait
        for all that is found.
        """
        self._transport.explain_within = seconds

    def now(self) -> str:
        """The service's time, which a simulation's clock may have set: RFC 3339."""
        body = self._transport.call("GET", "/v1/leases", params={"limit": 1}).body
        return str(body["computed_at"])

    def listing(self, path: str, key: str) -> list[dict[str, Any]]:
        """Every item of a listing of one project, undecoded."""
        return list(lookup.pages(self._transport, path, key))

    def elsewhere(self, path: str, params: Mapping[str, str | None]) -> bool:
        """Whether the listing of all projects has items; False where the caller may not read it."""
        asked: dict[str, str | int] = {key: text for key, text in params.items() if text}
        try:
            body = self._transport.call(
                "GET", path, params={**asked, "limit": 1, "all_projects": "true"}
            ).body
        except Forbidden:
            return False
        return any(isinstance(part, list) and part for part in body.values())


def connect(
    access: Access | SessionServices, *, through: httpx.BaseTransport | None = None
) -> Moorage:
    """A client for an endpoint and identity; see `discovery.find`. Connects at the first call."""
    if isinstance(access, Access):
        return Moorage(HttpTransport(access, through=through))
    from moorage.client.session_transport import SessionTransport  # noqa: PLC0415 - an extra, slow to import

    return Moorage(SessionTransport(access))
