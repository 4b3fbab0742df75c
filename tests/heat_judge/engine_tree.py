"""The tree of stacks that Heat would make of a template: each resource gives its own child."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 20_000
"""Resources of a tree that are listed."""
MOST_CHECKED: Final = 50
"""Nested stacks that are validated as strictly as when they are created."""
ANY: Final = "*"
"""Stands for the random name of a scaling group's member."""
HINTS_AS_LIST: Final = "NovaSchedulerHints"


class TooLongError(Exception):
    """The case took too long, or is too large."""


def place(resource: Any) -> str:
    """Where it stands, with the names that members of scaling groups happen to have."""
    above: list[str] = getattr(resource.stack, "judge_place", [])
    return "/".join([*above, resource.name])


class Tree:
    """What is found in one tree of stacks."""

    def __init__(self) -> None:
        self.scaling: list[str] = []
        self.late: str | None = None
        """Why Heat would refuse to create a nested stack, though it accepts the whole."""
        self.checked = 0

    def listed(self, stack: Any) -> dict[str, Any]:
        """The servers, groups and other resources at and below a stack."""
        servers: list[dict[str, Any]] = []
        groups: list[dict[str, Any]] = []
        others: list[str] = []
        for path, resource, kind in self._walk(stack, []):
            found = {"path": "/".join(path), "id": f"{kind}:{place(resource)}"}
            if kind == "server":
                servers.append({**found, **self._server(resource)})
            elif kind == "group":
                groups.append({**found, **_group(resource)})
            else:
                others.append(found["path"])
            if len(servers) + len(others) > MOST:
                raise TooLongError(f"more than {MOST} resources")
        return {
            "servers": sorted(servers, key=lambda one: json.dumps(one, sort_keys=True)),
            "groups": sorted(groups, key=lambda one: str(one["path"])),
            "scaling": sorted(set(self.scaling)),
            "others": sorted(others),
            "late": self.late,
        }

    def _walk(self, stack: Any, at: list[str]) -> Iterator[tuple[list[str], Any, str]]:
        """Every resource of the tree with its path; a scaling group's member is called `*`."""
        from heat.engine.resources import stack_resource
        from heat.engine.resources.aws.ec2 import instance
        from heat.engine.resources.openstack.heat import software_deployment
        from heat.engine.resources.openstack.nova import server, server_group

        unnamed = "/".join(at) in self.scaling
        for name, resource in stack.resources.items():
            path = [*at, ANY if unnamed else name]
            if resource.external_id is not None:
                yield path, resource, "external"
            elif isinstance(resource, server.Server | instance.Instance):
                yield path, resource, "server"
            elif isinstance(resource, server_group.ServerGroup):
                yield path, resource, "group"
            elif isinstance(resource, software_deployment.SoftwareDeploymentGroup):
                # Deployments on servers that exist already, known only then.
                yield path, resource, "other"
            elif isinstance(resource, stack_resource.StackResource):
                yield from self._nested(stack, resource, path)
            else:
                yield path, resource, "other"

    def _nested(
        self, stack: Any, resource: Any, path: list[str]
    ) -> Iterator[tuple[list[str], Any, str]]:
        from heat.engine.resources.openstack.heat import instance_group

        try:
            template, parameters = resource.child_template(), resource.child_params()
        except NotImplementedError:
            yield path, resource, "other"
            return
        if isinstance(resource, instance_group.InstanceGroup):
            self.scaling.append("/".join(path))
        # As the engine's preview does. Values of resources that do not exist yet are missing.
        nested = resource._parse_nested_stack(f"{stack.name}-{resource.name}", template, parameters)
        nested.judge_place = [*getattr(stack, "judge_place", []), resource.name]
        self._check(nested)
        nested.strict_validate = False
        nested._update_all_resource_data(for_resources=True, for_outputs=True)
        yield from self._walk(nested, path)

    def _check(self, nested: Any) -> None:
        """Validate a nested stack as when it is created; the whole is validated less strictly."""
        self.checked += 1
        if self.late is None and self.checked <= MOST_CHECKED:
            try:
                nested.validate()
            except TooLongError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, it would fail the stack
                self.late = f"{type(error).__name__}: {error}"[:300]

    def _server(self, resource: Any) -> dict[str, Any]:
        properties = resource.properties
        if resource.PROPERTIES[0] == "ImageId":
            hints = {one["Key"]: one["Value"] for one in properties[HINTS_AS_LIST] or []}
            flavor, zone = properties["InstanceType"], properties["AvailabilityZone"]
        else:
            hints = dict(properties["scheduler_hints"] or {})
            flavor, zone = properties["flavor"], properties["availability_zone"]
        if flavor == "":
            self.late = self.late or "no flavor is called '', as Nova would say"
        return {"flavor": flavor, "zone": zone, "hints": hints}


def _group(resource: Any) -> dict[str, Any]:
    rules = resource.properties["rules"] or {}
    return {
        "policies": list(resource.properties["policies"] or []),
        "max_per_host": rules.get("max_server_per_host"),
    }
