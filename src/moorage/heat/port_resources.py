"""What the ports of a server take on its host, as far as the template tells.

Neutron asks Placement only for ports with guaranteed bandwidth or packet rates: the rules of the
QoS policy of the port, or of its network. The device of an SR-IOV port without such a rule is
counted by Nova alone, on the host it has chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import ResourceReference, find_deferred, refuse_deferred
from moorage.heat.expanded_template import Note
from moorage.heat.numbers import to_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import Expander, Resource
    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import YamlNode

PORT: Final = "OS::Neutron::Port"
VNIC_TYPE: Final = "binding:vnic_type"
_NORMAL: Final = "normal"
_DEVICES: Final = frozenset(
    {
        *("direct", "macvtap", "direct-physical", "virtio-forwarder", "vdpa"),
        *("accelerator-direct", "accelerator-direct-physical", "remote-managed"),
    }
)
"""vnic types whose ports take a device of the host."""
_BANDWIDTH: Final = "OS::Neutron::QoSMinimumBandwidthRule"
_PACKETS: Final = "OS::Neutron::QoSMinimumPacketRateRule"
_AMOUNT: Final = {_BANDWIDTH: "min_kbps", _PACKETS: "min_kpps"}
_CLASSES: Final = {
    (_BANDWIDTH, "egress"): "NET_BW_EGR_KILOBIT_PER_SEC",
    (_BANDWIDTH, "ingress"): "NET_BW_IGR_KILOBIT_PER_SEC",
    (_PACKETS, "egress"): "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
    (_PACKETS, "ingress"): "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
    (_PACKETS, "any"): "NET_PACKET_RATE_KILOPACKET_PER_SEC",
}


@dataclass(slots=True)
class PortResources:
    """The ports of one server that take something, and notes about others."""

    ports: list[dict[str, object]] = field(default_factory=list)
    """As `ports` of an ensemble's `members` entry."""
    notes: list[Note] = field(default_factory=list)


def ports_of(networks: YamlNode | None, server: Path, nested: Expander) -> PortResources:
    """What the ports in the property `networks` of a server take.

    Raises:
        InvalidDescription: a vnic type or a rule that comes only later, or is not valid.
    """
    found = PortResources()
    listed = networks.value if networks is not None else None
    for number, network in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(network.value, dict):
            continue
        fields = network.value
        named = fields.get("port")
        if named is not None and isinstance(named.value, ResourceReference):
            port = nested.resource_at(named.value.target)
            if port is not None and port.type == PORT:
                _add(found, port.path.steps[-1].name, port.properties, server, nested)
            continue
        extra = fields.get("port_extra_properties")
        if extra is not None and isinstance(extra.value, dict):
            _add(found, f"port-{number}", {**fields, **extra.value}, server, nested)
    return found


def _add(
    found: PortResources,
    name: str,
    properties: Mapping[str, YamlNode],
    server: Path,
    nested: Expander,
) -> None:
    """Add one port, with what it takes."""
    vnic_type = _vnic_type(properties)
    network = _referred(properties, nested, "network", "network_id")
    policy = _policy(properties, nested)
    if policy is None and network is not None:
        policy = _policy(network.properties, nested)
    rules = [] if policy is None else list(_rules(policy, nested))
    if rules:
        found.ports.append(_request(name, vnic_type, network, rules))
    elif vnic_type in _DEVICES:
        role = server.member_name().role
        found.notes.append(
            Note(
                f"{role}: only Nova can tell whether a host has a device for port {name} of vnic"
                f" type {vnic_type}"
            )
        )


def _vnic_type(properties: Mapping[str, YamlNode]) -> str:
    specs = properties.get("value_specs")
    both = {**properties, **(specs.value if specs and isinstance(specs.value, dict) else {})}
    node = both.get(VNIC_TYPE)
    if node is None or node.value is None:
        return _NORMAL
    return typed_yaml.text(node)


def _referred(properties: Mapping[str, YamlNode], nested: Expander, *names: str) -> Resource | None:
    for name in names:
        node = properties.get(name)
        if node is not None and isinstance(node.value, ResourceReference):
            return nested.resource_at(node.value.target)
    return None


def _policy(properties: Mapping[str, YamlNode], nested: Expander) -> Resource | None:
    return _referred(properties, nested, "qos_policy", "qos_policy_id")


def _rules(policy: Resource, nested: Expander) -> Iterator[tuple[str, int]]:
    """The resource classes and amounts that the rules of a policy guarantee."""
    for kind, amount in _AMOUNT.items():
        for rule in nested.resources_beside(policy.path, kind):
            named = rule.properties.get("policy")
            if named is None or not isinstance(named.value, ResourceReference):
                continue
            if named.value.target != policy.path:
                continue
            node = rule.properties.get(amount)
            if node is None:
                raise rule.node.invalid(f"the rule needs {amount}")
            refuse_deferred(node)
            number = to_integer(node.plain())
            if number is None or number < 0:
                raise node.invalid(f"{amount} is a whole number")
            direction = rule.properties.get("direction")
            word = "egress" if direction is None else typed_yaml.text(direction)
            if (kind, word) not in _CLASSES:
                raise rule.node.invalid(f"the direction {word!r} is not known")
            if number:
                yield _CLASSES[kind, word], number


def _request(
    name: str, vnic_type: str, network: Resource | None, rules: list[tuple[str, int]]
) -> dict[str, object]:
    """A port with its `resource_request`, as Neutron would show it."""
    traits = [f"CUSTOM_VNIC_TYPE_{vnic_type.upper().replace('-', '_')}"]
    bandwidth = {key: amount for key, amount in rules if key.startswith("NET_BW_")}
    packets = {key: amount for key, amount in rules if key not in bandwidth}
    groups: list[dict[str, object]] = []
    if bandwidth:
        physical = _physical_network(network)
        required = [*([f"CUSTOM_PHYSNET_{physical}"] if physical else []), *traits]
        groups.append({"id": "bandwidth", "resources": bandwidth, "required": required})
    if packets:
        groups.append({"id": "packets", "resources": packets, "required": traits})
    together = [str(one["id"]) for one in groups] if len(groups) > 1 else []
    request = {"request_groups": groups, "same_subtree": together}
    return {"name": name, "vnic_type": vnic_type, "resource_request": request}


def _physical_network(network: Resource | None) -> str | None:
    """The physical network's name in a trait; None where the template does not tell."""
    node = None if network is None else network.properties.get("physical_network")
    if node is None or find_deferred(node) is not None or not isinstance(node.value, str):
        return None
    return "".join(one if one.isalnum() else "_" for one in node.value.upper())
