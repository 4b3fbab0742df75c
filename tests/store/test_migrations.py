"""The migrations make the tables of the code; schemas that no migration begins from are refused."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutBookings,
    PutEnsemble,
    PutEvent,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.ensembles import Ensemble, Role
from moorage.domain.errors import BadConfiguration, ConsumerConflict
from moorage.domain.events import BEGINNING, EVERYTHING, DerivedEvent
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.quotas import QuotaName
from moorage.domain.shares import Share, ShareState
from moorage.store import open_store
from moorage.store.opening import connect
from moorage.store.schema import tables
from moorage.store.schema.upgrade import KNOWN, MIGRATIONS, NEWEST, upgrade


def test_migrations_make_exactly_the_tables_of_the_code(new_database_url: str) -> None:
    backend = connect(new_database_url)

    def work(connection: Connection) -> None:
        upgrade(connection, now=1)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []

    backend.upgrade(work)
    backend.close()


def test_defaults_partial_indexes_and_rowids_are_those_of_the_code(tmp_path: Path) -> None:
    """What `compare_metadata` does not look at."""
    open_store(f"sqlite:///{tmp_path / 'migrated.db'}").close()
    engine = create_engine(f"sqlite:///{tmp_path / 'created.db'}")
    tables.metadata.create_all(engine)
    engine.dispose()

    def found(name: str) -> set[tuple[object, ...]]:
        made = "FROM sqlite_master AS made"
        ours = "WHERE made.type <> 'trigger' AND made.tbl_name <> 'alembic_version'"
        ends = "CASE made.type WHEN 'index' THEN made.sql ELSE made.sql LIKE '%WITHOUT ROWID%' END"
        column = 'one.name, one.type, one."notnull", one.dflt_value, one.pk'
        columns = f"SELECT made.name, {column} {made}, pragma_table_info(made.name) AS one {ours}"
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            return {
                *connection.execute(f"SELECT made.name, {ends} {made} {ours}"),
                *connection.execute(columns),
            }

    created = found("created.db")
    assert found("migrated.db") == created
    assert {("consumers", 1), ("bookings", 0)} <= created
    assert ("effects", "lane", "VARCHAR(8)", 1, "'life'", 0) in created


def _without_violations(operations: Operations) -> None:
    """As before `0015_violations`."""
    operations.drop_table("violations")
    operations.drop_index("ix_ensembles_unjudged", "ensembles")
    operations.drop_column("ensembles", "unjudged")
    operations.drop_column("ensembles", "actor")
    operations.drop_column("topology", "actor")


def without_actors(operations: Operations) -> None:
    """As before `0016_actors`."""
    operations.drop_table("plans")
    operations.drop_index("ix_ensembles_refers", "ensembles")
    operations.drop_column("ensembles", "refers")
    operations.drop_table("told_hosts")
    operations.drop_table("session_keys")
    operations.drop_table("host_records")
    operations.drop_column("decisions", "record")
    operations.drop_column("decisions", "actor")
    operations.drop_column("events", "actor")
    operations.drop_column("changes", "actor")


def test_events_and_commits_of_before_have_no_actor(new_database_url: str) -> None:
    store, other = open_store(new_database_url), connect(new_database_url)
    told = PutEvent(DerivedEvent("lease.active", "p", "before", 0))
    before = store.commit(Changeset((CreateProvider("one", "host-1"), told))).revision

    def as_before(connection: Connection) -> None:
        operations = Operations(MigrationContext.configure(connection))
        without_actors(operations)
        operations.execute("UPDATE alembic_version SET version_num = '0015_violations'")

    other.upgrade(as_before)
    other.close()
    store.close()
    again = open_store(new_database_url)
    ann = Actor("ann", "p", "req-1")
    told = PutEvent(DerivedEvent("lease.active", "p", "after", 0))
    again.by(ann).commit(Changeset((CreateProvider("two", "host-2"), told)))
    events = again.event_log.page("p", BEGINNING, EVERYTHING, 9).events
    assert [(one.subject, one.actor) for one in events] == [("before", UNKNOWN), ("after", ann)]
    assert again.last_actor(["one"], before - 1) == UNKNOWN
    assert again.last_actor(["one", "two"], before - 1) == ann
    assert again.last_actor(["one"], before) is None
    again.close()


def test_places_held_before_are_counted_after(new_database_url: str) -> None:
    store, other = open_store(new_database_url), connect(new_database_url)
    stock = PutInventories("p", (Inventory("VCPU", 10),), None)
    member = Consumer("member", "project", "user")
    period = Period(0, FOREVER)
    held = Booking("member", "p", {"VCPU": 1}, period, BookingState.HELD, lapses_at=FOREVER)
    store.commit(Changeset((CreateProvider("p", "host"), stock, PutBookings(member, (held,)))))

    def as_before(connection: Connection) -> None:
        operations = Operations(MigrationContext.configure(connection))
        _without_violations(operations)
        without_actors(operations)
        operations.drop_table("request_mix")
        operations.drop_table("server_providers")
        operations.drop_index("ix_providers_offered_by", "providers")
        operations.drop_column("providers", "offered_by")
        operations.drop_column("resource_classes", "offered")
        operations.drop_column("traits", "offered")
        operations.drop_table("event_starts")
        operations.drop_table("shares")
        operations.drop_column("changes", "added")
        operations.drop_column("consumers", "migration_of")
        operations.drop_index("ix_bookings_places_taken", "bookings")
        operations.drop_column("bookings", "holder")
        operations.execute("UPDATE alembic_version SET version_num = '0002_member_servers'")

    other.upgrade(as_before)
    other.close()
    store.close()
    again = open_store(new_database_url)
    assert (again.held("project"), again.held("other"), again.held(None)) == (1, 0, 1)
    again.close()


def test_shares_say_afterwards_whether_they_wait(new_database_url: str) -> None:
    store, other = open_store(new_database_url), connect(new_database_url)
    states = {"a": ShareState.OFFERED, "b": ShareState.ACCEPTED, "c": ShareState.REVOKED}
    roles = tuple(
        Role(name, {"VCPU": 1}, share=Share(f"share {name}", "q", state))
        for name, state in states.items()
    )
    store.commit(Changeset((PutEnsemble(Ensemble("e", "p", "u", "shop", roles, ()), None),)))

    def as_before(connection: Connection) -> None:
        operations = Operations(MigrationContext.configure(connection))
        _without_violations(operations)
        without_actors(operations)
        operations.drop_table("request_mix")
        operations.drop_column("shares", "offered")
        operations.drop_column("resource_classes", "offered")
        operations.drop_column("traits", "offered")
        operations.drop_index("ix_bookings_places_taken", "bookings")
        operations.create_index("ix_bookings_holder", "bookings", ["holder"])
        operations.execute("UPDATE alembic_version SET version_num = '0009_event_starts'")

    other.upgrade(as_before)
    other.close()
    store.close()
    again = open_store(new_database_url)
    assert again.stored("p")[QuotaName.SHARES_GIVEN] == 3
    assert again.stored("q")[QuotaName.SHARES_RECEIVED] == 1
    again.close()


@pytest.mark.parametrize("revision", ["0001", "0025", "0001_ledger"])
def test_a_schema_from_before_the_first_release_is_refused(
    new_database_url: str, revision: str
) -> None:
    store, other = open_store(new_database_url), connect(new_database_url)
    stamp = text("UPDATE alembic_version SET version_num = :revision")

    def work(connection: Connection) -> None:
        connection.execute(stamp, {"revision": revision})

    other.upgrade(work)
    other.close()
    words = rf"schema is {revision}, from before the first release, .*: use a new database"
    for look in (store.check_schema, lambda: open_store(new_database_url)):
        with pytest.raises(BadConfiguration, match=words):
            look()
    store.close()


def test_a_process_goes_on_while_tables_are_made_anew_beside_it(tmp_path: Path) -> None:
    """By the statements it has prepared, rows are found and written in the new tables."""
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    store, other = open_store(database), connect(database)
    stock = PutInventories("p", (Inventory("VCPU", 10),), None)
    store.commit(Changeset((CreateProvider("p", "host"), stock)))

    def claim(uuid: str, generation: int | None = None) -> None:
        one = ReplaceAllocations(Consumer(uuid, "project", "user"), {"p": {"VCPU": 1}}, generation)
        store.commit(Changeset((one,)))

    def make_anew(connection: Connection) -> None:
        operations = Operations(MigrationContext.configure(connection))
        for name in ("consumers", "inventories", "bookings"):
            with operations.batch_alter_table(name, recreate="always"):
                pass

    claim("first")
    other.upgrade(make_anew)
    claim("second")
    claim("first", 1)
    with pytest.raises(ConsumerConflict):
        claim("second")
    assert {one.uuid for one, _ in store.usages("project", "user")} == {"first", "second"}
    assert store.snapshot().classes["VCPU"].used[0] == 2
    other.close()
    store.close()


def test_revisions_are_named_like_their_files() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    assert {one.revision for one in scripts.walk_revisions()} == set(KNOWN)
    assert scripts.get_heads() == [NEWEST]


def test_only_an_upgrade_loads_alembic(tmp_path: Path) -> None:
    code = (
        "import sys, moorage.app\nfrom moorage.store import open_store\n"
        "open_store(sys.argv[1]).close()\nprint('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/ledger.db"]
    said = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        for _ in range(2)
    ]
    assert said == ["True", "False"]
