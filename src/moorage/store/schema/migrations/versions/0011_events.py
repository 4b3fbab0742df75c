"""Events, subscriptions, and what could not be delivered to them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LONG = sa.Text().with_variant(LONGTEXT(), "mysql")
NEW = ("events_start", "events_start_at")


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    for column in NEW:
        op.add_column(
            "ledger", sa.Column(column, sa.BigInteger(), nullable=False, server_default="0")
        )
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("type", name(48), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("subject", name(255), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", LONG, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_events"),
        comment="What happened: the commit's revision and a number in it make the position.",
    )
    op.create_index("ix_events_project_id_position", "events", ["project_id", "position"])
    op.create_index("ix_events_subject_position", "events", ["subject", "position"])
    op.create_table(
        "subscriptions",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("thresholds", sa.Boolean(), nullable=False),
        sa.Column("reached", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_subscriptions"),
        sa.UniqueConstraint("id", name="uq_subscriptions_id"),
    )
    op.create_index("ix_subscriptions_project_id", "subscriptions", ["project_id"])
    op.create_index("ix_subscriptions_not_before", "subscriptions", ["not_before"])
    op.create_table(
        "dead_letters",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("subscription_id", name(36), nullable=False),
        sa.Column("queued", sa.Boolean(), nullable=False),
        sa.Column("body", LONG, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_dead_letters"),
        sa.UniqueConstraint("id", name="uq_dead_letters_id"),
        comment="Events that were given up for a subscription.",
    )
    op.create_index(
        "ix_dead_letters_subscription_id_queued", "dead_letters", ["subscription_id", "queued"]
    )


def downgrade() -> None:
    for table in ("dead_letters", "subscriptions", "events"):
        op.drop_table(table)
    for column in NEW:
        op.drop_column("ledger", column)
