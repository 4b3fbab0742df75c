"""From every schema there has been to the newest one, with what was stored there."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DeleteAllocations, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded, ConsumerConflict
from moorage.domain.leases import Lease, LeaseState, Terms, Yielding
from moorage.domain.period import DAY, FOREVER, Period
from moorage.domain.records import RecordKind, RecordPlace
from moorage.store import open_store
from moorage.store.opening import connect
from moorage.store.schema.upgrade import MIGRATIONS
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

OLD = [
    script.revision
    for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()
    if script.nextrev
]
FAR = FOREVER - 1
STORED = f"""
INSERT INTO resource_classes (name, place, updated_at) VALUES ('VCPU', 0, 1), ('CUSTOM_A', NULL, 2);
INSERT INTO traits (name, updated_at) VALUES ('CUSTOM_T', 3);
INSERT INTO providers (uuid, name, parent, root, generation, revision, created_at, updated_at)
    VALUES ('p', 'host', NULL, 'p', 7, 9, 1, 2);
INSERT INTO inventories (provider, resource_class, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio, updated_at) VALUES ('p', 'VCPU', 10, 0, 1, 10, 1, 1.0, 2);
INSERT INTO provider_traits (provider, trait) VALUES ('p', 'CUSTOM_T');
INSERT INTO provider_aggregates (provider, aggregate) VALUES ('p', 'g');
INSERT INTO consumers (uuid, project_id, user_id, type, generation)
    VALUES ('server', 'project', 'user', 'INSTANCE', 3), ('member', 'project', 'user', 'M', 0);
INSERT INTO bookings (consumer, provider, resource_class, amount, start_at, end_at, lapses_at,
    state, binding, decision) VALUES
    ('server', 'p', 'VCPU', 4, 5, {FOREVER}, {FOREVER}, 'allocated', 'bound', NULL),
    ('member', 'p', 'VCPU', 5, 5, {FAR}, {FAR}, 'held', 'bound', 'd');
"""


def config_of(connection: Connection) -> Config:
    """Alembic's, for work inside a transaction."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def store_at(revision: str, database: str) -> None:
    """A database as the program of that schema left it."""
    backend = connect(database)

    def work(connection: Connection) -> None:
        command.upgrade(config_of(connection), revision)
        for statement in filter(str.strip, STORED.split(";")):
            connection.execute(text(statement))

    backend.upgrade(work)
    backend.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("revision", OLD)
def test_what_an_older_schema_held_is_kept_and_judged(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, revision: str
) -> None:
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    if kind != "sqlite":
        database = str(request.getfixturevalue(f"{kind}_databases").empty())
    store_at(revision, database)
    store = open_store(database)
    provider = store.provider("p")
    assert provider.generation == 7
    assert (provider.traits, provider.aggregates) == (frozenset({"CUSTOM_T"}), frozenset({"g"}))
    assert [(one.resource_class, one.capacity) for one in provider.inventories] == [("VCPU", 10)]
    assert {one.name for one in store.resource_classes()} >= {"CUSTOM_A", "MEMORY_MB"}
    found = store.consumer("server")
    assert found is not None
    assert (found[0].generation, found[1][0].amounts) == (3, {"VCPU": 4})
    held = store.bookings(decision="d")
    assert [(one.consumer, one.state) for _, one in held] == [("member", BookingState.HELD)]
    columns = store.snapshot().classes["VCPU"]
    assert (int(columns.used[0]), int(columns.peak[0])) == (4, 9)
    two = ReplaceAllocations(Consumer("new", "project", "user"), {"p": {"VCPU": 2}}, None)
    with pytest.raises(CapacityExceeded):
        store.commit(Changeset((two,)))
    store.commit(Changeset((DeleteAllocations("server"), two)))
    assert int(store.snapshot().classes["VCPU"].used[0]) == 2
    store.close()


def test_who_runs_on_while_tables_are_made_anew_goes_on(tmp_path: Path) -> None:
    """0022 refuses nobody: by the same statements, rows are found and written in either form."""
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    store_at("0021", database)
    store, other = open_store(database), connect(database)
    store.commit(Changeset((DeleteAllocations("server"),)))

    def claim(uuid: str, generation: int | None = None) -> None:
        one = ReplaceAllocations(Consumer(uuid, "project", "user"), {"p": {"VCPU": 1}}, generation)
        store.commit(Changeset((one,)))

    def rows() -> dict[str, list[Any]]:
        found = ("consumers", "inventories", "provider_traits", "provider_aggregates")
        return {name: sorted(map(tuple, other.look(partial(_every_row, name)))) for name in found}

    claim("first")
    before = rows()
    assert all(before.values())
    other.upgrade(lambda connection: command.downgrade(config_of(connection), "0021"))
    assert rows() == before
    claim("second")
    claim("first", 1)
    assert store.snapshot().classes["VCPU"].used[0] == 2
    before = rows()
    other.upgrade(lambda connection: command.upgrade(config_of(connection), "0022"))
    assert rows() == before
    claim("third")
    claim("second", 1)
    with pytest.raises(ConsumerConflict):
        claim("third")
    found = {one.uuid for one, _ in store.usages("project", "user")}
    assert found == {"first", "second", "third"}
    assert store.snapshot().classes["VCPU"].used[0] == 3
    other.close()
    store.close()


def _every_row(table: str, connection: Connection) -> list[Any]:
    return list(connection.execute(text(f"SELECT * FROM {table}")))


def test_leases_that_were_there_are_counted_by_project(tmp_path: Path) -> None:
    """In the order in which they were made; what they were besides is kept."""
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    store_at("0012", database)
    backend = connect(database)
    everybody, few = frozenset(Yielding), frozenset({Yielding.BOUNDED})
    for one in (("first", "p", everybody), ("other", "q", few), ("second", "p", everybody)):
        backend.upgrade(partial(_write_lease, *one))
    backend.close()
    store = open_store(database)
    found = {one.id: (one.handle, one.name) for one in store.leases(project_id=None)}
    assert found == {"first": ("L1", "wéek"), "other": ("L1", "wéek"), "second": ("L2", "wéek")}
    assert [one.id for one in store.exclusive_until_start()] == ["other"]
    store.close()


def _write_lease(
    id_: str, project: str, before_start: frozenset[Yielding], connection: Connection
) -> None:
    terms = Terms(Period(5, 9), before_start=before_start)
    lease = Lease(id_, project, "u", "wéek", "e", "d", terms, LeaseState.PENDING, ())
    body = json.loads(stored_bodies.LEASE.encode(lease))
    del body["serial"]
    connection.execute(
        text(
            "INSERT INTO leases (id, project_id, name, ensemble_id, state, start_at, end_at,"
            " generation, body) VALUES (:id, :project, 'week', 'e', 'pending', 5, 9, 0, :body)"
        ),
        {"id": id_, "project": project, "body": json.dumps(body)},
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_what_was_over_before_is_kept_from_the_upgrade_on(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """Its end is written nowhere, so its time as a record begins anew."""
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    if kind != "sqlite":
        database = str(request.getfixturevalue(f"{kind}_databases").empty())
    store_at("0024", database)
    backend = connect(database)
    backend.upgrade(_write_ended_leases)
    backend.close()
    store = open_store(database)
    now = store.now()
    for before, ids in ((now - DAY, ()), (now + DAY, ("closed", "lapsed"))):
        found = store.records.deletable(RecordKind.LEASE, before, RecordPlace(), 10)
        assert found.ids == ids
    store.close()


def _write_ended_leases(connection: Connection) -> None:
    for serial, state in enumerate(("closed", "lapsed", "active"), 1):
        state_of = LeaseState.ACTIVE if state == "active" else LeaseState.CLOSED
        lease = Lease(state, "p", "u", "l", "e", "d", Terms(Period(5, 9)), state_of, ())
        connection.execute(
            text(
                "INSERT INTO leases (id, project_id, name, ensemble_id, state, start_at, end_at,"
                " generation, serial, body) VALUES (:id, 'p', 'l', :id, :id, 5, 9, 0, :serial,"
                " :body)"
            ),
            {"id": state, "serial": serial, "body": stored_bodies.LEASE.encode(lease)},
        )
