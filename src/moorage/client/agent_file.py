"""The agent's configuration file: YAML text in, an `AgentConfig` out; errors name path and line."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from moorage.domain.agent_config import (
    AgentConfig,
    Bandwidth,
    DiskRule,
    NetworkRule,
    RootOwner,
    SharedPool,
)
from moorage.domain.resources import MAX_AMOUNT, NAME, is_custom_name
from moorage.heat import typed_yaml
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from moorage.heat.yaml_tree import YamlNode

    N = TypeVar("N", int, float)

MAX_CPU: Final = 65_535
MAX_NODE: Final = 1023
MAX_RATIO: Final = 1e6
LINK: Final = "link"
"""The word for the bandwidth of the link."""
_KEYS: Final = (
    "name",
    "uuid",
    "root",
    "numa",
    "huge_pages",
    "dedicated_cpus",
    "memory_nodes",
    "bare_metal",
    "reserved",
    "allocation_ratio",
    "traits",
    "networks",
    "ignore",
    "mediated_types",
    "disks",
    "shared_storage",
)


def read_agent_config(text: str) -> AgentConfig:
    """Read a configuration file; an empty one has the defaults.

    Raises:
        InvalidDescription: not YAML, an unknown key, a wrong type, a name or number out of bounds,
            or settings that contradict each other.
    """
    if not any(line.partition("#")[0].strip() for line in text.splitlines()):
        return AgentConfig()
    top = parse(text)
    fields = typed_yaml.mapping(top, optional=_KEYS)
    root = (
        RootOwner(typed_yaml.choice(fields["root"], set(RootOwner))) if "root" in fields else None
    )
    for key in ("dedicated_cpus", "bare_metal", "traits"):
        if key in fields and root is not RootOwner.AGENT:
            raise fields[key].invalid(f"{key} is for `root: agent`: Nova reports the root provider")
    return AgentConfig(
        name=typed_yaml.name(fields["name"]) if "name" in fields else None,
        uuid=_uuid(fields["uuid"]) if "uuid" in fields else None,
        root=root or RootOwner.NOVA,
        numa=_flag(fields, "numa"),
        huge_pages=_flag(fields, "huge_pages"),
        dedicated_cpus=_numbers(fields["dedicated_cpus"], "processors", MAX_CPU)
        if "dedicated_cpus" in fields
        else frozenset(),
        memory_nodes=_numbers(fields["memory_nodes"], "NUMA nodes", MAX_NODE)
        if "memory_nodes" in fields
        else None,
        bare_metal=_custom(fields["bare_metal"]) if "bare_metal" in fields else None,
        reserved=MappingProxyType(
            {
                name: typed_yaml.integer(one, least=0, most=MAX_AMOUNT)
                for name, one in _by_class(fields, "reserved").items()
            }
        ),
        allocation_ratio=MappingProxyType(
            {
                name: typed_yaml.number(one, least=0.01, most=MAX_RATIO)
                for name, one in _by_class(fields, "allocation_ratio").items()
            }
        ),
        traits=_traits(fields),
        networks=tuple(_network(one) for one in _items(fields, "networks")),
        ignore=_texts(fields, "ignore"),
        mediated_types=_texts(fields, "mediated_types"),
        disks=tuple(_disk(one) for one in _items(fields, "disks")),
        shared_storage=tuple(_pool(one) for one in _items(fields, "shared_storage")),
    )


def _items(fields: Mapping[str, YamlNode], key: str) -> list[YamlNode]:
    return typed_yaml.items(fields[key]) if key in fields else []


def _texts(fields: Mapping[str, YamlNode], key: str) -> tuple[str, ...]:
    return typed_yaml.texts(fields[key]) if key in fields else ()


def _flag(fields: Mapping[str, YamlNode], key: str) -> bool:
    return typed_yaml.boolean(fields[key]) if key in fields else True


def _uuid(node: YamlNode) -> str:
    try:
        return str(UUID(typed_yaml.text(node)))
    except ValueError as error:
        raise node.invalid("a UUID is needed here") from error


def _numbers(node: YamlNode, what: str, most: int) -> frozenset[int]:
    """A list of numbers and ranges: `[1, 4-7]`, or as the kernel writes it, "1,4-7"."""
    words = (
        [typed_yaml.name(one) for one in node.value]
        if isinstance(node.value, list)
        else typed_yaml.name(node).split(",")
    )
    found: set[int] = set()
    for word in words:
        first, dash, last = word.strip().partition("-")
        ends = (first, last) if dash else (first, first)
        if not all(part.isascii() and part.isdigit() for part in ends):
            raise node.invalid(f"{what} are numbers and ranges such as 4-7, not {word[:40]!r}")
        low, high = (int(part[:10]) for part in ends)
        if not low <= high <= most:
            raise node.invalid(f"no range of {what} up to {most}: {word[:40]!r}")
        found |= set(range(low, high + 1))
    return frozenset(found)


def _by_class(fields: Mapping[str, YamlNode], key: str) -> Mapping[str, YamlNode]:
    listed = typed_yaml.mapping(fields[key]) if key in fields else {}
    for name, node in listed.items():
        if NAME.fullmatch(name) is None:
            raise node.invalid(f"not a resource class: {name!r}")
    return listed


def _traits(fields: Mapping[str, YamlNode]) -> frozenset[str]:
    names = _texts(fields, "traits")
    for name in names:
        if NAME.fullmatch(name) is None:
            raise fields["traits"].invalid(f"not a trait: {name!r}")
    return frozenset(names)


def _custom(node: YamlNode) -> str:
    name = typed_yaml.text(node)
    if not is_custom_name(name):
        raise node.invalid(f"a custom resource class begins with CUSTOM_, not {name!r}")
    return name


def _network(node: YamlNode) -> NetworkRule:
    fields = typed_yaml.mapping(
        node, optional=("address", "interface", "physnet", "bandwidth", "traits")
    )
    if not fields.keys() & {"address", "interface"}:
        raise node.invalid("say which functions: by address, or by interface")
    return NetworkRule(
        address=typed_yaml.text(fields["address"]) if "address" in fields else None,
        interface=typed_yaml.text(fields["interface"]) if "interface" in fields else None,
        physnet=typed_yaml.name(fields["physnet"]) if "physnet" in fields else None,
        bandwidth=_bandwidth(fields["bandwidth"]) if "bandwidth" in fields else None,
        traits=_traits(fields),
    )


def _bandwidth(node: YamlNode) -> Bandwidth:
    if not isinstance(node.value, dict):
        typed_yaml.choice(node, {LINK})
        return Bandwidth()
    fields = typed_yaml.mapping(node, required=("egress", "ingress"), optional=())
    return Bandwidth(
        egress=typed_yaml.integer(fields["egress"], least=1, most=MAX_AMOUNT),
        ingress=typed_yaml.integer(fields["ingress"], least=1, most=MAX_AMOUNT),
    )


def _disk(node: YamlNode) -> DiskRule:
    fields = typed_yaml.mapping(node, required=("name", "class"), optional=("traits",))
    return DiskRule(typed_yaml.text(fields["name"]), _custom(fields["class"]), _traits(fields))


def _pool(node: YamlNode) -> SharedPool:
    fields = typed_yaml.mapping(node, optional=("name", "mount", "total_gb", "traits"))
    if not fields.keys() & {"name", "mount"}:
        raise node.invalid("say which storage: by name, or by the directory it is mounted on")
    if "mount" not in fields and "total_gb" not in fields:
        raise node.invalid("storage without a mount needs total_gb")
    return SharedPool(
        name=typed_yaml.name(fields["name"]) if "name" in fields else None,
        mount=typed_yaml.text(fields["mount"]) if "mount" in fields else None,
        total_gb=typed_yaml.integer(fields["total_gb"], least=1, most=MAX_AMOUNT)
        if "total_gb" in fields
        else None,
        traits=_traits(fields),
    )
