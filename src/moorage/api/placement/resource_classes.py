"""/resource_classes and /resource_classes/{name}."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement import schemas
from moorage.api.placement.names import STANDARD_CLASSES, is_virtual
from moorage.api.placement.rendering import just_now
from moorage.api.placement.validation import check_value
from moorage.domain.changes import (
    Changeset,
    CreateResourceClass,
    DeleteResourceClass,
    RenameResourceClass,
)
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.http.microversion import Response
from moorage.usecases.ports import NamedRecord

if TYPE_CHECKING:
    from moorage.api.placement.request import Parts, Request
    from moorage.http.microversion import JSON


def shape(name: str, mount: str) -> JSON:
    """A resource class as the wire shows it."""
    links = [{"rel": "self", "href": f"{mount}/resource_classes/{name}"}]
    return {"name": name, "links": links}


def _modified(one: NamedRecord) -> int:
    """When a class was changed; standard classes count as changed now."""
    return just_now() if one.name in STANDARD_CLASSES else one.updated_at


def _find(parts: Parts, name: str) -> NamedRecord:
    for one in parts.store.resource_classes():
        if one.name == name:
            return one
    if is_virtual(parts.store, name):
        return NamedRecord(name, just_now())
    raise NotFound("resource class", name)


def list_all(parts: Parts, request: Request) -> Response:
    """Standard classes in their fixed order, then custom ones by creation."""
    found = parts.store.resource_classes()
    return Response(
        body={"resource_classes": [shape(one.name, request.mount) for one in found]},
        modified=max(_modified(one) for one in found),
    )


def create(parts: Parts, request: Request) -> Response:
    """Create a custom class."""
    name = request.json()["name"]
    parts.store.commit(Changeset((CreateResourceClass(name),)))
    return Response(status=201, location=f"/resource_classes/{name}")


def show(parts: Parts, request: Request) -> Response:
    """One class."""
    one = _find(parts, request.path["name"])
    return Response(body=shape(one.name, request.mount), modified=_modified(one))


def ensure(parts: Parts, request: Request) -> Response:
    """Create a custom class unless it is there: 201 or 204. There is no body."""
    name = request.path["name"]
    fault = check_value({"name": name}, schemas.BODIES["resource_classes.create"])
    if fault is not None:
        raise InvalidDescription(f"JSON does not validate: {fault}")
    committed = parts.store.commit(Changeset((CreateResourceClass(name, exist_ok=True),)))
    status = 201 if name in committed.created else 204
    return Response(status=status, location=f"/resource_classes/{name}")


def rename(parts: Parts, request: Request) -> Response:
    """Rename a custom class, as PUT did before 1.7."""
    new_name = request.json()["name"]
    name = _find(parts, request.path["name"]).name
    if name in STANDARD_CLASSES:
        raise InvalidDescription(f"Cannot update standard resource class {name}")
    parts.store.commit(Changeset((RenameResourceClass(name, new_name),)))
    return Response(body=shape(new_name, request.mount))


def delete(parts: Parts, request: Request) -> Response:
    """Delete a custom class that no inventory has."""
    name = _find(parts, request.path["name"]).name
    if name in STANDARD_CLASSES:
        raise InvalidDescription(
            f"Error in delete resource class: Cannot delete standard resource class {name}."
        )
    parts.store.commit(Changeset((DeleteResourceClass(name),)))
    return Response(status=204)
