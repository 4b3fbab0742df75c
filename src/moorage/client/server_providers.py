"""Server providers: what servers offer to slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.client import lookup
from moorage.client.resource import Answer, Resource, answer
from moorage.wire.server_providers import ServerProvider, Slice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ServerProviderCalls(Resource):
    """`/v1/server-providers`."""

    path, one, many = "/v1/server-providers", "server_provider", "server_providers"

    def put(
        self,
        server_id: str,
        resources: Mapping[str, int],
        *,
        traits: Sequence[str] = (),
        shared_with: str | Sequence[str] = "nobody",
        dry_run: bool = False,
    ) -> Answer[ServerProvider]:
        """Say all that a server offers; `shared_with`: `nobody`, `everyone`, or project ids."""
        offer = {
            "resources": dict(resources),
            "traits": list(traits),
            "shared_with": shared_with if isinstance(shared_with, str) else list(shared_with),
        }
        body = {self.one: offer}
        return self._send("PUT", f"/{server_id}", body, ServerProvider, self.one, dry_run=dry_run)

    def all(self, *, all_projects: bool = False) -> Answer[list[ServerProvider]]:
        """Those on which the project may place slices, by creation."""
        return self._all(ServerProvider, all_projects=all_projects)

    def show(self, server_id: str) -> Answer[ServerProvider]:
        """What a server of the project offers."""
        return self._get(ServerProvider, f"/{server_id}")

    def delete(self, server_id: str, *, force: bool = False) -> None:
        """Delete it; with `force` also while slices are there, which end."""
        self._delete(f"/{server_id}", force=force)

    def slices(self, server_id: str) -> Answer[list[Slice]]:
        """The slices on a server of the project that are building or active, by id."""
        reply = lookup.whole(self._call, f"{self.path}/{server_id}/slices", "slices")
        return answer(reply, "slices", list[Slice])

    def report(self, server_id: str, claim_id: str, change: Mapping[str, object]) -> Answer[Slice]:
        """Report what became of a claimed slice; `change` is a `SlicePatchBody`."""
        path = f"/{server_id}/slices/{claim_id}"
        return self._send("PATCH", path, {"slice": change}, Slice, "slice")
