"""Leases and offers counted by project: what people call them by."""

import json
from collections import defaultdict

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "leases", sa.Column("serial", sa.BigInteger(), nullable=False, server_default="0")
    )
    count_those_there_are(op.get_bind())
    op.create_index("ix_leases_project_id_serial", "leases", ["project_id", "serial"], unique=True)


def count_those_there_are(connection: sa.Connection) -> None:
    """In the order in which they were made."""
    last: defaultdict[str, int] = defaultdict(int)
    found = connection.execute(
        sa.text("SELECT id, project_id, body FROM leases ORDER BY number")
    ).all()
    for row in found:
        last[row.project_id] += 1
        serial = last[row.project_id]
        body = json.dumps(json.loads(row.body) | {"serial": serial}, ensure_ascii=False)
        connection.execute(
            sa.text("UPDATE leases SET serial = :serial, body = :body WHERE id = :id"),
            {"serial": serial, "body": body, "id": row.id},
        )


def downgrade() -> None:
    op.drop_index("ix_leases_project_id_serial", table_name="leases")
    op.drop_column("leases", "serial")
