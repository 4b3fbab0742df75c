"""Names newer than ours, and times of the last change, are taken over by each way of reading."""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from falcon.testing import TestClient
from tests.servers.reference import Placement, named, reference

from moorage.cli.admin import placement_over
from moorage.store import open_store
from moorage.usecases.ledger.content import ledger_content

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

WAYS = ("database", "rest")
TABLES = ("resource_providers", "inventories", "allocations", "traits", "resource_classes")
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}


@pytest.fixture
def old(cloud: Placement, cloud_file: Path, tmp_path: Path) -> Path:
    """The cloud's database with names of a newer release, every record of another time."""
    file = tmp_path / "old.db"
    shutil.copy(cloud_file, file)
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        for kind, name in (("traits", "HW_NEWER"), ("traits", "HW_NEWEST_UNUSED")):
            connection.execute(f"INSERT INTO {kind} (name) VALUES (?)", (name,))
        connection.execute("INSERT INTO resource_classes (id, name) VALUES (500, 'QUBITS')")
        connection.execute(
            "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved,"
            " min_unit, max_unit, step_size, allocation_ratio)"
            " SELECT id, 500, 8, 0, 1, 8, 1, 1.0 FROM resource_providers WHERE name = 'pool'"
        )
        connection.execute(
            "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
            " SELECT id, ?, 500, 3 FROM resource_providers WHERE name = 'pool'",
            (named("web-1"),),
        )
        connection.execute(
            "INSERT INTO resource_provider_traits (resource_provider_id, trait_id)"
            " SELECT p.id, t.id FROM resource_providers p, traits t"
            " WHERE p.name = 'pool' AND t.name = 'HW_NEWER'"
        )
        for number, table in enumerate(TABLES):
            connection.execute(
                f"UPDATE {table} SET created_at = datetime('2024-01-01', '+' || id || ' hours'),"
                f" updated_at = CASE WHEN id % 2 OR '{table}' = 'traits' THEN NULL ELSE"
                f" datetime('2025-0{number + 1}-01', '+' || id || ' hours') END"
            )
    return file


@pytest.fixture(params=WAYS)
def way(
    request: pytest.FixtureRequest, old: Path, start: Callable[[str], Placement]
) -> tuple[str, Placement]:
    """How it is read (the argument of `--from`), and the reference over it."""
    placement = start(f"sqlite:///{old}")
    return (placement.url if request.param == "rest" else f"sqlite:///{old}"), placement


def test_newer_names_are_taken_over_and_told(
    way: tuple[str, Placement], admin: Any, database: str
) -> None:
    words = ("admin", "import", "placement", "--from", way[0])
    planned = admin.body(*words, "--dry-run")
    for kind, names in (("resource class", "QUBITS"), ("trait", "HW_NEWER, HW_NEWEST_UNUSED")):
        told = f"{kind} names newer than this program's, taken over as they are: {names}"
        assert told in planned["remarks"]
    done = admin(*words)
    assert done.status == 0, done
    assert "taken over as they are: HW_NEWER" in done.out
    again = admin.body(*words)
    assert (again["written"], again["differences"]) == (0, [])
    store = open_store(database)
    try:
        asked = TestClient(placement_over(store))
        pool = f"/resource_providers/{named('pool')}"
        for path, key, name in (
            (f"{pool}/traits", "traits", "HW_NEWER"),
            (f"{pool}/inventories", "inventories", "QUBITS"),
            (f"{pool}/usages", "usages", "QUBITS"),
            ("/traits", "traits", "HW_NEWEST_UNUSED"),
        ):
            assert name in asked.simulate_get(path, headers=HEADERS).json[key]
        query = "/allocation_candidates?resources=QUBITS:5&required=HW_NEWER"
        assert len(asked.simulate_get(query, headers=HEADERS).json["allocation_requests"]) == 1
        for path in ("/traits/HW_NEWEST_UNUSED", "/resource_classes/QUBITS"):
            assert asked.simulate_delete(path, headers=HEADERS).status_code == 400
    finally:
        store.close()


def test_names_that_are_none_are_told_at_once_by_both_runs(
    way: tuple[str, Placement], old: Path, admin: Any
) -> None:
    with contextlib.closing(sqlite3.connect(old)) as connection, connection:
        for kind, name in (
            *(("resource_classes", name) for name in ("lower", "WITH-DASH")),
            *(("traits", name) for name in ("lowercase_trait", "CUSTOM-DASH", "HW BLANK")),
        ):
            row = (name, "2024-01-01 00:00:00")
            connection.execute(f"INSERT INTO {kind} (name, created_at) VALUES (?, ?)", row)
    source = way[0]
    if source.startswith("http"):
        with reference(old.parent / "again", f"sqlite:///{old}") as placement:
            runs = both_runs(admin, placement.url)
    else:
        runs = both_runs(admin, source)
    assert runs[0] == runs[1]
    assert runs[0].status == 1
    for told in (
        "no name of a resource class: WITH-DASH, lower; ",
        "no name of a trait: CUSTOM-DASH, HW BLANK, lowercase_trait. ",
        "resource class names newer than this program's, taken over as they are: QUBITS; ",
        "trait names newer than this program's, taken over as they are: HW_NEWER, HW_NEWEST_UNUSED",
    ):
        assert told in runs[0].err


def test_references_to_nothing_are_told_at_once_by_both_runs(
    old: Path, admin: Any, database: str
) -> None:
    with contextlib.closing(sqlite3.connect(old)) as connection, connection:
        number = {
            name: row for row, name in connection.execute("SELECT id, name FROM resource_providers")
        }
        for script in (
            "INSERT INTO traits (name) VALUES ('HW BLANK')",
            "UPDATE resource_providers SET parent_provider_id = 881 WHERE name = 'az1-r2-n4-card'",
            "UPDATE resource_providers SET root_provider_id = 882 WHERE name = 'az1-r2-n4-card'",
            "UPDATE inventories SET resource_class_id = 883 WHERE id = 1",
            "UPDATE allocations SET resource_class_id = 884 WHERE id = 1",
            "UPDATE allocations SET resource_provider_id = 885 WHERE id = 2",
            "UPDATE allocations SET used = 0 WHERE id = 3",
            "UPDATE consumers SET project_id = 889 WHERE id = 1",
        ):
            connection.execute(script)
        for table, column in (("traits", "trait"), ("aggregates", "aggregate")):
            connection.execute(
                f"INSERT INTO resource_provider_{table} (resource_provider_id, {column}_id)"
                " VALUES (?, 886)",
                (number["pool"],),
            )
    runs = both_runs(admin, f"sqlite:///{old}")
    assert runs[0] == runs[1]
    assert runs[0].status == 1
    card, pool = number["az1-r2-n4-card"], number["pool"]
    linked = f"resource_provider_id {pool}"
    for told in (
        f"table resource_providers, row id {card}: parent_provider_id is 881, which is not in",
        f"table resource_providers, row id {card}: root_provider_id is 882, which is not in",
        "table inventories, row id 1: resource_class_id is 883, which is not in resource_classes",
        "table allocations, row id 1: resource_class_id is 884",
        "row id 2: resource_provider_id is 885, which is not in resource_providers: left out",
        "table consumers, row id 1: project_id is 889, which is not in projects: taken over",
        "no name of a trait: HW BLANK",
        ", not at least 1",
    ):
        assert told in runs[0].err
    for table, column in (("traits", "trait"), ("aggregates", "aggregate")):
        found = runs[0].err.split(f"table resource_provider_{table}, row ")[1].split(": ")
        assert sorted(found[0].split(", ")) == sorted((linked, f"{column}_id 886"))
        assert found[1].startswith(f"{column}_id is 886")
    store = open_store(database)
    try:
        assert ledger_content(store).providers == {}
    finally:
        store.close()


def test_roots_that_an_old_release_left_out_are_taken_over(old: Path, admin: Any) -> None:
    with contextlib.closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE resource_providers SET root_provider_id = NULL")
    planned, done = both_runs(admin, f"sqlite:///{old}")
    assert (planned.status, done.status) == (0, 0)
    assert "root is not the top of the tree" in done.out


def both_runs(admin: Any, source: str) -> tuple[Any, Any]:
    """The dry run, and the run."""
    words = ("admin", "import", "placement", "--from", source)
    return admin(*words, "--dry-run"), admin(*words)


def test_times_of_the_last_change_are_the_sources(
    way: tuple[str, Placement], admin: Any, database: str
) -> None:
    source, placement = way
    assert admin("admin", "import", "placement", "--from", source).status == 0
    paths = [f"/resource_providers?name={name}" for name in ("pool", "az1-r2-n3")]
    for name in ("az1-r1-n1", "az1-r2-n4-card", "pool", "az1-r1-n2"):
        at = f"/resource_providers/{named(name)}"
        paths += [at, *(f"{at}/{part}" for part in ("inventories", "traits", "allocations"))]
    paths += [f"/allocations/{named(name)}" for name in ("web-1", "web-2", "db-1", "untyped")]
    paths += [f"/traits/{name}" for name in ("CUSTOM_UNUSED", "CUSTOM_FAST", "HW_NEWER")]
    paths += ["/resource_classes/CUSTOM_FPGA"]
    if source.startswith("sqlite"):
        at = f"/resource_providers/{named('az1-r1-n1')}/inventories"
        paths += [f"{at}/VCPU", f"{at}/MEMORY_MB", "/resource_classes/QUBITS"]
    store = open_store(database)
    try:
        asked = TestClient(placement_over(store))
        found = {
            path: (
                httpx.get(f"{placement.url}{path}", headers=HEADERS).headers["last-modified"],
                asked.simulate_get(path, headers=HEADERS).headers["last-modified"],
            )
            for path in paths
        }
    finally:
        store.close()
    assert {path: both for path, both in found.items() if both[0] != both[1]} == {}


def test_a_mirrored_provider_has_the_time_of_its_change(
    old: Path, start: Callable[[str], Placement], admin: Any, database: str
) -> None:
    words = ("admin", "import", "placement", "--from", f"sqlite:///{old}", "--mirror")
    assert admin(*words).status == 0
    with contextlib.closing(sqlite3.connect(old)) as connection, connection:
        connection.execute(
            "UPDATE resource_providers SET generation = generation + 1,"
            " updated_at = '2025-11-11 11:11:11' WHERE name = 'pool'"
        )
        connection.execute(
            "UPDATE inventories SET total = 6000, updated_at = '2025-11-11 11:11:12'"
        )
    assert admin(*words).status == 0
    store = open_store(database)
    try:
        asked = TestClient(placement_over(store))
        at = f"/resource_providers/{named('pool')}"
        for path, seconds in ((at, 11), (f"{at}/inventories", 12)):
            told = asked.simulate_get(path, headers=HEADERS).headers["last-modified"]
            assert told == f"Tue, 11 Nov 2025 11:11:{seconds} GMT"
    finally:
        store.close()
