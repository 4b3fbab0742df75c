"""A stack of Heat's as the body of `PUT /v1/stacks/{id}`: what it shall be, and the servers it has.

Stacks, resources and templates are Heat's objects, read by their attributes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HeatStack: TypeAlias = Any
"""Heat's classes have no types, and are not imported here."""
HeatResource: TypeAlias = Any
SERVERS: Final = frozenset({"OS::Nova::Server", "AWS::EC2::Instance"})
SERVER_CLASSES: Final = frozenset(
    {
        "heat.engine.resources.openstack.nova.server.Server",
        "heat.engine.resources.aws.ec2.instance.Instance",
    }
)
"""What these types are, also under another name that an environment gives them."""
_ANNOTATION: Final = re.compile(r"""(["'])moorage\1\s*:|(?<![\w.:"'-])moorage\s*:(?=\s|$)""")


def stack_body(
    stack: HeatStack, described: HeatStack, servers: Mapping[str, str], longest: int
) -> dict[str, Any]:
    """The body's `stack`: its name, and template, environment and files of `described`.

    The places are to be held for as long as Heat lets the stack take, and `longest` seconds at
    most.
    """
    return {
        "name": stack.name,
        "template": _text(described.t.t),
        "environment": _text(described.t.env.user_env_as_dict()),
        "parameters": {},
        "files": {name: _file(content) for name, content in dict(described.t.files).items()},
        "servers": dict(servers),
        "removed": dict(removed_names(stack)),
        "decide": {"hold": f"PT{seconds_of_hold(stack, longest)}S"},
    }


def seconds_of_hold(stack: HeatStack, longest: int) -> int:
    """For how long the places of a stack are held."""
    return min(int(stack.timeout_secs()), longest)


def is_annotated(body: Mapping[str, Any]) -> bool:
    """Whether the template or one of its files has an annotation `moorage: …`."""
    texts = (body["template"], *body["files"].values())
    return any(_ANNOTATION.search(text) for text in texts)


def present_servers(stack: HeatStack, above: str = "") -> Iterator[tuple[str, str]]:
    """Path in the stack and id of each server that it has and keeps, nested stacks included."""
    for name, resource in stack.items():
        path = f"{above}{name}"
        if _is_server(resource):
            if resource.resource_id and not _is_replaced(resource):
                yield path, str(resource.resource_id)
        elif resource.resource_id and resource.has_nested():
            nested = resource.nested()
            if nested is not None:
                yield from present_servers(nested, f"{path}/")


def removed_names(stack: HeatStack, above: str = "") -> Iterator[tuple[str, list[str]]]:
    """Path of each resource group -> the names that Heat gives no member of it any more."""
    for name, resource in stack.items():
        if not resource.resource_id or not resource.has_nested():
            continue
        path = f"{above}{name}"
        # Heat keeps them as data of the group, under this key in all its releases.
        names = str(resource.data().get("name_blacklist") or "")
        if names:
            yield path, names.split(",")
        nested = resource.nested()
        if nested is not None:
            yield from removed_names(nested, f"{path}/")


def adopted_servers(data: Mapping[str, Any] | None, above: str = "") -> Iterator[tuple[str, str]]:
    """The same, of the data of a stack that is adopted."""
    for name, one in ((data or {}).get("resources") or {}).items():
        if one.get("type") in SERVERS and one.get("resource_id"):
            yield f"{above}{name}", str(one["resource_id"])
        elif one.get("resources"):
            yield from adopted_servers(one, f"{above}{name}/")


def _is_server(resource: HeatResource) -> bool:
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(resource).__mro__}
    return not SERVER_CLASSES.isdisjoint(kinds)


def _is_replaced(resource: HeatResource) -> bool:
    """Whether Heat will make another server instead of one that failed."""
    return bool(resource.status == resource.FAILED and resource.needs_replace_failed())


def _file(content: object) -> str:
    return content.decode(errors="replace") if isinstance(content, bytes) else str(content)


def _text(value: object) -> str:
    """As JSON, which is YAML."""
    return json.dumps(value, default=str)
