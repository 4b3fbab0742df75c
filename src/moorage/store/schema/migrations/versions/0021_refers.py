"""Ensembles say whether their policies refer to others; so those few are found by an index."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0021_refers"
down_revision = "0020_told_hosts"
branch_labels = None
depends_on = None

_REFERS: Final = sa.text("refers = true")


def upgrade() -> None:
    """Add the column, as it is for the ensembles that there are, and its index."""
    refers = sa.Column(
        "refers", sa.Boolean, nullable=False, server_default=sa.false(), comment="to others"
    )
    op.add_column("ensembles", refers)
    op.execute("""UPDATE ensembles SET refers = true WHERE body LIKE '%"ensemble:%'""")
    op.create_index(
        "ix_ensembles_refers",
        "ensembles",
        ["project_id", "refers"],
        sqlite_where=_REFERS,
        postgresql_where=_REFERS,
    )
