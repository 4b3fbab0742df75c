"""Quotas, and what leases count for."""

import json

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "quotas",
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_quotas"),
        comment="What an operator has said of a project; for others the defaults hold.",
    )
    op.create_table(
        "lease_uses",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lease_id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_lease_uses"),
        comment="What leases count for: a row for each part of a lease that has one size.",
    )
    op.create_index("ix_lease_uses_lease_id", "lease_uses", ["lease_id"])
    op.create_index("ix_lease_uses_project_id_end_at", "lease_uses", ["project_id", "end_at"])
    count_what_is_leased(op.get_bind())


def count_what_is_leased(connection: sa.Connection) -> None:
    """Leases granted before count with the members that they have now."""
    found = connection.execute(
        sa.text(
            "SELECT l.id, l.project_id, l.start_at, l.end_at, l.body, e.body AS ensemble"
            " FROM leases l JOIN ensembles e ON e.id = l.ensemble_id WHERE l.state <> 'closed'"
        )
    ).all()
    for row in found:
        units = len(json.loads(row.ensemble)["members"])
        body = json.dumps(json.loads(row.body) | {"units": units}, ensure_ascii=False)
        connection.execute(
            sa.text("UPDATE leases SET body = :body WHERE id = :id"), {"body": body, "id": row.id}
        )
        connection.execute(
            sa.text(
                "INSERT INTO lease_uses (lease_id, project_id, units, start_at, end_at)"
                " VALUES (:id, :project, :units, :start, :end)"
            ),
            {
                "id": row.id,
                "project": row.project_id,
                "units": units,
                "start": row.start_at,
                "end": row.end_at,
            },
        )


def downgrade() -> None:
    op.drop_table("lease_uses")
    op.drop_table("quotas")
