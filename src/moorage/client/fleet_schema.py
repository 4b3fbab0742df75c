"""The format of fleet files as a JSON schema: what may be written, and within which bounds.

The reader checks every file by it (`schema_check`), and the reference prints it, so what is
documented is what is read. What no schema says, such as that a domain exists, is checked after.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.domain.fleet import MAX_HOSTS
from moorage.domain.resources import MAX_AMOUNT, NAME


def _object(required: tuple[str, ...] = (), /, **properties: object) -> dict[str, Any]:
    """A mapping with these keys and no others."""
    found: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return found | ({"required": list(required)} if required else {})


def _by(keys: dict[str, Any] | None, values: dict[str, Any]) -> dict[str, Any]:
    """A mapping whose keys the author chooses."""
    found = {"type": "object", "additionalProperties": values}
    return found | ({"propertyNames": keys} if keys else {})


def _list(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items} | ({"minItems": least} if least else {})


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


_AMOUNT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_AMOUNT}
_FROM_ZERO: Final = {"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT}
_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_HOSTS}
_UUID: Final = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
_CLASS: Final = {"pattern": f"^{NAME.pattern}$"}
_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}
_PATTERN: Final = {"type": ["string", "number"], "maxLength": 1000}
_WORDS: Final = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}


_STOCK: Final = {
    "inventories": _by(_CLASS, _ref("inventory")),
    "traits": _ref("traits"),
    "aggregates": _WORDS | {"description": "by name or UUID"},
}
_NAMED: Final = {"name": _ref("name"), "count": _COUNT, "first": _FROM_ZERO}
_OWNED: Final = {
    "project": _ref("name") | {"description": "a name; its id follows from it"},
    "project_id": _ref("name") | {"description": "an id, as it is"},
    "user_id": _ref("name"),
    "type": _ref("name") | {"description": "the consumer's type; by default a server's"},
}

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A fleet of Moorage",
    **_object(
        fleet=_ref("name") | {"description": "the fleet's name; by default the file's"},
        topology=_by(None, _ref("tree"))
        | {"description": "trees of domains by name; location is the default one"},
        hosts=_list(_ref("host")),
        sharing=_list(_ref("shared")),
        flavors=_list(_ref("flavor")),
        load=_list(_ref("load")),
        rules=_list(_ref("rule"))
        | {"description": "places of hosts that no entry of hosts places, the first match counts"},
        unplaced={
            "enum": ["allow", "refuse"],
            "description": "whether hosts may have no place in a tree (allow)",
        },
        revision={
            "type": "integer",
            "minimum": 0,
            "maximum": 2**63 - 1,
            "description": "loading the topology is refused if it has another revision by now",
        },
    ),
    "$defs": {
        "name": {"type": ["string", "number"], "minLength": 1},
        "traits": {
            "type": "array",
            "items": {"type": "string", **_CLASS},
            "uniqueItems": True,
        },
        "amounts": _by(_CLASS, _AMOUNT),
        "inventory": {
            "description": "a total, or a total with terms",
            "oneOf": [
                _AMOUNT,
                _object(
                    ("total",),
                    total=_AMOUNT,
                    reserved=_FROM_ZERO,
                    min_unit=_AMOUNT,
                    max_unit=_AMOUNT,
                    step_size=_AMOUNT,
                    allocation_ratio={"type": "number", "minimum": 1e-6, "maximum": 3.40282e38},
                ),
            ],
        },
        "tree": _object(
            ("levels",),
            levels=_WORDS | {"minItems": 1, "description": "from the top down, without host"},
            domains=_list(_ref("domain")),
        ),
        "domain": _object(
            ("name", "level"),
            **_NAMED,
            level={"type": "string", "description": "of its tree"},
            parent=_ref("several"),
            order=_ref("order"),
        ),
        "order": {"enum": ["block", "turn"], "description": "equal runs, or one to each in turn"},
        "some": {"oneOf": [_ref("name"), _ref("counted")]},
        "counted": _object(("name", "count"), **_NAMED)
        | {"description": "count names from a pattern: {n} is the number, {n:03} pads it"},
        "several": {"oneOf": [_ref("name"), _ref("counted"), _ref("listed")]},
        "listed": _list(_ref("some"), least=1),
        "place": {
            "description": "domains that the hosts are dealt out over",
            "oneOf": [
                _ref("name"),
                _ref("counted"),
                _ref("listed"),
                _object(("in",), **{"in": _ref("several"), "order": _ref("order")}),
            ],
        },
        "host": _object(
            ("name",),
            **_NAMED,
            **{"class": _ref("name")},
            uuid=_UUID | {"description": "as a ledger has it; the name is taken literally then"},
            **_STOCK,
            place=_by(None, _ref("place")) | {"description": "by tree"},
            children=_list(_ref("child")),
        )
        | {
            "description": "without inventories: hosts that are there, of which only the place"
            " is said",
            "dependentRequired": {
                key: ["inventories"]
                for key in ("class", "uuid", "traits", "aggregates", "children")
            },
        },
        "child": _object(("name",), **_NAMED, uuid=_UUID, **_STOCK, children=_list(_ref("child")))
        | {"description": "a provider below; it is called after its parent, unless it has a uuid"},
        "shared": _object(
            ("name", "inventories", "aggregates"),
            **_NAMED,
            uuid=_UUID,
            **_STOCK,
            place=_by(None, _ref("place")) | {"description": "by tree"},
        )
        | {"description": "a provider that hosts of its aggregates take from"},
        "flavor": _object(
            ("name", "resources"),
            id=_ref("name"),
            name=_ref("name"),
            resources=_ref("amounts"),
            required={
                "type": "array",
                "items": {"oneOf": [{"type": "string", **_CLASS}, _ref("traits")]},
                "description": "traits that are all needed; of a nested list, one",
            },
            forbidden=_ref("traits"),
            extra_specs=_by(None, {"type": "string"}) | {"description": "such as decide no place"},
        ),
        "load": {"oneOf": [_ref("placed"), _ref("spelled_out"), _ref("drawn")]},
        "placed": _object(
            ("on", "name"),
            on=_ref("several"),
            name=_ref("name"),
            resources=_ref("amounts"),
            flavor=_ref("name"),
            **_OWNED,
        )
        | {"description": "one server on each of the providers, of some amounts or of a flavor"},
        "spelled_out": _object(
            ("allocations", "name"),
            allocations=_by(None, _ref("amounts")),
            name=_ref("name"),
            uuid=_UUID,
            **_OWNED,
        )
        | {"description": "one server that takes from several providers"},
        "drawn": _object(
            ("seed", "name", "fill", "flavors"),
            seed={"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
            name=_ref("name"),
            fill=_SHARE,
            flavors=_by(None, {"type": "integer", "minimum": 1, "maximum": 1_000_000}),
            uneven=_by(None, _SHARE),
            of={"type": "string"},
            classes=_WORDS,
            projects=_COUNT,
        )
        | {"description": "servers drawn from flavors, by weight, until hosts are as full as said"},
        "rule": {
            "type": "object",
            "properties": {
                "tree": {"type": "string"},
                "name": _PATTERN,
                "trait": _PATTERN,
                "availability_zone": _PATTERN,
                "metadata": _by(None, _PATTERN),
                "aggregate": {"oneOf": [{"type": "string"}, _WORDS]},
            },
            "additionalProperties": _ref("name"),
            "description": "hosts that meet all conditions are in these domains, by level",
        },
    },
}
