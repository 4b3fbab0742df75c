"""What a tenant and an operator do in the cloud, by the services' own APIs."""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, Self
from uuid import uuid4

from openstack.exceptions import HttpException
from tests.minicloud.cloud import Cloud
from tests.minicloud.identity import connection

Json = Any
NO_NETWORK = "none"


class Operator:
    """The cloud's administrator: sees hosts, moves servers, and reads allocations."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.connection = connection(cloud.layout)
        self.nova = self.connection.compute
        self.nova.default_microversion = "2.96"
        # Its versions are asked here, once: later the service may be away for a moment.
        self.placement = self.connection.placement

    def host(self, server: str) -> str:
        return str(self.nova.get_server(server).hypervisor_hostname)

    def allocations(self, consumer: str) -> dict[str, dict[str, int]]:
        """Amounts by the name of the provider."""
        names = {one.id: one.name for one in self.placement.resource_providers()}
        answer = self.placement.get(f"/allocations/{consumer}").json()
        return {
            names[provider]: amounts["resources"]
            for provider, amounts in answer["allocations"].items()
        }

    def usages(self) -> dict[str, dict[str, int]]:
        """What is allocated on each compute; zeros are left out."""
        return {
            one.name: {
                name: used
                for name, used in self.placement.get(f"/resource_providers/{one.id}/usages")
                .json()["usages"]
                .items()
                if used
            }
            for one in self.placement.resource_providers()
        }


class Tenant:
    """One project's user, with what it created."""

    def __init__(self, cloud: Cloud, user: str = "demo", project: str = "demo") -> None:
        self.cloud = cloud
        self.connection = connection(cloud.layout, user, project)
        self.nova = self.connection.compute
        self.nova.default_microversion = "2.96"
        self.image = self.connection.image.find_image("tiny", ignore_missing=False).id
        self._servers: list[str] = []
        self._ensembles: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete everything, so that the next test has an empty cloud."""
        for server in {*self._servers, *(one.id for one in self.nova.servers(details=False))}:
            self.nova.delete_server(server, ignore_missing=True, force=False)
        eventually(lambda: not list(self.nova.servers(details=False)), "servers are deleted")
        for ensemble in self._ensembles:
            self.native("DELETE", f"/ensembles/{ensemble}", generation="*")

    def native(self, method: str, path: str, body: Json = None, generation: str = "") -> Json:
        """The answer of Moorage's own API to a request, which must succeed."""
        url = self.cloud.layout.url("moorage", f"/v1{path}")
        headers = {"If-Match": generation} if generation else {}
        answer = self.connection.session.request(
            url, method, json=body, headers=headers, raise_exc=False
        )
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.content else None

    def hold(
        self, *members: Json, policies: Iterable[Json] = (), hold: str = "PT10M", **more: Json
    ) -> Json:
        """A held decision of a new ensemble."""
        name = f"e{uuid4().hex[:8]}"
        described = {"name": name, "members": list(members), "policies": list(policies), **more}
        made = self.native(
            "POST", "/ensembles", {"ensemble": {**described, "decide": {"hold": hold}}}
        )
        self._ensembles.append(made["ensemble"]["id"])
        return made["decision"] | {"name": name, "ensemble": made["ensemble"]["id"]}

    def members(self, ensemble: str) -> dict[str, Json]:
        """By name."""
        return {
            one["name"]: one
            for one in self.native("GET", f"/ensembles/{ensemble}/members")["members"]
        }

    def boot(self, flavor: str, name: str = "server", **more: Json) -> list[str]:
        """Ids of the servers that one request creates; they are building."""
        found = self.nova.find_flavor(flavor, ignore_missing=False)
        hints = more.pop("hints", None)
        body = {
            "server": {
                "name": name,
                "imageRef": self.image,
                "flavorRef": found.id,
                "networks": NO_NETWORK,
                "return_reservation_id": True,
                **more,
            }
        } | ({"os:scheduler_hints": hints} if hints else {})
        answer = self.nova.post("/servers", json=body, microversion="2.96")
        if answer.status_code >= 300:
            raise Refused(answer.status_code, answer.json())
        found_by = {"reservation_id": answer.json()["reservation_id"]}
        made = [one.id for one in self.nova.servers(details=False, **found_by)]
        self._servers += made
        return made

    def status(self, server: str) -> str:
        return str(self.nova.get_server(server).status)

    def built(self, *servers: str, expected: str = "ACTIVE", seconds: float = 180) -> None:
        """Wait until all have this status, with nothing under way."""

        def are() -> bool:
            found = [self.nova.get_server(one) for one in servers]
            wrong = [one for one in found if one.status == "ERROR" != expected]
            assert not wrong, [(one.name, one.fault) for one in wrong]
            return all(one.status == expected and one.task_state is None for one in found)

        eventually(are, f"{len(servers)} servers are {expected}", seconds)

    def settled(self, server: str) -> str:
        """The status in which a build ended."""
        eventually(lambda: self.status(server) != "BUILD", f"{server} does not build any more")
        return self.status(server)


class Refused(Exception):
    """Nova's API refused a request."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(json.dumps(body))
        self.status = status
        self.message = str(next(iter(body.values()))["message"])


def eventually(holds: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Wait until it holds.

    Raises:
        AssertionError: it did not.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not so after {seconds} s: {what}"
        time.sleep(0.3)


def is_gone(tenant: Tenant, server: str) -> bool:
    try:
        tenant.nova.get_server(server)
    except HttpException as error:
        return error.status_code == 404
    return False
