"""JSON schemas of the newest version: one per operation with a body or a checked query.

Older versions' schemas are made from these by the declared changes in `versions/`. The shapes
follow the reference server's, because its error sentences quote them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]

MAX_INT: Final = 2**31 - 1
MAX_RATIO: Final = 3.40282e38
"""The largest allocation ratio: a single-precision float."""

UUID: Final = "^[0-9a-fA-F-]{36}$"
NAME: Final = "^[A-Z0-9_]+$"
CUSTOM_NAME: Final = "^CUSTOM_[A-Z0-9_]+$"
SUFFIX: Final = "[a-zA-Z0-9_-]{1,64}"
NUMBERED_SUFFIX: Final = "[1-9][0-9]*"
"""Group suffixes before 1.33."""

GROUPED: Final = ("resources", "required", "member_of", "in_tree")
"""Candidate parameters that take a group's suffix."""


def exactly(properties: Schema, *required: str) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def keyed(pattern: str, value: Schema, *, at_least: int) -> Schema:
    """An object whose keys all match the pattern."""
    return {
        "type": "object",
        "minProperties": at_least,
        "patternProperties": {pattern: value},
        "additionalProperties": False,
    }


def grouped(suffix: str, *names: str) -> Schema:
    """Pattern properties of the parameters that take a suffix."""
    return {f"^{name}({suffix})?$": {"type": "string"} for name in names}


def _integer(minimum: int) -> Schema:
    return {"type": "integer", "maximum": MAX_INT, "minimum": minimum}


TEXT: Final[Schema] = {"type": "string"}
GENERATION: Final[Schema] = {"type": "integer"}
OWNER: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 255}
PARENT: Final[Schema] = {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}
PROVIDER_NAME: Final[Schema] = {"type": "string", "maxLength": 200}
TRAIT: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 255}
CUSTOM_TRAIT: Final[Schema] = {**TRAIT, "pattern": CUSTOM_NAME}
CUSTOM_CLASS: Final[Schema] = {"type": "string", "pattern": CUSTOM_NAME, "maxLength": 255}

INVENTORY: Final[Schema] = {
    "resource_provider_generation": GENERATION,
    "total": _integer(1),
    "reserved": _integer(0),
    "min_unit": _integer(1),
    "max_unit": _integer(1),
    "step_size": _integer(1),
    "allocation_ratio": {"type": "number", "maximum": MAX_RATIO},
}

AGGREGATES: Final[Schema] = {
    "type": "array",
    "items": {"type": "string", "format": "uuid"},
    "uniqueItems": True,
}

RESOURCES: Final[Schema] = keyed(NAME, {"type": "integer", "minimum": 1}, at_least=1)

MAPPINGS: Final[Schema] = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {
        SUFFIX: {"type": "array", "minItems": 1, "items": {"type": "string", "format": "uuid"}}
    },
}

ALLOCATIONS: Final[Schema] = exactly(
    {
        "allocations": keyed(
            UUID,
            exactly({"generation": GENERATION, "resources": RESOURCES}, "resources"),
            at_least=0,
        ),
        "project_id": OWNER,
        "user_id": OWNER,
        "consumer_generation": {"type": ["integer", "null"]},
        "consumer_type": {"type": "string", "pattern": NAME, "minLength": 1, "maxLength": 255},
        "mappings": MAPPINGS,
    },
    "allocations",
    "project_id",
    "user_id",
    "consumer_generation",
    "consumer_type",
)

ALL_INVENTORIES: Final[Schema] = exactly(
    {
        "resource_provider_generation": GENERATION,
        "inventories": {
            "type": "object",
            "patternProperties": {NAME: exactly(INVENTORY, "total")},
        },
    },
    "resource_provider_generation",
    "inventories",
)

BODIES: Final[Mapping[str, Schema]] = {
    "providers.create": exactly(
        {
            "name": PROVIDER_NAME,
            "uuid": {"type": "string", "format": "uuid"},
            "parent_provider_uuid": PARENT,
        },
        "name",
    ),
    "providers.update": exactly({"name": PROVIDER_NAME, "parent_provider_uuid": PARENT}, "name"),
    "inventories.create": exactly(
        {**INVENTORY, "resource_class": {"type": "string", "pattern": NAME}},
        "total",
        "resource_class",
    ),
    "inventories.replace": ALL_INVENTORIES,
    "inventory.update": exactly(INVENTORY, "total", "resource_provider_generation"),
    "aggregates.replace": exactly(
        {"aggregates": AGGREGATES, "resource_provider_generation": GENERATION},
        "aggregates",
        "resource_provider_generation",
    ),
    "provider_traits.replace": exactly(
        {
            "traits": {"type": "array", "items": TRAIT},
            "resource_provider_generation": GENERATION,
        },
        "traits",
        "resource_provider_generation",
    ),
    "resource_classes.create": exactly({"name": CUSTOM_CLASS}, "name"),
    "allocations.replace": ALLOCATIONS,
    "allocations.write": keyed(UUID, ALLOCATIONS, at_least=1),
    "reshaper.reshape": exactly(
        {
            "inventories": keyed(UUID, ALL_INVENTORIES, at_least=1),
            "allocations": keyed(UUID, ALLOCATIONS, at_least=0),
        },
        "inventories",
        "allocations",
    ),
}

QUERIES: Final[Mapping[str, Schema]] = {
    "providers.list": exactly(
        {
            "name": TEXT,
            "uuid": {"type": "string", "format": "uuid"},
            "member_of": TEXT,
            "resources": TEXT,
            "in_tree": {"type": "string", "format": "uuid"},
            "required": TEXT,
        }
    ),
    "traits.list": exactly({"name": TEXT, "associated": TEXT}),
    "usages.show": exactly(
        {
            "project_id": OWNER,
            "user_id": OWNER,
            "consumer_type": {
                "type": "string",
                "pattern": f"{NAME}|^all|^unknown$",
                "minLength": 1,
                "maxLength": 255,
            },
        },
        "project_id",
    ),
    "candidates.list": {
        "type": "object",
        "properties": {
            "limit": {
                "type": ["integer", "string"],
                "pattern": "^[1-9][0-9]*$",
                "minimum": 1,
                "minLength": 1,
            },
            "group_policy": {"type": "string", "enum": ["none", "isolate"]},
            "root_required": TEXT,
            "same_subtree": TEXT,
        },
        "patternProperties": grouped(SUFFIX, *GROUPED),
        "additionalProperties": False,
    },
}
