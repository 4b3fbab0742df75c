"""/resource_providers/{uuid}/inventories and one inventory below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from moorage.api.placement.precedence import refuse_first
from moorage.api.placement.rendering import just_now
from moorage.api.placement.schemas import MAX_RATIO, NAME
from moorage.api.placement.unknown_names import unknown_classes
from moorage.domain.changes import Changeset, DeleteInventories, PutInventories
from moorage.domain.errors import InvalidDescription, MoorageError, NotFound, ProviderConflict
from moorage.domain.providers import Inventory
from moorage.http.microversion import Response
from moorage.usecases.ledger import providers as usecase
from moorage.usecases.ledger import withdrawal
from moorage.usecases.tickets.places import check_stock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.api.placement.request import Environment, Request
    from moorage.domain.providers import ResourceProvider
    from moorage.http.microversion import JSON

RATIO: Final = "allocation_ratio"
_SHOWN: Final = 40
"""Digits of a number in a message."""
FIELDS: Final = ("total", "reserved", "min_unit", "max_unit", "step_size", RATIO)
_IS_NAME: Final = re.compile(NAME).search


def shape(inventory: Inventory) -> JSON:
    """One inventory as the wire shows it."""
    return {name: getattr(inventory, name) for name in FIELDS}


def shape_all(inventories: Iterable[Inventory], generation: int) -> JSON:
    """All inventories of a provider."""
    return {
        "resource_provider_generation": generation,
        "inventories": {one.resource_class: shape(one) for one in inventories},
    }


def list_all(env: Environment, request: Request) -> Response:
    """Every inventory of a provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    newest = max((one.updated_at for one in provider.inventories), default=None)
    return Response(
        body=shape_all(provider.inventories, provider.generation),
        modified=just_now() if newest is None else newest,
        undated=newest is None,
    )


def show(env: Environment, request: Request) -> Response:
    """The inventory of one class."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    found = _find(provider, request.path["resource_class"])
    if found is None:
        raise NotFound("inventory", request.path["resource_class"])
    return _one(found, provider.generation, modified=found.updated_at)


def create(env: Environment, request: Request) -> Response:
    """A first inventory of a class."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    body = request.json()
    inventory = read(request, body["resource_class"], body, "create", provider.uuid)
    written = _write(env, PutInventories(provider.uuid, (inventory,), None, create=True))
    location = f"/resource_providers/{provider.uuid}/inventories/{inventory.resource_class}"
    return _one(inventory, *written, status=201, location=location)


def update(env: Environment, request: Request) -> Response:
    """A new content for the inventory of one class."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    body = request.json()
    name = request.path["resource_class"]
    _expect(provider, body)
    inventory = read(request, name, body, "update", provider.uuid)
    if _find(provider, name) is None:
        if unknown_classes(env.store, env.store.snapshot(), [name]):
            raise NotFound("resource class", name)
        raise InvalidDescription(
            f"No inventory record with resource class for resource provider {provider.uuid}: "
            f"No inventory of class {name} found."
        )
    generation = body["resource_provider_generation"]
    change = PutInventories(provider.uuid, (inventory,), generation, update=True)
    return _one(inventory, *_write(env, change))


def replace_all(env: Environment, request: Request) -> Response:
    """All inventories of a provider; a class left out is dropped."""
    try:
        body, uuid = request.json(), request.path["uuid"]
        inventories = tuple(
            read(request, name, one, "update", uuid) for name, one in body["inventories"].items()
        )
        expected = body["resource_provider_generation"]
        change = PutInventories(uuid, inventories, expected, replace_all=True)
        generation, at = _write(env, change)
    except MoorageError:
        refuse_first(env, request)
        raise
    body = shape_all(inventories, generation)
    return Response(body=body, modified=at, undated=not inventories)


def clear(env: Environment, request: Request) -> Response:
    """Drop every inventory of a provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    withdrawal.commit_with_withdrawal(env.store, Changeset((DeleteInventories(provider.uuid),)))
    return Response(status=204)


def delete(env: Environment, request: Request) -> Response:
    """Drop the inventory of one class."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    change = DeleteInventories(provider.uuid, request.path["resource_class"])
    withdrawal.commit_with_withdrawal(env.store, Changeset((change,)))
    return Response(status=204)


def _find(provider: ResourceProvider, resource_class: str) -> Inventory | None:
    return next((one for one in provider.inventories if one.resource_class == resource_class), None)


def _one(
    inventory: Inventory,
    generation: int,
    modified: int,
    *,
    status: int = 200,
    location: str | None = None,
) -> Response:
    body = {**shape(inventory), "resource_provider_generation": generation}
    return Response(status, body, location=location, modified=modified)


def _expect(provider: ResourceProvider, body: Mapping[str, Any]) -> None:
    """Refuse a stale generation before the rest of the body is checked."""
    if body["resource_provider_generation"] != provider.generation:
        raise ProviderConflict("resource provider generation conflict", subject=provider.uuid)


def read(
    request: Request,
    resource_class: str,
    body: Mapping[str, Any],
    verb: str,
    provider: str,
) -> Inventory:
    """An inventory of a provider from its wire form, with defaults for absent fields.

    What stands under a name that no class can have is judged by no schema, and not read either:
    the commit refuses the name.

    Raises:
        InvalidDescription: more is reserved than there is (before 1.26: or as much), or the ratio
            is a negative number beyond all that can be stored.
    """
    if not _IS_NAME(resource_class):
        return Inventory(resource_class, total=1)
    given = {name: int(body[name]) for name in FIELDS if name in body and name != RATIO}
    ratio = body.get(RATIO, 1.0)
    if ratio < -MAX_RATIO:  # the schema has an upper bound alone, as the reference's
        raise InvalidDescription(
            f"Unable to {verb} inventory for resource provider {provider}: Invalid inventory for"
            f" '{resource_class}' on resource provider '{provider}'. The allocation ratio is"
            f" {str(ratio)[:_SHOWN]}."
        )
    inventory = Inventory(resource_class, allocation_ratio=float(ratio), **given)
    full = request.has("all-reserved")
    if inventory.capacity < 0 or (inventory.capacity == 0 and not full):
        relation = "greater than total" if full else "greater than or equal to total"
        raise InvalidDescription(
            f"Unable to {verb} inventory for resource provider {provider}: Invalid "
            f"inventory for '{resource_class}' on resource provider '{provider}'. "
            f"The reserved value is {relation}."
        )
    return inventory


def _write(env: Environment, change: PutInventories) -> tuple[int, int]:
    """Commit; return the provider's new generation and the instant of the commit."""
    check_stock(env.store, change.inventories)
    committed = withdrawal.commit_with_withdrawal(env.store, Changeset((change,)))
    return committed.provider_generations[change.provider], committed.at
