"""Events and the change log keep who caused them; of what was written before nobody knows."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0016_actors"
down_revision = "0015_violations"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("events", sa.Column("actor", _LONG, comment="who caused it; JSON"))
    op.add_column("changes", sa.Column("actor", _LONG, comment="who committed it; JSON"))
