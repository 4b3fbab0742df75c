"""The route table: every verb of the lease API on one screen."""

# ruff: noqa: E501 - one route, one line: this is read as a table

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.api.leases import hosts, leases

if TYPE_CHECKING:
    from moorage.api.leases.call import Handler


@dataclass(frozen=True, slots=True)
class Route:
    """A verb on a path, its Blazar access rule, and its handler."""

    method: str
    path: str
    rule: str
    handler: Handler
    expensive: bool = False
    """Whether it may search; then only so many are worked on at once (`usecases.admission`)."""


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/leases", "blazar:leases:get", leases.listing),
    Route("POST", "/leases", "blazar:leases:post", leases.create, expensive=True),
    Route("GET", "/leases/{id}", "blazar:leases:get", leases.show),
    Route("PUT", "/leases/{id}", "blazar:leases:put", leases.update, expensive=True),
    Route("DELETE", "/leases/{id}", "blazar:leases:delete", leases.delete),
    Route("GET", "/os-hosts", "blazar:oshosts:get", hosts.listing),
    Route("POST", "/os-hosts", "blazar:oshosts:post", hosts.create),
    Route("GET", "/os-hosts/allocations", "blazar:oshosts:get_allocations", hosts.allocations),
    Route("GET", "/os-hosts/properties", "blazar:oshosts:get_resource_properties", hosts.properties),
    Route("PATCH", "/os-hosts/properties/{name}", "blazar:oshosts:patch_resource_properties", hosts.mark),
    Route("GET", "/os-hosts/{id}", "blazar:oshosts:get", hosts.show),
    Route("PUT", "/os-hosts/{id}", "blazar:oshosts:put", hosts.update),
    Route("DELETE", "/os-hosts/{id}", "blazar:oshosts:delete", hosts.delete),
    Route("GET", "/os-hosts/{id}/allocation", "blazar:oshosts:get_allocations", hosts.allocation),
    Route("GET", "/floatingips", "blazar:floatingips:get", hosts.list_addresses),
    Route("POST", "/floatingips", "blazar:floatingips:post", hosts.create_address),
    Route("GET", "/floatingips/{id}", "blazar:floatingips:get", hosts.show_address),
    Route("DELETE", "/floatingips/{id}", "blazar:floatingips:delete", hosts.delete_address),
)
# fmt: on
