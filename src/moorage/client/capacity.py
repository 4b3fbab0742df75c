"""Capacity: how much there is over time, how many more fit, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import lookup
from moorage.client.ensembles import answer, dry
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Transport

_PATH = "/v1/capacity"


class Amounts(msgspec.Struct, frozen=True):
    """Units of one resource class from an instant on; tenants get no totals."""

    at: str
    available: int
    busy: float
    total: int | None = None
    away: int | None = None
    reserved: int | None = None
    allocated: int | None = None
    unbacked: int | None = None


class Count(msgspec.Struct, frozen=True):
    """How many fit from an instant on."""

    at: str
    count: int


class Course(msgspec.Struct, frozen=True):
    """Some of the hosts, over time."""

    domain: str | None
    resources: dict[str, list[Amounts]]
    fit: list[Count] | None = None
    hosts: int | None = None


class Capacity(msgspec.Struct, frozen=True):
    """Capacity from `start` until `end`."""

    start: str
    end: str
    computed_at: str
    exact: bool
    parts: list[Course]
    step: str | None = None


class Limit(msgspec.Struct, frozen=True):
    """What one more would run into."""

    needs: str
    policy: str | None = None
    role: str | None = None
    classes: list[str] = []
    facts: dict[str, int] = {}


class Fit(msgspec.Struct, frozen=True):
    """How many more fit; without `exact`, at least so many."""

    additional: int
    exact: bool
    limited_by: list[Limit]
    quota_allows: int | None = None


class FreeWindow(msgspec.Struct, frozen=True):
    """A stay may begin at any instant from `earliest` to `latest`."""

    earliest: str
    latest: str
    count: int


class FreeWindows(msgspec.Struct, frozen=True):
    """When so many fit for so long."""

    windows: list[FreeWindow]
    count: int
    duration: str
    start: str
    end: str


class Staying(msgspec.Struct, frozen=True):
    """Somebody on a host that is to be away."""

    consumer: str
    project_id: str
    host: str
    state: str
    end: str | None = None


class Planned(msgspec.Struct, frozen=True):
    """Hosts that are away from `start` until `end`."""

    id: str
    kind: str
    status: str
    hosts: list[str]
    start: str
    end: str | None = None
    reason: str = ""
    staying: list[Staying] = []
    moved_leases: list[str] = []


class Capacities:
    """`/v1/capacity`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def over_time(self, **said: str | None) -> Answer[Capacity]:
        """Step functions of time; `since` is the API's `from`, `until` its `to`."""
        reply = self._call("GET", _PATH, params=_params(said))
        return answer(reply, "capacity", Capacity)

    def fit(self, fit: Mapping[str, Any]) -> Answer[Fit]:
        """How many more fit."""
        return answer(self._call("POST", f"{_PATH}/fit", body={"fit": fit}), "fit", Fit)

    def windows(self, **said: str | None) -> Answer[FreeWindows]:
        """When so many fit for so long."""
        reply = self._call("GET", f"{_PATH}/windows", params=_params(said))
        value = msgspec.convert(reply.body, FreeWindows, strict=False)
        return Answer(value, reply.body, reply.request_id)

    def planned(self) -> Answer[list[Planned]]:
        """Every planned change, by creation."""
        items = list(lookup.pages(self._transport, f"{_PATH}/planned", "windows"))
        return Answer(msgspec.convert(items, list[Planned], strict=False), {"windows": items}, "")

    def find(self, text: str) -> str:
        """The id that an id or its beginning means."""
        if lookup.UUID.fullmatch(text):
            return text
        items = lookup.pages(self._transport, f"{_PATH}/planned", "windows")
        return lookup.pick("capacity window", text, [{"name": "", **one} for one in items])

    def plan(self, window: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Planned]:
        """Plan that hosts are away."""
        body = {"window": window}
        reply = self._call("POST", f"{_PATH}/planned", body=body, params=dry(dry_run))
        return answer(reply, "window", Planned)

    def window(self, window_id: str) -> Answer[Planned]:
        """One planned change, and who is on its hosts."""
        return answer(self._call("GET", f"{_PATH}/planned/{window_id}"), "window", Planned)

    def drop(self, window_id: str) -> None:
        """Think better of it."""
        self._call("DELETE", f"{_PATH}/planned/{window_id}")


def _params(said: Mapping[str, str | None]) -> dict[str, str | int]:
    names = {"since": "from", "until": "to"}
    return {names.get(name, name): text for name, text in said.items() if text is not None}
