"""Prints which hosts nova-scheduler's filter of Moorage passes; run by the cloud's interpreter.

held_place_filter.py --config-file nova.conf SERVER CLAIM FLAVOR HINTS HOST=UUID...
"""

import json
import sys
from types import SimpleNamespace

from nova import config, context, objects  # type: ignore[import-not-found]

CONFIGURATION, (SERVER, CLAIM, FLAVOR, HINTS, *HOSTS) = sys.argv[1:3], sys.argv[3:]


def main() -> None:
    config.parse_args(["nova-scheduler", *CONFIGURATION])
    objects.register_all()
    from moorage.nova_filter.host_filter import HeldPlaceFilter

    asking = context.get_admin_context()
    asking.global_request_id = f"req-{CLAIM}"
    vcpus, memory, disk = map(int, FLAVOR.split(","))
    flavor = objects.Flavor(
        vcpus=vcpus, memory_mb=memory, root_gb=disk, ephemeral_gb=0, swap=0, extra_specs={}
    )
    spec = objects.RequestSpec(
        asking,
        flavor=flavor,
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
        scheduler_hints={name: [hint] for name, hint in json.loads(HINTS).items()},
        instance_uuid=SERVER,
        is_bfv=False,
    )
    hosts = [SimpleNamespace(name=name, uuid=uuid) for name, uuid in
             (one.split("=") for one in HOSTS)]  # fmt: skip
    sys.stdout.write(" ".join(one.name for one in HeldPlaceFilter().filter_all(hosts, spec)))


main()
