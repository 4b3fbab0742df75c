"""GET /: the version document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement.rendering import just_now
from moorage.api.placement.versions import HISTORY
from moorage.http.microversion import Response

if TYPE_CHECKING:
    from moorage.api.placement.request import Environment, Request


def show(_env: Environment, _request: Request) -> Response:
    """The version document; its link points to the requested address."""
    version = {
        "id": f"v{HISTORY.minimum}",
        "max_version": str(HISTORY.maximum),
        "min_version": str(HISTORY.minimum),
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return Response(body={"versions": [version]}, modified=just_now())
