"""The schema of the first release, 0.1.0, on SQLite, PostgreSQL and MariaDB.

A copy of `tables` as they were then, and what only one database has: on PostgreSQL the function
that takes a commit's locks, on SQLite the guard of `ledger.revision`. To create the metadata of
`tables` itself would need no copy, but would make the tables of today: every later migration
would meet its own columns already. So nothing here is imported from Moorage, and nothing here
changes any more. Later migrations are operations of Alembic's.

The order of columns is the one in which they were added. Revisions are named in full: bare
numbers, 0001 to 0025, and 0001_ledger are databases made before the release, which `upgrade.py`
refuses. There are no downgrades: to go back, an operator restores a backup.
"""

from typing import Any, Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001_release"
down_revision = None
branch_labels = None
depends_on = None

_METADATA: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _text(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


_COUNT: Final = sa.BigInteger()
_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")
_NAME: Final = _text(255)
_STATE: Final = _text(16)
_UUID: Final = _text(36)

_Parts = list[sa.schema.SchemaItem]


def _table(
    name: str,
    *parts: sa.schema.SchemaItem,
    **options: Any,  # noqa: ANN401 - as SQLAlchemy takes them
) -> sa.Table:
    return sa.Table(name, _METADATA, *parts, **options)


def _required(
    kind: sa.types.TypeEngine[Any],
    *names: str,
    **more: Any,  # noqa: ANN401 - as SQLAlchemy takes them
) -> _Parts:
    return [sa.Column(name, kind, nullable=False, **more) for name in names]


def _numbered() -> sa.Column[int]:
    """A running number; SQLite counts by itself only in a column of exactly this type."""
    return sa.Column("number", _COUNT.with_variant(sa.Integer(), "sqlite"), primary_key=True)


def _numbered_with_id() -> _Parts:
    return [_numbered(), *_required(_UUID, "id", unique=True)]


def _partly(column: str, where: str, name: str | None = None) -> sa.Index:
    """An index of some rows only, where the database knows such."""
    condition = sa.text(where)
    return sa.Index(name, column, sqlite_where=condition, postgresql_where=condition)


def _ended_at() -> _Parts:
    comment = "When it was over; NULL while it is not."
    column: sa.Column[int] = sa.Column("ended_at", _COUNT, comment=comment)
    return [column, _partly("ended_at", "ended_at IS NOT NULL")]


_LEDGER: Final = _table(
    "ledger",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    *_required(_COUNT, "revision", "topology_revision", "log_start"),
    *_required(_COUNT, "exclusive_revision", "events_start", "events_start_at", server_default="0"),
    comment="One row: the newest revision; the log holds every revision after log_start.",
)
_table(
    "changes",
    sa.Column("revision", _COUNT, primary_key=True, autoincrement=False),
    sa.Column("subject", _UUID, primary_key=True),
    *_required(sa.Boolean(), "bookings_only"),
    sa.Column("at", _COUNT),
    sqlite_with_rowid=False,
    comment="The change log: which providers a revision touched.",
)
_table(
    "resource_classes",
    _numbered(),
    *_required(_NAME, "name", unique=True),
    sa.Column("place", sa.Integer, comment="place among the standard classes; NULL: custom"),
    *_required(_COUNT, "updated_at"),
)
_table("traits", sa.Column("name", _NAME, primary_key=True), *_required(_COUNT, "updated_at"))
_table(
    "providers",
    sa.Column("uuid", _UUID, primary_key=True),
    *_required(_text(200), "name", unique=True),
    sa.Column("parent", _UUID),
    *_required(_UUID, "root", index=True),
    *_required(_COUNT, "generation", "revision", "created_at", "updated_at"),
)
_table(
    "inventories",
    sa.Column("provider", _UUID, primary_key=True),
    sa.Column("resource_class", _NAME, primary_key=True),
    *_required(_COUNT, "total", "reserved", "min_unit", "max_unit", "step_size"),
    *_required(sa.Double(), "allocation_ratio"),
    *_required(_COUNT, "updated_at"),
    sqlite_with_rowid=False,
)
_table(
    "provider_traits",
    sa.Column("provider", _UUID, primary_key=True),
    sa.Column("trait", _NAME, primary_key=True),
    sqlite_with_rowid=False,
)
_table(
    "provider_aggregates",
    sa.Column("provider", _UUID, primary_key=True),
    sa.Column("aggregate", _UUID, primary_key=True),
    sqlite_with_rowid=False,
)
_table(
    "consumers",
    sa.Column("uuid", _UUID, primary_key=True),
    *_required(_NAME, "project_id", "user_id", "type"),
    *_required(_COUNT, "generation", comment="0 while it has holds only"),
    sa.Index(None, "project_id", "user_id"),
    sqlite_with_rowid=False,
)
_table(
    "bookings",
    _numbered(),
    *_required(_UUID, "consumer", "provider"),
    *_required(_NAME, "resource_class"),
    *_required(_COUNT, "amount", "start_at", "end_at", "lapses_at"),
    *_required(_STATE, "state", "binding"),
    sa.Column("decision", _UUID),
    *_required(sa.Boolean(), "preemptible", server_default=sa.false()),
    sa.Column("yields_to", _UUID, comment="the lease for which it ends early"),
    sa.Column(
        "declared_end",
        _COUNT,
        comment="where it ends early, for a lease or as its host goes: the end it had before",
    ),
    *_required(sa.Integer(), "priority", server_default="0"),
    sa.UniqueConstraint("consumer", "provider", "resource_class", "state"),
    sa.Index(None, "provider", "resource_class"),
    _partly("lapses_at", "state <> 'allocated'"),
    _partly("end_at", "state <> 'allocated'"),
    _partly("decision", "decision IS NOT NULL"),
    _partly("yields_to", "yields_to IS NOT NULL"),
    _partly("end_at", "end_at < 9223372036854775807", "ix_bookings_declared_ends"),
)
_table(
    "ensembles",
    *_numbered_with_id(),
    *_required(_NAME, "project_id", "name", index=True),
    *_required(_COUNT, "generation"),
    *_required(_LONG, "body"),
)
_table(
    "exclusive_ensembles",
    sa.Column("ensemble_id", _UUID, primary_key=True),
    comment="Ensembles that keep others out: with a required policy of the type exclusive.",
)
_table(
    "members",
    sa.Column("consumer", _UUID, primary_key=True),
    *_required(_UUID, "ensemble_id", index=True),
    *_required(_LONG, "tags", comment="JSON list: its role's tags"),
    comment="Which consumers are members: by the member's UUID and by its server's.",
)
_table(
    "decisions",
    *_numbered_with_id(),
    *_required(_UUID, "ensemble_id", index=True),
    *_required(_NAME, "project_id", index=True),
    *_required(_STATE, "state"),
    *_required(_COUNT, "expires_at", "generation"),
    *_required(_LONG, "body"),
    *_ended_at(),
    sa.Index(None, "state", "expires_at"),
)
_table(
    "claims",
    *_numbered_with_id(),
    *_required(_UUID, "decision_id", index=True),
    *_required(_STATE, "state"),
    *_required(_COUNT, "lapses_at"),
    *_required(_LONG, "body"),
    sa.Index(None, "state", "lapses_at"),
)
_table(
    "leases",
    *_numbered_with_id(),
    *_required(_NAME, "project_id", "name", index=True),
    *_required(_UUID, "ensemble_id", index=True),
    *_required(_STATE, "state"),
    *_required(_COUNT, "start_at", "end_at", "generation"),
    *_required(_LONG, "body"),
    *_required(_COUNT, "serial", server_default="0"),
    sa.Column("series_id", _UUID, index=True, comment="The series that it is an occurrence of."),
    *_required(
        _text(32),
        "shuts_out",
        server_default="",
        index=True,
        comment="Whom it does not let use its places until it begins; empty once it has.",
    ),
    *_ended_at(),
    sa.Index(None, "state", "start_at"),
    sa.Index(None, "project_id", "serial", unique=True),
)
_table(
    "lease_serials",
    sa.Column("project_id", _NAME, primary_key=True),
    *_required(_COUNT, "last"),
    comment="The highest number of a project's leases that are deleted: none is given twice.",
)
_table(
    "reservations",
    sa.Column("id", _UUID, primary_key=True),
    *_required(_UUID, "lease_id", index=True),
    comment="Which lease a reservation is of: servers are drawn by the reservation's id.",
)
_table(
    "effects",
    *_numbered_with_id(),
    *_required(_UUID, "subject"),
    *_required(_STATE, "state"),
    *_required(_COUNT, "not_before", "attempts"),
    *_required(_LONG, "body"),
    *_required(_text(8), "lane", server_default="life"),
    *_ended_at(),
    sa.Index(None, "subject", "state"),
    sa.Index(None, "state", "lane", "not_before"),
    comment="What must happen at an instant; done ones are kept as a record.",
)
_table(
    "capacity_windows",
    *_numbered_with_id(),
    *_required(_LONG, "body"),
    comment="Planned changes of capacity: when hosts are away.",
)
_table(
    "away",
    sa.Column("provider", _UUID, primary_key=True),
    sa.Column("window_id", _UUID, primary_key=True, index=True),
    *_required(_COUNT, "start_at", "end_at"),
    comment="The hosts of capacity windows: root providers without capacity from start to end.",
)
_table(
    "waitlist",
    *_numbered_with_id(),
    *_required(_NAME, "project_id", index=True),
    *_required(_STATE, "state"),
    *_required(_COUNT, "priority", "entered_at", "start_at", "end_at", "generation"),
    *_required(_LONG, "body"),
    *_ended_at(),
    sa.Index(None, "state", "priority", "entered_at"),
    comment="Leases that wait, from their first window's start to their last one's end.",
)
_table(
    "templates",
    _numbered(),
    *_required(_UUID, "id"),
    *_required(_COUNT, "version"),
    *_required(_NAME, "project_id", "name"),
    *_required(sa.Boolean(), "shared", "newest"),
    *_required(_LONG, "body"),
    sa.UniqueConstraint("id", "version"),
    sa.Index(None, "project_id", "name"),
    comment="One row a version.",
)
_table(
    "reservables",
    _numbered(),
    *_required(_STATE, "kind"),
    *_required(_UUID, "id"),
    *_required(_NAME, "name"),
    *_required(_LONG, "body"),
    sa.UniqueConstraint("kind", "id"),
    sa.UniqueConstraint("kind", "name"),
    comment="Hosts and addresses that are offered for reservation.",
)
_table(
    "series",
    *_numbered_with_id(),
    *_required(_NAME, "project_id", "name", index=True),
    *_required(_COUNT, "generation"),
    *_required(_LONG, "body"),
    comment="What the leases of a series have in common.",
)
_table(
    "quotas",
    sa.Column("project_id", _NAME, primary_key=True),
    *_required(_LONG, "body"),
    comment="What an operator has said of a project; for others the defaults hold.",
)
_table(
    "lease_uses",
    _numbered(),
    *_required(_UUID, "lease_id", index=True),
    *_required(_NAME, "project_id"),
    *_required(_COUNT, "units", "start_at", "end_at"),
    sa.Index(None, "project_id", "end_at"),
    comment="What leases count for: a row for each part of a lease that has one size.",
)
_table(
    "explanations",
    *_numbered_with_id(),
    *_required(_NAME, "project_id"),
    *_required(_LONG, "body", "instance"),
    sa.Column("request", _UUID),
    sa.Column("digest", _text(64)),
    sa.Column("ensemble_id", _UUID),
    sa.Column("name", _NAME),
    sa.Column("user_id", _NAME),
    *_required(_STATE, "stage", server_default=""),
    *_required(_COUNT, "at", server_default="0"),
    *_required(sa.Boolean(), "told", server_default=sa.false()),
    sa.Index(None, "project_id", "request"),
)
_table(
    "flavors",
    sa.Column("id", _NAME, primary_key=True),
    *_required(_NAME, "name", unique=True),
    *_required(_LONG, "body"),
)
_table(
    "topology",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    *_required(_LONG, "body"),
    comment="One row: the whole topology.",
)
_table(
    "events",
    sa.Column("position", _COUNT, primary_key=True, autoincrement=False),
    *_required(_UUID, "id"),
    *_required(_text(48), "type"),
    *_required(_NAME, "project_id", "subject"),
    *_required(_COUNT, "at", "generation"),
    *_required(_LONG, "body"),
    sa.Index(None, "project_id", "position"),
    sa.Index(None, "subject", "position"),
    comment="What happened: the commit's revision and a number in it make the position.",
)
_table(
    "subscriptions",
    *_numbered_with_id(),
    *_required(_NAME, "project_id", index=True),
    *_required(_NAME, "name"),
    *_required(sa.Boolean(), "thresholds"),
    *_required(_COUNT, "reached"),
    *_required(_COUNT, "not_before", index=True),
    *_required(_COUNT, "generation"),
    *_required(_LONG, "body"),
)
_table(
    "dead_letters",
    *_numbered_with_id(),
    *_required(_UUID, "subscription_id"),
    *_required(sa.Boolean(), "queued"),
    *_required(_LONG, "body"),
    sa.Index(None, "subscription_id", "queued"),
    comment="Events that were given up for a subscription.",
)

_BEGIN: Final = """
CREATE FUNCTION moorage_begin(
    alone boolean, ids text[], ensembles text[], consumers text[], providers text[], relied text[],
    OUT number bigint, OUT instant bigint
) LANGUAGE plpgsql AS $$
DECLARE
    key bigint;
    mine boolean;
    everybody CONSTANT bigint := hashtextextended('moorage', 0);
    who text[] := consumers;
    standing text[];
BEGIN
    -- Each query below sees what was committed while the locks before it were waited for.
    IF alone THEN
        PERFORM pg_advisory_xact_lock(everybody);
    ELSE
        -- `IS NULL` makes an expression of the lock; nothing hangs on the answer.
        IF pg_advisory_xact_lock_shared(everybody) IS NULL THEN NULL; END IF;
        IF cardinality(ids) + cardinality(ensembles) > 0 THEN
            FOR key IN
                SELECT DISTINCT hashtextextended(one, 3)
                FROM unnest(ids || ensembles) AS one ORDER BY 1
            LOOP
                PERFORM pg_advisory_xact_lock(key);
            END LOOP;
            who := who || ARRAY(
                SELECT consumer::text FROM members WHERE ensemble_id = ANY (ensembles)
            );
        END IF;
        IF cardinality(who) = 1 THEN
            IF pg_advisory_xact_lock(hashtextextended(who[1], 1)) IS NULL THEN NULL; END IF;
        ELSIF cardinality(who) > 1 THEN
            FOR key IN
                SELECT DISTINCT hashtextextended(one, 1) FROM unnest(who) AS one ORDER BY 1
            LOOP
                PERFORM pg_advisory_xact_lock(key);
            END LOOP;
        END IF;
        standing := providers;
        IF cardinality(who) > 0 THEN
            standing := standing || ARRAY(
                SELECT provider::text FROM bookings WHERE consumer = ANY (who)
            );
        END IF;
        IF cardinality(standing) = 1 AND cardinality(relied) = 0 THEN
            IF pg_advisory_xact_lock(hashtextextended(standing[1], 2)) IS NULL THEN NULL; END IF;
        ELSIF cardinality(standing) + cardinality(relied) > 0 THEN
            FOR key, mine IN
                SELECT hashtextextended(one, 2), bool_or(written) FROM (
                    SELECT unnest(standing) AS one, true AS written
                    UNION ALL
                    SELECT unnest(relied), false
                ) AS every GROUP BY 1 ORDER BY 1
            LOOP
                IF mine THEN
                    PERFORM pg_advisory_xact_lock(key);
                ELSE
                    PERFORM pg_advisory_xact_lock_shared(key);
                END IF;
            END LOOP;
        END IF;
    END IF;
    number := pg_current_xact_id()::text::bigint;
    instant := extract(epoch FROM clock_timestamp()) * 1000000;
END
$$
"""
"""Takes a commit's locks in one round trip. An expression costs a hundredth of what a query inside
a function does, so one consumer on one provider takes the short way."""

_REVISION_GUARD: Final = (
    "CREATE TRIGGER ledger_revision BEFORE UPDATE OF revision ON ledger BEGIN"
    " SELECT RAISE(ABORT, 'a newer version of Moorage has changed the schema'); END"
)
"""SQLite's newest revision is the last one in the log: the column is not used, and stays -1."""


def upgrade() -> None:
    """Create the tables and the ledger's one row."""
    connection = op.get_bind()
    database = connection.dialect.name
    _METADATA.create_all(connection, checkfirst=False)
    newest = -1 if database == "sqlite" else 0
    op.execute(_LEDGER.insert().values(id=1, revision=newest, topology_revision=0, log_start=0))
    if database == "sqlite":
        op.execute(_REVISION_GUARD)
    if database == "postgresql":
        connection.exec_driver_sql(_BEGIN)
        # Every commit moves rows of providers: with room on their page no index has to follow.
        op.execute("ALTER TABLE providers SET (fillfactor = 70)")
