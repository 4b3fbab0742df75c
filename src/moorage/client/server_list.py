"""Reads `openstack server list --all-projects --long -f json` as servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.servers import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOST: Final = ("host", "os-ext-srv-attr:hypervisor_hostname", "hypervisor_hostname")
_TASK: Final = ("task state", "os-ext-sts:task_state")
_PROJECT: Final = ("project id", "tenant_id", "project_id")


def read_servers(text: str) -> list[Server]:
    """The servers of a listing.

    Raises:
        InvalidDescription: not JSON, not such a list, or one without hosts (--long).
    """
    try:
        listing = json.loads(text)
    except ValueError as error:
        raise InvalidDescription(f"not JSON: {error}") from error
    if isinstance(listing, dict) and isinstance(listing.get("servers"), list):
        listing = listing["servers"]
    if not isinstance(listing, list) or not all(isinstance(one, dict) for one in listing):
        raise InvalidDescription(
            "not what `openstack server list --all-projects --long -f json` prints"
        )
    found = [_server(number, one) for number, one in enumerate(listing)]
    known: set[str] = set()
    for number, one in enumerate(found):
        if one.uuid in known:
            raise InvalidDescription(f"server {one.uuid} is listed twice", path=f"[{number}]")
        known.add(one.uuid)
    return found


def _server(number: int, given: Mapping[str, Any]) -> Server:
    fields = {str(key).lower(): value for key, value in given.items()}
    uuid = fields.get("id")
    if not isinstance(uuid, str) or not uuid:
        raise InvalidDescription("a server without ID", path=f"[{number}]")
    if not any(key in fields for key in _HOST):
        raise InvalidDescription(
            f"server {uuid} has no Host: list with --long, as an administrator", path=f"[{number}]"
        )
    task = _first(fields, _TASK)
    return Server(
        uuid=uuid.lower(),
        name=str(fields.get("name") or ""),
        status=str(fields.get("status") or "").upper(),
        host=_first(fields, _HOST),
        busy=task is not None,
        project_id=_first(fields, _PROJECT),
    )


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    found = next((fields[name] for name in names if fields.get(name)), None)
    return None if found is None or str(found) in {"None", "-"} else str(found)
