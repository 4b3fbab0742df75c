"""Extra specs are refused where Nova refuses them, or only its filters could compare them."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from tests.conformance.nova_requests.recording import ask_nova

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.extra_specs import check_extra_specs, labels
from moorage.domain.nova.properties import Properties

LABELS = (
    *("scs:name-v2", "scs:name-v1", "acme:class", "acme:cpu:kind", "HW:cpu_policy"),
    *("resource:VGPU", "trait :CUSTOM_A", "quotas:cpu_shares", "group_policy:x", ":hidden", "a:"),
    *("capability:vcpus", "aggregate_instance_extra_spec:ssd", "x:resources:VGPU", "hwx:boot_menu"),
)
"""Nova accepts these with any value, and no filter of its scheduler reads them."""

MISTAKES = (
    *(("hw:cpu_polcy", "dedicated"), ("hw:numa_cpus.a", "0"), ("hw:", "1"), ("hw:cpu_cores", "0")),
    *(("quota:cpu_sharez", "1"), ("quota:cpu_shares", "-1"), ("quota:disk_read_bytes", "1")),
    *(("os:secure_bot", "required"), ("os:secure_boot", "yes"), ("accel:profile", "x")),
    *(("pci_passthrough:aliases", "gpu:1"), ("pci_passthrough:alias", "gpu")),
    *(("hw_rng:allowed", "maybe"), ("hw_rng:alowed", "1"), ("hw_video:ram_mb", "1")),
    *(("vmware:hw_versions", "1"), ("group_policy", "both"), ("hide_hypervisor_id", "maybe")),
    *(("resources:VGPU", "x"), ("resources:vgpu", "1"), ("resources1:", "1")),
    *(("trait:CUSTOM_A", "preferred"), ("trait:custom_a", "required"), ("traits:a", "required")),
)
"""Nova refuses these: names and values that are wrong in its own namespaces."""

COMPARED = (
    *("ssd", "scs", "capabilities:vcpus", "capabilities:cpu_info:model"),
    *("aggregate_instance_extra_specs:ssd", "accel:device_profile"),
)
"""Nova accepts these; they decide, and only its filters or Cyborg can say how."""


def is_accepted(key: str, value: str) -> bool:
    try:
        check_extra_specs(Properties({key: value}))
    except InvalidDescription:
        return False
    return True


def case(key: str, value: str) -> dict[str, Any]:
    return {
        "size": {"vcpus": 4, "memory_mb": 4096, "root_gb": 1, "ephemeral_gb": 0, "swap_mb": 0},
        "extra_specs": {key: value},
        "image_properties": {},
        "from_volume": False,
        "rules": dict.fromkeys(
            ("pci_in_placement", "image_metadata_prefilter", "image_type_support"), False
        ),
        "ports": [],
    }


def is_accepted_by_nova(pairs: list[tuple[str, str]]) -> list[bool]:
    answers = ask_nova([case(*pair) for pair in pairs])
    return [answer.get("refused") != "ValidationError" for answer in answers]


@pytest.mark.parametrize("key", LABELS)
@pytest.mark.parametrize("value", ["", "1", "SCS-2-4", "it's"])
def test_a_label_is_accepted_whatever_its_value(key: str, value: str) -> None:
    assert is_accepted(key, value)
    assert labels([key]) == (key,)


@pytest.mark.parametrize(("key", "value"), MISTAKES)
def test_a_mistake_in_a_namespace_of_novas_is_refused(key: str, value: str) -> None:
    assert not is_accepted(key, value)
    assert labels([key]) == ()


@pytest.mark.parametrize("key", COMPARED)
def test_what_only_a_filter_can_compare_is_refused(key: str) -> None:
    assert not is_accepted(key, "1")
    assert labels([key]) == ()


@pytest.mark.nightly
def test_nova_tells_labels_and_mistakes_apart_as_we_do() -> None:
    assert all(is_accepted_by_nova([(key, "1") for key in (*LABELS, *COMPARED)]))
    assert not any(is_accepted_by_nova(list(MISTAKES)))


@pytest.mark.nightly
def test_what_nova_accepts_in_its_namespaces_is_accepted() -> None:
    spaces = ("hw", "hw_rng", "hw_video", "os", "quota", "vmware", "pci_passthrough", "scs", "hw2")
    names = (
        *("cpu_policy", "cpu_cores", "allowed", "ram_max_mb", "secure_boot", "cpu_quota"),
        *("hw_version", "storage_policy", "numa_mem.0", "numa_cpus.1", "cpu_limit", "alias"),
        *("vif_outbound_peak", "tpm_version", "pmem", "mem_page_size", "usb_model", "x"),
    )
    values = ("1", "0", "-1", "true", "dedicated", "required", "2.0", "large", "6GB", "gpu:1", "x")
    every = [
        *product((f"{one}:{name}" for one in spaces for name in names), values),
        *product(("resources:VGPU", "resources1:CUSTOM_A"), ("0", "1", "x")),
        *product(("trait:CUSTOM_A", "trait1:HW_CPU_X86_AVX2"), ("required", "forbidden", "x")),
    ]
    pairs = random.Random(34).sample(every, 300)
    theirs = is_accepted_by_nova(pairs)
    odd = [
        (pair, accepted)
        for pair, accepted in zip(pairs, theirs, strict=True)
        if is_accepted(*pair) != accepted
    ]
    assert not odd, f"{len(odd)} differ; Nova accepts the first: {odd[0]}"
