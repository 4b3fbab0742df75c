"""Flavors as `openstack flavor list --long -f json` prints them.

RAM is in MiB, Disk and Ephemeral in GiB, Swap in MiB (or an empty string). Nova asks a host for
the root and ephemeral disks and the swap, rounded up to GiB. Of the properties, `resources:X`
replaces the amount of a class (0 removes it), `trait:X` is `required` or `forbidden`; all
others are kept as extra specs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.flavors import Flavor
from moorage.domain.resources import NAME, amounts

_PROPERTY: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*'([^']*)'\s*(?:,|$)")
_MIB_PER_GIB: Final = 1024
_COLUMNS: Final = frozenset({"ID", "Name", "RAM", "Disk", "Ephemeral", "VCPUs"})


def read_listing(rows: object) -> tuple[Flavor, ...]:
    """Read the whole listing.

    Raises:
        InvalidDescription: not such a listing; path and message name the row and column.
    """
    if not isinstance(rows, list):
        raise InvalidDescription("a flavor listing is a list", path="flavors")
    return tuple(_entry(row, f"flavors[{index}]") for index, row in enumerate(rows))


def _entry(row: object, path: str) -> Flavor:
    try:
        return read_row(row, path)
    except InvalidDescription as error:
        name = row.get("Name") if isinstance(row, Mapping) else None
        called = f" ({name})" if isinstance(name, str) and name else ""
        raise InvalidDescription(f"{path}{called}: {error.message}", path=error.path) from error


def read_row(row: object, path: str) -> Flavor:
    """Read one flavor.

    Raises:
        InvalidDescription: a missing column, or a value of another kind.
    """
    if not isinstance(row, Mapping):
        raise InvalidDescription("a flavor is an object", path=path)
    for column in sorted(_COLUMNS - set(row)):
        raise InvalidDescription(f"column {column} is missing", path=f"{path}.{column}")
    properties = read_properties(row.get("Properties"), f"{path}.Properties")
    swap = _number(row.get("Swap") or 0, f"{path}.Swap")
    disk = _number(row["Disk"], f"{path}.Disk") + _number(row["Ephemeral"], f"{path}.Ephemeral")
    resources = {
        "VCPU": _number(row["VCPUs"], f"{path}.VCPUs"),
        "MEMORY_MB": _number(row["RAM"], f"{path}.RAM"),
        "DISK_GB": disk + -(-swap // _MIB_PER_GIB),
    }
    required: set[str] = set()
    forbidden: set[str] = set()
    rest: dict[str, str] = {}
    for name, value in properties.items():
        kind, _, what = name.partition(":")
        where = f"{path}.Properties.{name}"
        if kind == "resources" and NAME.fullmatch(what):
            resources[what] = _number(value, where)
        elif kind == "trait" and NAME.fullmatch(what) and value in {"required", "forbidden"}:
            (required if value == "required" else forbidden).add(what)
        else:
            rest[name] = value
    wanted = {name: amount for name, amount in resources.items() if amount}
    if not wanted:
        raise InvalidDescription("a flavor without any resource", path=path)
    return Flavor(
        id=_text(row["ID"], f"{path}.ID"),
        name=_text(row["Name"], f"{path}.Name"),
        resources=amounts(wanted, path=path),
        required=tuple(frozenset({trait}) for trait in sorted(required)),
        forbidden=frozenset(forbidden),
        extra_specs=MappingProxyType(dict(sorted(rest.items()))),
    )


def read_properties(source: object, path: str) -> dict[str, str]:
    """Read properties: a mapping, or text such as `hw:cpu_policy='dedicated', a='b'`.

    Raises:
        InvalidDescription: neither.
    """
    if source is None or source == "":
        return {}
    if isinstance(source, Mapping):
        return {str(name): str(value) for name, value in source.items()}
    if not isinstance(source, str):
        raise InvalidDescription("properties are an object or text", path=path)
    found, at = {}, 0
    while at < len(source):
        match = _PROPERTY.match(source, at)
        if match is None:
            raise InvalidDescription(
                f"not properties from here: {source[at : at + 40]!r}", path=path
            )
        found[match[1]] = match[2]
        at = match.end()
    return found


def _number(value: object, path: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:12])
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidDescription(f"must be a whole number, not {value!r}", path=path)


def _text(value: object, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value and len(value) <= 255:  # noqa: PLR2004 - Nova's own bound
        return value
    raise InvalidDescription("must be a name", path=path)
