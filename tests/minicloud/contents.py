"""What a new cloud holds: flavors, an image, a network, and computes that report to Moorage."""

import time
from typing import TYPE_CHECKING

from openstack.connection import Connection
from tests.minicloud import identity

if TYPE_CHECKING:
    from tests.minicloud.cloud import Cloud

FLAVORS = {
    "m1.tiny": (1, 512, 1),
    "m1.small": (1, 2_048, 20),
    "m1.medium": (2, 4_096, 40),
    "m1.large": (4, 8_192, 80),
    "m1.xlarge": (8, 16_384, 160),
    "r1.xlarge": (8, 24_576, 160),
}
"""VCPU, MB of memory, GB of disk."""


def fill(cloud: "Cloud") -> None:
    """Everything that a tenant needs to create a server."""
    with identity.connection(cloud.layout) as admin:
        for name, (vcpus, ram, disk) in FLAVORS.items():
            admin.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
        load_flavors(cloud, admin)
        admin.image.create_image(
            name="tiny", disk_format="raw", container_format="bare", visibility="public",
            data=b"nothing boots this", validate_checksum=False,
        )  # fmt: skip
        network = admin.network.create_network(name="shared", is_shared=True)
        admin.network.create_subnet(
            network_id=network.id, ip_version=4, cidr="10.0.0.0/16", is_dhcp_enabled=False
        )
        _wait_for_computes(cloud, admin)


def load_flavors(cloud: "Cloud", admin: Connection) -> None:
    """Tell Moorage Nova's flavors, as `openstack flavor list --long -f json` prints them."""
    listed = [
        {
            "ID": one.id,
            "Name": one.name,
            "VCPUs": one.vcpus,
            "RAM": one.ram,
            "Disk": one.disk,
            "Ephemeral": one.ephemeral,
            "Swap": one.swap,
            "Is Public": one.is_public,
            "RXTX Factor": one.rxtx_factor,
            "Properties": one.extra_specs,
        }
        for one in admin.compute.flavors(get_extra_specs=True)
    ]
    url = cloud.layout.url("moorage", "/v1/flavors/load")
    answer = admin.session.post(url, json={"flavors": listed}).json()
    if answer["refused"]:
        raise ValueError(f"flavors that Moorage refused: {answer['refused']}")


def _wait_for_computes(cloud: "Cloud", admin: Connection, seconds: float = 120) -> None:
    """Until each has its provider and is mapped to its cell.

    Raises:
        TimeoutError: one has not.
    """
    deadline = time.monotonic() + seconds
    wanted = set(cloud.layout.computes)
    while True:
        providers = {one.name for one in admin.placement.resource_providers()}
        mapped = {one.name for one in admin.compute.hypervisors()}
        if wanted <= providers & mapped:
            return
        if time.monotonic() > deadline:
            missing = sorted(wanted - (providers & mapped))
            logs = "\n".join(cloud.program(name).tail(1_000) for name in missing)
            raise TimeoutError(f"computes that did not report: {missing}\n{logs}")
        time.sleep(0.5)
