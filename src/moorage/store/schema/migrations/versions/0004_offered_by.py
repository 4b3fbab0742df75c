"""The column `offered_by` of providers: the consumer that offers a server provider."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0004_offered_by"
down_revision = "0003_places_taken"
branch_labels = None
depends_on = None

_UUID: Final = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
_OFFERED: Final = sa.text("offered_by IS NOT NULL")


def upgrade() -> None:
    """Make the column, empty, and an index of those that have one."""
    comment = "of a server provider: the consumer that offers it"
    op.add_column("providers", sa.Column("offered_by", _UUID, comment=comment))
    op.create_index(
        op.f("ix_providers_offered_by"),
        "providers",
        ["offered_by"],
        sqlite_where=_OFFERED,
        postgresql_where=_OFFERED,
    )
