"""Quotas: what projects may lease, hold and store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moorage.client import lookup
from moorage.client.answer import Answer, answer, converted, dry
from moorage.domain.errors import InvalidDescription
from moorage.wire.quotas import Quota

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/quotas"


class QuotaCalls:
    """`/v1/quotas`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def own(self) -> Answer[Quota]:
        """The quota of the caller's project."""
        reply = self._call("GET", _PATH)
        body = {"quota": reply.body["quotas"][0]}
        value = converted(body["quota"], Quota)
        return Answer(value, body, reply.request_id)

    def all(self) -> Answer[list[Quota]]:
        """The quotas set for any project."""
        reply = lookup.whole(self._call, _PATH, "quotas", {"all_projects": "true"})
        value = converted(reply.body["quotas"], list[Quota])
        return Answer(value, reply.body, reply.request_id)

    def show(self, project_id: str) -> Answer[Quota]:
        """One project's quota."""
        return answer(self._call("GET", _path(project_id)), "quota", Quota)

    def change(
        self, project_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Quota]:
        """Set limits of a project; absent ones stay."""
        reply = self._call("PATCH", _path(project_id), body={"quota": limits}, params=dry(dry_run))
        return answer(reply, "quota", Quota)

    def unset(self, project_id: str) -> Reply:
        """Reset a project to the defaults."""
        return self._call("DELETE", _path(project_id))


def _path(project_id: str) -> str:
    """The path of a project's quota.

    Raises:
        InvalidDescription: no path of the API can name it.
    """
    if not project_id or "/" in project_id:
        raise InvalidDescription(f"a project's id is not empty and has no slash: {project_id!r}")
    return f"{_PATH}/{quote(project_id, safe='')}"
