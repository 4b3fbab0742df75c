"""`moorage admin sync nova` against a server with the compute API's lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.cli.conftest import Cli, Result
from tests.servers.nova_records import NovaRecords, serving

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutFlavor,
    PutInventories,
    PutTopology,
)
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.state.host_states import host_states
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database

RULES = """
topology: {location: {levels: [zone, rack]}}
rules:
  - {availability_zone: '(?P<zone>.+)'}
  - {metadata: {rack: '(?P<rack>.+)'}}
"""


@pytest.fixture
def nova() -> Iterator[NovaRecords]:
    with serving() as found:
        yield found


@pytest.fixture
def store(offline: Cli, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger that is written: three hosts."""
    database = new_database(tmp_path)
    offline.environment["MOORAGE_DATABASE"] = database
    ledger = open_store(database)
    for number in (1, 2, 3):
        add_host(ledger, number)
    yield ledger
    ledger.close()


def add_host(ledger: Ledger, number: int) -> None:
    uuid = str(UUID(int=number, version=4))
    stock = (Inventory("VCPU", 64),)
    ledger.commit(
        Changeset((CreateProvider(uuid, f"n{number}"), PutInventories(uuid, stock, None)))
    )


def synced(offline: Cli, nova: NovaRecords, *more: str) -> Result:
    return offline("admin", "sync", "nova", "--from", nova.url, "-f", "json", *more)


def compute(nova: NovaRecords, number: int, zone: str) -> None:
    """A host whose service has another name than its hypervisor."""
    nova.hypervisor(f"n{number}", f"service{number}")
    nova.lists["services"].append(
        {"host": f"service{number}", "zone": zone, "status": "enabled", "state": "up", "id": "s"}
    )


def names(store: Ledger) -> dict[str, int]:
    return {one.name: one.resources.get("VCPU", 0) for one in store.flavors()}


def test_flavors_follow_nova(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    store.commit(Changeset((PutFlavor(Flavor("own", "own", {"VCPU": 7})),)))
    for id_, name, vcpus in (("1", "small", 1), ("2", "large", 8), ("3", "old", 2)):
        nova.flavor(id_, name, vcpus)
    told = synced(offline, nova)
    assert told.status == 0, told
    assert told.body["flavors"]["created"] == ["large", "old", "small"]
    assert names(store) == {"own": 7, "small": 1, "large": 8, "old": 2}
    before = store.snapshot().revision
    again = synced(offline, nova).body["flavors"]
    assert (again["unchanged"], again["created"], again["changed"]) == (3, [], [])
    assert store.snapshot().revision == before
    nova.lists["flavors"][1]["vcpus"] = 6
    del nova.lists["flavors"][2]
    told = synced(offline, nova, "--dry-run")
    assert (told.body["flavors"]["changed"], told.body["flavors"]["deleted"]) == (
        ["large"],
        ["old"],
    )
    assert names(store) == {"own": 7, "small": 1, "large": 8, "old": 2}
    synced(offline, nova)
    assert names(store) == {"own": 7, "small": 1, "large": 6}


def test_the_state_of_hosts_follows_nova(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    compute(nova, 1, "az1")
    down = {"host": "n1", "before": [], "after": ["forced down"]}
    assert synced(offline, nova).body["services"] == []
    nova.lists["services"][0] |= {"state": "down", "forced_down": True}
    before = store.snapshot().revision
    assert synced(offline, nova, "--dry-run").body["services"] == [down]
    assert store.snapshot().revision == before
    assert synced(offline, nova).body["services"] == [down]
    assert synced(offline, nova).body["services"] == []
    assert not host_states(store.snapshot()).in_service.all()
    nova.lists["services"][0] |= {"state": "up", "forced_down": False}
    told = offline("admin", "sync", "nova", "--from", nova.url).out
    assert "services: 1 host changed\nn1: forced down -> in service\n" in told
    assert host_states(store.snapshot()).in_service.all()


def test_names_that_change_hands(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    """A flavor that is created anew has another id; two may swap their names."""
    nova.flavor("1", "a", 1)
    nova.flavor("2", "b", 2)
    nova.flavor("3", "c", 3)
    synced(offline, nova)
    nova.lists["flavors"].clear()
    nova.flavor("1", "b", 1)
    nova.flavor("2", "a", 2)
    nova.flavor("4", "c", 4)
    told = synced(offline, nova)
    assert told.status == 0, told
    assert names(store) == {"b": 1, "a": 2, "c": 4}


def test_flavors_that_cannot_be_placed_are_named(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    store.commit(Changeset((PutFlavor(Flavor("own", "taken", {"VCPU": 7})),)))
    good = nova.flavor("1", "good", 1)
    nova.flavor("2", "odd", 1, hw__cpu_polcy="dedicated")
    nova.flavor("3", "taken", 1)
    told = synced(offline, nova)
    assert told.status == 4
    reasons = {one["name"]: one["reason"] for one in told.body["flavors"]["refused"]}
    assert "hw:cpu_polcy" in reasons["odd"]
    assert "taken already exists" in reasons["taken"]
    assert names(store) == {"taken": 7, "good": 1}
    good["extra_specs"] = {"hw:cpu_polcy": "shared"}
    told = synced(offline, nova)
    assert told.body["flavors"]["deleted"] == ["good"]
    assert names(store) == {"taken": 7}
    text = offline("admin", "sync", "nova", "--from", nova.url)
    assert "refused good: " in text.out


def test_labels_of_flavors_are_noted(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    nova.flavor("1", "good", 1)["extra_specs"] = {"scs:name-v2": "SCS-1-4", "acme:cpu": "shared"}
    nova.flavor("2", "other", 1)["extra_specs"] = {"scs:name-v2": "SCS-1-2"}
    told = offline("admin", "sync", "nova", "--from", nova.url, "--dry-run")
    assert "no filter of Nova reads acme:cpu, scs:name-v2" in told.out
    told = synced(offline, nova)
    assert told.status == 0, told
    assert told.body["flavors"]["labels"] == ["acme:cpu", "scs:name-v2"]
    assert names(store) == {"good": 1, "other": 1}


def test_flavors_whose_extra_specs_are_hidden_are_refused_and_stay(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    pinned = nova.flavor("1", "pinned", 4, hw__cpu_policy="dedicated")
    synced(offline, nova)
    before = store.flavors()
    new, taker = nova.flavor("2", "new", 1), nova.flavor("3", "pinned", 1)
    pinned["name"] = "renamed"
    del pinned["extra_specs"], new["extra_specs"]
    told = synced(offline, nova)
    assert told.status == 4
    found = told.body["flavors"]
    reasons = {one["name"]: one["reason"] for one in found["refused"]}
    assert "extra_specs is missing" in reasons["renamed"]
    assert "extra_specs is missing" in reasons["new"]
    assert "already exists" in reasons[taker["name"]], "the one that stays has the name"
    assert (found["created"], found["changed"], found["deleted"]) == ([], [], [])
    assert store.flavors() == before


def test_an_empty_listing_deletes_nothing(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    store.commit(Changeset((PutFlavor(Flavor("own", "own", {"VCPU": 7})),)))
    assert synced(offline, nova).status == 0, "none of Nova's is there to delete"
    nova.flavor("1", "small", 1)
    synced(offline, nova)
    nova.lists["flavors"].clear()
    for more in (), ("--dry-run",):
        told = synced(offline, nova, *more)
        assert told.status == 4
        assert "Nova lists no flavor, and the ledger has 1 flavor of Nova's" in told.out
    assert names(store) == {"own": 7, "small": 1}


def test_a_user_who_may_not_list_hosts_deletes_nothing(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    """Nova shows such a user the public flavors, as if there were no others."""
    nova.flavor("1", "public", 1)
    nova.flavor("2", "private", 1)
    synced(offline, nova)
    del nova.lists["flavors"][1]
    nova.bad["/v2.1/os-hypervisors/detail"] = (403, {"forbidden": {"message": "not you"}})
    assert synced(offline, nova).status not in {0, 4}
    assert names(store) == {"public": 1, "private": 1}


def place(store: Ledger, number: int) -> str | None:
    return store.snapshot().topology.attachments.get(("location", f"n{number}"))


def test_hosts_are_placed_by_zones_and_aggregates(
    offline: Cli, store: Ledger, nova: NovaRecords, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    power = Topology.build(
        {"power": ("pdu",)}, [Domain("p1", "pdu", "power")], [Attachment("n1", "p1", "power")]
    )
    store.commit(Changeset((PutTopology(power),)))
    rules = ("--topology", str(tmp_path / "rules.yaml"))
    compute(nova, 1, "az1")
    compute(nova, 2, "az1")
    nova.aggregate("racks-1", "service1", rack="r1")
    nova.aggregate("zones", "service1", "service2", availability_zone="az1")
    told = synced(offline, nova, *rules, "--dry-run")
    assert len(told.body["topology"]["moves"]) == 2
    assert place(store, 1) is None
    told = synced(offline, nova, *rules)
    assert told.status == 0, told
    assert [place(store, number) for number in (1, 2, 3)] == ["r1", "az1", None]
    assert told.body["topology"]["unplaced"] == {"location": ["n3"]}
    topology = store.snapshot().topology
    assert topology.attachments["power", "n1"] == "p1"
    assert topology.domains["location", "r1"].parent == "az1"
    before = store.snapshot().revision
    assert synced(offline, nova, *rules).body["topology"]["changed"] is False
    assert store.snapshot().revision == before
    # Later hosts find their places by themselves, and the others follow their aggregates.
    compute(nova, 3, "az2")
    nova.aggregate("racks-2", "service2", "service3", rack="r2")
    nova.lists["aggregates"][-1]["hosts"] = ["service3"]
    nova.lists["aggregates"][0]["hosts"] = ["service2"]
    add_host(store, 4)
    moves = synced(offline, nova, *rules).body["topology"]["moves"]
    assert {one["host"]: (one["before"], one["after"]) for one in moves} == {
        "n1": ("r1", "az1"),
        "n2": ("az1", "r1"),
        "n3": (None, "r2"),
    }


def test_a_host_that_nova_does_not_list_keeps_its_place(
    offline: Cli, store: Ledger, nova: NovaRecords, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    offline.environment["MOORAGE_TOPOLOGY_RULES"] = str(tmp_path / "rules.yaml")
    compute(nova, 1, "az1")
    nova.aggregate("racks", "service1", rack="r1")
    assert synced(offline, nova).status == 0
    nova.lists["hypervisors"].clear()
    told = synced(offline, nova)
    assert told.body["topology"]["changed"] is False
    assert place(store, 1) == "r1"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (
            "topology: {location: {levels: [rack]}}\nrules: [{metadata: {rack: '('}, rack: a}]\n",
            "rules.yaml",
        ),
        (None, "rules.yaml"),
    ],
)
def test_bad_rules(
    offline: Cli, store: Ledger, nova: NovaRecords, tmp_path: Path, rules: str | None, told: str
) -> None:
    if rules is not None:
        (tmp_path / "rules.yaml").write_text(rules)
    nova.flavor("1", "small", 1)
    result = synced(offline, nova, "--topology", str(tmp_path / "rules.yaml"))
    assert result.status not in {0, 4}
    assert told in result.out
    assert names(store) == {}, "nothing was written"


def test_aggregates_that_contradict_each_other_change_nothing(
    offline: Cli, store: Ledger, nova: NovaRecords, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    compute(nova, 1, "az1")
    nova.aggregate("left", "service1", rack="r1")
    nova.aggregate("right", "service1", rack="r2")
    nova.flavor("1", "small", 1)
    result = synced(offline, nova, "--topology", str(tmp_path / "rules.yaml"))
    assert result.status not in {0, 4}
    assert "several values of rack of host n1" in result.out
    assert "rules.yaml" in result.out
    assert (names(store), place(store, 1)) == ({}, None)


@pytest.mark.parametrize("path", ["/v2.1/flavors/detail", "/v2.1/os-hypervisors/detail"])
@pytest.mark.parametrize("answer", [(403, {"forbidden": {"message": "not you"}}), (200, {"x": 1})])
def test_a_nova_that_refuses(
    offline: Cli, store: Ledger, nova: NovaRecords, tmp_path: Path, path: str, answer: Any
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    nova.flavor("1", "small", 1)
    nova.bad[path] = answer
    result = synced(offline, nova, "--topology", str(tmp_path / "rules.yaml"))
    assert result.status not in {0, 4}
    assert names(store) == {}
