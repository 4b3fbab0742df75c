"""Capacity over time, how many more fit, and free windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.answer import Answer, answer, converted, dry, whole
from moorage.wire.capacity import CapacityValue, Fit, PlannedWindow, Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Transport

_PATH = "/v1/capacity"


class Capacities:
    """`/v1/capacity`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def over_time(self, **said: str | None) -> Answer[CapacityValue]:
        """Step functions of time; `since` is the API's `from`, `until` its `to`."""
        reply = self._call("GET", _PATH, params=_params(said))
        return answer(reply, "capacity", CapacityValue)

    def fit(self, fit: Mapping[str, Any]) -> Answer[Fit]:
        """How many more fit."""
        return answer(self._call("POST", f"{_PATH}/fit", body={"fit": fit}), "fit", Fit)

    def windows(self, **said: str | None) -> Answer[Windows]:
        """Windows in which so many fit for so long."""
        reply = self._call("GET", f"{_PATH}/windows", params=_params(said))
        return whole(reply, Windows)

    def planned(self) -> Answer[list[PlannedWindow]]:
        """Every planned change, by creation."""
        items = list(lookup.pages(self._transport, f"{_PATH}/planned", "windows"))
        return Answer(converted(items, list[PlannedWindow]), {"windows": items}, "")

    def find(self, text: str) -> str:
        """The id for an id or its beginning."""
        if lookup.UUID.fullmatch(text):
            return text
        items = lookup.pages(self._transport, f"{_PATH}/planned", "windows")
        return lookup.pick("capacity window", text, [{"name": "", **one} for one in items])

    def plan(self, window: Mapping[str, Any], *, dry_run: bool = False) -> Answer[PlannedWindow]:
        """Plan that hosts are unavailable."""
        body = {"window": window}
        reply = self._call("POST", f"{_PATH}/planned", body=body, params=dry(dry_run))
        return answer(reply, "window", PlannedWindow)

    def window(self, window_id: str) -> Answer[PlannedWindow]:
        """One planned window, and the bookings on its hosts."""
        return answer(self._call("GET", f"{_PATH}/planned/{window_id}"), "window", PlannedWindow)

    def drop(self, window_id: str) -> None:
        """Delete the planned window."""
        self._call("DELETE", f"{_PATH}/planned/{window_id}")


def _params(said: Mapping[str, str | None]) -> dict[str, str | int]:
    names = {"since": "from", "until": "to"}
    return {names.get(name, name): text for name, text in said.items() if text is not None}
