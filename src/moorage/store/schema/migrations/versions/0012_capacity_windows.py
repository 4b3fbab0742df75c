"""Planned changes of capacity: when hosts are away."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "capacity_windows",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("id", name(36), nullable=False),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False),
        sa.UniqueConstraint("id", name="uq_capacity_windows_id"),
        comment="Planned changes of capacity: when hosts are away.",
    )
    op.create_table(
        "away",
        sa.Column("provider", name(36), primary_key=True),
        sa.Column("window_id", name(36), primary_key=True),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        comment="The hosts of capacity windows: root providers without capacity from start to end.",
    )
    op.create_index("ix_away_window_id", "away", ["window_id"])


def downgrade() -> None:
    op.drop_table("away")
    op.drop_table("capacity_windows")
