"""What the OpenStack client prints about flavors, read back."""

from typing import Any

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.flavor_listing import read_listing

ROW: dict[str, Any] = {
    "ID": "42",
    "Name": "m1.gpu",
    "RAM": 8192,
    "Disk": 80,
    "Ephemeral": 20,
    "VCPUs": 4,
    "Is Public": True,
    "Swap": 1500,
    "RXTX Factor": 1.0,
}


def test_amounts_are_what_nova_would_ask_for() -> None:
    (flavor,) = read_listing([ROW])
    assert flavor.resources == {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 102}


@pytest.mark.parametrize(
    "properties",
    [
        {
            "resources:VGPU": "1",
            "resources:VCPU": "0",
            "trait:HW_CPU_X86_AVX2": "required",
            "trait:CUSTOM_OLD": "forbidden",
            "hw:cpu_policy": "dedicated",
        },
        (
            "resources:VGPU='1', resources:VCPU='0', trait:HW_CPU_X86_AVX2='required', "
            "trait:CUSTOM_OLD='forbidden', hw:cpu_policy='dedicated'"
        ),
    ],
)
def test_properties_in_either_form(properties: object) -> None:
    (flavor,) = read_listing([{**ROW, "Properties": properties, "Swap": ""}])
    assert flavor.resources == {"VGPU": 1, "MEMORY_MB": 8192, "DISK_GB": 100}
    assert flavor.required == (frozenset({"HW_CPU_X86_AVX2"}),)
    assert flavor.forbidden == {"CUSTOM_OLD"}
    assert flavor.extra_specs == {"hw:cpu_policy": "dedicated"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"RAM": "lots"}, "flavors[0].RAM"),
        ({"VCPUs": -1}, "flavors[0].VCPUs"),
        ({"Properties": "a=b"}, "flavors[0].Properties"),
        ({"Properties": {"resources:VGPU": "some"}}, "flavors[0].Properties.resources:VGPU"),
        ({"ID": ""}, "flavors[0].ID"),
    ],
)
def test_a_wrong_row_is_named(change: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        read_listing([{**ROW, **change}])
    assert caught.value.path == path


def test_an_entry_that_cannot_be_read_is_named() -> None:
    broken = {column: value for column, value in ROW.items() if column != "Ephemeral"}
    with pytest.raises(InvalidDescription) as caught:
        read_listing([ROW, broken])
    assert caught.value.message == "flavors[1] (m1.gpu): column Ephemeral is missing"


def test_loaded_flavors_are_used_and_deleted(service: Service) -> None:
    loaded = service.call("POST", "/flavors/load", {"flavors": [ROW]}, caller=OPERATOR)
    assert loaded.status_code == 200, loaded.text
    assert service.call("GET", "/flavors/m1.gpu").json["flavor"]["id"] == "42"
    twin = {"flavor": {"name": "m1.gpu", "resources": {"VCPU": 1}}}
    taken = service.call("POST", "/flavors", twin, caller=OPERATOR)
    assert taken.json["errors"][0]["code"] == "ensemble.duplicate_name"
    assert service.call("DELETE", "/flavors/42", caller=OPERATOR).status_code == 204
    assert service.call("GET", "/flavors/m1.gpu").status_code == 404
