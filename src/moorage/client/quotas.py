"""Quotas: what projects may lease and hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from moorage.client.ensembles import answer, dry
from moorage.client.structs import Answer
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/quotas"


class Limit(msgspec.Struct, frozen=True):
    """One limit: None is unlimited; a text is a duration."""

    limit: int | str | None = None
    used: int | None = None
    left: int | None = None
    over: bool = False
    default: bool = True


class Quota(msgspec.Struct, frozen=True):
    """What a project may have, and has."""

    project_id: str
    window: str
    lease_units: Limit
    lease_unit_hours: Limit
    lease_horizon: Limit
    lease_max_length: Limit
    leases: Limit
    held_units: Limit
    lease_priority: Limit = Limit(0)


class QuotaCalls:
    """`/v1/quotas`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def own(self) -> Answer[Quota]:
        """The caller's project's."""
        reply = self._call("GET", _PATH)
        body = {"quota": reply.body["quotas"][0]}
        value = msgspec.convert(body["quota"], Quota, strict=False)
        return Answer(value, body, reply.request_id)

    def all(self) -> Answer[list[Quota]]:
        """Every project's of which something is said."""
        reply = self._call("GET", _PATH, params={"all_projects": "true"})
        value = msgspec.convert(reply.body["quotas"], list[Quota], strict=False)
        return Answer(value, reply.body, reply.request_id)

    def show(self, project_id: str) -> Answer[Quota]:
        """One project's."""
        return answer(self._call("GET", _path(project_id)), "quota", Quota)

    def change(
        self, project_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Quota]:
        """Say what a project may have; what is not named stays."""
        reply = self._call("PATCH", _path(project_id), body={"quota": limits}, params=dry(dry_run))
        return answer(reply, "quota", Quota)

    def unset(self, project_id: str) -> Reply:
        """Let the defaults hold again."""
        return self._call("DELETE", _path(project_id))


def _path(project_id: str) -> str:
    """Where a project's quota is.

    Raises:
        InvalidDescription: no path of the API can name it.
    """
    if not project_id or "/" in project_id:
        raise InvalidDescription(f"a project's id is not empty and has no slash: {project_id!r}")
    return f"{_PATH}/{quote(project_id, safe='')}"
