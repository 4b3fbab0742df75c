"""The page of the native API, from its OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gen.markdown import table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ABOUT: Final = """\
Version {version}, below `{base}`. A running server serves this description as an OpenAPI document.
Ids are UUIDs; times are RFC 3339 in UTC, durations ISO 8601. Mutable things carry a `generation`,
which is also their entity tag for `If-Match`."""
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
    parts.append("## Errors\n\n" + api["components"]["responses"]["Error"]["description"])
    parts.append("## Bodies")
    for name, schema in sorted(api["components"]["schemas"].items()):
        parts.append(f"### {name} {{ #{anchor(name)} }}\n\n{text(schema.get('description', ''))}")
        if "properties" in schema:
            parts.append(table(("Field", "Type", "Meaning"), fields(schema)))
    return "\n\n".join(parts)


def routes(api: Mapping[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """The rows of the route tables, by tag."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for path, verbs in api["paths"].items():
        for verb in VERBS:
            if verb in verbs:
                one = verbs[verb]
                found.setdefault(one["tags"][0], []).append(row(verb, path, one))
    return found


def row(verb: str, path: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    """One route."""
    queries = [f"`?{p['name']}`" for p in one["parameters"] if p["in"] == "query"]
    taken = [kind(body_of(one["requestBody"]))] if "requestBody" in one else []
    given = [
        f"{status} {kind(body_of(answer)) if 'content' in answer else ''}".strip()
        for status, answer in one["responses"].items()
        if status != "default"
    ]
    access = one["description"].removeprefix("Access: ").removesuffix(".")
    return (
        f"`{verb.upper()} {path}`",
        text(one["summary"]),
        " ".join([*taken, *queries]),
        ", ".join(given),
        access,
    )


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
