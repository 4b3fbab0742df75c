"""Hosts and addresses that are offered for reservation."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "reservables",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", name(16), nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_reservables"),
        sa.UniqueConstraint("kind", "id", name="uq_reservables_kind_id"),
        sa.UniqueConstraint("kind", "name", name="uq_reservables_kind_name"),
        comment="Hosts and addresses that are offered for reservation.",
    )


def downgrade() -> None:
    op.drop_table("reservables")
