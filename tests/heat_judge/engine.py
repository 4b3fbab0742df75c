"""Heat's own reading of templates: what its engine would create, without a cloud.

    .cache/minicloud/bin/python -m tests.heat_judge.engine

Runs in the environment of the small cloud and imports nothing of Moorage. Reads a case as a line of
JSON from stdin and answers it with a line on stdout: whether Heat accepts the template and why not,
and the servers and server groups of the whole tree of stacks.

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

from tests.heat_judge.engine_tree import TooLongError, Tree, place

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 120
"""Seconds for one case."""
WORDS: Final = 600
"""Characters of a reason that are kept."""


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
            return {"valid": True, **Tree().listed(stack)}
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
        from oslo_serialization import jsonutils

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
        request = InstantiationData(json.loads(jsonutils.dumps(data)))
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

    def nothing(*_: object, **__: object) -> None:
        return None

    constraints.BaseCustomConstraint.validate = exists
    nova.FlavorConstraint.validate = lambda _self, value, *_: bool(value)
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
    return lambda resource: f"{word}:{place(resource)}"


if __name__ == "__main__":
    main()
