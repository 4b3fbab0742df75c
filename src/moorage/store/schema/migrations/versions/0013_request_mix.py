"""The mix of requests that an operator states has a table; there is none so far."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0013_request_mix"
down_revision = "0012_places_counted"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "request_mix",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", _LONG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request_mix")),
        comment="One row, or none: what others are expected to ask for, as an operator stated it.",
    )
