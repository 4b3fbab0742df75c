"""What the OpenStack client prints about flavors, read back."""

from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutFlavor
from moorage.domain.errors import InvalidDescription
from moorage.domain.flavors import Flavor
from moorage.domain.nova.server_request import NovaRules
from moorage.domain.resources import amounts
from moorage.domain.tickets import ticket_class
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.ledger.flavors import read_row

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
    flavor = read_row(ROW, "flavors[0]", NovaRules())
    assert flavor.resources == {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 102}


@pytest.mark.parametrize(
    "properties",
    [
        {
            "resources:VGPU": "1",
            "resources:VCPU": "0",
            "trait:HW_CPU_X86_AVX2": "required",
            "trait:CUSTOM_OLD": "forbidden",
            "hw:cpu_policy": "shared",
            "quota:cpu_shares": "100",
        },
        (
            "resources:VGPU='1', resources:VCPU='0', trait:HW_CPU_X86_AVX2='required', "
            "trait:CUSTOM_OLD='forbidden', hw:cpu_policy='shared', quota:cpu_shares='100'"
        ),
    ],
)
def test_properties_in_either_form(properties: object) -> None:
    flavor = read_row({**ROW, "Properties": properties, "Swap": ""}, "flavors[0]", NovaRules())
    assert flavor.resources == {"VGPU": 1, "MEMORY_MB": 8192, "DISK_GB": 100}
    assert flavor.required == (frozenset({"HW_CPU_X86_AVX2"}),)
    assert flavor.forbidden == {"CUSTOM_OLD"}
    assert flavor.extra_specs["hw:cpu_policy"] == "shared"
    assert flavor.extra_specs["resources:VGPU"] == "1"


def test_the_flavors_of_novas_api_are_read_as_well() -> None:
    row = {
        "id": "42",
        "name": "m1.gpu",
        "ram": 8192,
        "disk": 80,
        "OS-FLV-EXT-DATA:ephemeral": 20,
        "vcpus": 4,
        "swap": "",
        "extra_specs": {"hw:cpu_policy": "dedicated"},
    }
    flavor = read_row(row, "flavors[0]", NovaRules())
    assert flavor.resources == {"PCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 100}
    assert flavor.host_checks == ("hw:cpu_policy",)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"RAM": "lots"}, "flavors[0].RAM"),
        ({"VCPUs": -1}, "flavors[0].VCPUs"),
        ({"Properties": "a=b"}, "flavors[0].Properties"),
        ({"Properties": {"resources:VGPU": "some"}}, "flavors[0].Properties.resources:VGPU"),
        ({"ID": ""}, "flavors[0].ID"),
        ({"RAM": "9" * 13}, "flavors[0].RAM"),
        ({"Properties": {"resources:vgpu": "1"}}, "flavors[0].Properties.resources:vgpu"),
        ({"Properties": {"resources1:vgpu": "1"}}, "flavors[0].Properties.resources1:vgpu"),
        ({"Properties": {"trait1:CUSTOM_A": "any"}}, "flavors[0].Properties.trait1:CUSTOM_A"),
        ({"Properties": {"trait1:CUSTOM_A": "required"}}, "flavors[0].Properties.trait1:CUSTOM_A"),
        ({"Properties": {"trait:CUSTOM_A": "preferred"}}, "flavors[0].Properties.trait:CUSTOM_A"),
        ({"Properties": {"group_policy": "apart"}}, "flavors[0].Properties.group_policy"),
        (
            {"Properties": {"resources1:VGPU": "1", "resources2:VGPU": "1"}},
            "flavors[0].Properties.group_policy",
        ),
        (
            {"Properties": {"pci_passthrough:alias": "gpu:1"}},
            "flavors[0].Properties.pci_passthrough:alias",
        ),
        ({"Properties": {"hw:cpu_policy": "pinned"}}, "flavors[0].Properties.hw:cpu_policy"),
        ({"Properties": {"hw:numa_nodes": "0"}}, "flavors[0].Properties.hw:numa_nodes"),
        ({"Properties": {"hw:mem_page_size": "1G"}}, "flavors[0].Properties.hw:mem_page_size"),
        ({"Properties": {"ssd": "true"}}, "flavors[0].Properties.ssd"),
        ({"Properties": {"os:secure_boot": "true"}}, "flavors[0].Properties.os:secure_boot"),
        ({"Properties": {"quota:cpu_sharez": "1"}}, "flavors[0].Properties.quota:cpu_sharez"),
        ({"Properties": {"hw:new_thing": "1"}}, "flavors[0].Properties.hw:new_thing"),
        (
            {"Properties": {"accel:device_profile": "x"}},
            "flavors[0].Properties.accel:device_profile",
        ),
        ({"Properties": {"hw:label": "1"}}, "flavors[0].Properties.hw:label"),
    ],
)
def test_a_wrong_row_is_named(change: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        read_row({**ROW, **change}, "flavors[0]", NovaRules())
    assert caught.value.path == path
    assert path.rpartition(".")[2] in caught.value.message


def test_one_that_cannot_be_loaded_is_named_and_keeps_no_other_out(service: Service) -> None:
    lacking = {column: value for column, value in ROW.items() if column != "Ephemeral"}
    rows = [
        {**ROW, "ID": "1", "Name": "a"},
        lacking,
        {**ROW, "ID": "2", "Name": "b", "Properties": {"pci_passthrough:alias": "gpu:1"}},
        {**ROW, "ID": "3", "Name": "c", "Properties": {"trait:CUSTOM_NOWHERE": "required"}},
        {**ROW, "ID": "4", "Name": "a"},
        {**ROW, "ID": "5", "Name": "d", "Properties": {"hw_rng:allowed": "true"}},
    ]
    answer = service.call("POST", "/flavors/load", {"flavors": rows}, caller=OPERATOR)
    assert answer.status_code == 200, answer.text
    assert [one["name"] for one in answer.json["flavors"]] == ["a", "d"]
    refused = {(one["row"], one["name"]): one for one in answer.json["refused"]}
    assert list(refused) == [(1, "m1.gpu"), (2, "b"), (3, "c"), (4, "a")]
    assert refused[1, "m1.gpu"]["path"] == "flavors[1].Ephemeral"
    assert "pci_passthrough:alias: 'gpu' is not in the table" in refused[2, "b"]["why"]
    assert "CUSTOM_NOWHERE" in refused[3, "c"]["why"]
    assert "already exists" in refused[4, "a"]["why"]
    names = {one["name"] for one in service.call("GET", "/flavors").json["flavors"]}
    assert {"a", "d"} <= names
    assert not {"b", "c", "m1.gpu"} & names


@pytest.mark.parametrize(
    ("specs", "path"),
    [
        ({"hw:cpu_policy": "dedicated"}, "flavor.extra_specs.hw:cpu_policy"),
        ({"resources:VGPU": "1"}, "flavor.extra_specs.resources:VGPU"),
        ({"trait:CUSTOM_A": "required"}, "flavor.extra_specs.trait:CUSTOM_A"),
    ],
)
def test_no_way_in_takes_an_extra_spec_that_decides_the_place(
    service: Service, specs: dict[str, str], path: str
) -> None:
    flavor = {"name": "x", "resources": {"VCPU": 1}, "extra_specs": specs}
    for where, body in (
        ("/flavors", {"flavor": flavor}),
        ("/fleet", {"fleet": {"flavors": [flavor]}}),
    ):
        answer = service.call("POST", where, body, caller=OPERATOR)
        assert answer.status_code == 400, answer.text
        assert answer.json["errors"][0]["path"] == path


def test_every_way_in_takes_labels(service: Service) -> None:
    labels = {"scs:name-v2": "SCS-1V-4", "acme:note": "it's", "hw2:cpu_policy": ""}
    flavor = {"resources": {"VCPU": 1}, "extra_specs": labels}
    row = {**ROW, "ID": "1", "Name": "y", "Properties": labels}
    for where, body in (
        ("/flavors", {"flavor": {"name": "w", **flavor}}),
        ("/fleet", {"fleet": {"flavors": [{"name": "x", **flavor}]}}),
        ("/flavors/load", {"flavors": [row]}),
    ):
        assert service.call("POST", where, body, caller=OPERATOR).status_code in {200, 201}
    for name in ("w", "x", "y"):
        shown = service.call("GET", f"/flavors/{name}").json["flavor"]
        assert shown["labels"] == sorted(labels)


def test_a_flavor_stored_before_such_were_refused_is_not_placed(service: Service) -> None:
    old = Flavor("9", "old", amounts({"VCPU": 1}), extra_specs={"hw:numa_nodes": "2"})
    service.store.commit(Changeset((PutFlavor(old),)))
    body = {"explanation": {"members": [{"name": "a", "flavor": "old"}]}}
    answer = service.call("POST", "/explanations", body)
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["path"] == "members[0].flavor.hw:numa_nodes"


def test_loaded_flavors_are_used_and_deleted(service: Service) -> None:
    loaded = service.call("POST", "/flavors/load", {"flavors": [ROW]}, caller=OPERATOR)
    assert loaded.status_code == 200, loaded.text
    assert service.call("GET", "/flavors/m1.gpu").json["flavor"]["id"] == "42"
    twin = {"flavor": {"name": "m1.gpu", "resources": {"VCPU": 1}}}
    taken = service.call("POST", "/flavors", twin, caller=OPERATOR)
    assert taken.json["errors"][0]["code"] == "ensemble.duplicate_name"
    assert service.call("DELETE", "/flavors/42", caller=OPERATOR).status_code == 204
    assert service.call("GET", "/flavors/m1.gpu").status_code == 404


def test_flavors_of_tickets_are_left_out_of_a_listing(service: Service) -> None:
    """Nova's listing has those that Moorage made there; they are no sizes for roles."""
    name = ticket_class("0b1e0c5e-7a9b-4c39-9d5c-6f0f0d5e2a2c", "db")
    ticket = {**ROW, "ID": "43", "Name": "moorage-shop-db", "Properties": {f"resources:{name}": 1}}
    body = {"flavors": [ticket, ROW]}
    loaded = service.call("POST", "/flavors/load", body, caller=OPERATOR)
    assert loaded.json["refused"] == []
    assert {one["id"] for one in loaded.json["flavors"]} == {"42"}
