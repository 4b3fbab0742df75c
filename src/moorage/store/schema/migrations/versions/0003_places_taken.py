"""The column `holder` of bookings, and an index by it of those that keep places.

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

_PROJECT: Final = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
_TAKEN: Final = sa.text("state IN ('held', 'claimed')")
_FILL: Final = sa.text(
    "UPDATE bookings SET holder ="
    " (SELECT project_id FROM consumers WHERE consumers.uuid = bookings.consumer)"
    " WHERE state <> 'allocated'"
)


def upgrade() -> None:
    """Make the column, fill it from the consumers, and make the index."""
    comment = "of a hold: the project for whose member it keeps the place"
    op.add_column("bookings", sa.Column("holder", _PROJECT, comment=comment))
    op.execute(_FILL)
    op.create_index(
        op.f("ix_bookings_holder"),
        "bookings",
        ["holder"],
        sqlite_where=_TAKEN,
        postgresql_where=_TAKEN,
    )
