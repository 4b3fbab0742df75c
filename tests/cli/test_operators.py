"""The operator's commands over a running simulation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process


def test_flavors_come_and_go(sim: Any) -> None:
    made = sim(
        *("flavor", "create", "tiny", "--resource", "VCPU=1", "--resource", "MEMORY_MB=64"),
        *("--required", "HW_CPU_X86_AVX2|STORAGE_DISK_SSD", "--forbidden", "COMPUTE_NODE"),
    )
    assert made.status == 0, made
    listed = sim("flavor", "list").out
    assert "tiny" in listed
    assert {"MEMORY_MB=64", "VCPU=1"} <= set(listed.split())
    shown = sim("flavor", "show", "tiny").out
    assert "HW_CPU_X86_AVX2|STORAGE_DISK_SSD !COMPUTE_NODE" in shown
    assert sim("flavor", "delete", "tiny").out == "deleted tiny\n"
    assert sim("flavor", "show", "tiny").status == 6


@pytest.mark.parametrize("bad", ["VCPU", "VCPU=x", "=1", "VCPU=-1"])
def test_an_amount_that_is_none(bad: str, sim: Any) -> None:
    assert sim("flavor", "create", "x", "--resource", bad).status == 2


def test_the_listing_of_openstack_is_loaded(sim: Any, tmp_path: Path) -> None:
    listing = [
        {
            "ID": "7",
            "Name": "c9.small",
            "RAM": 512,
            "Disk": 1,
            "Ephemeral": 0,
            "VCPUs": 1,
            "Is Public": True,
            "Swap": 0,
            "RXTX Factor": 1.0,
            "Properties": {"trait:HW_CPU_X86_AVX2": "required"},
        }
    ]
    file = tmp_path / "flavors.json"
    file.write_text(json.dumps(listing), encoding="utf-8")
    assert sim("flavor", "load", str(file)).out == "1 flavor loaded\n"
    assert "HW_CPU_X86_AVX2" in sim("flavor", "show", "c9.small").out
    listing.append({**listing[0], "ID": "8", "Name": "c9.pci"})
    listing[1]["Properties"] = {"pci_passthrough:alias": "gpu:1"}
    file.write_text(json.dumps(listing), encoding="utf-8")
    loaded = sim("flavor", "load", str(file))
    assert loaded.status == 4
    assert "1 flavor loaded\nrefused c9.pci: pci_passthrough:alias: 'gpu' is not in" in loaded.out
    listing[1]["Properties"] = {"hw:numa_nodes": "1"}
    file.write_text(json.dumps(listing), encoding="utf-8")
    loaded = sim("flavor", "load", str(file))
    assert loaded.out.endswith(
        "note: c9.pci: only Nova can check hw:numa_nodes, on the host it has chosen\n"
    )
    made = sim(
        "flavor",
        "create",
        "c9.pin",
        "--vcpus",
        "2",
        "--ram",
        "512",
        "--property",
        "hw:cpu_policy=dedicated",
    )
    assert "MEMORY_MB=512 PCPU=2" in " ".join(made.out.split()), made.out
    for odd in ("{}", "[1]", "no"):
        file.write_text(odd, encoding="utf-8")
        assert sim("flavor", "load", str(file)).status == 1


def test_the_topology_is_shown_and_loaded_again(sim: Any, tmp_path: Path) -> None:
    shown = sim("topology", "show")
    assert "zone az1" in shown.out
    assert "rack r3  3 hosts" in shown.out
    file = tmp_path / "racks.yaml"
    before = sim.body("topology", "show")["topology"]
    document = sim("fleet", "export", "--topology").out
    file.write_text(document, encoding="utf-8")
    assert sim("topology", "load", str(file)).out == "topology loaded: 1 zone, 3 racks\n"
    again = sim.body("topology", "show")["topology"]
    assert again | {"revision": 0} == before | {"revision": 0}
    stale = sim("topology", "load", str(file))
    assert stale.status == 4
    assert "has generation" in stale.err, "somebody has loaded another one since it was shown"
    lines = [one for one in document.splitlines() if "revision" not in one]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert sim("topology", "load", str(file)).status == 0, "without the line it is not asked for"


def test_a_cycle_in_the_topology_names_its_line(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "racks.yaml"
    file.write_text(
        "topology:\n"
        "  location:\n"
        "    levels: [zone, rack]\n"
        "    domains: [{name: z, level: zone, parent: r}, {name: r, level: rack, parent: z}]\n",
        encoding="utf-8",
    )
    told = sim("topology", "load", str(file))
    assert told.status == 1
    assert "line 4" in told.err, told
    assert "zone az1" in sim("topology", "show").out


def test_loading_the_same_fleet_again_changes_nothing(sim: Any) -> None:
    before = sim.body("fleet", "show")["fleet"]["revision"]
    told = sim("fleet", "load", "three-racks.yaml")
    assert told.out == "unchanged three-racks: 9 hosts, 4 domains, 4 flavors, load of 3 consumers\n"
    assert sim.body("fleet", "show")["fleet"]["revision"] == before


def test_another_fleet_over_it_is_refused(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(
        "fleet: other\nhosts: [{name: h1, inventories: {VCPU: 99}}]\n", encoding="utf-8"
    )
    told = sim("fleet", "load", str(file))
    assert told.status == 4, told
    assert "h1 VCPU" in told.err


def test_a_fleet_file_with_a_mistake_names_its_line(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("fleet: bad\nhosts:\n  - {name: h1, cpus: 4}\n", encoding="utf-8")
    told = sim("fleet", "load", str(file))
    assert told.status == 1
    assert "line 3" in told.err


def test_the_fleet_is_drawn(sim: Any) -> None:
    lines = sim("fleet", "show", "--resource", "DISK_GB").out.splitlines()
    # Other tests of this simulation bring hosts of their own.
    assert re.match(r"\d+ hosts, DISK_GB ", lines[0])
    assert sum("/3900" in line for line in lines) == 9


def test_a_host_is_drawn_with_what_is_inside(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "tree.yaml"
    file.write_text(
        "fleet: tree\n"
        "hosts:\n"
        "  - name: t1\n"
        "    inventories: {MEMORY_MB: 64}\n"
        "    children:\n"
        "      - name: node\n"
        "        traits: [HW_NUMA_ROOT]\n"
        "        children: [{name: pf, inventories: {VCPU: 2}}]\n",
        encoding="utf-8",
    )
    assert sim("fleet", "load", str(file)).status == 0
    whole = "t1 {MEMORY_MB: 64}\n└── node [HW_NUMA_ROOT]\n    └── pf {VCPU: 2}\n"
    assert sim("provider", "tree", "t1").out == whole
    found = sim.body("provider", "tree", "t1/node")["provider"]
    assert (found["name"], found["traits"], found["inventories"]) == (
        "t1/node",
        ["HW_NUMA_ROOT"],
        {},
    )
    assert [one["inventories"]["VCPU"]["total"] for one in found["children"]] == [2]
    assert (
        sim("provider", "tree", found["uuid"]).out == "t1/node [HW_NUMA_ROOT]\n└── pf {VCPU: 2}\n"
    )
    assert sim("provider", "tree", "t2").err == "no resource provider t2\n"


@pytest.mark.parametrize(
    "words",
    [
        ("capacity", "window", "create", "--gone", "2027-01-01"),
        ("capacity", "windows", "--duration", "1h"),
        ("capacity", "calendar", "--from", "2026-12-02", "--to", "2026-12-01"),
        ("token", "list"),
    ],
)
def test_arguments_that_say_too_little_are_wrong_usage(
    offline: Any, words: tuple[str, ...]
) -> None:
    assert offline(*words).status == 2


def test_refusals_of_the_last_hour_are_listed(sim: Any) -> None:
    asked = sim("ensemble", "create", "--server", "m1.small", "--count", "5000", "--hold", "1m")
    assert asked.status == 3
    listed = sim.body("explanation", "list", "--since", "-1h")
    assert sim.body("explanation", "list", "--since=-1h") == listed
    assert listed["explanations"]
