"""What the record of Nova's answers does not show: images of which nothing is said, and limits."""

from __future__ import annotations

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.server_request import NovaRules, translate
from moorage.domain.nova_servers import FlavorSize, NovaServer

SIZE = FlavorSize(4, 2048, 20)


@pytest.mark.parametrize(
    "specs",
    [
        {"hw:mem_encryption": "true"},
        {"hw:cpu_thread_policy": "require"},
        {"hw:emulator_threads_policy": "isolate"},
        {"hw:cpu_realtime": "yes", "hw:cpu_policy": "dedicated"},
        {"hw:numa_nodes": "3"},
        {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0", "hw:numa_cpus.1": "1-3"},
    ],
)
def test_what_an_image_could_settle_is_refused_only_for_a_known_image(
    specs: dict[str, str],
) -> None:
    translate(NovaServer(SIZE, specs), NovaRules())
    with pytest.raises(InvalidDescription) as caught:
        translate(NovaServer(SIZE, specs, {}), NovaRules())
    assert caught.value.path is not None
    assert caught.value.path.removeprefix("extra_specs.").startswith("hw:")


@pytest.mark.parametrize(
    ("specs", "size"),
    [
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}, FlavorSize(2**31 - 1, 1)),
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-999999"}, SIZE),
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "3-1"}, SIZE),
        ({"hw:numa_nodes": "129"}, SIZE),
        ({f"resources{n}:VGPU": "1" for n in range(65)} | {"group_policy": "none"}, SIZE),
        ({"resources:VGPU": str(2**31)}, SIZE),
        ({"resources:VGPU": "-1"}, SIZE),
        ({"trait1:CUSTOM_A": "required"}, SIZE),
        ({"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}, SIZE),
        ({"pci_passthrough:alias": "gpu"}, SIZE),
        ({"pci_passthrough:alias": "gpu:1"}, SIZE),
    ],
)
def test_absurd_and_empty_requests_are_refused(specs: dict[str, str], size: FlavorSize) -> None:
    with pytest.raises(InvalidDescription):
        translate(NovaServer(size, specs), NovaRules())


def test_every_unknown_extra_spec_is_named_at_once() -> None:
    specs = {"hw:cpu_polcy": "dedicated", "ssd": "true", "quota:cpu_shares": "lots"}
    with pytest.raises(InvalidDescription) as caught:
        translate(NovaServer(SIZE, specs), NovaRules(), specs_path="flavors[3].Properties")
    for key in specs:
        assert f"{key}: " in caught.value.message
    assert caught.value.path == "flavors[3].Properties.hw:cpu_polcy"
