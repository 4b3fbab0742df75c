"""`OS::Moorage::Ensemble` and `OS::Moorage::Lease`, for templates that name them explicitly.

A server of the template takes a place by the hint `moorage: {get_resource: …}`; it then depends on
the ensemble, and is created when the places are held.
"""

from __future__ import annotations

from typing import Any, Final

from heat.engine import attributes, properties, resource

from moorage.domain.idempotency import record_id
from moorage.heat_plugin import options
from moorage.heat_plugin.native_api import NativeApi

_TEXT, _LIST, _MAP = (
    properties.Schema.STRING,
    properties.Schema.LIST,
    properties.Schema.MAP,
)
MEMBERS: Final = properties.Schema(
    _LIST,
    "Roles, as in the description of an ensemble.",
    schema=properties.Schema(_MAP),
    default=[],
)
POLICIES: Final = properties.Schema(
    _LIST, "Policies between the members.", schema=properties.Schema(_MAP), default=[]
)


class _NativeResource(resource.Resource):  # type: ignore[misc]
    """An object of Moorage's native API; it is replaced where its properties change."""

    collection: str
    kind: str

    def handle_create(self) -> None:
        """Create it; a refusal is the resource's failure, with Moorage's sentence.

        The resource's own id is the idempotency key. What was created without an answer is deleted
        with the resource: its id follows from the key and the project.
        """
        name = self.properties["name"] or self.physical_resource_name()
        self.resource_id_set(record_id(str(self.uuid), str(self.context.project_id)))
        body = self.described({"id": str(self.uuid), "name": name})
        made = self._api().create(self.collection, {self.kind: body})
        self.resource_id_set(str(made[self.kind]["id"]))

    def handle_delete(self) -> None:
        """Delete it, with what is held for it."""
        if self.resource_id is not None:
            self._api().delete(self.collection, self.resource_id)

    def described(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the request that creates it."""
        raise NotImplementedError

    def shown(self) -> dict[str, Any]:
        """It, as it is now."""
        return dict(self._api().show(self.collection, str(self.resource_id))[self.kind])

    def _api(self) -> NativeApi:
        return NativeApi(options.read(), self.context)


class Ensemble(_NativeResource):
    """An ensemble that is decided and held before the servers that refer to it are created."""

    collection, kind = "ensembles", "ensemble"
    properties_schema: Final = {
        "name": properties.Schema(_TEXT, "Name; by default made of the stack's and its own."),
        "members": MEMBERS,
        "policies": POLICIES,
        "hold": properties.Schema(_TEXT, "How long places are held, such as PT1H.", default="PT1H"),
    }
    attributes_schema: Final = {
        "decision": attributes.Schema("Id of the decision.", type=attributes.Schema.STRING),
        "hold": attributes.Schema("When the hold ends.", type=attributes.Schema.STRING),
        "places": attributes.Schema(
            "Member -> level -> domain, as opaque labels.", type=attributes.Schema.MAP
        ),
    }

    def described(self, body: dict[str, Any]) -> dict[str, Any]:
        """Decided and held at once."""
        return body | {
            "members": self.properties["members"],
            "policies": self.properties["policies"],
            "decide": {"hold": self.properties["hold"]},
        }

    def _resolve_attribute(self, name: str) -> Any:  # noqa: ANN401 - an attribute's value
        if self.resource_id is None:
            return None
        if name == "places":
            members = self._api().show(self.collection, f"{self.resource_id}/members")["members"]
            return {one["name"]: one["domains"] for one in members}
        decision = self.shown().get("decision") or {}
        return decision.get({"decision": "id", "hold": "expires_at"}[name])


class Lease(_NativeResource):
    """A lease of an ensemble's places for a period."""

    collection, kind = "leases", "lease"
    properties_schema: Final = {
        "name": properties.Schema(_TEXT, "Name; by default made of the stack's and its own."),
        "members": MEMBERS,
        "policies": POLICIES,
        "start": properties.Schema(_TEXT, "When it begins; by default at once."),
        "end": properties.Schema(_TEXT, "When it ends."),
        "duration": properties.Schema(_TEXT, "How long it lasts, instead of `end`: P7D."),
    }
    attributes_schema: Final = {
        "start": attributes.Schema("When it begins.", type=attributes.Schema.STRING),
        "end": attributes.Schema("When it ends.", type=attributes.Schema.STRING),
        "status": attributes.Schema("Its status.", type=attributes.Schema.STRING),
        "reservations": attributes.Schema(
            "Role -> id of its reservation, for the hint `reservation`.",
            type=attributes.Schema.MAP,
        ),
    }

    def described(self, body: dict[str, Any]) -> dict[str, Any]:
        """With its own ensemble."""
        keys = ("members", "policies")
        body["ensemble"] = {"name": body["name"], **{key: self.properties[key] for key in keys}}
        period = ((key, self.properties[key]) for key in ("start", "end", "duration"))
        return body | {key: value for key, value in period if value is not None}

    def _resolve_attribute(self, name: str) -> Any:  # noqa: ANN401 - an attribute's value
        if self.resource_id is None:
            return None
        lease = self.shown()
        if name == "reservations":
            return {one["role"]: one["id"] for one in lease["reservations"]}
        return lease.get(name)
