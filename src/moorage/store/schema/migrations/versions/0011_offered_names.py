"""Classes and traits say whether a tenant's server has brought them in.

Of those that there are nobody knows: they stay, as an operator's do.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011_offered_names"
down_revision = "0010_offered_shares"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    for table in ("resource_classes", "traits"):
        column: sa.Column[bool] = sa.Column(
            "offered", sa.Boolean(), nullable=False, server_default=sa.false()
        )
        op.add_column(table, column)
