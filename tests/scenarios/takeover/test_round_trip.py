"""A real Placement is taken over, and handed back to another one."""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import Databases
from tests.servers.reference import Cloud, Placement, named

from moorage.cli.admin import placement_over
from moorage.client.credentials import GivenToken
from moorage.client.placement_source import read_service
from moorage.client.placement_wire import Options, PlacementWire, within
from moorage.client.probes import probes
from moorage.domain.consumers import Consumer
from moorage.domain.content import Content, differences, overages
from moorage.store import open_store
from moorage.store.placement_database import read_placement

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


def content_of(placement: Placement) -> Content:
    with PlacementWire(placement.url, GivenToken("admin")) as wire:
        return read_service(wire)


def test_over_rest_everything_is_as_it_was(
    cloud: Placement, admin: Any, database: str, tmp_path: Path
) -> None:
    (tmp_path / "racks.yaml").write_text(
        "topology:\n  location: {levels: [zone, rack]}\n"
        "rules:\n  - name: '(?P<zone>az\\d+)-(?P<rack>r\\d+)-n\\d+'\n"
    )
    words = ("admin", "import", "placement", "--from", cloud.url, "--topology", "racks.yaml")
    planned = admin.body(*words, "--dry-run")
    assert planned["would_write"] == 13
    assert planned["ledger"]["resource providers"] == 0
    assert not (tmp_path / "ledger.db").exists()
    found = admin.body(*words)
    assert found["source"] == found["ledger"]
    assert found["differences"] == found["answered_differently"] == []
    assert found["questions"] > 20
    assert found["unplaced"] == {"location": ["pool"]}
    assert [(one["name"], one["used"], one["capacity"]) for one in found["overages"]] == [
        ("az1-r1-n1", 4096, 1536)
    ]
    store = open_store(database)
    try:
        topology = store.snapshot().topology
        assert topology.attachments["location", "az1-r2-n4"] == "r2"
        options = Options(through=within(placement_over(store)))
        with PlacementWire("http://ledger.invalid", GivenToken("admin"), options) as own:
            own.negotiate()
            for name in ("web-1", "web-2", "db-1", "untyped"):
                path = f"/allocations/{named(name)}"
                theirs, ours = cloud.done("GET", path), own.get(path)
                assert ours == theirs
                assert theirs["consumer_generation"] > (2 if name == "web-2" else 0)
            for name in ("az1-r1-n1", "az1-r1-n1-card", "pool"):
                for part in ("inventories", "traits", "aggregates", "usages"):
                    path = f"/resource_providers/{named(name)}/{part}"
                    theirs, ours = cloud.done("GET", path), own.get(path)
                    if part in {"traits", "aggregates"}:
                        theirs, ours = sorted(theirs[part]), sorted(ours[part])
                    assert ours == theirs
    finally:
        store.close()


def test_the_questions_mean_something(cloud: Placement) -> None:
    asked = probes(content_of(cloud))
    answers = [cloud.ask("GET", path) for path in asked]
    assert {status for status, _ in answers} == {200}
    candidates = [body for path, (_, body) in zip(asked, answers, strict=True) if "cand" in path]
    assert sum(bool(one["allocation_requests"]) for one in candidates) > 5


def test_the_file_says_what_the_service_says(cloud: Placement, cloud_file: Path) -> None:
    stored = read_placement(f"sqlite:///{cloud_file}")
    assert list(differences(content_of(cloud), stored)) == []
    assert [one.resource_class for one in overages(stored)] == ["MEMORY_MB"]


def test_rows_that_refer_to_nothing_are_told(
    cloud: Placement, cloud_file: Path, tmp_path: Path
) -> None:
    file = tmp_path / "copy.db"
    shutil.copy(cloud_file, file)
    nobodys = named("db-1")
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM consumers WHERE uuid = ?", (nobodys,))
        connection.execute(
            "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
            " VALUES (9999, 'lost', 1, 1)"
        )
        connection.execute(
            "INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES ('idle', 1, 1, 0)"
        )
    found = read_placement(f"sqlite:///{file}")
    assert len(found.remarks) == 3
    assert any("resource_provider_id is 9999" in one for one in found.remarks)
    assert found.broken == ()
    assert found.consumers[nobodys].consumer == Consumer(nobodys, type="unknown")
    assert {"lost", "idle"}.isdisjoint(found.consumers)


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_the_database_says_what_the_service_says(
    engine: str, start: Any, request: pytest.FixtureRequest
) -> None:
    if engine == "postgres":
        url = request.getfixturevalue("postgres_databases").empty()
        driven = url.replace("postgresql://", "postgresql+psycopg2://")
    else:
        url = request.getfixturevalue("mariadb_databases").empty()
        driven = "mysql+pymysql" + url[url.index("://") :]
    placement = start(driven)
    Cloud(placement).write()
    stored = read_placement(url)
    assert list(differences(content_of(placement), stored)) == []
    assert [one.resource_class for one in overages(stored)] == ["MEMORY_MB"]


def test_and_back_to_another_one(
    cloud: Placement,
    cloud_file: Path,
    start: Callable[[str], Placement],
    admin: Any,
    tmp_path: Path,
) -> None:
    assert admin("admin", "import", "placement", "--from", f"sqlite:///{cloud_file}").status == 0
    other = start(f"sqlite:///{tmp_path / 'other.db'}")
    handed = admin("admin", "export", "--to", other.url)
    assert handed.status == 0, handed
    assert "all equal" in handed.out
    for name in ("web-1", "web-2", "db-1", "untyped"):
        theirs = cloud.done("GET", f"/allocations/{named(name)}")
        again = other.done("GET", f"/allocations/{named(name)}")
        assert again["consumer_generation"] == 1
        for one in (theirs, again):
            del one["consumer_generation"]
            for part in one["allocations"].values():
                del part["generation"]
        assert again == theirs
    for path in probes(content_of(cloud)):
        theirs, again = (ordered(one.done("GET", path)) for one in (cloud, other))
        assert again == theirs, path
    again = admin("admin", "export", "--to", other.url)
    assert again.status == 4
    assert "is not empty: it has 9 resource providers" in again.err
    assert "give it an empty database" in again.err


def ordered(value: Any) -> Any:
    """Without order, links and generations."""
    if isinstance(value, dict):
        return sorted((key, repr(ordered(one))) for key, one in value.items() if key not in DROPPED)
    if isinstance(value, list):
        return sorted((ordered(one) for one in value), key=repr)
    return value


DROPPED = {"links", "generation", "resource_provider_generation"}


def test_the_written_requests_are_replayed(
    cloud: Placement,
    cloud_file: Path,
    start: Callable[[str], Placement],
    admin: Any,
    tmp_path: Path,
) -> None:
    assert admin("admin", "import", "placement", "--from", f"sqlite:///{cloud_file}").status == 0
    assert admin.body("admin", "export", "--output", "cloud.jsonl")["requests"] == 40
    nowhere = admin("admin", "export", "--output", "no/such.jsonl")
    assert (nowhere.status, "no/such.jsonl: No such file or directory" in nowhere.err) == (1, True)
    printed = admin("admin", "export")
    assert printed.status == 0
    other = start(f"sqlite:///{tmp_path / 'other.db'}")
    lines = (tmp_path / "cloud.jsonl").read_text().splitlines()
    (tmp_path / "half.jsonl").write_text("\n".join(lines[:17]))
    assert admin("admin", "replay", "half.jsonl", "--to", other.url).out == "sent 17 requests\n"
    stopped = admin("admin", "replay", "cloud.jsonl", "--to", other.url)
    assert stopped.status == 1
    assert "request 6" in stopped.err
    rest = admin("admin", "replay", "cloud.jsonl", "--to", other.url, "--start", "18")
    assert rest.out == "sent 23 requests\n"
    before, after = content_of(cloud), content_of(other)
    assert before.consumers.keys() == after.consumers.keys()
    assert before.providers.keys() == after.providers.keys()


def test_a_source_that_lives_on_is_mirrored(
    start: Callable[[str], Placement], admin: Any, tmp_path: Path
) -> None:
    file = tmp_path / "placement.db"
    placement = start(f"sqlite:///{file}")
    cloud = Cloud(placement)
    cloud.write()
    words = ("admin", "import", "placement", "--from", f"sqlite:///{file}")
    assert admin(*words).status == 0
    assert admin.body(*words)["written"] == 0
    # A server goes, one comes, one grows; a host is registered anew under its old name.
    placement.done("DELETE", f"/allocations/{named('db-1')}")
    cloud.allocate("web-3", {"az1-r1-n2": {"VCPU": 1}})
    cloud.allocate("web-2", {"az1-r1-n2": {"VCPU": 16}})
    for name in ("az1-r2-n3-card", "az1-r2-n3"):
        placement.done("DELETE", f"/resource_providers/{named(name)}")
    body = {"name": "az1-r2-n3", "uuid": named("anew")}
    placement.done("POST", "/resource_providers", body)
    refused = admin(*words)
    assert refused.status == 4
    assert "neither empty nor a part of the source" in refused.err
    dry = admin(*words, "--dry-run")
    assert dry.status == 4
    assert "would be refused" in dry.out
    would = admin.body(*words, "--dry-run", "--mirror")
    assert (would["refused"], would["would_remove"]) == (None, 3)
    updated = admin(*words, "--update")
    assert updated.status == 4
    assert "az1-r2-n3 already exists" in updated.err
    mirrored = admin.body(*words, "--mirror")
    assert (mirrored["differences"], mirrored["removed"]) == ([], 3)
    assert mirrored["source"] == mirrored["ledger"]


def test_a_dry_run_and_an_export_make_no_tables(
    cloud: Placement, cloud_file: Path, postgres_databases: Databases, admin: Any
) -> None:
    admin.environment["MOORAGE_DATABASE"] = url = postgres_databases.empty()
    tried = admin("admin", "import", "placement", "--from", f"sqlite:///{cloud_file}", "--dry-run")
    assert (tried.status, "nothing was written" in tried.out) == (0, True), tried.err
    handed = admin("admin", "export")
    assert (handed.status, "there is no ledger in the database" in handed.err) == (1, True)
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert found.fetchone() == (0,)
