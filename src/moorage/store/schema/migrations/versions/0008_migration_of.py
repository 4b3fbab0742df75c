"""Consumers say of which server they are the migration.

Moves that are under way at the upgrade are not known: their reverts are judged as other writes.
"""

import sqlalchemy as sa
from alembic import op

from moorage.store.schema.columns import UUID

revision = "0008_migration_of"
down_revision = "0007_added_bookings"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    comment = "the server whose allocations it took over to move it"
    op.add_column("consumers", sa.Column("migration_of", UUID, nullable=True, comment=comment))
