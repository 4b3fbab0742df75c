"""Heat's own reading of templates: what its engine would create, without a cloud.

    .cache/minicloud/bin/python tests/heat_judge/engine.py

Runs in the environment of the small cloud and imports nothing of this project. Reads a case as a
line of JSON from stdin and answers it with a line on stdout: whether Heat accepts the template and
why not, and the servers and server groups of the whole tree of stacks.

What is Heat's own: heatclient's reading of the files, heat-api's of the request, the engine's
parsing and validation of a new stack, and each resource's own child template. What is not there:
services to ask. Names are taken as ids of something that exists, and every version is supported.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST: Final = 120
"""Seconds for one case."""
WORDS: Final = 600
"""Characters of a reason that are kept."""
MOST: Final = 20_000
"""Resources of a tree that are listed."""
ANY: Final = "*"
"""Stands for the random name of a scaling group's member."""
HINTS_AS_LIST: Final = "NovaSchedulerHints"


class TooLongError(Exception):
    """The case took too long."""


def main() -> None:
    """Answer every case on stdin."""
    out, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    socket.setdefaulttimeout(2)
    engine = Engine()
    for line in sys.stdin:
        print(json.dumps(engine.answer(json.loads(line))), file=out, flush=True)


class Engine:
    """Heat's engine with a database in memory and no services around it."""

    def __init__(self) -> None:
        from heat.common import config, context, messaging
        from heat.engine import environment, resources
        from heat.engine import service as engine_service
        from oslo_config import cfg

        folder = Path(sys.prefix) / "etc" / "heat"
        config.startup_sanity_check()
        cfg.CONF([], project="heat", prog="heat-engine", default_config_files=[])
        cfg.CONF.set_override("environment_dir", str(folder / "environment.d"))
        cfg.CONF.set_override("template_dir", str(folder / "templates"))
        messaging.setup("fake://", optional=True)
        _database()
        resources.initialise()
        _without_services()
        # Types that Heat itself maps to templates of its own, installed elsewhere by distributions.
        for name in ("AWS::RDS::DBInstance", "AWS::CloudWatch::Alarm"):
            with contextlib.suppress(Exception):
                info = resources.global_env().get_resource_info(
                    name, registry_type=environment.TemplateResourceInfo
                )
                info.template_name = info.template_name.replace(
                    "/etc/heat/templates", str(folder / "templates")
                )
        self._service = engine_service.EngineService("judge", "engine")
        self._context = context.RequestContext.from_dict(
            {
                "tenant_id": "project",
                "tenant": "project",
                "username": "user",
                "user_id": "user",
                "roles": ["admin", "member", "reader"],
                "is_admin": True,
                "auth_url": "http://127.0.0.1:1/v3",
                "auth_token": "token",
            }
        )

    def answer(self, case: dict[str, Any]) -> dict[str, Any]:
        """What Heat says to a case."""

        def late(_signal: int, _frame: object) -> None:
            raise TooLongError(f"more than {LONGEST} s")

        signal.signal(signal.SIGALRM, late)
        signal.alarm(int(case.get("seconds", LONGEST)))
        try:
            with tempfile.TemporaryDirectory() as scratch:
                stack = self._stack(case, _folder(case, Path(scratch)))
            return {"valid": True, **_listed(stack)}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            return {
                "valid": False,
                "why": f"{type(error).__name__}: {error}"[:WORDS],
                "kind": type(error).__name__,
            }
        finally:
            signal.alarm(0)

    def _stack(self, case: dict[str, Any], folder: Path) -> Any:
        """A new stack, read and validated as for `openstack stack create`."""
        from heat.api.openstack.v1.stacks import InstantiationData
        from heatclient.common import template_utils
        from heatclient.common import utils as client_utils

        named: list[str] = []
        paths = [str(folder / name) for name in case.get("environments", ())]
        files, environment = template_utils.process_multiple_environments_and_files(
            paths, env_list_tracker=named
        )
        found, template = template_utils.get_template_contents(str(folder / case["template"]))
        given = case.get("parameters", {})
        if all(isinstance(one, str) for one in given.values()):
            pairs = [f"{name}={value}" for name, value in given.items()]
            given = client_utils.format_all_parameters(pairs, [], template_file=None)
        data = {
            "stack_name": case.get("name", "stack"),
            "template": template,
            "files": {**found, **files},
            "environment": environment,
            "parameters": given,
            **({"environment_files": named} if named else {}),
        }
        # Through JSON, as from client to service.
        request = InstantiationData(json.loads(json.dumps(data, default=str)))
        return self._service._parse_template_and_validate_stack(
            self._context,
            request.stack_name(),
            request.template(),
            request.environment(),
            request.files(),
            request.environment_files(),
            None,
            {},
        )


def _folder(case: dict[str, Any], scratch: Path) -> Path:
    """The folder with the case's files: its own one, or a new one."""
    if "folder" in case:
        return Path(case["folder"])
    for name, text in case["files"].items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return scratch


def _database() -> None:
    from heat.db import api, models
    from oslo_config import cfg
    from oslo_db import options

    options.set_defaults(cfg.CONF, connection="sqlite://")
    engine = api.get_engine()
    models.BASE.metadata.create_all(engine)
    engine.connect()


def _without_services() -> None:
    """Answer what Heat asks of other services, as if everything named existed."""
    from heat.engine import constraints, resource, stk_defn, translation
    from heat.engine.clients import client_plugin, microversion_mixin
    from heat.engine.clients.os import nova
    from heat.engine.resources.openstack.nova import flavor, server, server_group

    def exists(*_: object, **__: object) -> bool:
        return True

    def itself(value: Any, *_: object, **__: object) -> Any:
        return value

    def nothing(*_: object, **__: object) -> None:
        return None

    constraints.BaseCustomConstraint.validate = exists
    translation.resolve_and_find = _resolved
    resource.Resource.validate_external = nothing
    stk_defn.StackDefinition.get_availability_zones = lambda _self: ["nova"]
    resource.Resource.is_service_available = classmethod(lambda cls, context: (True, None))
    server.Server._validate_image_flavor = nothing
    nova.NovaClientPlugin.is_version_supported = exists
    nova.NovaClientPlugin.absolute_limits = lambda _self: {
        "maxServerMeta": 1000,
        "maxPersonality": 1000,
        "maxPersonalitySize": 10**9,
    }
    # An id says where its resource stands in the tree, so that it can be told from others.
    for word, type_ in (
        ("group", server_group.ServerGroup),
        ("server", server.Server),
        ("flavor", flavor.NovaFlavor),
    ):
        type_.get_reference_id = _id(word)
    for plugin in (client_plugin.ClientPlugin, microversion_mixin.MicroversionMixin):
        plugin.client = lambda _self, version=None: mock.MagicMock()


def _resolved(value: Any, *_: object, **__: object) -> Any:
    from heat.engine import function

    return function.resolve(value) if isinstance(value, function.Function) else value


def _id(word: str) -> Callable[[Any], str]:
    return lambda resource: f"{word}:{_place(resource)}"


def _place(resource: Any) -> str:
    """Where it stands, with the names that members of scaling groups happen to have."""
    above: list[str] = getattr(resource.stack, "judge_place", [])
    return "/".join([*above, resource.name])


def _listed(stack: Any) -> dict[str, Any]:
    servers: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    scaling: list[str] = []
    others: list[str] = []
    for path, resource, kind in _walk(stack, [], scaling):
        where = "/".join(path)
        if kind == "server":
            servers.append({"path": where, **_server(resource)})
        elif kind == "group":
            groups.append({"path": where, "id": f"group:{_place(resource)}", **_group(resource)})
        else:
            others.append(where)
        if len(servers) + len(others) > MOST:
            raise TooLongError(f"more than {MOST} resources")
    return {
        "servers": sorted(servers, key=lambda one: json.dumps(one, sort_keys=True)),
        "groups": sorted(groups, key=lambda one: str(one["path"])),
        "scaling": sorted(set(scaling)),
        "others": sorted(others),
    }


def _walk(stack: Any, at: list[str], scaling: list[str]) -> Iterator[tuple[list[str], Any, str]]:
    """Every resource of the tree with its path; a member of a scaling group is called `*`."""
    from heat.engine.resources import stack_resource
    from heat.engine.resources.aws.ec2 import instance
    from heat.engine.resources.openstack.heat import instance_group, software_deployment
    from heat.engine.resources.openstack.nova import server, server_group

    unnamed = bool(scaling) and "/".join(at) in scaling
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
            if isinstance(resource, instance_group.InstanceGroup):
                scaling.append("/".join(path))
            try:
                template, parameters = resource.child_template(), resource.child_params()
            except NotImplementedError:
                yield path, resource, "other"
                continue
            nested = resource._parse_nested_stack(f"{stack.name}-{name}", template, parameters)
            # Values of resources that do not exist yet are missing inside, as in Heat's preview.
            nested.strict_validate = False
            nested.judge_place = [*getattr(stack, "judge_place", []), name]
            nested._update_all_resource_data(for_resources=True, for_outputs=True)
            yield from _walk(nested, path, scaling)
        else:
            yield path, resource, "other"


def _server(resource: Any) -> dict[str, Any]:
    properties = resource.properties
    if resource.PROPERTIES[0] == "ImageId":
        hints = properties[HINTS_AS_LIST] or []
        return {
            "flavor": properties["InstanceType"],
            "zone": properties["AvailabilityZone"],
            "image": properties["ImageId"],
            "hints": {one["Key"]: one["Value"] for one in hints},
        }
    hints = properties["scheduler_hints"] or {}
    return {
        "flavor": properties["flavor"],
        "zone": properties["availability_zone"],
        "image": properties["image"],
        "hints": dict(hints),
    }


def _group(resource: Any) -> dict[str, Any]:
    rules = resource.properties["rules"] or {}
    return {
        "policies": list(resource.properties["policies"] or []),
        "max_per_host": rules.get("max_server_per_host"),
    }


if __name__ == "__main__":
    main()
