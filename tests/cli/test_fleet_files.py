"""One file for every command: a fleet goes in and out, and each command says what it leaves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, clean

from moorage.cli.sim_process import end
from moorage.client.registry import running, state_directory

FLEET = """\
hosts:
  - {name: "r1-n{n}", count: 2, inventories: {VCPU: 8}, aggregates: [gold]}
  - {name: "r2-n{n}", count: 2, inventories: {VCPU: 8}, traits: [CUSTOM_PDU_2]}
sharing:
  - {name: nfs, inventories: {DISK_GB: 100}, aggregates: [gold]}
flavors:
  - {name: small, resources: {VCPU: 1}}
load:
  - {name: web, on: [r1-n1, r2-n1], flavor: small}
  - {name: db, allocations: {r1-n1: {VCPU: 2}, nfs: {DISK_GB: 50}}}
"""
PLACES = """\
topology:
  location: {levels: [zone, rack]}
  power: {levels: [pdu]}
hosts:
  - {name: r2-n2, place: {location: r1}}
  - {name: nfs, place: {location: r1}}
rules:
  - {name: '(?P<rack>r.)-.*'}
  - {aggregate: gold, zone: golden}
  - {tree: power, trait: 'CUSTOM_PDU_(?P<n>.)', pdu: 'pdu-{n}'}
  - {availability_zone: '(?P<zone>.*)'}
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Cli]:
    """A service of its own: what is loaded here, no other test may find."""
    (tmp_path / "small.yaml").write_text(FLEET, encoding="utf-8")
    (tmp_path / "places.yaml").write_text(PLACES, encoding="utf-8")
    cli = Cli(clean(tmp_path) | {"OS_CLOUD": "own"})
    started = cli("sim", "start", "--fleet", str(tmp_path / "small.yaml"), "--name", "own")
    try:
        assert started.out.startswith("small: 4 hosts"), started
        yield cli
    finally:
        for one in list(running(state_directory({"XDG_STATE_HOME": str(tmp_path)}))):
            end(one.pid)


@pytest.mark.process
def test_a_fleet_comes_out_as_it_went_in(own: Cli, tmp_path: Path) -> None:
    loaded = own("topology", "load", str(tmp_path / "places.yaml"))
    assert loaded.out == "topology loaded: 1 zone, 2 racks, 1 pdu\n"
    assert "places.yaml: not taken here: rules by availability_zone" in loaded.err
    shown = own.body("topology", "show")["topology"]
    places = {(one["tree"], one["host"]): one["domain"] for one in shown["attachments"]}
    assert places == {
        ("location", "r1-n1"): "r1",
        ("location", "r1-n2"): "r1",
        ("location", "r2-n1"): "r2",
        ("location", "r2-n2"): "r1",
        ("location", "nfs"): "r1",
        ("power", "r2-n1"): "pdu-2",
        ("power", "r2-n2"): "pdu-2",
    }
    assert {one["name"]: one["parent"] for one in shown["domains"]}["r1"] == "golden"
    exported = tmp_path / "exported.yaml"
    exported.write_text(own("fleet", "export").out, encoding="utf-8")
    again = own("fleet", "load", str(exported))
    assert again.out == (
        "unchanged exported: 4 hosts, 4 domains, 1 flavor, load of 3 consumers\n"
    ), again
    own.environment["OS_CLOUD"] = "other"
    started = own("sim", "start", "--fleet", str(exported), "--name", "other")
    assert started.status == 0, started
    assert own("fleet", "export").out == exported.read_text(encoding="utf-8")


@pytest.mark.process
def test_a_topology_that_was_changed_since_its_export_is_not_overwritten(
    own: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "racks.yaml"
    file.write_text(own("fleet", "export", "--topology").out, encoding="utf-8")
    assert own("topology", "load", str(file)).status == 1, "there is no topology in it yet"
    own("topology", "load", str(tmp_path / "places.yaml"))
    file.write_text(own("fleet", "export", "--topology").out, encoding="utf-8")
    assert own("topology", "load", str(tmp_path / "places.yaml")).status == 0
    assert own("topology", "load", str(file)).status == 4
    whole = own("topology", "load", str(tmp_path / "small.yaml"))
    assert whole.status == 1
    assert "no section 'topology'" in whole.err
    unknown = tmp_path / "unknown.yaml"
    unknown.write_text(PLACES.replace("r2-n2", "r9-n9"), encoding="utf-8")
    told = own("topology", "load", str(unknown))
    assert "unknown.yaml: line 5, hosts.place: no such host: r9-n9" in told.err
