"""The templates of folders, with values for parameters that have none.

Public templates are written for some cloud and leave its names to parameters. Here each of them
gets a value that its type, its constraints and its name allow, the same for both sides.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final

import yaml
from tests.heat_judge.case import Case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ENDINGS: Final = frozenset({"", ".yaml", ".yml", ".template", ".json", ".hot", ".env"})
LONGEST: Final = 2_000_000
"""Bytes of a file that is looked at."""
VERSIONS: Final = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")
SECTIONS: Final = ("parameters", "Parameters")
ENVIRONMENT: Final = ("resource_registry", "parameter_defaults", "parameters")

# The first that matches a parameter's name, and that its constraints allow, is its value.
BY_NAME: Final[tuple[tuple[str, str], ...]] = (
    (r"cidr|subnet_range|prefix", "10.0.0.0/24"),
    (r"mac", "fa:16:3e:00:00:01"),
    (r"gateway|(^|_)ip($|_|s$)|addr|dns|nameserver|vip|start|end", "10.0.0.5"),
    (r"ipv6", "2001:db8::5"),
    (r"url|uri|endpoint|href", "http://192.0.2.1/x"),
    (r"flavor|instance_?type", "m1.small"),
    (r"image", "image-1"),
    (r"key", "key-1"),
    (r"zone|_az", "nova"),
    (r"count|num|size|capacity|port|min|max|vlan|asn|ttl|timeout|interval|period|weight", "1"),
    (r"enable|is_|has_|use_", "true"),
    (r"mail", "user@example.org"),
    (r"domain|fqdn|hostname|zone_name", "example.org"),
)
BY_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "number": ("1", "2", "10", "80", "1024", "100"),
    "string": (
        "value",
        "1",
        "value-1",
        "Value12345",
        "Passw0rd",
        "Passw0rd_1",
        "Passw0rd!12345",
        "value12345678901234567890123456789012",
        "m1.small",
        "10.0.0.5",
        "10.0.0.0/24",
        "http://192.0.2.1/x",
        "00000000-0000-4000-8000-000000000001",
        "example.org",
        "true",
        "a",
    ),
    "comma_delimited_list": ("1,2", "10.0.0.5", "one"),
    "commadelimitedlist": ("1,2", "10.0.0.5", "one"),
    "list": ("1,2",),
    "json": ("{}", "[]"),
    "boolean": ("true", "false"),
}


class _Loader(yaml.SafeLoader):
    """Reads dates as text, as Heat does, and unknown tags as nothing."""

    def construct_date(self, node: yaml.ScalarNode) -> str:
        """The text of a date."""
        return str(self.construct_scalar(node))

    def construct_unknown(self, _suffix: str, _node: yaml.Node) -> None:
        """Nothing."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_date)
_Loader.add_multi_constructor("", _Loader.construct_unknown)


def cases(folder: Path) -> Iterator[Case]:
    """Every template below a folder, with the environment that belongs to it.

    That is one beside it with its name (`web.env`, `web.env.yaml`, `web_env.yaml`), else the first
    of the folder that maps a type of the template's own making.
    """
    templates: list[tuple[Path, dict[str, Any]]] = []
    environments: dict[Path, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in ENDINGS or ".git" in path.parts:
            continue
        if not path.is_file() or path.stat().st_size > LONGEST:
            continue
        top = _mapping(path)
        if top is None:
            continue
        if any(word in top for word in VERSIONS):
            templates.append((path, top))
        elif any(isinstance(top.get(word), dict) for word in ENVIRONMENT):
            environments[path] = top
    mapped: dict[str, Path] = {}
    for path, top in environments.items():
        for name in _entries(top, "resource_registry"):
            mapped.setdefault(name, path)
    for path, top in templates:
        chosen = _environment(path, top, environments, mapped)
        given = {} if chosen is None else environments[chosen]
        known = {*_entries(given, "parameters"), *_entries(given, "parameter_defaults")}
        yield Case(
            label=str(path.relative_to(folder)),
            template=path.name,
            folder=path.parent,
            environments=() if chosen is None else (os.path.relpath(chosen, path.parent),),
            parameters={name: one for name, one in values(top).items() if name not in known},
        )


def _environment(
    path: Path,
    top: Mapping[str, Any],
    environments: Mapping[Path, Mapping[str, Any]],
    mapped: Mapping[str, Path],
) -> Path | None:
    for ending in (".env", ".env.yaml", "_env.yaml", "-env.yaml"):
        beside = path.with_name(path.stem + ending)
        if beside in environments:
            return beside
    for resource in _entries(top, "resources").values():
        kind = resource.get("type") if isinstance(resource, dict) else None
        if isinstance(kind, str) and kind in mapped and not kind.startswith(("OS::Nova", "AWS::")):
            return mapped[kind]
    return None


def _entries(top: Mapping[str, Any], section: str) -> dict[str, Any]:
    found = top.get(section)
    return found if isinstance(found, dict) else {}


def _mapping(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8")
        if not any(word in text for word in (*VERSIONS, *ENVIRONMENT)):
            return None
        top = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return top if isinstance(top, dict) else None


def values(top: Mapping[str, Any]) -> dict[str, str]:
    """A value for each parameter without a default."""
    found: dict[str, str] = {}
    for section in SECTIONS:
        schemas = top.get(section)
        for name, schema in (schemas if isinstance(schemas, dict) else {}).items():
            if isinstance(schema, dict) and not {"default", "Default"} & schema.keys():
                found[str(name)] = _value(str(name), schema)
    return found


def _value(name: str, schema: Mapping[str, Any]) -> str:
    constraints = schema.get("constraints") or []
    rules = [one for one in constraints if isinstance(one, dict)] + [_old_rules(schema)]
    for rule in rules:
        if isinstance(rule.get("allowed_values"), list) and rule["allowed_values"]:
            first = rule["allowed_values"][0]
            return first if isinstance(first, str) else json.dumps(first)
    kind = str(schema.get("type", schema.get("Type", "string"))).lower()
    likely = [value for pattern, value in BY_NAME if re.search(pattern, name.lower())]
    by_type = list(BY_TYPE.get(kind, BY_TYPE["string"]))
    if kind == "number":
        for rule in rules:
            limits = rule.get("range") or {}
            by_type += [str(one) for one in limits.values()] if isinstance(limits, dict) else []
        likely = [one for one in likely if one.isdigit()]
    elif kind in {"json", "boolean"}:
        likely = []
    candidates = [*likely, *by_type]
    allowed = (one for one in candidates if all(_allows(rule, one, kind) for rule in rules))
    return next(allowed, candidates[0])


def _old_rules(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The constraints of a parameter in the format of CloudFormation."""
    length = {
        word: schema[key]
        for key, word in (("MinLength", "min"), ("MaxLength", "max"))
        if key in schema
    }
    limits = {
        word: schema[key]
        for key, word in (("MinValue", "min"), ("MaxValue", "max"))
        if key in schema
    }
    return {
        "allowed_values": schema.get("AllowedValues"),
        "allowed_pattern": schema.get("AllowedPattern"),
        "length": length,
        "range": limits,
    }


def _allows(rule: Mapping[str, Any], value: str, kind: str) -> bool:
    pattern, length, limits = (rule.get(word) for word in ("allowed_pattern", "length", "range"))
    if pattern and re.fullmatch(str(pattern), value) is None:
        return False
    if isinstance(length, dict):
        size = len(value.split(",")) if "list" in kind else len(value)
        if not float(length.get("min", 0)) <= size <= float(length.get("max", 10**9)):
            return False
    if kind == "number" and isinstance(limits, dict):
        low, high = limits.get("min"), limits.get("max")
        if low is not None and float(value) < float(low):
            return False
        if high is not None and float(value) > float(high):
            return False
    return True
