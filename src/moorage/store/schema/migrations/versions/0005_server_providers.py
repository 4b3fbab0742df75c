"""The table `server_providers`: whose the providers with `offered_by` are, and who may use them."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0005_server_providers"
down_revision = "0004_offered_by"
branch_labels = None
depends_on = None

_UUID: Final = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")


def upgrade() -> None:
    """Make the table, empty."""
    table = "server_providers"
    op.create_table(
        table,
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _UUID, nullable=False),
        sa.Column("server_id", _UUID, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", _LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f(f"pk_{table}")),
        sa.UniqueConstraint("id", name=op.f(f"uq_{table}_id")),
        sa.UniqueConstraint("server_id", name=op.f(f"uq_{table}_server_id")),
        comment="Whose the providers with offered_by are, and who may use them.",
    )
