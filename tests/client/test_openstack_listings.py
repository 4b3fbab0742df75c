"""Listings of the `openstack` command: hypervisors and servers."""

import json
from typing import Any

import pytest

from moorage.client.fleet_file import read_places
from moorage.client.hypervisor_list import (
    DISABLED,
    Terms,
    placed,
    read_down,
    read_hypervisors,
    read_servers,
)
from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet_expansion import provider_uuid

HYPERVISOR = {
    "ID": "9",
    "Hypervisor Hostname": "r1-n1",
    "Hypervisor Type": "QEMU",
    "Host IP": "10.0.0.1",
    "State": "up",
    "vCPUs Used": 3,
    "vCPUs": 16,
    "Memory MB Used": 512,
    "Memory MB": 65536,
}


def test_hypervisors_become_hosts() -> None:
    down = HYPERVISOR | {"Hypervisor Hostname": "r2-n1", "State": "down"}
    off = HYPERVISOR | {"Hypervisor Hostname": "r2-n2", "Status": "disabled"}
    listing = json.dumps([HYPERVISOR, down, off])
    terms = Terms(
        ratios={"VCPU": 4.0},
        reserved={"MEMORY_MB": 512},
        totals={"DISK_GB": 100, "VCPU": 1},
        traits=frozenset({"CUSTOM_NEW"}),
    )
    rules = read_places(
        "topology: {location: {levels: [rack]}}\nrules: [{name: '(?P<rack>r.)-.*'}]\n"
    )
    fleet = placed(read_hypervisors(listing, terms), rules)
    up, other, closed = fleet.providers
    assert up.uuid == provider_uuid("r1-n1")
    stock = {one.resource_class: one for one in up.inventories}
    assert (stock["VCPU"].total, stock["VCPU"].allocation_ratio) == (16, 4.0)
    assert (stock["MEMORY_MB"].reserved, stock["DISK_GB"].total) == (512, 100)
    assert up.traits == frozenset({"CUSTOM_NEW"})
    assert other.traits == frozenset({"CUSTOM_NEW"})
    assert closed.traits == frozenset({"CUSTOM_NEW", DISABLED})
    assert read_down(listing) == ("r2-n1",)
    assert fleet.topology.attachments["location", "r2-n1"] == "r2"


@pytest.mark.parametrize(
    ("listing", "told"),
    [
        ("no", "not JSON"),
        ("{}", "not what"),
        ("[]", "no hypervisor"),
        ("[1]", "not what"),
        ([{}], "without Hypervisor Hostname"),
        ([{"Hypervisor Hostname": "a"}], "neither vCPUs"),
        ([HYPERVISOR, HYPERVISOR], "listed twice"),
        ([HYPERVISOR | {"vCPUs": "many"}], "must be a number"),
        ([HYPERVISOR | {"vCPUs": -1}], "must be a number"),
        ([HYPERVISOR | {"Memory MB": 4}], "cannot be reserved"),
    ],
)
def test_odd_hypervisors(listing: Any, told: str) -> None:
    text = listing if isinstance(listing, str) else json.dumps(listing)
    with pytest.raises(InvalidDescription, match=told):
        read_hypervisors(text, Terms(reserved={"MEMORY_MB": 512}))


@pytest.mark.parametrize(
    "terms", [Terms(ratios={"VCPU": 0}), Terms(totals={"vcpu": 1}), Terms(traits=frozenset({"x"}))]
)
def test_odd_terms(terms: Terms) -> None:
    with pytest.raises(InvalidDescription):
        read_hypervisors(json.dumps([HYPERVISOR]), terms)


def test_servers_as_listed() -> None:
    listing = [
        {"ID": "A1", "Name": "web", "Status": "ACTIVE", "Task State": None, "Host": "n1"},
        {"ID": "b2", "Name": "db", "Status": "shelved_offloaded", "Task State": "None", "Host": ""},
        {"ID": "c3", "Status": "VERIFY_RESIZE", "Host": "n2", "Project ID": "p"},
        {"ID": "d4", "Status": "ACTIVE", "Task State": "migrating", "Host": "n2"},
    ]
    web, shelved, resized, moved = read_servers(json.dumps(listing))
    assert (web.uuid, web.host, web.placed, web.moving) == ("a1", "n1", True, False)
    assert (shelved.host, shelved.placed, shelved.moving) == (None, False, False)
    assert (resized.moving, resized.project_id) == (True, "p")
    assert moved.moving


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no", "not JSON"),
        ('{"a": 1}', "not what"),
        ("[1]", "not what"),
        ('[{"Name": "x"}]', "without ID"),
        ('[{"ID": "x"}]', "--long"),
        ('[{"ID": "x", "Host": "a"}, {"ID": "X", "Host": "a"}]', "listed twice"),
    ],
)
def test_odd_servers(text: str, told: str) -> None:
    with pytest.raises(InvalidDescription, match=told):
        read_servers(text)
