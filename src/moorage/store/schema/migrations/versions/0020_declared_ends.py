"""Say what the column of declared ends holds now: a host that goes ends stays early, too."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_BEFORE = "with yields_to: the end it had before"
_AFTER = "where it ends early, for a lease or as its host goes: the end it had before"


def upgrade() -> None:
    _say(_AFTER, instead_of=_BEFORE)


def downgrade() -> None:
    _say(_BEFORE, instead_of=_AFTER)


def _say(comment: str, *, instead_of: str) -> None:
    if op.get_bind().dialect.supports_comments:  # SQLite keeps none
        op.alter_column(
            "bookings",
            "declared_end",
            comment=comment,
            existing_type=sa.BigInteger(),
            existing_nullable=True,
            existing_comment=instead_of,
        )
