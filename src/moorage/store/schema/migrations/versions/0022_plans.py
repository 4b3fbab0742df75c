"""Plans, which are ordered moves of servers, have a table; it is empty."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from moorage.store.schema.columns import NUMBER, STATE, UUID

revision = "0022_plans"
down_revision = "0021_refers"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")
_OVER: Final = sa.text("ended_at IS NOT NULL")


def upgrade() -> None:
    """Create the table with its indexes."""
    op.create_table(
        "plans",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("kind", STATE, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("ended_at", sa.BigInteger(), comment="When it was over; NULL while it is not."),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", _LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_plans")),
        sa.UniqueConstraint("id", name=op.f("uq_plans_id")),
        comment="Plans: ordered moves of servers, and how far they are.",
    )
    op.create_index(op.f("ix_plans_state"), "plans", ["state"])
    op.create_index(
        op.f("ix_plans_over"),
        "plans",
        ["ended_at"],
        sqlite_where=_OVER,
        postgresql_where=_OVER,
    )
