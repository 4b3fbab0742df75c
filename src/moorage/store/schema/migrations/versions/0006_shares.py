"""The table `shares`: which ensembles have roles of which other projects.

No ensemble has any yet.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0006_shares"
down_revision = "0005_server_providers"
branch_labels = None
depends_on = None

_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_UUID: Final = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
_PROJECT: Final = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "shares",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _UUID, nullable=False),
        sa.Column("ensemble_id", _UUID, nullable=False),
        sa.Column("project_id", _PROJECT, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_shares")),
        sa.UniqueConstraint("id", name=op.f("uq_shares_id")),
        comment="The roles of ensembles that belong to other projects; the ensembles say the rest.",
    )
    op.create_index(op.f("ix_shares_ensemble_id"), "shares", ["ensemble_id"])
    op.create_index(op.f("ix_shares_project_id"), "shares", ["project_id"])
