"""/resource_classes and /resource_classes/{name}."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement import schemas
from moorage.api.placement.names import STANDARD_CLASSES
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
from moorage.usecases.tickets.places import is_virtual

if TYPE_CHECKING:
    from moorage.api.placement.request import Environment, Request
    from moorage.http.microversion import JSON


def shape(name: str, mount: str) -> JSON:
    """A resource class as the wire shows it."""
    links = [{"rel": "self", "href": f"{mount}/resource_classes/{name}"}]
    return {"name": name, "links": links}


def _modified(one: NamedRecord) -> int:
    """When a class was changed; standard classes count as changed now."""
    return just_now() if one.name in STANDARD_CLASSES else one.updated_at


def _find(env: Environment, name: str) -> NamedRecord:
    for one in env.store.resource_classes():
        if one.name == name:
            return one
    if is_virtual(env.store, name):
        return NamedRecord(name, just_now())
    raise NotFound("resource class", name)


def list_all(env: Environment, request: Request) -> Response:
    """Standard classes in their fixed order, then custom ones by creation."""
    found = env.store.resource_classes()
    return Response(
        body={"resource_classes": [shape(one.name, request.mount) for one in found]},
        modified=max(_modified(one) for one in found),
    )


def create(env: Environment, request: Request) -> Response:
    """Create a custom class."""
    name = request.json()["name"]
    env.store.commit(Changeset((CreateResourceClass(name),)))
    return Response(status=201, location=f"/resource_classes/{name}")


def show(env: Environment, request: Request) -> Response:
    """One class."""
    one = _find(env, request.path["name"])
    return Response(body=shape(one.name, request.mount), modified=_modified(one))


def ensure(env: Environment, request: Request) -> Response:
    """Create a custom class unless it is there: 201 or 204. There is no body."""
    name = request.path["name"]
    fault = check_value({"name": name}, schemas.BODIES["resource_classes.create"])
    if fault is not None:
        raise InvalidDescription(f"JSON does not validate: {fault}")
    committed = env.store.commit(Changeset((CreateResourceClass(name, exist_ok=True),)))
    status = 201 if name in committed.created else 204
    return Response(status=status, location=f"/resource_classes/{name}")


def rename(env: Environment, request: Request) -> Response:
    """Rename a custom class, as PUT did before 1.7."""
    new_name = request.json()["name"]
    name = _find(env, request.path["name"]).name
    if name in STANDARD_CLASSES:
        raise InvalidDescription(f"Cannot update standard resource class {name}")
    env.store.commit(Changeset((RenameResourceClass(name, new_name),)))
    return Response(body=shape(new_name, request.mount))


def delete(env: Environment, request: Request) -> Response:
    """Delete a custom class that no inventory has."""
    name = _find(env, request.path["name"]).name
    if name in STANDARD_CLASSES:
        raise InvalidDescription(
            f"Error in delete resource class: Cannot delete standard resource class {name}."
        )
    env.store.commit(Changeset((DeleteResourceClass(name),)))
    return Response(status=204)
