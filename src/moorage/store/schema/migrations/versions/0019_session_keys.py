"""The ledger has a random key, which seals browsers' sessions for all workers and replicas."""

import base64
import secrets

import sqlalchemy as sa
from alembic import op

from moorage.store.schema.columns import text_column

revision = "0019_session_keys"
down_revision = "0018_decision_records"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, and make the key."""
    table = op.create_table(
        "session_keys",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", text_column(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session_keys")),
        comment="One row: what seals the sessions of browsers, unless a file has the key.",
    )
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")
    op.bulk_insert(table, [{"id": 1, "key": key}])
