"""Calls about shares: roles of ensembles that belong to other projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.client.resource import Answer, Resource, answer
from moorage.wire.shares import Share

if TYPE_CHECKING:
    from moorage.client.transport import Reply


class ShareCalls(Resource):
    """`/v1/shares`."""

    path, one, many = "/v1/shares", "share", "shares"

    def all(self, *, all_projects: bool = False) -> Answer[list[Share]]:
        """The shares that the caller's project has given and received, or every project's."""
        return self._all(Share, all_projects=all_projects)

    def show(self, share_id: str) -> Answer[Share]:
        """One share."""
        return self._get(Share, f"/{share_id}")

    def accept(self, share_id: str, *, dry_run: bool = False) -> Answer[Share]:
        """Accept a role."""
        return self._step(share_id, "accept", dry_run=dry_run)

    def revoke(self, share_id: str, *, dry_run: bool = False) -> Answer[Share]:
        """Revoke or decline a role."""
        return self._step(share_id, "revoke", dry_run=dry_run)

    def _step(self, share_id: str, step: str, *, dry_run: bool) -> Answer[Share]:
        params = {"dry_run": "true"} if dry_run else {}
        reply: Reply = self._call("POST", f"{self.path}/{share_id}/{step}", params=params)
        return answer(reply, self.one, Share)
