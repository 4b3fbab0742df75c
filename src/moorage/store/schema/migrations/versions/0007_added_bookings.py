"""The change log says which bookings a commit added.

Older entries do not have them: a process that follows these loads the providers from the tables.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0007_added_bookings"
down_revision = "0006_shares"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")


def upgrade() -> None:
    """Add the column."""
    comment = "the bookings it added, if it did nothing else; JSON"
    op.add_column("changes", sa.Column("added", _LONG, nullable=True, comment=comment))
