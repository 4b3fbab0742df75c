"""Series: leases that recur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.answer import Answer, converted, dry, whole
from moorage.wire.series import Cancelled, OneSeries, Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/series"


class SeriesCalls:
    """`/v1/series`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a name or an id's beginning.

        A name means the series that is not closed, where others that were called so are.
        """
        if lookup.UUID.fullmatch(text):
            return text

        def choose(series: Sequence[dict[str, Any]]) -> str:
            standing = [one for one in series if one["status"] != "closed"]
            named = [one for one in standing if one["name"] == text]
            return lookup.pick("series", text, named or series)

        return lookup.search(self._transport, _PATH, "series", choose)

    def create(self, series: Mapping[str, Any], *, dry_run: bool = False) -> Answer[OneSeries]:
        """Request a series: every occurrence is granted, or the refusal is explained."""
        return _made(self._call("POST", _PATH, body={"series": dict(series)}, params=dry(dry_run)))

    def show(self, series_id: str) -> Answer[OneSeries]:
        """One series with its leases."""
        return _made(self._call("GET", f"{_PATH}/{series_id}"))

    def all(self, *, name: str | None = None, all_projects: bool = False) -> Answer[list[Series]]:
        """Series of the caller's project, or of all projects, oldest first."""
        asked = {"name": name, "all_projects": "true" if all_projects else None}
        given = {key: text for key, text in asked.items() if text}
        body = {"series": [*lookup.pages(self._transport, _PATH, "series", given)]}
        return Answer(converted(body["series"], list[Series]), body)

    def rename(
        self, series_id: str, name: str, generation: int, *, dry_run: bool = False
    ) -> Answer[OneSeries]:
        """Rename it and its leases, if its generation is unchanged."""
        body = {"series": {"name": name, "generation": generation}}
        return _made(self._call("PATCH", f"{_PATH}/{series_id}", body=body, params=dry(dry_run)))

    def extend(
        self, series_id: str, extension: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneSeries]:
        """Add occurrences at the end. Sends its generation."""
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
        """Cancel leases that have not started: all, from a number on, or one."""
        params: dict[str, str | int] = dict(dry(dry_run) or {})
        params |= {"from": since} if since is not None else {}
        params |= {"only": only} if only is not None else {}
        reply = self._call("DELETE", f"{_PATH}/{series_id}", params=params)
        return whole(reply, Cancelled)


def _made(reply: Reply) -> Answer[OneSeries]:
    return whole(reply, OneSeries)
