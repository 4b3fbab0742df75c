"""The table `event_starts`: up to where a project's events are deleted because it had too many.

Until now the oldest were deleted whosever they were, and the ledger's own start says so.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0009_event_starts"
down_revision = "0008_migration_of"
branch_labels = None
depends_on = None

_PROJECT: Final = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "event_starts",
        sa.Column("project_id", _PROJECT, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_event_starts")),
        comment="Up to where events of a project are deleted because it had too many.",
    )
