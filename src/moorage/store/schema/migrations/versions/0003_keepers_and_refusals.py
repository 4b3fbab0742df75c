"""Ensembles that keep others out, and which request an explanation answered."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column(
        "ledger",
        sa.Column("keepers_revision", sa.BigInteger(), nullable=False, server_default="0"),
    )
    keepers = op.create_table(
        "keepers",
        sa.Column("ensemble_id", name(36), nullable=False),
        sa.PrimaryKeyConstraint("ensemble_id", name="pk_keepers"),
        comment="Ensembles that keep others out: with a required policy of the type exclusive.",
    )
    stored = sa.table("ensembles", sa.column("id", sa.String), sa.column("body", sa.Text))
    found = [
        {"ensemble_id": row.id}
        for row in op.get_bind().execute(sa.select(stored.c.id, stored.c.body)).all()
        if any(
            one["type"] == "exclusive" and one.get("weight") is None
            for one in json.loads(row.body)["policies"]
        )
    ]
    if found:
        op.bulk_insert(keepers, found)
    op.add_column("explanations", sa.Column("request", name(36), nullable=True))
    op.add_column("explanations", sa.Column("digest", name(64), nullable=True))
    op.create_index(
        "ix_explanations_project_id_request",
        "explanations",
        ["project_id", "request"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index("ix_explanations_project_id_request", table_name="explanations")
    op.drop_column("explanations", "digest")
    op.drop_column("explanations", "request")
    op.drop_table("keepers")
    op.drop_column("ledger", "keepers_revision")
