"""The table from error to status, code and sentence on Placement's wire.

Codes and sentences are the reference's (its API reference, "Error codes"; they exist since
1.23). The first row that fits the error, and the operation if it names some, decides. Sentences
are filled from the error's own data (`e`) and the request's path items (`path`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.api.placement import refusals as wire
from moorage.api.placement.names import class_order
from moorage.api.placement.refusals import BadQuery, Refusal
from moorage.domain import errors as domain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.placement.request import Request


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `on` empty: every operation; `kind` None: every kind of thing."""

    error: type[Exception]
    status: int
    sentence: str = "{e.message}"
    code: str = wire.UNDEFINED
    on: frozenset[str] = field(default_factory=frozenset)
    kind: str | None = None


def _on(*operations: str) -> frozenset[str]:
    return frozenset(operations)


WRITES_ALLOCATIONS: Final = _on("allocations.replace", "allocations.write", "reshaper.reshape")
WRITES_INVENTORY: Final = _on("inventories.create", "inventory.update", "inventories.replace")
GENERATION_MOVED: Final = (
    "Resource provider's generation already changed. Please update the generation and try again."
)
DENIED: Final = "Unable to create allocation for '{e.resource_class}' on resource provider "

TABLE: Final = (
    # --- allocations
    Row(
        domain.CapacityExceeded,
        409,
        "Unable to allocate inventory: " + DENIED + "'{e.provider}'. "
        "The requested amount would exceed the capacity.",
    ),
    Row(
        domain.ConstraintViolated,
        409,
        "Unable to allocate inventory: Inventory for '{e.resource_class}' on resource provider "
        "'{e.provider}' invalid.",
        kind="no inventory",
    ),
    Row(
        domain.ConstraintViolated,
        409,
        "Unable to allocate inventory: " + DENIED + "'{e.provider}'. "
        "The requested amount would violate inventory constraints.",
    ),
    Row(
        domain.ConsumerConflict,
        409,
        "consumer generation conflict - expected null but got {given}",
        wire.CONCURRENT_UPDATE,
        kind="absent",
    ),
    Row(
        domain.ConsumerConflict,
        409,
        "consumer generation conflict - expected {e.actual} but got {given}",
        wire.CONCURRENT_UPDATE,
    ),
    Row(
        domain.UnknownName,
        400,
        "Allocation for resource provider '{e.name}' that does not exist.",
        on=WRITES_ALLOCATIONS,
        kind="resource provider",
    ),
    Row(
        domain.NotFound,
        400,
        "Allocation for resource provider '{e.name}' that does not exist.",
        on=WRITES_ALLOCATIONS,
        kind="resource provider",
    ),
    Row(
        domain.UnknownName,
        400,
        "Unable to allocate inventory for consumer {path[consumer_uuid]}: "
        "No such resource class {e.name}.",
        on=_on("allocations.replace"),
        kind="resource class",
    ),
    Row(
        domain.UnknownName,
        400,
        "malformed reshaper data: No such resource class {e.name}.",
        on=_on("reshaper.reshape"),
        kind="resource class",
    ),
    Row(
        domain.UnknownName,
        400,
        "Unable to allocate inventory: No such resource class {e.name}.",
        on=WRITES_ALLOCATIONS,
        kind="resource class",
    ),
    Row(
        domain.ProviderConflict,
        409,
        "{e.message}",
        wire.CONCURRENT_UPDATE,
        on=_on("reshaper.reshape"),
    ),
    Row(
        domain.ProviderConflict,
        409,
        "Inventory and/or allocations changed while attempting to allocate: {e.message}",
        wire.CONCURRENT_UPDATE,
        on=WRITES_ALLOCATIONS,
    ),
    Row(
        domain.NotFound,
        404,
        "No allocations for consumer '{path[consumer_uuid]}'",
        on=_on("allocations.delete"),
    ),
    # --- inventories
    Row(
        domain.InventoryInUse,
        409,
        "Unable to delete inventory of class {path[resource_class]}: Inventory for "
        "'{classes}' on resource provider '{path[uuid]}' in use.",
        wire.CONCURRENT_UPDATE,
        on=_on("inventory.delete"),
    ),
    Row(
        domain.InventoryInUse,
        409,
        "update conflict: Inventory for '{classes}' on resource provider '{e.provider}' in use.",
        wire.INVENTORY_IN_USE,
    ),
    Row(
        domain.NotFound,
        404,
        "No inventory of class {e.name} for {path[uuid]}",
        on=_on("inventory.show"),
        kind="inventory",
    ),
    Row(
        domain.NotFound,
        404,
        "No inventory of class {path[resource_class]} found for delete: {e.message}",
        on=_on("inventory.delete"),
        kind="inventory",
    ),
    Row(
        domain.UnknownName,
        400,
        "Unknown resource class in inventory for resource provider {path[uuid]}: "
        "No such resource class {e.name}.",
        on=WRITES_INVENTORY,
        kind="resource class",
    ),
    Row(
        domain.ProviderConflict,
        409,
        "Update conflict: {e.message}",
        wire.CONCURRENT_UPDATE,
        on=_on("inventories.create"),
    ),
    Row(
        domain.ProviderConflict,
        409,
        "resource provider generation conflict",
        wire.CONCURRENT_UPDATE,
        on=WRITES_INVENTORY,
    ),
    # --- providers
    Row(
        domain.DuplicateName,
        409,
        "Conflicting resource provider {e.name} already exists.",
        wire.DUPLICATE_NAME,
        on=_on("providers.update"),
    ),
    Row(
        domain.DuplicateName,
        409,
        "Conflicting resource provider {duplicates} already exists.",
        wire.DUPLICATE_NAME,
        on=_on("providers.create"),
    ),
    Row(
        domain.ProviderHasChildren,
        409,
        "Unable to delete parent resource provider {path[uuid]}: It has child resource providers.",
        wire.HAS_CHILDREN,
    ),
    Row(
        domain.ProviderInUse,
        409,
        "Unable to delete resource provider {path[uuid]}: Resource provider has allocations.",
        wire.PROVIDER_IN_USE,
    ),
    Row(
        domain.NotFound,
        404,
        "No resource provider with uuid {path[uuid]} found for delete",
        on=_on("providers.delete"),
    ),
    Row(
        domain.NotFound,
        404,
        "No resource provider with uuid {e.name} found",
        kind="resource provider",
    ),
    # --- traits and classes
    Row(
        domain.UnknownName,
        400,
        "No such trait {e.name}",
        on=_on("provider_traits.replace"),
        kind="trait",
    ),
    Row(domain.NotFound, 404, "No such trait(s): {e.name}.", kind="trait"),
    Row(domain.NotFound, 404, "No such resource class {e.name}.", kind="resource class"),
    Row(
        domain.InUse,
        409,
        "The trait {e.name} is in use by a resource provider.",
        kind="trait",
    ),
    Row(
        domain.InUse,
        409,
        "Error in delete resource class: Cannot delete resource class {e.name}. "
        "Class is in use in inventory.",
        kind="resource class",
    ),
    Row(
        domain.DuplicateName,
        409,
        "Conflicting resource class already exists: {e.name}",
        on=_on("resource_classes.create"),
    ),
    Row(
        domain.DuplicateName,
        409,
        "Resource class already exists: {e.name}",
        on=_on("resource_class.update"),
    ),
    # --- everything else, by its nature
    Row(domain.ConcurrentUpdate, 409, GENERATION_MOVED, wire.CONCURRENT_UPDATE),
    Row(domain.NotFound, 404),
    Row(domain.Forbidden, 403),
    Row(domain.LimitExceeded, 403),
    Row(domain.InvalidDescription, 400),
    Row(domain.Conflict, 409),
    Row(domain.EventsLost, 410),
    Row(domain.Busy, 503),
)


def refusal_of(error: domain.MoorageError, request: Request) -> Refusal:
    """The wire error for an error of the domain."""
    row = next(row for row in TABLE if _fits(row, error, request.operation))
    sentence = row.sentence.format(
        e=error,
        path=request.path,
        given=_given(error),
        classes=_classes(error),
        duplicates=_duplicates(error, request),
    )
    code = error.code if isinstance(error, BadQuery) else row.code
    later = error.retry_after if isinstance(error, domain.Busy) else None
    return Refusal(row.status, sentence, code=code, retry_after=later)


def _fits(row: Row, error: domain.MoorageError, operation: str) -> bool:
    return (
        isinstance(error, row.error)
        and (not row.on or operation in row.on)
        and (row.kind is None or row.kind == _kind(error))
    )


def _kind(error: domain.MoorageError) -> str | None:
    """The noun of the error's subject, a broken unit rule, or `absent` for no consumer yet."""
    if isinstance(error, domain.ConsumerConflict):
        return "absent" if error.actual is None else "consumer"
    if isinstance(error, domain.ConstraintViolated):
        return error.rule
    return getattr(error, "kind", None)


def _given(error: domain.MoorageError) -> object:
    """The generation the caller sent, as the reference spells it."""
    return error.expected if isinstance(error, domain.ConsumerConflict) else None


def _classes(error: domain.MoorageError) -> str:
    """The classes still in use, standard ones in their fixed order first."""
    names = error.resource_classes if isinstance(error, domain.InventoryInUse) else ()
    return ", ".join(sorted(names, key=class_order))


def _duplicates(error: domain.MoorageError, request: Request) -> str:
    """`name: x` or `uuid: y`, whichever of the body is a duplicate."""
    if not isinstance(error, domain.DuplicateName) or request.operation != "providers.create":
        return ""
    body: Mapping[str, object] = request.json()
    return f"{'name' if body.get('name') == error.name else 'uuid'}: {error.name}"
