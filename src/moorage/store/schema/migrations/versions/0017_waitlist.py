"""The waitlist: leases that wait for what they need."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "waitlist",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("state", name(16), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("entered_at", sa.BigInteger(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False),
        sa.UniqueConstraint("id", name="uq_waitlist_id"),
        comment="Leases that wait, from their first window's start to their last one's end.",
    )
    op.create_index("ix_waitlist_project_id", "waitlist", ["project_id"])
    op.create_index(
        "ix_waitlist_state_priority_entered_at", "waitlist", ["state", "priority", "entered_at"]
    )


def downgrade() -> None:
    op.drop_table("waitlist")
