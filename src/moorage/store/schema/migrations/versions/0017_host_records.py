"""Hosts that operators close, and that Nova says do not serve, have a table; it is empty."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from moorage.store.schema.columns import UUID

revision = "0017_host_records"
down_revision = "0016_actors"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "host_records",
        sa.Column("provider", UUID, nullable=False),
        sa.Column("closing", _LONG, comment="By an operator; NULL: none has closed it."),
        sa.Column("service", _LONG, comment="Nova's word; NULL: its service is enabled and up."),
        sa.PrimaryKeyConstraint("provider", name=op.f("pk_host_records")),
        comment="Hosts that an operator has closed, or that Nova says do not serve.",
    )
