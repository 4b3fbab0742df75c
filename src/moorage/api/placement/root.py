"""GET /: which versions there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement.versions import HISTORY
from moorage.http.microversion import Response

if TYPE_CHECKING:
    from moorage.api.placement.request import Parts, Request


def show(parts: Parts, request: Request) -> Response:  # noqa: ARG001 - one signature for all handlers
    """The version document; the one link points back at the address it was fetched from."""
    version = {
        "id": f"v{HISTORY.minimum}",
        "max_version": str(HISTORY.maximum),
        "min_version": str(HISTORY.minimum),
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return Response(body={"versions": [version]}, modified=parts.store.now())
