"""Shares say whether they wait to be accepted: of these a project has a limited number.

Those that there are have it from their ensembles.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0010_offered_shares"
down_revision = "0009_event_starts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, and say of each share whether it waits."""
    comment = "whether it waits to be accepted"
    column: sa.Column[bool] = sa.Column(
        "offered", sa.Boolean(), nullable=False, server_default=sa.true(), comment=comment
    )
    op.add_column("shares", column)
    shares = sa.table("shares", sa.column("id"), sa.column("ensemble_id"), sa.column("offered"))
    ensembles = sa.table("ensembles", sa.column("id"), sa.column("body"))
    connection = op.get_bind()
    having = ensembles.c.id.in_(sa.select(shares.c.ensemble_id))
    for body in connection.scalars(sa.select(ensembles.c.body).where(having)).all():
        for role in json.loads(body)["roles"]:
            share = role.get("share")
            if share is not None and share["state"] != "offered":
                answered = shares.update().where(shares.c.id == share["id"])
                connection.execute(answered.values(offered=sa.false()))
