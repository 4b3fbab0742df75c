"""Nova's own requests to Placement. Runs in Nova's environment: JSON cases in, JSON answers out.

It imports nothing of ours. An answer is what `ResourceRequest` asks, with the filters that depend
on the flavor and the image, or the name of the error by which nova-api or its scheduler refuses.
"""

import json
import sys
from typing import Any

from nova import conf, exception, objects  # type: ignore[import-not-found]
from nova.api.validation.extra_specs import validators  # type: ignore[import-not-found]
from nova.pci import request as pci_request  # type: ignore[import-not-found]
from nova.scheduler import request_filter, utils  # type: ignore[import-not-found]
from nova.virt import hardware  # type: ignore[import-not-found]

FILTERS = (
    request_filter.transform_image_metadata,
    request_filter.packed_virtqueue_filter,
    request_filter.ephemeral_encryption_filter,
    request_filter.virtio_sound_filter,
    request_filter.tpm_secret_security_filter,
)
IMAGE = "11111111-1111-4111-8111-111111111111"
UNVALIDATED = ("hw:maxphysaddr_mode", "hw:maxphysaddr_bits")
"""Extra specs that Nova documents and reads, and for which it has no validator."""


def configure(rules: Any) -> None:
    """Set the options of one case."""
    conf.CONF.set_override("pci_in_placement", rules["pci_in_placement"], group="filter_scheduler")
    conf.CONF.set_override(
        "image_metadata_prefilter", rules["image_metadata_prefilter"], group="scheduler"
    )
    conf.CONF.set_override(
        "query_placement_for_image_type_support", rules["image_type_support"], group="scheduler"
    )
    pci_request.get_alias_from_config.cache_clear()


def flavor_of(case: Any) -> Any:
    """The flavor as Nova's object."""
    size = case["size"]
    return objects.Flavor(
        id=1,
        flavorid="1",
        name="generated",
        vcpus=size["vcpus"],
        memory_mb=size["memory_mb"],
        root_gb=size["root_gb"],
        ephemeral_gb=size["ephemeral_gb"],
        swap=size["swap_mb"],
        extra_specs=dict(case["extra_specs"]),
    )


def image_of(case: Any) -> Any:
    """The image as Nova's object."""
    properties = dict(case["image_properties"])
    form = properties.pop("disk_format", "raw")
    return objects.ImageMeta.from_dict(
        {"id": IMAGE, "name": "generated", "disk_format": form, "properties": properties}
    )


def request_of(case: Any) -> Any:
    """The request specification, with the groups of devices and ports."""
    flavor = flavor_of(case)
    for name, value in flavor.extra_specs.items():
        if name not in UNVALIDATED:
            validators.validate(name, value)
    image = image_of(case)
    hardware.get_mem_encryption_constraint(flavor, image)
    topology = hardware.numa_get_constraints(flavor, image)
    params = objects.RequestLevelParams()
    groups = []
    for port in case["ports"]:
        groups += objects.RequestGroup.from_extended_port_request(None, port)
        params.extend_with(objects.RequestLevelParams.from_port_request(port))
    spec = objects.RequestSpec(
        flavor=flavor,
        image=image,
        is_bfv=case["from_volume"],
        numa_topology=topology,
        pci_requests=pci_request.get_pci_requests_from_flavor(flavor),
        requested_resources=groups,
        request_level_params=params,
    )
    spec.generate_request_groups_from_pci_requests()
    if "disk_format" in case["image_properties"]:
        request_filter.require_image_type_support(None, spec)
    for add_traits in FILTERS:
        add_traits(None, spec)
    return spec


def answer_of(case: Any) -> Any:
    """What Nova asks, or the error's name."""
    configure(case["rules"])
    try:
        spec = request_of(case)
        found = utils.resources_from_request_spec(None, spec, None)
    except (exception.NovaException, ValueError) as error:
        return {"refused": type(error).__name__}
    groups: list[dict[str, Any]] = [
        {
            "suffix": suffix or "",
            "resources": dict(sorted(group.resources.items())),
            "required": sorted(group.required_traits),
            "forbidden": sorted(group.forbidden_traits),
        }
        for suffix, group in found._rg_by_id.items()
    ]
    devices = {
        f"{one.request_id}-{n}": f"pci-{number}-{n}"
        for number, one in enumerate(spec.pci_requests.requests)
        for n in range(one.count)
    }
    for group in groups:
        group["suffix"] = devices.get(group["suffix"], group["suffix"])
    return {
        "groups": sorted(groups, key=lambda group: group["suffix"]),
        "group_policy": found.group_policy,
        "root_required": sorted(found._root_required),
        "same_subtree": sorted(sorted(names) for names in found._same_subtree),
        "numa": spec.numa_topology is not None,
    }


def main() -> None:
    """Answer every case of standard input."""
    objects.register_all()
    conf.CONF([], project="nova", default_config_files=[])
    asked = json.load(sys.stdin)
    aliases = [json.dumps(one) for one in asked["aliases"]]
    conf.CONF.set_override("alias", aliases, group="pci")
    json.dump([answer_of(case) for case in asked["cases"]], sys.stdout)


if __name__ == "__main__":
    main()
