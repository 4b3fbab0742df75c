"""Leases, their reservations and effects; bookings that yield."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LONG = sa.Text().with_variant(LONGTEXT(), "mysql")


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    preemptible: sa.Column[bool] = sa.Column(
        "preemptible", sa.Boolean(), nullable=False, server_default=sa.false()
    )
    op.add_column("bookings", preemptible)
    yields_to = sa.Column(
        "yields_to", name(36), nullable=True, comment="the lease for which it ends early"
    )
    op.add_column("bookings", yields_to)
    declared_end = sa.Column(
        "declared_end",
        sa.BigInteger(),
        nullable=True,
        comment="with yields_to: the end it had before",
    )
    op.add_column("bookings", declared_end)
    some = sa.text("yields_to IS NOT NULL")
    op.create_index(
        "ix_bookings_yields_to",
        "bookings",
        ["yields_to"],
        sqlite_where=some,
        postgresql_where=some,
    )
    op.create_table(
        "leases",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("ensemble_id", name(36), nullable=False),
        sa.Column("state", name(16), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_leases"),
        sa.UniqueConstraint("id", name="uq_leases_id"),
    )
    for column in ("project_id", "name", "ensemble_id"):
        op.create_index(f"ix_leases_{column}", "leases", [column])
    op.create_index("ix_leases_state_start_at", "leases", ["state", "start_at"])
    op.create_table(
        "reservations",
        sa.Column("id", name(36), nullable=False),
        sa.Column("lease_id", name(36), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
        comment="Which lease a reservation is of: servers are drawn by the reservation's id.",
    )
    op.create_index("ix_reservations_lease_id", "reservations", ["lease_id"])
    op.create_table(
        "effects",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("subject", name(36), nullable=False),
        sa.Column("state", name(16), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("body", LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_effects"),
        sa.UniqueConstraint("id", name="uq_effects_id"),
        comment="What must happen at an instant; done ones are kept as a record.",
    )
    op.create_index("ix_effects_subject", "effects", ["subject"])
    op.create_index("ix_effects_state_not_before", "effects", ["state", "not_before"])


def downgrade() -> None:
    for table in ("effects", "reservations", "leases"):
        op.drop_table(table)
    op.drop_index("ix_bookings_yields_to", table_name="bookings")
    for column in ("declared_end", "yields_to", "preemptible"):
        op.drop_column("bookings", column)
