"""Capacity over time, how many more fit, free windows, and planned ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.resource import Resource
from moorage.wire.capacity import CapacityValue, Fit, PlannedWindow, Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.resource import Answer


class Capacities(Resource):
    """`/v1/capacity`."""

    path = "/v1/capacity"

    def over_time(self, **said: str | None) -> Answer[CapacityValue]:
        """Step functions of time; `since` is the API's `from`, `until` its `to`."""
        return self._get(CapacityValue, "", "capacity", **_params(said))

    def fit(self, fit: Mapping[str, Any]) -> Answer[Fit]:
        """How many more fit."""
        return self._send("POST", "/fit", {"fit": fit}, Fit, "fit")

    def windows(self, **said: str | None) -> Answer[Windows]:
        """Windows in which so many fit for so long."""
        return self._get(Windows, "/windows", None, **_params(said))

    def planned(self) -> Answer[list[PlannedWindow]]:
        """Every planned change, by creation."""
        return self._all(PlannedWindow, "/planned", "windows")

    def find(self, text: str) -> str:
        """The id for an id or its beginning."""
        if lookup.UUID.fullmatch(text):
            return text
        items = lookup.pages(self._transport, f"{self.path}/planned", "windows")
        return lookup.pick("capacity window", text, [{"name": "", **one} for one in items])

    def plan(self, window: Mapping[str, Any], *, dry_run: bool = False) -> Answer[PlannedWindow]:
        """Plan that hosts are unavailable."""
        body = {"window": window}
        return self._send("POST", "/planned", body, PlannedWindow, "window", dry_run=dry_run)

    def window(self, window_id: str) -> Answer[PlannedWindow]:
        """One planned window, and the bookings on its hosts."""
        return self._get(PlannedWindow, f"/planned/{window_id}", "window")

    def drop(self, window_id: str) -> None:
        """Delete the planned window."""
        self._delete(f"/planned/{window_id}")


def _params(said: Mapping[str, str | None]) -> dict[str, str | None]:
    names = {"since": "from", "until": "to"}
    return {names.get(name, name): text for name, text in said.items()}
