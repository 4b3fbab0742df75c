"""Violations have a table; ensembles say whether they were judged as they are, and who wrote them.

Those that there are were not: the first service of this version judges all of them.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from moorage.store.schema.columns import NAME, NUMBER, UUID, text_column

revision = "0015_violations"
down_revision = "0014_bodies_of_classes"
branch_labels = None
depends_on = None

_LONG: Final = sa.Text().with_variant(LONGTEXT(), "mysql")
_UNJUDGED: Final = sa.text("unjudged = true")
_OVER: Final = sa.text("ended_at IS NOT NULL")


def upgrade() -> None:
    """Create the table, and add the column with its index."""
    op.create_table(
        "violations",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("ensemble_id", UUID, nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("subject", text_column(320), nullable=False, comment="see Violation.key"),
        sa.Column("type", text_column(64), nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), comment="When it was over; NULL while it is not."),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", _LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_violations")),
        sa.UniqueConstraint("id", name=op.f("uq_violations_id")),
        comment=(
            "Broken policies of ensembles and members out of service, while it lasts and after."
        ),
    )
    for columns in (["project_id"], ["ensemble_id", "ended_at"]):
        name = op.f(f"ix_violations_{'_'.join(columns)}")
        op.create_index(name, "violations", columns)
    op.create_index(
        op.f("ix_violations_over"),
        "violations",
        ["ended_at"],
        sqlite_where=_OVER,
        postgresql_where=_OVER,
    )
    op.add_column(
        "ensembles",
        sa.Column("unjudged", sa.Boolean(), nullable=False, server_default=sa.true()),
    )
    for table in ("ensembles", "topology"):
        op.add_column(table, sa.Column("actor", _LONG, comment="who wrote it last; JSON"))
    op.create_index(
        op.f("ix_ensembles_unjudged"),
        "ensembles",
        ["unjudged"],
        sqlite_where=_UNJUDGED,
        postgresql_where=_UNJUDGED,
    )
