"""The operator's table of PCI aliases: `[pci] alias` of nova.conf."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.resources import is_custom_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.resources import ResourceClass, Trait

_ID: Final = re.compile(r"\*|[0-9a-fA-F]{4}", re.ASCII)
_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "capability_type": frozenset({"pci"}),
        "device_type": frozenset({"type-PCI", "type-PF", "type-VF"}),
        "numa_policy": frozenset({"required", "legacy", "preferred", "socket"}),
    }
)
_FIELDS: Final = frozenset(
    {"name", "vendor_id", "product_id", "resource_class", "traits", "live_migratable", *_WORDS}
)


@dataclass(frozen=True, slots=True)
class PciAlias:
    """What one device of an alias is in Placement."""

    name: str
    resource_class: ResourceClass | None
    """None: the alias has several entries, or no ids: only Nova can say which devices fit."""
    traits: frozenset[Trait] = frozenset()


@dataclass(frozen=True, slots=True)
class StandardNames:
    """The standard resource classes and traits; all others are custom."""

    classes: frozenset[ResourceClass] = frozenset()
    traits: frozenset[Trait] = field(default=frozenset(), repr=False)


def read_aliases(entries: Iterable[str], standard: StandardNames) -> Mapping[str, PciAlias]:
    """Read the entries of the table, each a JSON object as in nova.conf; name -> alias.

    Raises:
        InvalidDescription: an entry is malformed.
    """
    found: dict[str, PciAlias] = {}
    for text in entries:
        alias = _alias(text, standard)
        if alias.name in found:  # alternatives, which a request to Placement cannot state
            alias = PciAlias(alias.name, None)
        found[alias.name] = alias
    return MappingProxyType(found)


def _alias(text: str, standard: StandardNames) -> PciAlias:
    fields = _fields(text)
    name = fields.get("name", "").strip()
    if not name:
        raise InvalidDescription(f"a PCI alias needs a name: {text}")
    for key in sorted(fields.keys() - _FIELDS):
        raise InvalidDescription(f"PCI alias {name}: {key} is not known")
    for key, words in _WORDS.items():
        if key in fields and fields[key] not in words:
            raise InvalidDescription(f"PCI alias {name}: {key} is {' or '.join(sorted(words))}")
    for key in ("vendor_id", "product_id"):
        if key in fields and _ID.fullmatch(fields[key]) is None:
            raise InvalidDescription(f"PCI alias {name}: {key} is four hexadecimal digits")
    traits = fields["traits"].split(",") if fields.get("traits") else []
    return PciAlias(
        name=name,
        resource_class=_resource_class(fields, standard),
        traits=frozenset(_trait(one, standard) for one in traits),
    )


def _fields(text: str) -> Mapping[str, str]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDescription(f"a PCI alias is a JSON object, not {text}") from error
    if not isinstance(fields, Mapping) or not all(isinstance(one, str) for one in fields.values()):
        raise InvalidDescription(f"a PCI alias is a JSON object of texts, not {text}")
    return fields


def _resource_class(fields: Mapping[str, str], standard: StandardNames) -> ResourceClass | None:
    requested = fields.get("resource_class")
    if requested:
        name = requested.upper()
        return name if name in standard.classes or is_custom_name(name) else _custom(name)
    if {fields.get("vendor_id", "*"), fields.get("product_id", "*")}.isdisjoint("*"):
        return f"CUSTOM_PCI_{fields['vendor_id']}_{fields['product_id']}".upper()
    return None


def _trait(name: str, standard: StandardNames) -> Trait:
    if name in standard.traits:
        return name
    return name.upper() if is_custom_name(name.upper()) else _custom(name.upper())


def _custom(name: str) -> str:
    return "CUSTOM_" + re.sub("[^0-9A-Z]+", "_", name)
