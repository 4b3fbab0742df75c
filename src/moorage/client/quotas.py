"""Quotas: what projects may lease, hold and store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moorage.client import lookup
from moorage.client.resource import Answer, Resource, answer, converted
from moorage.domain.errors import InvalidDescription
from moorage.wire.quotas import Quota

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply


class QuotaCalls(Resource):
    """`/v1/quotas`."""

    path, one, many = "/v1/quotas", "quota", "quotas"

    def own(self) -> Answer[Quota]:
        """The quota of the caller's project."""
        reply = self._call("GET", self.path)
        body = {"quota": reply.body["quotas"][0]}
        return Answer(converted(body["quota"], Quota), body, reply.request_id)

    def all(self) -> Answer[list[Quota]]:
        """The quotas set for any project."""
        reply = lookup.whole(self._call, self.path, self.many, {"all_projects": "true"})
        return answer(reply, self.many, list[Quota])

    def show(self, project_id: str) -> Answer[Quota]:
        """One project's quota."""
        return self._get(Quota, _named(project_id))

    def change(
        self, project_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Quota]:
        """Set limits of a project; absent ones stay."""
        path, body = _named(project_id), {"quota": limits}
        return self._send("PATCH", path, body, Quota, "quota", dry_run=dry_run)

    def unset(self, project_id: str) -> Reply:
        """Reset a project to the defaults."""
        return self._delete(_named(project_id))


def _named(project_id: str) -> str:
    """The path of a project's quota.

    Raises:
        InvalidDescription: no path of the API can name it.
    """
    if not project_id or "/" in project_id:
        raise InvalidDescription(f"a project's id is not empty and has no slash: {project_id!r}")
    return f"/{quote(project_id, safe='')}"
