"""Templates, a row a version."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "templates",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("newest", sa.Boolean(), nullable=False),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_templates"),
        sa.UniqueConstraint("id", "version", name="uq_templates_id_version"),
        comment="One row a version.",
    )
    op.create_index("ix_templates_project_id_name", "templates", ["project_id", "name"])


def downgrade() -> None:
    op.drop_table("templates")
