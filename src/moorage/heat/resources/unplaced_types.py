"""Resource types that take no place of their own on a host.

They are recognised and named in the answer as not placed. The list is closed on purpose: what
is not known might need a place, and silence would be a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat.annotation import KEY
from moorage.heat.expanded_template import UnplacedResource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Resource
    from moorage.heat.resources import MemberExpander

_NETWORK: Final = "networks are Neutron's to place"
_STORAGE: Final = "storage is Cinder's to place"
_WORDS: Final = "no more than data"

WHY: Final[Mapping[str, str]] = {
    "OS::Neutron::Net": _NETWORK,
    "OS::Neutron::Subnet": _NETWORK,
    "OS::Neutron::SubnetPool": _NETWORK,
    "OS::Neutron::AddressScope": _NETWORK,
    "OS::Neutron::Segment": _NETWORK,
    "OS::Neutron::Router": _NETWORK,
    "OS::Neutron::RouterInterface": _NETWORK,
    "OS::Neutron::RouterGateway": _NETWORK,
    "OS::Neutron::ExtraRoute": _NETWORK,
    "OS::Neutron::ExtraRouteSet": _NETWORK,
    "OS::Neutron::FloatingIP": _NETWORK,
    "OS::Neutron::FloatingIPAssociation": _NETWORK,
    "OS::Neutron::FloatingIPPortForward": _NETWORK,
    "OS::Neutron::SecurityGroup": _NETWORK,
    "OS::Neutron::SecurityGroupRule": _NETWORK,
    "OS::Neutron::AddressGroup": _NETWORK,
    "OS::Neutron::RBACPolicy": _NETWORK,
    "OS::Nova::FloatingIP": _NETWORK,
    "OS::Nova::FloatingIPAssociation": _NETWORK,
    "OS::Designate::Zone": _NETWORK,
    "OS::Designate::RecordSet": _NETWORK,
    "OS::Cinder::Volume": _STORAGE,
    "OS::Cinder::VolumeAttachment": _STORAGE,
    "OS::Nova::KeyPair": _WORDS,
    "OS::Heat::RandomString": _WORDS,
    "OS::Heat::Value": _WORDS,
    "OS::Heat::None": _WORDS,
    "OS::Heat::CloudConfig": _WORDS,
    "OS::Heat::MultipartMime": _WORDS,
    "OS::Heat::SoftwareConfig": _WORDS,
    "OS::Heat::SoftwareDeployment": _WORDS,
    "OS::Heat::SoftwareDeploymentGroup": _WORDS,
    "OS::Heat::SoftwareComponent": _WORDS,
    "OS::Heat::StructuredConfig": _WORDS,
    "OS::Heat::StructuredDeployment": _WORDS,
    "OS::Heat::StructuredDeploymentGroup": _WORDS,
    "OS::Heat::WaitCondition": _WORDS,
    "OS::Heat::WaitConditionHandle": _WORDS,
    "OS::Heat::Delay": _WORDS,
    "OS::Barbican::Secret": _WORDS,
    "OS::Barbican::SecretContainer": _WORDS,
    "OS::Swift::Container": _STORAGE,
}
"""Type -> why it is not placed."""

TYPES = tuple(WHY)


def expand(resource: Resource, nested: MemberExpander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """Nothing to place.

    Raises:
        InvalidDescription: it carries policies, which would have no members.
    """
    if KEY in resource.metadata:
        raise resource.metadata[KEY].invalid(
            f"{resource.type} has no place, so policies here speak about nobody;"
            " write them on a server, a server group or a resource group"
        )
    yield UnplacedResource(resource.path, resource.type, WHY[resource.type])
