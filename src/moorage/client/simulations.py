"""Simulations: what would be if the fleet or ensembles changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client.resource import Answer, Resource
from moorage.wire.simulations import FleetSurvivability, Simulation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SimulationCalls(Resource):
    """`/v1/simulations`. Not the clock of `moorage sim`, which is `/v1/simulation/clock`."""

    path, one = "/v1/simulations", "simulation"

    def create(
        self,
        changes: Sequence[Mapping[str, Any]],
        *,
        at: str | None = None,
        flavors: Sequence[str] = (),
        time_limit: str | None = None,
    ) -> Answer[Simulation]:
        """Simulate these changes, in this order."""
        body: dict[str, Any] = {"changes": changes, "flavors": flavors}
        if at is not None:
            body["at"] = at
        if time_limit is not None:
            body["time_limit"] = time_limit
        return self._send("POST", "", {"simulation": body}, Simulation, "simulation")


class SurvivabilityCalls(Resource):
    """`/v1/survivability`: the fleet's; an ensemble's own is `Ensembles.survivability`."""

    path, one = "/v1/survivability", "survivability"

    def show(
        self,
        level: str | None = None,
        *,
        lose: int | None = None,
        domains: Sequence[str] = (),
        time_limit: str | None = None,
    ) -> Answer[FleetSurvivability]:
        """What the loss of any domain of a level does, or of these together."""
        return self._get(
            FleetSurvivability,
            level=level,
            lose=lose,
            domains=",".join(domains) or None,
            time_limit=time_limit,
        )
