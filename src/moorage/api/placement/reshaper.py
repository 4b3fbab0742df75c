"""/reshaper: new inventories and the allocations that move with them, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.api.placement.allocations import write_of
from moorage.api.placement.inventories import read
from moorage.api.placement.refusals import PROVIDER_NOT_FOUND, BadQuery
from moorage.domain.changes import PutInventories
from moorage.domain.errors import ProviderConflict
from moorage.http.microversion import Response
from moorage.usecases.ledger import allocations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.placement.request import Environment, Request
    from moorage.engine.state.snapshot import Snapshot


def reshape(env: Environment, request: Request) -> Response:
    """Replace inventories of providers and allocations of consumers together."""
    body = request.json()
    snapshot = env.store.snapshot()
    inventories = [
        _put(request, snapshot, uuid, given) for uuid, given in body["inventories"].items()
    ]
    writes = [write_of(consumer, given) for consumer, given in body["allocations"].items()]
    allocations.reshape(env.store, inventories, writes)
    return Response(status=204)


def _put(
    request: Request, snapshot: Snapshot, uuid: str, given: Mapping[str, Any]
) -> PutInventories:
    row = snapshot.row_of.get(uuid)
    if row is None:
        raise BadQuery(
            f"Resource provider {uuid} in inventories not found: No resource provider with uuid "
            f"{uuid} found",
            code=PROVIDER_NOT_FOUND,
        )
    provider = snapshot.state(row).provider
    expected = given["resource_provider_generation"]
    if expected != provider.generation:
        raise ProviderConflict(
            f"resource provider generation conflict for provider {uuid}: "
            f"actual: {provider.generation}, given: {expected}",
            subject=uuid,
        )
    inventories = tuple(
        read(request, name, one, "reshape", uuid) for name, one in given["inventories"].items()
    )
    return PutInventories(uuid, inventories, expected, replace_all=True)
