"""Heat's stacks as a tenant creates them, by Heat's own API."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Self
from uuid import uuid4

from tests.minicloud import config_files
from tests.minicloud.cloud import Cloud
from tests.minicloud.tenant import Json, Operator, Tenant, eventually

SERVERS = {"OS::Nova::Server", "OS::Heat::ScaledResource"}
"""The second are the instances of a group of the form of AWS."""
APART: Json = {"type": "anti-affinity", "level": "host"}


def server(flavor: Json = "m1.small", **properties: Json) -> Json:
    """A server without a network."""
    given = {"image": "tiny", "flavor": flavor, "networks": [{"allocate_network": "none"}]}
    return {"type": "OS::Nova::Server", "properties": {**given, **properties}}


def group(count: Json, member: Json, *policies: Json) -> Json:
    """A resource group, with policies among its members."""
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": member},
        **({"metadata": {"moorage": {"policies": list(policies)}}} if policies else {}),
    }


def template(**resources: Json) -> Json:
    return {"heat_template_version": "2021-04-16", "resources": resources}


class Stacks:
    """The stacks of one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._heat = tenant.connection.orchestration
        self._made: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stack in self._made:
            self._heat.delete(f"/stacks/{stack}")
        eventually(lambda: all(self.state(one) == "gone" for one in self._made), "stacks are gone")

    def create(self, described: Json, name: str = "", **more: Json) -> str:
        """The id of a stack that is being created."""
        body = {"stack_name": name or f"s{uuid4().hex[:8]}", "template": described, **more}
        answer = self._heat.post("/stacks", json={"disable_rollback": True, **body})
        assert answer.status_code == 201, answer.text
        self._made.append(answer.json()["stack"]["id"])
        return self._made[-1]

    def update(self, stack: str, described: Json, **more: Json) -> None:
        body = {"template": described, "disable_rollback": True, **more}
        answer = self._heat.put(self._path(stack), json=body)
        assert answer.status_code == 202, answer.text

    def delete(self, stack: str) -> None:
        assert self._heat.delete(self._path(stack)).status_code == 204

    def abandon(self, stack: str) -> Json:
        """What another stack adopts."""
        answer = self._heat.delete(f"{self._path(stack)}/abandon")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def signal(self, stack: str, resource: str) -> None:
        answer = self._heat.post(f"{self._path(stack)}/resources/{resource}/signal", json={})
        assert answer.status_code == 200, answer.text

    def _path(self, stack: str) -> str:
        return f"/stacks/{self.shown(stack)['stack_name']}/{stack}"

    def shown(self, stack: str) -> Json:
        answer = self._heat.get(f"/stacks/{stack}")
        return {"stack_status": "gone"} if answer.status_code == 404 else answer.json()["stack"]

    def state(self, stack: str) -> str:
        status = str(self.shown(stack)["stack_status"])
        return "gone" if status == "DELETE_COMPLETE" else status

    def reaches(self, stack: str, *states: str, seconds: float = 240) -> str:
        """Wait until a stack has one of these states; the reason of its state."""
        deadline = time.monotonic() + seconds
        while (state := self.state(stack)) not in states:
            shown = self.shown(stack)
            late = time.monotonic() > deadline
            assert not late, f"{state}, not {states}: {shown.get('stack_status_reason')}"
            # What fails is rolled back a moment later.
            passing = not state.startswith("ROLLBACK") and "ROLLBACK_COMPLETE" in states
            failed = state.endswith("FAILED") and not passing
            assert not failed or late, shown.get("stack_status_reason")
            time.sleep(0.5)
        return str(self.shown(stack).get("stack_status_reason"))

    def events(self, stack: str) -> list[str]:
        """The reasons of the stack's events and of its resources'."""
        found = self._heat.get(f"{self._path(stack)}/events").json()["events"]
        return [str(one["resource_status_reason"]) for one in found]

    def signals(self, stack: str) -> int:
        """How many signals are done: a group takes one after the other."""
        found = self._heat.get(f"{self._path(stack)}/events").json()["events"]
        return sum(one["resource_status"].startswith("SIGNAL") for one in found)

    def resource_state(self, stack: str, name: str) -> str:
        """The status of one of its own resources."""
        found = self._heat.get(f"{self._path(stack)}/resources/{name}").json()["resource"]
        return str(found["resource_status"])

    def servers(self, stack: str) -> dict[str, str]:
        """Path in the stack -> id."""
        found = self._heat.get(f"{self._path(stack)}/resources?nested_depth=5").json()["resources"]
        by_stack = {one["physical_resource_id"]: one for one in found}

        def path(one: Json) -> str:
            own = next(link["href"] for link in one["links"] if link["rel"] == "stack")
            parent = by_stack.get(own.rsplit("/", 1)[1])
            above = f"{path(parent)}/" if parent else ""
            return f"{above}{one['resource_name']}"

        return {
            path(one): one["physical_resource_id"]
            for one in found
            if one["resource_type"] in SERVERS and one["physical_resource_id"]
        }

    def decided(self, stack: str) -> Json:
        """The stack as Moorage has it; None: it has none."""
        url = self._tenant.cloud.layout.url("moorage", f"/v1/stacks/{stack}")
        answer = self._tenant.connection.session.get(url, raise_exc=False)
        return None if answer.status_code == 404 else answer.json()["stack"]

    def members(self, stack: str) -> dict[str, Json]:
        """Path in the stack -> member."""
        keys = self.decided(stack)["keys"]
        return {keys[name]: one for name, one in self._tenant.members(stack).items()}


def places(operator: Operator, ensemble: str) -> dict[str, str]:
    """Member -> the host that was decided, or that it has."""
    url = operator.cloud.layout.url("moorage", f"/v1/ensembles/{ensemble}/members")
    found = operator.connection.session.get(url).json()["members"]
    return {one["name"]: one["host"] for one in found if "host" in one}


@contextmanager
def heat_with(cloud: Cloud, *, convergence: str = "true", **options: str) -> Iterator[None]:
    """heat-engine with other options of the plug-in's, or its engine without convergence."""
    _restart(cloud, options, convergence=convergence)
    try:
        yield
    finally:
        _restart(cloud, {}, convergence="true")


def _restart(cloud: Cloud, options: Mapping[str, str], *, convergence: str) -> None:
    config_files.heat(cloud.layout, options, convergence=convergence)
    cloud.program("heat-engine").stop()
    cloud.start("heat-engine")
