"""Writes the present fleet of a service as a fleet file: reading that gives the same fleet.

What follows from names in a fleet file anyway, such as the UUID of a host that a file has made, is
left out. Each entry is one line, written as JSON, which YAML reads.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.consumers import SERVER_TYPE
from moorage.domain.content import Content, terms
from moorage.domain.fleet import MADE_NAME
from moorage.domain.fleet_expansion import SHARES, provider_uuid
from moorage.domain.providers import Inventory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.providers import ResourceProvider
    from moorage.wire.flavors import FlavorValue

    Entry = Mapping[str, Any]

_USUAL: Final = terms(Inventory("", 0))
_UNPRINTABLE: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Exported:
    """A fleet as a service has it."""

    name: str
    topology: Mapping[str, Any]
    """As the API shows it."""
    content: Content = field(default_factory=Content)
    flavors: Sequence[FlavorValue] = ()
    """Of Nova's no entries can be written: see `is_novas`."""


def is_novas(flavor: FlavorValue) -> bool:
    """Whether a flavor is written in Nova's terms, which a fleet file does not have."""
    return flavor.size is not None


def topology_lines(exported: Exported) -> Iterator[str]:
    """The trees, the places of all hosts by name, and the revision."""
    yield f"revision: {exported.topology['revision']}"
    yield from _trees(exported.topology)
    places = _places(exported.topology)
    hosts = ({"name": name, "place": places[name]} for name in sorted(places))
    yield from _section("hosts", hosts)


def fleet_lines(exported: Exported) -> Iterator[str]:
    """The whole fleet: trees, providers, flavors, and what is allocated."""
    content = exported.content
    yield f"fleet: {_json(exported.name)}"
    yield from _trees(exported.topology)
    tree = _Trees(content.providers)
    roots = sorted(tree.below(None), key=lambda one: one.name)
    shared = {one.uuid for one in roots if tree.is_shared(one)}
    places = _places(exported.topology)

    def entry(one: ResourceProvider) -> dict[str, Any]:
        return tree.entry(one) | ({"place": places[one.name]} if one.name in places else {})

    yield from _section("hosts", (entry(one) for one in roots if one.uuid not in shared))
    stores = (
        entry(replace(one, traits=one.traits - {SHARES})) for one in roots if one.uuid in shared
    )
    yield from _section("sharing", stores)
    flavors = (_flavor(one) for one in exported.flavors if not is_novas(one))
    yield from _section("flavors", flavors)
    yield from _section("load", _load(content))


def _trees(topology: Mapping[str, Any]) -> Iterator[str]:
    if topology["levels"]:
        yield "topology:"
    for tree, levels in topology["levels"].items():
        yield f"  {_json(tree)}:"
        yield f"    levels: {_json(levels)}"
        domains = [one for one in topology["domains"] if one["tree"] == tree]
        yield from _section(
            "domains",
            (
                {key: one[key] for key in ("name", "level", "parent") if one[key] is not None}
                for one in domains
            ),
            indent="    ",
        )


def _places(topology: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Host -> tree -> domain."""
    found: dict[str, dict[str, str]] = {}
    for one in topology["attachments"]:
        found.setdefault(one["host"], {})[one["tree"]] = one["domain"]
    return found


class _Trees:
    """Providers by their parents."""

    def __init__(self, providers: Mapping[str, ResourceProvider]) -> None:
        self._below: dict[str | None, list[ResourceProvider]] = {}
        for one in providers.values():
            self._below.setdefault(one.parent_uuid, []).append(one)

    def below(self, uuid: str | None) -> list[ResourceProvider]:
        """The children of a provider, by name; of None, the roots."""
        return sorted(self._below.get(uuid, ()), key=lambda one: one.name)

    def is_shared(self, root: ResourceProvider) -> bool:
        """Whether a root fits the section of sharing providers."""
        alone = not self.below(root.uuid)
        return SHARES in root.traits and bool(root.aggregates and root.inventories) and alone

    def entry(self, one: ResourceProvider, parent: str | None = None) -> dict[str, Any]:
        """A provider with all below it."""
        own = one.name if parent is None else one.name.removeprefix(f"{parent}/")
        made = (parent is None or own != one.name) and MADE_NAME.fullmatch(own) is not None
        derived = made and one.uuid == provider_uuid(one.name)
        entry: dict[str, Any] = {"name": own if derived else one.name}
        if not derived:
            entry["uuid"] = one.uuid
        entry["inventories"] = {item.resource_class: _terms(item) for item in one.inventories}
        if one.traits:
            entry["traits"] = sorted(one.traits)
        if one.aggregates:
            entry["aggregates"] = sorted(one.aggregates)
        if children := self.below(one.uuid):
            entry["children"] = [self.entry(child, one.name) for child in children]
        return entry


def _terms(item: Inventory) -> int | dict[str, int | float]:
    more = {key: value for key, value in terms(item).items() if value != _USUAL[key]}
    return item.total if len(more) == 1 else more


def _flavor(flavor: FlavorValue) -> Entry:
    entry: dict[str, Any] = {"name": flavor.name, "id": flavor.id, "resources": flavor.resources}
    more = {
        "required": flavor.required,
        "forbidden": flavor.forbidden,
        "extra_specs": flavor.extra_specs,
    }
    return entry | {key: value for key, value in more.items() if value}


def _load(content: Content) -> Iterator[Entry]:
    names = {one.uuid: one.name for one in content.providers.values()}
    for uuid, one in sorted(content.consumers.items()):
        owner = one.consumer
        entry: dict[str, Any] = {
            "name": uuid,
            "uuid": uuid,
            "project_id": owner.project_id,
            "user_id": owner.user_id,
        }
        if owner.type != SERVER_TYPE:
            entry["type"] = owner.type
        yield entry | {
            "allocations": {
                names[provider]: dict(amounts) for provider, amounts in one.allocations.items()
            }
        }


def _section(name: str, entries: Iterable[Entry], indent: str = "") -> Iterator[str]:
    first = True
    for one in entries:
        if first:
            yield f"{indent}{name}:"
            first = False
        yield f"{indent}  - {_json(one)}"


def _json(value: object) -> str:
    """JSON without the characters that YAML does not print."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
