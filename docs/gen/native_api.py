"""The page of the native API, from its OpenAPI document."""

from __future__ import annotations

import json
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from gen.markdown import table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ABOUT: Final = """\
Version {version}, below `{base}`. A running server serves this description as an OpenAPI document.
Ids are UUIDs; times are RFC 3339 in UTC, durations ISO 8601. Mutable things carry a `generation`,
which is also their entity tag for `If-Match`. A listing is read page by page:
`limit` items of it, and a link `next` with the `marker` of the following page. Where it takes
`sort_key` (`name`, `created_at`, ...) and `sort_dir` (`asc`, `desc`), its pages go on in that
order."""
SHOWN: Final = frozenset({"members", "policies", "flavor", "count", "decide", "start", "duration"})
"""Fields that an example shows though they are optional."""
HIDDEN: Final = {"RoleBody": {"members", "policies"}}
"""Fields of a body that an example does not show: only groups have them, roles do not."""
UUID: Final = "5d0dcb45-b593-56a4-8161-f620b13641ed"
SAID: Final[Mapping[str, Any]] = {
    "name": "shop",
    "flavor": "m1.small",
    "count": 3,
    "type": "anti-affinity",
    "level": "rack",
    "hold": "PT10M",
    "start": "2026-12-07T08:00:00Z",
    "end": "2026-12-11T18:00:00Z",
    "duration": "P1D",
    "resources": {"VCPU": 2, "MEMORY_MB": 4096},
    "now": "2026-12-07T08:00:00Z",
    "url": "https://hooks.example/moorage",
    "generation": 1,
    "id": UUID,
}
"""What an example says in a field of this name."""
VERBS: Final = ("get", "post", "put", "patch", "delete")


def page() -> str:
    """Routes by noun, errors, then the bodies."""
    from moorage.api.native.openapi import document
    from moorage.api.native.routes import ROUTES

    api = document(ROUTES)
    base, version = api["servers"][0]["url"], api["info"]["version"]
    parts = ["# HTTP API", ABOUT.format(base=base, version=version)]
    for tag, rows in routes(api).items():
        head = ("Route", "Does", "Takes", "Gives", "Access")
        parts.append(f"## {tag}\n\n{table(head, rows)}")
        parts += examples(api, tag)
    parts.append("## Errors\n\nSee [Errors](errors.md): every code, and what to do about it.")
    parts.append("## Bodies")
    for name, schema in sorted(api["components"]["schemas"].items()):
        parts.append(f"### {name} {{ #{anchor(name)} }}\n\n{text(schema.get('description', ''))}")
        if "properties" in schema:
            parts.append(table(("Field", "Type", "Meaning"), fields(schema)))
    return "\n\n".join(parts)


def routes(api: Mapping[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """The rows of the route tables, by tag."""
    found: dict[str, list[tuple[str, ...]]] = {}
    base = api["servers"][0]["url"]
    for path, verbs in api["paths"].items():
        for verb in VERBS:
            if verb in verbs:
                one = verbs[verb]
                found.setdefault(one["tags"][0], []).append(row(verb, base, path, one))
    return found


def row(verb: str, base: str, path: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    """One route."""
    queries = [f"`?{p['name']}`" for p in one["parameters"] if p["in"] == "query"]
    taken = [kind(body_of(one["requestBody"]))] if "requestBody" in one else []
    given = [
        f"{status} {kind(body_of(answer)) if 'content' in answer else ''}".strip()
        for status, answer in one["responses"].items()
        if status != "default"
    ]
    access = one["description"].removeprefix("Access: ").removesuffix(".").partition(",")[0]
    return (
        f"`{verb.upper()} {base}{path}`",
        text(one["summary"]),
        " ".join([*taken, *queries]),
        ", ".join(given),
        access,
    )


def examples(api: Mapping[str, Any], tag: str) -> Iterator[str]:
    """A request with a body for each route of a noun that takes one."""
    base = api["servers"][0]["url"]
    for path, verbs in api["paths"].items():
        for verb in VERBS:
            one = verbs.get(verb)
            if one is not None and one["tags"][0] == tag and "requestBody" in one:
                body = example(body_of(one["requestBody"]), api)
                request = f"{verb.upper()} {base}{path}\n\n{json.dumps(body, indent=2)}"
                yield f'???+ example "{one["summary"]}"\n\n' + indent(
                    f"```http\n{request}\n```", "    "
                )


def example(schema: Mapping[str, Any], api: Mapping[str, Any], name: str = "") -> Any:  # noqa: C901, PLR0911, ANN401 - a line for each kind of schema
    """A value that a schema allows: what is required, and what a name says by itself."""
    if "$ref" in schema:
        body = schema["$ref"].rpartition("/")[2]
        found = api["components"]["schemas"][body]
        hidden = HIDDEN.get(body, set())
        shown = {n: one for n, one in found.get("properties", {}).items() if n not in hidden}
        return example({**found, "properties": shown} if shown else found, api, name)
    if "anyOf" in schema:
        return example(next(s for s in schema["anyOf"] if s.get("type") != "null"), api, name)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object" if "properties" in schema:
            required = schema.get("required") or list(schema["properties"])[:2]
            shown = [n for n in schema["properties"] if n in required or n in SHOWN]
            return {n: example(schema["properties"][n], api, n) for n in shown}
        case "object":
            return SAID.get(name, {})
        case "array":
            return [example(schema["items"], api, name)] if schema.get("items") else []
        case "integer":
            return SAID.get(name, max(schema.get("minimum", 1), 1))
        case "number":
            return 1
        case "boolean":
            return True
    if "pattern" in schema and "{8}" in schema["pattern"]:
        return UUID
    return SAID.get(name, schema.get("examples", ["text"])[0])


def body_of(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a request's or an answer's JSON body."""
    schema: Mapping[str, Any] = message["content"]["application/json"]["schema"]
    return schema


def fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The rows of a body's fields."""
    required = schema.get("required", ())
    for name, one in schema["properties"].items():
        optional = "" if name in required else " *(optional)*"
        default = f"Default `{one['default']}`." if one.get("default") not in (None, "") else ""
        yield (
            f"`{name}`{optional}",
            kind(one),
            f"{text(one.get('description', ''))} {default}".strip(),
        )


def kind(schema: Mapping[str, Any]) -> str:
    """A type in words, with links to the bodies it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{anchor(name)})"
    if "anyOf" in schema:
        return " or ".join(kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {kind(inner)}" if isinstance(inner, dict) and inner else "object"
    return str(schema.get("type", "anything"))


def anchor(name: str) -> str:
    """Where a body is described."""
    return f"body-{name.lower()}"
