"""Decisions have a record of what they were made from; those that there are have none."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0018_decision_records"
down_revision = "0017_host_records"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("decisions", sa.Column("record", _LONG, comment="what it was made from; JSON"))
    op.add_column("decisions", sa.Column("actor", _LONG, comment="who made it; JSON"))
