"""The table `member_servers`: which servers are members of which ensembles.

Filled from the stored ensembles.
"""

import json
from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0002_member_servers"
down_revision = "0001_release"
branch_labels = None
depends_on = None

_UUID: Final = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
_BODIES: Final = sa.text("SELECT id, body FROM ensembles")


def upgrade() -> None:
    """Make the table and fill it."""
    table = op.create_table(
        "member_servers",
        sa.Column("ensemble_id", _UUID, nullable=False),
        sa.Column("server", _UUID, nullable=False),
        sa.PrimaryKeyConstraint("ensemble_id", "server", name=op.f("pk_member_servers")),
        comment="The servers of every ensemble's members.",
    )
    op.create_index(op.f("ix_member_servers_server"), "member_servers", ["server"])
    rows = [
        {"ensemble_id": id_, "server": server}
        for id_, body in op.get_bind().execute(_BODIES)
        for server in sorted({one["server_id"] for one in json.loads(body)["members"]} - {None})
    ]
    if rows:
        op.bulk_insert(table, rows)
