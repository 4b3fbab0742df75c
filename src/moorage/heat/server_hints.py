"""Reads what a server says of its place: scheduler hints, and an availability zone with a host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import ResourceReference, refuse_deferred
from moorage.heat.expanded_template import Note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import YamlNode

GROUP: Final = "group"
DIFFERENT_HOST: Final = "different_host"
SAME_HOST: Final = "same_host"
_UNSUPPORTED: Final = (
    *("query", "build_near_host_ip", "cidr", "target_cell"),
    *("force_hosts", "force_nodes", "requested_destination"),
)
"""Hints that decide a place by what only Nova knows."""
_OWN: Final = ("moorage", "heat_")
"""Beginnings of hints that Moorage and Heat write themselves."""


@dataclass(frozen=True, slots=True)
class ServerHints:
    """What the hints of one server say about places."""

    groups: tuple[Path, ...] = ()
    apart_from: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    notes: tuple[Note, ...] = ()


def read_hints(hints: Iterable[tuple[str, YamlNode]], server: Path) -> ServerHints:
    """Read the hints of the server at a path, each a name and its value.

    Raises:
        InvalidDescription: a hint that decides a place and cannot be followed, by name.
    """
    found: dict[str, tuple[Path, ...]] = {}
    notes: list[Note] = []
    for name, node in hints:
        if node.value is None or node.value in ("", []):
            continue
        if name in _UNSUPPORTED:
            raise node.invalid(
                f"the scheduler hint {name!r} decides a place by what only Nova knows; state a"
                " policy in the metadata instead"
            )
        if name == GROUP:
            one = _group(node)
            if isinstance(one, Note):
                notes.append(one)
            else:
                found[GROUP] = (*found.get(GROUP, ()), one)
        elif name in (DIFFERENT_HOST, SAME_HOST):
            found[name] = (*found.get(name, ()), *(_server(name, one) for one in _listed(node)))
        elif not name.startswith(_OWN):
            notes.append(Note(f"{server.member_name().role}: the hint {name} is only for Nova"))
    return ServerHints(
        groups=found.get(GROUP, ()),
        apart_from=found.get(DIFFERENT_HOST, ()),
        beside=found.get(SAME_HOST, ()),
        notes=tuple(notes),
    )


def _listed(node: YamlNode) -> list[YamlNode]:
    return node.value if isinstance(node.value, list) else [node]


def _group(node: YamlNode) -> Path | Note:
    """A server group of the template, or a note about one that exists elsewhere."""
    if isinstance(node.value, list) and len(node.value) == 1:
        node = node.value[0]
    if isinstance(node.value, ResourceReference):
        return node.value.target
    refuse_deferred(node)
    return Note(
        f"{node.path}: the server group {typed_yaml.name(node)} is not in the template; only Nova"
        " applies it"
    )


def _server(hint: str, node: YamlNode) -> Path:
    if isinstance(node.value, ResourceReference):
        return node.value.target
    refuse_deferred(node)
    raise node.invalid(
        f"the scheduler hint {hint!r} can name servers of this template only, by get_resource;"
        f" where {typed_yaml.shown(node)} is cannot be seen"
    )


_WITH_HOST: Final = re.compile(r"[\w.-]*:[\w.-]*(:[\w.-]*)?")
"""Zone, host and hypervisor, as administrators may write them."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone by name, and a host in it; None: not given."""

    name: str | None = None
    host: str | None = None


def read_zone(node: YamlNode | None) -> Zone:
    """Read `zone`, `zone:host`, `zone:host:hypervisor` or `zone::hypervisor`.

    Raises:
        InvalidDescription: the value comes only later.
    """
    if node is None or node.value in (None, ""):
        return Zone()
    refuse_deferred(node)
    text = typed_yaml.text_property(node)
    if _WITH_HOST.fullmatch(text) is None:
        return Zone(text)
    name, *named = text.split(":")
    # A host of libvirt has one hypervisor of the same name; others cannot be told apart here.
    host = next((one for one in named if one), None)
    return Zone(name or None, host)
