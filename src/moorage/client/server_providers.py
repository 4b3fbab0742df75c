"""Server providers: what servers offer to slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.errors import Missing
from moorage.client.resource import Answer, Resource, answer
from moorage.wire.server_providers import ServerProvider, Slice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ServerProviderCalls(Resource):
    """`/v1/server-providers`."""

    path, one, many = "/v1/server-providers", "server_provider", "server_providers"
    noun = "server provider"

    def find(self, text: str) -> str:
        """The id of the server, for that, the id of its provider, or the beginning of either.

        The whole id of a server that offers nothing yet is its own.

        Raises:
            Missing, Ambiguous: the beginning of nothing, or of several.
        """
        servers: dict[str, str] = {}

        def choose(items: Sequence[dict[str, Any]]) -> str:
            for one in items:
                if one["server_id"]:
                    servers.update(dict.fromkeys((one["id"], one["server_id"]), one["server_id"]))
            return lookup.pick(self.noun, text, [{"id": id_} for id_ in servers])

        try:
            return servers[lookup.search(self._transport, self.path, self.many, choose)]
        except Missing:
            if lookup.UUID.fullmatch(text):
                return text
            raise

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
