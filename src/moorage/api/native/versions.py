"""`/v1/` and `/v1/openapi.json`: the versions and the routes of this API."""

from __future__ import annotations

from typing import Final

from moorage.api.native import protocol
from moorage.api.native.call import Call, Reply
from moorage.wire import versions as wire

ID: Final = "v1"


def show(call: Call) -> Reply:
    """GET: the version document."""
    return Reply(
        wire.Versions(
            wire.Version(
                id=ID,
                status="CURRENT",
                min_version=str(protocol.HISTORY.minimum),
                max_version=str(protocol.HISTORY.maximum),
                links=[call.link("self", ""), call.link("describedby", "openapi.json")],
            )
        )
    )


def describe(call: Call) -> Reply:
    """GET: the OpenAPI document of every route served here."""
    return Reply(call.described())
