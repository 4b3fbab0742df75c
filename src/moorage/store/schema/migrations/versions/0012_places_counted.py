"""The index by which a project's held places are counted has all that the count reads.

Each decision counts them; without it, that looked at every row of them, and sorted the consumers.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0012_places_counted"
down_revision = "0011_offered_names"
branch_labels = None
depends_on = None

_TAKEN: Final = sa.text("state IN ('held', 'claimed')")
_COLUMNS: Final = ["holder", "consumer", "state", "lapses_at", "end_at"]


def upgrade() -> None:
    """Make the new index, and drop the one of the holders alone."""
    op.create_index(
        op.f("ix_bookings_places_taken"),
        "bookings",
        _COLUMNS,
        sqlite_where=_TAKEN,
        postgresql_where=_TAKEN,
    )
    op.drop_index(op.f("ix_bookings_holder"), table_name="bookings")
