"""The route table: every verb of the dialect on one screen."""

# ruff: noqa: E501 - one route, one line: this is read as a table

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.api.compute import server_groups

if TYPE_CHECKING:
    from moorage.api.compute.call import Handler


@dataclass(frozen=True, slots=True)
class Route:
    """A verb on a path, its name in the history of versions, its access rule, and its handler."""

    method: str
    path: str
    operation: str
    rule: str
    handler: Handler


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/os-server-groups", "groups.list", "os_compute_api:os-server-groups:index", server_groups.listing),
    Route("POST", "/os-server-groups", "groups.create", "os_compute_api:os-server-groups:create", server_groups.create),
    Route("GET", "/os-server-groups/{id}", "groups.show", "os_compute_api:os-server-groups:show", server_groups.show),
    Route("DELETE", "/os-server-groups/{id}", "groups.delete", "os_compute_api:os-server-groups:delete", server_groups.delete),
)
# fmt: on
