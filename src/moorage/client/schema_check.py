"""Checks a YAML tree by a JSON schema; errors name path and line, and the nearest known key.

As much of JSON schema as files need: types, bounds, patterns, required and dependent keys, and
`oneOf`. Of several forms the type decides; among mappings, the first required key of each.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.errors import InvalidDescription
    from moorage.heat.yaml_tree import YamlNode

    Schema = Mapping[str, Any]

_WORDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
}
_LARGEST: Final = 3.4e38


def check(node: YamlNode, schema: Schema, root: Schema) -> None:
    """Check a node and all below it. References are of `root`.

    Raises:
        InvalidDescription: the first thing that the schema does not allow.
    """
    schema = _form(node, schema, root)
    if "enum" in schema:
        typed_yaml.choice(node, schema["enum"])
        return
    match _types(schema):
        case ["object"]:
            _mapping(node, schema, root)
        case ["array"]:
            _list(node, schema, root)
        case ["integer"]:
            typed_yaml.integer(node, least=schema["minimum"], most=schema["maximum"])
        case ["number"]:
            typed_yaml.number(node, least=schema["minimum"], most=schema.get("maximum", _LARGEST))
        case _:
            _text(node, schema)


def _form(node: YamlNode, schema: Schema, root: Schema) -> Schema:
    """The schema that says something of this node, of references and alternatives."""
    schema = _followed(schema, root)
    if "oneOf" not in schema:
        return schema
    forms = list(_forms(schema, root))
    fitting = [one for one in forms if not _kinds(node).isdisjoint(_types(one))]
    if not fitting:
        words = dict.fromkeys(_WORDS[kind] for form in forms for kind in _types(form))
        raise node.invalid(f"{' or '.join(words)} is needed here, not {typed_yaml.kind(node)}")
    if len(fitting) == 1:
        return fitting[0]
    found = [one for one in fitting if one["required"][0] in typed_yaml.mapping(node)]
    if len(found) != 1:
        keys = ", ".join(one["required"][0] for one in fitting)
        raise node.invalid(f"exactly one of these keys is needed here: {keys}")
    return found[0]


def _forms(schema: Schema, root: Schema) -> Iterator[Schema]:
    for one in schema["oneOf"]:
        form = _followed(one, root)
        yield from _forms(form, root) if "oneOf" in form else (form,)


def _followed(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return found


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", "string")
    return kinds if isinstance(kinds, list) else [kinds]


def _kinds(node: YamlNode) -> frozenset[str]:
    match node.value:
        case dict():
            return frozenset({"object"})
        case list():
            return frozenset({"array"})
        case bool() | None:
            return frozenset()
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number"})
        case _:
            return frozenset({"string"})


def _mapping(node: YamlNode, schema: Schema, root: Schema) -> None:
    fields = typed_yaml.mapping(node)
    known: Schema = schema.get("properties", {})
    others: Any = schema.get("additionalProperties", True)
    names = schema.get("propertyNames")
    for key, one in fields.items():
        if key in known:
            check(one, known[key], root)
        elif others is False:
            raise unknown_key(key, one, known)
        elif names is not None and re.fullmatch(names["pattern"], key, re.ASCII) is None:
            raise one.invalid(f"not a name of capitals, digits and underscores: {key!r}")
        else:
            check(one, others, root)
    for key in schema.get("required", ()):
        if key not in fields:
            raise node.invalid(f"the key {key!r} is missing")
    for key, needed in schema.get("dependentRequired", {}).items():
        for other in needed:
            if key in fields and other not in fields:
                raise fields[key].invalid(f"{key!r} needs the key {other!r} beside it")


def unknown_key(key: str, node: YamlNode, known: Mapping[str, Any]) -> InvalidDescription:
    """The error about a key that is not known here, with the one that was perhaps meant."""
    near = get_close_matches(key, known, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return node.invalid(f"unknown key {key!r}{meant}; known here: {', '.join(sorted(known))}")


def _list(node: YamlNode, schema: Schema, root: Schema) -> None:
    items = typed_yaml.items(node, least=schema.get("minItems", 0))
    for one in items:
        check(one, schema["items"], root)
    if schema.get("uniqueItems"):
        typed_yaml.texts(node)


def _text(node: YamlNode, schema: Schema) -> None:
    text = typed_yaml.name(node) if "number" in _types(schema) else typed_yaml.text(node)
    if len(text) > schema.get("maxLength", len(text)):
        raise node.invalid(f"at most {schema['maxLength']} characters are possible here")
    pattern = schema.get("pattern")
    if pattern is not None and re.fullmatch(pattern, text, re.ASCII) is None:
        raise node.invalid(f"{text[:80]!r} is not of the form {pattern}")
