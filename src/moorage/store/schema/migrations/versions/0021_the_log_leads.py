"""SQLite: the newest revision is the last one in the log, which lies in the order of its key.

A row counted up by every commit was one more page to write. So the log gets a row for the newest
revision, if that commit touched no provider.

Whoever still runs an older version must not count on from the number that stood there, for nobody
would see its commits: it is refused. What it reads stays right: by a number that is never its own
it looks at the log each time.
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_COLUMNS = """(
    revision BIGINT NOT NULL,
    subject VARCHAR(36) NOT NULL,
    bookings_only BOOLEAN NOT NULL,
    at BIGINT,
    CONSTRAINT pk_changes PRIMARY KEY (revision, subject)
)"""


def upgrade() -> None:
    if _is_sqlite():
        _make_anew("WITHOUT ROWID")
        op.execute(
            "INSERT INTO changes (revision, subject, bookings_only)"
            " SELECT revision, '', 1 FROM ledger"
            " WHERE revision > (SELECT coalesce(max(revision), 0) FROM changes)"
        )
        op.execute("UPDATE ledger SET revision = -1")
        op.execute(
            "CREATE TRIGGER ledger_revision BEFORE UPDATE OF revision ON ledger BEGIN"
            " SELECT RAISE(ABORT, 'a newer version of Moorage has changed the schema'); END"
        )


def downgrade() -> None:
    if _is_sqlite():
        op.execute("DROP TRIGGER ledger_revision")
        op.execute("UPDATE ledger SET revision = (SELECT coalesce(max(revision), 0) FROM changes)")
        op.execute("DELETE FROM changes WHERE subject = ''")
        _make_anew("")


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def _make_anew(kind: str) -> None:
    op.execute("ALTER TABLE changes RENAME TO changes_before")
    op.execute(f"CREATE TABLE changes {_COLUMNS} {kind}")
    op.execute(
        "INSERT INTO changes (revision, subject, bookings_only, at)"
        " SELECT revision, subject, bookings_only, at FROM changes_before"
    )
    op.execute("DROP TABLE changes_before")
