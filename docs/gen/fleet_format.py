"""The page of the fleet format, from the schema that files are checked by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Schema = Mapping[str, Any]

ABOUT: Final = """\
The format of [fleet files](../guide/fleet-files.md). `moorage sim start`, `fleet load`,
`topology load`, `fleet import`, `admin import placement`, `admin sync nova` and the setting
`topology_rules` read it, each the sections that it needs; `fleet export` writes it. Keys in bold
are needed. A file is checked by the schema at the end of this page, and then for what no schema
says: that domains, hosts and flavors exist, that names are unique, that a load fits."""
TITLES: Final = {
    "tree": "Trees",
    "domain": "Domains",
    "host": "Hosts",
    "child": "Children",
    "shared": "Sharing providers",
    "inventory": "Inventories",
    "flavor": "Flavors",
    "placed": "Load on providers",
    "spelled_out": "Load of several providers",
    "drawn": "Drawn load",
    "rule": "Rules",
    "counted": "Names by pattern",
    "place": "Places",
}
MOST: Final = 2**31 - 1


def page() -> str:
    """The sections of a file, then every kind of entry, then the schema."""
    from moorage.client.fleet_schema import SCHEMA

    known = SCHEMA["$defs"]
    parts = ["# Fleet format", ABOUT, "## Sections", keys(SCHEMA)]
    for name, title in TITLES.items():
        described = known[name].get("description", "")
        forms = (known[name], *known[name].get("oneOf", ()))
        parts += [f"## {title}", *([text(described).capitalize() + "."] if described else [])]
        parts += [keys(one) for one in forms if "properties" in one]
    return "\n\n".join([*parts, "## Schema", f"```json\n{json.dumps(SCHEMA, indent=2)}\n```"])


def keys(schema: Schema) -> str:
    """The keys of a mapping."""
    return table(("Key", "Value", ""), rows(schema))


def rows(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """A key, its type, and its description."""
    for key, one in schema["properties"].items():
        name = f"**{code(key)}**" if key in schema.get("required", ()) else code(key)
        yield name, kind(one), text(one.get("description", ""))
    if isinstance(others := schema.get("additionalProperties"), dict):
        yield "a level of the tree", kind(others), "the domain; `{group}` stands for a match"


def kind(schema: Schema) -> str:
    """The type of a value in a few words."""
    match schema:
        case {"$ref": str(reference)}:
            words = named(reference.removeprefix("#/$defs/"))
        case {"enum": list(choices)}:
            words = " or ".join(map(code, choices))
        case {"oneOf": list(forms)}:
            words = " or ".join(dict.fromkeys(map(kind, forms)))
        case {"type": "array"}:
            words = f"list of {kind(schema['items'])}"
        case {"type": "object", "additionalProperties": dict(values)}:
            words = f"mapping to {kind(values)}"
        case {"type": "integer" | "number" as number}:
            most = schema.get("maximum", MOST)
            bound = f"from {schema['minimum']:g}" + (f" to {most:g}" if most < MOST else "")
            words = f"{number} {bound}"
        case _:
            words = "text"
    return words


def named(name: str) -> str:
    """A definition by its name, with a link to its section."""
    if name not in TITLES:
        return NAMED.get(name, name)
    return f"[{name.replace('_', ' ')}](#{TITLES[name].lower().replace(' ', '-')})"


NAMED: Final = {
    "name": "name",
    "several": "name, names by pattern, or a list of them",
    "some": "name or names by pattern",
    "listed": "list of names",
    "traits": "list of traits",
    "amounts": "amounts by resource class",
    "order": "`block` or `turn`",
    "load": "one of the three kinds of load below",
}
