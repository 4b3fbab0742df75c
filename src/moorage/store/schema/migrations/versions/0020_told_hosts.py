"""What was told last of the state of each host has a table; it is empty."""

import sqlalchemy as sa
from alembic import op

from moorage.store.schema.columns import UUID, text_column

revision = "0020_told_hosts"
down_revision = "0019_session_keys"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "told_hosts",
        sa.Column("provider", UUID, nullable=False),
        sa.Column("told", text_column(32), nullable=False),
        sa.PrimaryKeyConstraint("provider", name=op.f("pk_told_hosts")),
        comment="What the last event said of each host that it did not say is open.",
    )
