"""Resource types that take no place of their own on a host: all that no other module understands.

They are named in the answer as not placed, with the reason as far as it is known. Their properties
are not read, so that nothing in them can be wrong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat.annotation import DECIDED, KEY
from moorage.heat.expanded_template import UnplacedResource
from moorage.heat.resources import UNPLACED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource

TYPES = (UNPLACED,)
PLACED = False

_NETWORK: Final = "networks are Neutron's to place"
_STORAGE: Final = "storage is Cinder's to place"
_DATA: Final = "no more than data"
_SCALING: Final = "it only changes the size of groups"
_OTHER: Final = "no servers of the stack"

REASONS: Final[Mapping[str, str]] = {
    "OS::Neutron::": _NETWORK,
    "OS::Quantum": _NETWORK,
    "OS::Designate::": _NETWORK,
    "OS::Octavia::": "what it makes is Octavia's to place",
    "OS::Nova::FloatingIP": _NETWORK,
    "AWS::EC2::": _NETWORK,
    "OS::Cinder::": _STORAGE,
    "OS::Manila::": "shares are Manila's to place",
    "OS::Swift::": "objects are Swift's to place",
    "AWS::EC2::Volume": _STORAGE,
    "AWS::S3::": "objects are Swift's to place",
    "OS::Heat::": _DATA,
    "OS::Nova::KeyPair": _DATA,
    "OS::Barbican::": _DATA,
    "AWS::CloudFormation::": _DATA,
    "OS::Heat::ScalingPolicy": _SCALING,
    "AWS::AutoScaling::": _SCALING,
    "OS::Aodh::": _SCALING,
    "OS::Ceilometer::": _SCALING,
    "OS::Keystone::": _DATA,
    "OS::Glance::": _DATA,
    "OS::Mistral::": _DATA,
    "OS::Zaqar::": _DATA,
    "OS::Zun::": "its containers are Zun's to place",
    "OS::Trove::": "Trove makes its servers by itself; they are not placed here",
    "OS::Sahara::": "Sahara makes its servers by itself; they are not placed here",
    "OS::Senlin::": "Senlin makes its servers by itself; they are not placed here",
    "OS::Magnum::": "Magnum makes its servers by itself; they are not placed here",
    "OS::Ironic::": "it describes the machine itself",
    "OS::Blazar::": "a lease is a request of its own",
}
"""Beginning of a type's name -> why it is not placed; the longest one counts."""


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """Nothing to place.

    Raises:
        InvalidDescription: it carries policies, which would have no members.
    """
    annotation = resource.metadata.get(KEY)
    if annotation is not None and annotation.value != {}:
        entries = annotation.value if isinstance(annotation.value, dict) else {"": annotation}
        if entries.keys() - {DECIDED}:
            raise annotation.invalid(
                f"{resource.type} has no place, so policies here speak about nobody;"
                " write them on a server, a server group or a resource group"
            )
    yield UnplacedResource(resource.path, resource.type, reason(resource.type))


def reason(type_name: str) -> str:
    """Why resources of a type are not placed."""
    known = [beginning for beginning in REASONS if type_name.startswith(beginning)]
    return REASONS[max(known, key=len)] if known else _OTHER
