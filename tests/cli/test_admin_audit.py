"""`moorage admin audit` over a ledger of its own, with Nova's list of servers."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.conftest import Cli, started

from moorage.cli.admin import placement_over
from moorage.cli.sim_process import database_url
from moorage.client import registry
from moorage.client.placement_wire import within
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    DeleteProvider,
    PutInventories,
    PutTopology,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.providers import Inventory
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database
from moorage.usecases.ledger.content import ledger_content


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


WEB, DB, GONE, LOST, MOVE, N1, N2 = (uuid(n) for n in range(1, 8))


def allocate(consumer: str, host: str, vcpus: int, kind: str | None = "INSTANCE") -> Change:
    owner = Consumer(consumer, "project", "user", kind)
    return ReplaceAllocations(owner, {host: {"VCPU": vcpus}}, ANY_GENERATION)


def server(
    uuid: str, host: str | None, status: str = "ACTIVE", **more: object
) -> dict[str, object]:
    return {"ID": uuid, "Name": uuid[-1], "Status": status, "Host": host, **more}


@pytest.fixture
def database(tmp_path: Path) -> str:
    return new_database(tmp_path)


@pytest.fixture
def store(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Two hosts; two servers as they should be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_DATABASE", database)
    ledger = open_store(database)
    for host, name in ((N1, "n1"), (N2, "n2")):
        stock = PutInventories(host, (Inventory("VCPU", 8),), None)
        ledger.commit(Changeset((CreateProvider(host, name), stock)))
    ledger.commit(Changeset((allocate(WEB, N1, 2), allocate(DB, N2, 2))))
    yield ledger
    ledger.close()


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    """Nova's list; written an hour after what the ledger has."""
    file = tmp_path / "servers.json"
    write(file, server(WEB, "n1"), server(DB, "n2"))
    return file


def write(file: Path, *servers: dict[str, object], age: float = -3600) -> None:
    file.write_text(json.dumps(servers), encoding="utf-8")
    os.utime(file, (time.time() - age,) * 2)


def kinds(cli: Cli, *words: str) -> list[tuple[str, str]]:
    result = cli("admin", "audit", *words, "-f", "json")
    found = [(one["kind"], one["subject"]) for one in result.body["findings"]]
    assert result.status == (4 if found else 0), result
    return found


def test_nothing_is_found_where_all_is_well(store: Ledger, listing: Path, offline: Cli) -> None:
    assert kinds(offline) == []
    assert kinds(offline, "--servers", str(listing)) == []
    said = offline("admin", "audit", "--servers", str(listing))
    assert said.out == "checked 2 consumers and 2 servers: 0 findings\n"


@pytest.mark.parametrize("command", ["audit", "export"])
def test_who_only_looks_makes_no_ledger(tmp_path: Path, offline: Cli, command: str) -> None:
    mistyped = tmp_path / "leger.db"
    refused = offline("admin", command, "--database", f"sqlite:///{mistyped}")
    assert refused.status == 1
    assert f"there is no ledger at sqlite:///{mistyped}" in refused.err
    assert not mistyped.exists()


def test_the_ledger_of_a_simulation_is_named(tmp_path: Path, offline: Cli) -> None:
    offline.environment["OS_CLOUD"] = "try"
    chosen = registry.Registration("try", "http://[::1]:1", 1, "", "t", str(tmp_path))
    registry.write(registry.state_directory(offline.environment), chosen)
    refused = offline("admin", "audit", "--database", f"sqlite:///{tmp_path}/none.db")
    assert f"that of simulation try: --database sqlite:///{tmp_path}/ledger.db" in refused.err
    offline.environment["OS_CLOUD"] = "other"
    refused = offline("admin", "audit", "--database", f"sqlite:///{tmp_path}/none.db")
    assert "simulation" not in refused.err


@pytest.mark.process
def test_a_simulation_is_judged_by_its_own_clock(state: Path) -> None:
    """On the machine's, which is later, what is held would have lapsed and not been freed."""
    sim = started(state, "audited")
    assert sim("ensemble", "create", "--server", "m1.small", "--hold", "1h").status == 0
    known = registry.known(registry.state_directory(sim.environment), "audited")
    assert known is not None
    words = ("--database", database_url(Path(known.directory)))
    assert kinds(sim, *words) == []
    assert sim("sim", "stop", "--name", "audited").status == 0


def test_orphans_are_told_from_the_young_and_from_migrations(
    store: Ledger, listing: Path, offline: Cli
) -> None:
    store.commit(
        Changeset(
            (
                allocate(GONE, N1, 1),
                allocate(LOST, N1, 1, None),
                allocate(MOVE, N2, 1, "MIGRATION"),
            )
        )
    )
    words = ("--servers", str(listing))
    assert kinds(offline, *words) == [("orphan", GONE), ("orphan", LOST)]
    write(listing, server(WEB, "n1", "VERIFY_RESIZE"), server(DB, "n2"))
    assert kinds(offline, *words) == [("orphan", GONE), ("unlisted", LOST)]
    moving = server(WEB, "n1", "VERIFY_RESIZE", **{"Project ID": "another"})
    write(listing, moving, server(DB, "n2"))
    assert kinds(offline, *words) == [("orphan", GONE), ("orphan", LOST)]
    write(listing, server(WEB, "n1"), server(DB, "n2"), age=60)
    assert kinds(offline, *words) == [("unlisted", GONE), ("unlisted", LOST)]


def test_servers_without_allocations_and_on_another_host(
    store: Ledger, listing: Path, offline: Cli
) -> None:
    write(
        listing,
        server(WEB, "n2"),
        server(DB, "n1", "VERIFY_RESIZE"),
        server(GONE, "n1"),
        server(LOST, "n1", "SHELVED_OFFLOADED"),
        server(MOVE, None, "ERROR"),
    )
    assert kinds(offline, "--servers", str(listing)) == [("misplaced", WEB), ("unaccounted", GONE)]
    said = offline("admin", "audit", "--servers", str(listing)).out
    assert "is on n2, allocations are on n1" in " ".join(said.split())


def test_the_ledger_by_itself(store: Ledger, offline: Cli) -> None:
    tree = Topology.build({"location": ("rack",)}, [Domain("r", "rack")], [Attachment("n3", "r")])
    store.commit(Changeset((CreateProvider("n3", "n3"), PutTopology(tree))))
    small = PutInventories(N1, (Inventory("VCPU", 1),), None)
    store.commit(Changeset((DeleteProvider("n3"), small)))
    assert kinds(offline) == [("overage", N1), ("dangling", "n3")]


def test_hosts_are_compared_with_novas_hypervisors(
    store: Ledger, listing: Path, offline: Cli, tmp_path: Path
) -> None:
    pool = PutInventories("pool", (Inventory("IPV4_ADDRESS", 8),), None)
    store.commit(Changeset((CreateProvider("pool", "pool"), pool)))
    hypervisors = tmp_path / "hypervisors.json"
    rows = [{"ID": "1", "Hypervisor Hostname": name, "State": "up"} for name in ("n1", "n9")]
    hypervisors.write_text(json.dumps(rows), encoding="utf-8")
    words = ("--hypervisors", str(hypervisors))
    assert kinds(offline, *words) == [("departed", N2), ("unregistered", "n9")]
    said = " ".join(offline("admin", "audit", *words).out.split())
    assert "n2 is no hypervisor of Nova's; 1 consumer booked there" in said
    both = offline("admin", "audit", "--servers", "-", "--hypervisors", "-")
    assert (both.status, "only one list can be read" in both.err) == (2, True)
    rows[1]["Hypervisor Hostname"] = "n2"
    hypervisors.write_text(json.dumps(rows), encoding="utf-8")
    assert kinds(offline, *words, "--servers", str(listing)) == []


def test_a_repair_can_be_undone(store: Ledger, listing: Path, offline: Cli, tmp_path: Path) -> None:
    store.commit(Changeset((allocate(GONE, N1, 1), allocate(LOST, N2, 3, None))))
    before = ledger_content(store)
    words = ("admin", "audit", "--servers", str(listing), "--repair")
    refused = offline(*words)
    assert refused.status == 1
    assert "repeat with --yes" in refused.err
    assert ledger_content(store) == before
    done = offline(*words, "--yes", "--record", "undo.jsonl")
    assert done.status == 0
    assert "2 repaired; undo: moorage admin replay undo.jsonl --to URL" in done.out
    assert ledger_content(store).consumers.keys() == {WEB, DB}
    assert store.idle_consumers() == []
    lines = [json.loads(line) for line in (tmp_path / "undo.jsonl").read_text().splitlines()]
    with within(placement_over(store)) as way:
        for line in lines:
            assert send(way, line).status_code == 204
    again = ledger_content(store)
    assert again.consumers[LOST].allocations == before.consumers[LOST].allocations
    assert again.consumers[LOST].consumer.type == "unknown"
    assert again.consumers[GONE].consumer.type == "INSTANCE"
    assert offline(*words, "--yes").status == 0
    assert len(list(tmp_path.glob("moorage-audit-*.jsonl"))) == 1


def send(way: httpx.BaseTransport, line: dict[str, Any]) -> httpx.Response:
    import httpx

    headers = {
        "X-Auth-Token": "admin",
        "OpenStack-API-Version": f"placement {line['microversion']}",
    }
    url = f"http://ledger.invalid{line['path']}"
    return way.handle_request(
        httpx.Request(line["method"], url, json=line["body"], headers=headers)
    )


def test_one_that_changes_before_its_repair_is_left(store: Ledger) -> None:
    from moorage.cli.admin import OPERATOR
    from moorage.domain.errors import ConsumerConflict
    from moorage.usecases.ledger.audit import clear_orphan

    found = ledger_content(store).consumers[WEB]
    store.commit(Changeset((allocate(WEB, N2, 3),)))
    with pytest.raises(ConsumerConflict):
        clear_orphan(store, OPERATOR, found)
    assert ledger_content(store).consumers[WEB].allocations == {N2: {"VCPU": 3}}


def test_a_list_that_lacks_most_servers_is_not_believed(
    store: Ledger, listing: Path, offline: Cli
) -> None:
    store.commit(
        Changeset(tuple(allocate(uuid(n), N1 if n < 26 else N2, 1) for n in range(20, 31)))
    )
    before = ledger_content(store)
    words = ("admin", "audit", "--servers", str(listing), "--repair", "--yes")
    for more in ((), ("--at-most", "10")):
        refused = offline(*words, *more)
        assert refused.status == 1
        assert "11 orphans among 13 consumers, more than 10" in refused.err
        assert ledger_content(store) == before
    assert offline(*words, "--at-most", "11").status == 0
    assert ledger_content(store).consumers.keys() == {WEB, DB}


@pytest.mark.process
@pytest.mark.parametrize(("typed", "status"), [(b"n\n", 1), (b"y\n", 0)])
def test_a_terminal_is_asked(
    typed: bytes, status: int, store: Ledger, listing: Path, database: str
) -> None:
    store.commit(Changeset((allocate(GONE, N1, 1),)))
    ours, theirs = pty.openpty()
    words = ("admin", "audit", "--servers", str(listing), "--repair", "--database", database)
    process = subprocess.Popen(
        [sys.executable, "-m", "moorage.cli.main", *words],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(ours, typed)
    _, errors = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert b"Delete the allocations of 1 orphan? [y/N]" in errors
    assert GONE.encode() in errors
    assert process.returncode == status, errors
    assert (GONE in ledger_content(store).consumers) is (status == 1)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--repair",), 2, "--repair needs --nova or --servers"),
        (("--servers", "no.json"), 1, "no.json: no such file"),
        (("--servers", "odd.json"), 1, "odd.json: not what"),
        (("--database", "oracle://x"), 2, "no support for oracle"),
    ],
)
def test_mistakes(
    words: tuple[str, ...], status: int, told: str, store: Ledger, offline: Cli
) -> None:
    Path("odd.json").write_text("{}", encoding="utf-8")
    result = offline("admin", "audit", *words)
    assert result.status == status
    assert told in result.err
