"""The operator's table of PCI aliases."""

from __future__ import annotations

import json

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.pci_devices import PciAlias, StandardNames, read_aliases

STANDARD = StandardNames(frozenset({"VGPU"}), frozenset({"HW_GPU_API_VULKAN"}))
IDS = {"vendor_id": "10de", "product_id": "20b2"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (IDS, PciAlias("a", "CUSTOM_PCI_10DE_20B2")),
        ({**IDS, "resource_class": "vgpu"}, PciAlias("a", "VGPU")),
        ({"resource_class": "gpu-a100"}, PciAlias("a", "CUSTOM_GPU_A100")),
        ({"resource_class": "CUSTOM_GPU"}, PciAlias("a", "CUSTOM_GPU")),
        ({"vendor_id": "10de"}, PciAlias("a", None)),
        ({**IDS, "vendor_id": "*"}, PciAlias("a", None)),
        (
            {**IDS, "traits": "HW_GPU_API_VULKAN,custom_big,fast one"},
            PciAlias(
                "a",
                "CUSTOM_PCI_10DE_20B2",
                frozenset({"HW_GPU_API_VULKAN", "CUSTOM_BIG", "CUSTOM_FAST_ONE"}),
            ),
        ),
    ],
)
def test_a_device_has_the_class_and_traits_that_nova_gives_it(
    entry: dict[str, str], expected: PciAlias
) -> None:
    assert read_aliases([json.dumps({"name": " a ", **entry})], STANDARD) == {"a": expected}


def test_an_alias_with_alternatives_has_no_single_class() -> None:
    twice = [json.dumps({"name": "a", **IDS}), json.dumps({"name": "a", "resource_class": "VGPU"})]
    assert read_aliases(twice, STANDARD)["a"].resource_class is None


@pytest.mark.parametrize(
    "text",
    [
        *("no", "[]", "{}", "[" * 100_000, '{"name": 1}', '{"name": "a", "vendor_id": "xyz"}'),
        *('{"name": "a", "device_type": "gpu"}', '{"name": "a", "colour": "red"}'),
    ],
)
def test_a_malformed_entry_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        read_aliases([text], STANDARD)
