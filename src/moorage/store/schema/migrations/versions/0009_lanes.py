"""Lanes of effects; which allocations have an end."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

HAS_END = "end_at < 9223372036854775807"


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("effects", sa.Column("lane", name(8), nullable=False, server_default="life"))
    op.drop_index("ix_effects_state_not_before", table_name="effects")
    op.create_index("ix_effects_state_lane_not_before", "effects", ["state", "lane", "not_before"])
    op.create_index(
        "ix_bookings_declared_ends",
        "bookings",
        ["end_at"],
        sqlite_where=sa.text(HAS_END),
        postgresql_where=sa.text(HAS_END),
    )


def downgrade() -> None:
    op.drop_index("ix_bookings_declared_ends", table_name="bookings")
    op.drop_index("ix_effects_state_lane_not_before", table_name="effects")
    op.drop_column("effects", "lane")
    op.create_index("ix_effects_state_not_before", "effects", ["state", "not_before"])
