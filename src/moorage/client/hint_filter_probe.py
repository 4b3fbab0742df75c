"""Finds out whether the filter for hints runs in nova-api, by a server that cannot be created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.client.nova_source import VERSION
from moorage.client.placement_wire import SourceFailed

if TYPE_CHECKING:
    from moorage.client.placement_wire import PlacementWire

NOBODY: Final = "00000000-0000-4000-8000-000000000000"
"""The id of no ensemble."""
_BODY: Final = {"server": {}, "os:scheduler_hints": {"moorage": NOBODY}}
_BAD_REQUEST: Final = 400


def is_unfiltered(wire: PlacementWire) -> bool:
    """Whether nova-api judges a server by itself that names a place of no ensemble.

    The server lacks all that Nova requires, so Nova refuses it with 400; the filter, which is asked
    first, refuses it otherwise. False as well if the answer says neither.
    """
    try:
        wire.call("POST", "/servers", _BODY, version=VERSION)
    except SourceFailed as error:
        return error.status == _BAD_REQUEST and NOBODY not in error.message
    return True


def legacy(endpoint: str) -> str | None:
    """The endpoint of `/v2` beside that of `/v2.1`; None: it is another form of URL."""
    before, found, after = endpoint.rpartition("/v2.1")
    return f"{before}/v2{after}" if found and after.count("/") < 2 else None  # noqa: PLR2004 - a project's id at most
