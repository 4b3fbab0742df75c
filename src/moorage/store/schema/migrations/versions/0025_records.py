"""When leases, decisions, effects and entries of the waitlist were over, so that they can go."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_OVER = {
    "leases": ("closed", "lapsed"),
    "decisions": ("closed", "expired", "released", "superseded"),
    "effects": ("done", "failed"),
    "waitlist": ("granted", "expired", "cancelled", "failed"),
}


def upgrade() -> None:
    op.create_table(
        "lease_serials",
        sa.Column(
            "project_id",
            sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql"),
            primary_key=True,
        ),
        sa.Column("last", sa.BigInteger(), nullable=False),
        comment="The highest number of a project's leases that are deleted: none is given twice.",
    )
    only = sa.text("ended_at IS NOT NULL")
    now = time.time_ns() // 1000
    for name, states in _OVER.items():
        comment = "When it was over; NULL while it is not."
        op.add_column(name, sa.Column("ended_at", sa.BigInteger(), comment=comment))
        # When that was is written in no column: what is over already is kept as if it were by now.
        table = sa.table(name, sa.column("state"), sa.column("ended_at"))
        op.execute(table.update().where(table.c.state.in_(states)).values(ended_at=now))
        op.create_index(
            f"ix_{name}_ended_at",
            name,
            ["ended_at"],
            sqlite_where=only,
            postgresql_where=only,
        )


def downgrade() -> None:
    for name in _OVER:
        op.drop_index(f"ix_{name}_ended_at", table_name=name)
        op.drop_column(name, "ended_at")
    op.drop_table("lease_serials")
