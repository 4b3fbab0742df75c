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
from tests.servers.reference import Placement, named

from moorage.cli.admin import placement_over
from moorage.store import open_store

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
