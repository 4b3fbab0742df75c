"""An index of the bookings that keep places for members without a server.

A project's held places are counted at each decision; without it, all bookings of all of its
consumers were read.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0003_places_taken"
down_revision = "0002_member_servers"
branch_labels = None
depends_on = None

_TAKEN: Final = sa.text("state IN ('held', 'claimed')")


def upgrade() -> None:
    """Make the index."""
    op.create_index(
        op.f("ix_bookings_consumer"),
        "bookings",
        ["consumer"],
        sqlite_where=_TAKEN,
        postgresql_where=_TAKEN,
    )
