"""1.12: allocations are objects by provider; GET shows project and user.

Before, PUT took a list of providers with resources, candidates were shown as such lists, and GET
named no owner.
"""

from moorage.api.placement.lowering import hiding, in_entries
from moorage.api.placement.schemas import RESOURCES, exactly
from moorage.http.microversion import JSON, Change

_ENTRY = exactly(
    {
        "resource_provider": exactly({"uuid": {"type": "string", "format": "uuid"}}, "uuid"),
        "resources": RESOURCES,
    },
    "resource_provider",
    "resources",
)


def _listed_schema(schema: JSON) -> JSON:
    allocations = {"type": "array", "minItems": 1, "items": _ENTRY}
    return {**schema, "properties": {**schema["properties"], "allocations": allocations}}


def _by_provider(body: JSON) -> JSON:
    return {
        **body,
        "allocations": {
            entry["resource_provider"]["uuid"]: {"resources": entry["resources"]}
            for entry in body["allocations"]
        },
    }


def _listed(candidate: JSON) -> JSON:
    return {
        "allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": given["resources"]}
            for uuid, given in candidate["allocations"].items()
        ]
    }


CHANGE = Change(
    since="1.12",
    feature="allocations-by-dict",
    schemas={"allocations.replace": _listed_schema},
    lift={"allocations.replace": _by_provider},
    lower={
        "allocations.show": hiding("project_id", "user_id"),
        "candidates.list": in_entries("allocation_requests", _listed),
    },
)
