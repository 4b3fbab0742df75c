"""Series: leases that recur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import lookup
from moorage.client.ensembles import dry
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/series"


class Occurrence(msgspec.Struct, frozen=True):
    """One lease of a series, in brief; `lease_id` is None in a dry run."""

    index: int
    start: str
    end: str
    lease_id: str | None = None
    handle: str = ""
    name: str = ""
    status: str = ""
    degraded: bool = False


class LeftOut(msgspec.Struct, frozen=True):
    """An occurrence that could not be granted."""

    index: int
    start: str
    end: str
    why: str = ""
    explanation_id: str | None = None


class Series(msgspec.Struct, frozen=True):
    """A series. `generation` is what a change must name; `start` is a wall's clock in `zone`."""

    id: str
    name: str
    status: str
    every: str
    start: str
    zone: str = "UTC"
    duration: str = ""
    project_id: str = ""
    generation: int = 0
    times: int = 0
    granted: int = 0
    closed: int = 0
    places: int = 0
    lead: str = "PT0S"
    cleaning: str = "PT0S"
    expiry: str | None = None
    priority: int = 0
    before_start: list[str] = []
    on_start: list[str] = []
    before_end: list[str] = []
    on_end: list[str] = []
    left_out: list[LeftOut] = []
    occurrences: list[Occurrence] = []
    created_at: str = ""


class Made(msgspec.Struct, frozen=True):
    """A series granted, changed or shown (or, in a dry run, only judged)."""

    series: Series
    dry_run: bool = False
    computed_at: str = ""
    revision: int = 0


class Cancelled(msgspec.Struct, frozen=True):
    """The leases that were cancelled, or would be."""

    cancelled: list[Occurrence]
    dry_run: bool = False


class SeriesCalls:
    """`/v1/series`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id, a name or an id's beginning means.

        A name means the series that is not closed, where others that were called so are.
        """
        if lookup.UUID.fullmatch(text):
            return text
        everything = list(lookup.pages(self._transport, _PATH, "series"))
        standing = [one for one in everything if one["status"] != "closed"]
        named = [one for one in standing if one["name"] == text]
        return lookup.pick("series", text, named or everything)

    def create(self, series: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Made]:
        """Ask for a series: every occurrence is granted, or there is a reason."""
        return _made(self._call("POST", _PATH, body={"series": dict(series)}, params=dry(dry_run)))

    def show(self, series_id: str) -> Answer[Made]:
        """One series with its leases."""
        return _made(self._call("GET", f"{_PATH}/{series_id}"))

    def all(self, *, name: str | None = None, all_projects: bool = False) -> Answer[list[Series]]:
        """Series of the caller's project, or of all projects, oldest first."""
        asked = {"name": name, "all_projects": "true" if all_projects else None}
        given = {key: text for key, text in asked.items() if text}
        body = {"series": [*lookup.pages(self._transport, _PATH, "series", given)]}
        return Answer(msgspec.convert(body["series"], list[Series], strict=False), body)

    def rename(
        self, series_id: str, name: str, generation: int, *, dry_run: bool = False
    ) -> Answer[Made]:
        """Call it, and its leases, otherwise. If it is still at that generation."""
        body = {"series": {"name": name, "generation": generation}}
        return _made(self._call("PATCH", f"{_PATH}/{series_id}", body=body, params=dry(dry_run)))

    def extend(
        self, series_id: str, extension: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Made]:
        """Add occurrences at the end. Names its generation."""
        return _made(
            self._call(
                "POST",
                f"{_PATH}/{series_id}/extend",
                body={"series": dict(extension)},
                params=dry(dry_run),
            )
        )

    def cancel(
        self,
        series_id: str,
        *,
        since: int | None = None,
        only: int | None = None,
        dry_run: bool = False,
    ) -> Answer[Cancelled]:
        """Cancel what has not started: all of it, from a number on, or one."""
        params: dict[str, str | int] = dict(dry(dry_run) or {})
        params |= {"from": since} if since is not None else {}
        params |= {"only": only} if only is not None else {}
        reply = self._call("DELETE", f"{_PATH}/{series_id}", params=params)
        return Answer(
            msgspec.convert(reply.body, Cancelled, strict=False), reply.body, reply.request_id
        )


def _made(reply: Reply) -> Answer[Made]:
    return Answer(msgspec.convert(reply.body, Made, strict=False), reply.body, reply.request_id)
