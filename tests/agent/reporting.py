"""An agent of a machine on a Placement service, and what a test asks that service."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.agent.machines import Machine

from moorage.agent.discovery import discover
from moorage.agent.files import Files
from moorage.agent.node_providers import measured_mounts, target_of
from moorage.agent.report import Report, ReportOptions, report
from moorage.client.agent_file import read_agent_config
from moorage.client.credentials import GivenToken
from moorage.client.placement_wire import Options, PlacementWire
from moorage.client.provider_trees import ProviderTrees


def named(name: str) -> str:
    """A UUID that follows from a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


class Placement:
    """A Placement service as a test sees it, and as agents report to it."""

    def __init__(self, wire: PlacementWire) -> None:
        self.wire = wire
        wire.negotiate()

    def call(self, method: str, path: str, body: object = None) -> Any:
        return self.wire.call(method, path, body)

    def host(self, name: str, **inventories: int) -> str:
        """A root provider as Nova's compute service reports it."""
        own = named(name)
        self.call("POST", "/resource_providers", {"name": name, "uuid": own})
        self.stock(own, **inventories)
        return own

    def stock(self, provider: str, **totals: int) -> None:
        generation = self.call("GET", f"/resource_providers/{provider}")["generation"]
        body = {
            "inventories": {name: {"total": total} for name, total in totals.items()},
            "resource_provider_generation": generation,
        }
        self.call("PUT", f"/resource_providers/{provider}/inventories", body)

    def allocate(self, consumer: str, *parts: tuple[str, Mapping[str, int]]) -> str:
        """Give a consumer amounts of providers, by name."""
        own = named(consumer)
        before = self.call("GET", f"/allocations/{own}")
        allocations = {self.uuid(name): {"resources": dict(amounts)} for name, amounts in parts}
        body = {
            "allocations": allocations,
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": before.get("consumer_generation"),
            "consumer_type": "INSTANCE",
        }
        self.call("PUT", f"/allocations/{own}", body)
        return own

    def release(self, consumer: str) -> None:
        self.call("DELETE", f"/allocations/{named(consumer)}")

    def allocations(self, consumer: str) -> Mapping[str, Mapping[str, int]]:
        """Provider's name -> amounts."""
        found = self.call("GET", f"/allocations/{named(consumer)}")["allocations"]
        return {self.name(one): given["resources"] for one, given in found.items()}

    def name(self, provider: str) -> str:
        return str(self.call("GET", f"/resource_providers/{provider}")["name"])

    def uuid(self, name: str) -> str:
        [one] = self.call("GET", f"/resource_providers?name={name}")["resource_providers"]
        return str(one["uuid"])

    def tree(self, root: str) -> dict[str, dict[str, Any]]:
        """The tree's providers by name, as `show` has them."""
        uuid_ = self.uuid(root)
        found = self.call("GET", f"/resource_providers?in_tree={uuid_}")["resource_providers"]
        return {one["name"]: self.show(one) for one in found}

    def show(self, one: Mapping[str, Any]) -> dict[str, Any]:
        uuid_ = one["uuid"]
        inventories = self.call("GET", f"/resource_providers/{uuid_}/inventories")["inventories"]
        return {
            "uuid": uuid_,
            "parent": one["parent_provider_uuid"],
            "generation": one["generation"],
            "stock": {name: some["total"] - some["reserved"] for name, some in inventories.items()},
            "traits": set(self.call("GET", f"/resource_providers/{uuid_}/traits")["traits"]),
        }

    def stocks(self, root: str) -> Mapping[str, Mapping[str, int]]:
        """What is not reserved, by the provider's name and class."""
        return {name: one["stock"] for name, one in self.tree(root).items()}


class NodeAgent:
    """The agent of one machine."""

    def __init__(self, placement: Placement, folder: Path, config: str = "") -> None:
        self.placement = placement
        self.folder = folder
        self.config = config
        self.runs = 0

    def run(self, machine: Machine, config: str | None = None, **options: Any) -> Report:
        self.runs += 1
        files = Files(machine.write(self.folder / f"{machine.host}-{self.runs}"))
        said = read_agent_config(self.config if config is None else config)
        node = discover(files, measured=measured_mounts(said))
        trees = ProviderTrees(self.placement.wire)
        trees.negotiate()
        at_once = {"sleep": lambda _: None, "chance": lambda: 0.0}
        given = ReportOptions(**{**at_once, **options})
        return report(trees, target_of(node, said), given)


def codes(found: Report) -> list[str]:
    """The codes of a report's cautions."""
    return sorted(one.code for one in found.cautions)


class WithRoles(httpx.BaseTransport):
    """Sends the roles that the agent's user has, as noauth2 takes them."""

    def __init__(self, inner: httpx.BaseTransport, roles: str = "admin,service") -> None:
        self._inner = inner
        self.roles = roles

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["X-Roles"] = self.roles
        return self._inner.handle_request(request)


@contextmanager
def placement_over(transport: httpx.BaseTransport, url: str) -> Iterator[Placement]:
    """A Placement at a URL, behind a transport."""
    with PlacementWire(url, GivenToken("admin"), Options(through=transport)) as wire:
        yield Placement(wire)


def totals(some: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Amounts, summed by class."""
    found: dict[str, int] = {}
    for one in some:
        for name, amount in one.items():
            found[name] = found.get(name, 0) + amount
    return found
