"""Whom a lease that has not begun does not let use its places until then."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_LET_IN = ("bounded", "preemptible")
_AHEAD = ("pending", "starting")


def upgrade() -> None:
    text = sa.String(32).with_variant(sa.String(32, collation="C"), "postgresql")
    comment = "Whom it does not let use its places until it begins; empty once it has."
    column = sa.Column("shuts_out", text, nullable=False, server_default="", comment=comment)
    op.add_column("leases", column)
    op.create_index("ix_leases_shuts_out", "leases", ["shuts_out"])
    stored = sa.table("leases", *(sa.column(name) for name in ("id", "state", "body", "shuts_out")))
    ahead = sa.select(stored.c.id, stored.c.body).where(stored.c.state.in_(_AHEAD))
    for row in op.get_bind().execute(ahead).all():
        let_in = json.loads(row.body)["terms"].get("before_start", _LET_IN)
        shut_out = " ".join(one for one in _LET_IN if one not in let_in)
        if shut_out:
            op.execute(stored.update().where(stored.c.id == row.id).values(shuts_out=shut_out))


def downgrade() -> None:
    op.drop_index("ix_leases_shuts_out", "leases")
    with op.batch_alter_table("leases") as table:
        table.drop_column("shuts_out")
