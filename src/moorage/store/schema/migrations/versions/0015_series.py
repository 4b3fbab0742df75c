"""Series: leases that recur."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "series",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False),
        sa.UniqueConstraint("id", name="uq_series_id"),
        comment="What the leases of a series have in common.",
    )
    op.create_index("ix_series_project_id", "series", ["project_id"])
    op.create_index("ix_series_name", "series", ["name"])
    op.add_column(
        "leases",
        sa.Column("series_id", name(36), comment="The series that it is an occurrence of."),
    )
    op.create_index("ix_leases_series_id", "leases", ["series_id"])


def downgrade() -> None:
    op.drop_index("ix_leases_series_id", "leases")
    op.drop_column("leases", "series_id")
    op.drop_table("series")
