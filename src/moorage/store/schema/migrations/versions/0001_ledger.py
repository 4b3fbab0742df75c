"""The ledger: bookings with periods, providers, consumers, ensembles, decisions, change log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# There plain TEXT ends at 64 KB.
TEXT = sa.Text().with_variant(LONGTEXT(), "mysql")


def name(length: int) -> sa.String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def judged_at_the_end() -> list[sa.ForeignKeyConstraint]:
    """What a booking names, where the database can wait with its judgement for the commit's own.

    MariaDB and MySQL cannot; there the commit alone sees to it, with all other writers shut out.
    """
    if op.get_bind().dialect.name == "mysql":
        return []
    return [
        sa.ForeignKeyConstraint(
            ["provider"],
            ["providers.uuid"],
            name="fk_bookings_provider",
            deferrable=True,
            initially="DEFERRED",
        ),
        sa.ForeignKeyConstraint(
            ["resource_class"],
            ["resource_classes.name"],
            name="fk_bookings_resource_class",
            onupdate="CASCADE",
            deferrable=True,
            initially="DEFERRED",
        ),
    ]


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("subject", name(36), nullable=False),
        sa.Column("bookings_only", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("revision", "subject", name="pk_changes"),
        comment="The change log: which providers a revision touched.",
    )
    op.create_table(
        "claims",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("decision_id", name(36), nullable=False),
        sa.Column("state", name(16), nullable=False),
        sa.Column("lapses_at", sa.BigInteger(), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_claims"),
        sa.UniqueConstraint("id", name="uq_claims_id"),
    )
    op.create_index("ix_claims_decision_id", "claims", ["decision_id"], unique=False)
    op.create_index("ix_claims_state_lapses_at", "claims", ["state", "lapses_at"], unique=False)
    op.create_table(
        "consumers",
        sa.Column("uuid", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("user_id", name(255), nullable=False),
        sa.Column("type", name(255), nullable=False),
        sa.Column(
            "generation", sa.BigInteger(), nullable=False, comment="0 while it has holds only"
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_consumers"),
    )
    op.create_index(
        "ix_consumers_project_id_user_id", "consumers", ["project_id", "user_id"], unique=False
    )
    op.create_table(
        "decisions",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("ensemble_id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("state", name(16), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_decisions"),
        sa.UniqueConstraint("id", name="uq_decisions_id"),
    )
    op.create_index("ix_decisions_ensemble_id", "decisions", ["ensemble_id"], unique=False)
    op.create_index("ix_decisions_project_id", "decisions", ["project_id"], unique=False)
    op.create_index(
        "ix_decisions_state_expires_at", "decisions", ["state", "expires_at"], unique=False
    )
    op.create_table(
        "ensembles",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_ensembles"),
        sa.UniqueConstraint("id", name="uq_ensembles_id"),
    )
    op.create_index("ix_ensembles_name", "ensembles", ["name"], unique=False)
    op.create_index("ix_ensembles_project_id", "ensembles", ["project_id"], unique=False)
    op.create_table(
        "explanations",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", name(36), nullable=False),
        sa.Column("project_id", name(255), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("instance", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_explanations"),
        sa.UniqueConstraint("id", name="uq_explanations_id"),
    )
    op.create_table(
        "flavors",
        sa.Column("id", name(255), nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_flavors"),
        sa.UniqueConstraint("name", name="uq_flavors_name"),
    )
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("topology_revision", sa.BigInteger(), nullable=False),
        sa.Column("log_start", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
        comment="One row: the newest revision; the log holds every revision after log_start.",
    )
    op.create_table(
        "members",
        sa.Column("consumer", name(36), nullable=False),
        sa.Column("ensemble_id", name(36), nullable=False),
        sa.Column("tags", TEXT, nullable=False, comment="JSON list: its role's tags"),
        sa.PrimaryKeyConstraint("consumer", name="pk_members"),
        comment="Which consumers are members: by the member's UUID and by its server's.",
    )
    op.create_index("ix_members_ensemble_id", "members", ["ensemble_id"], unique=False)
    op.create_table(
        "providers",
        sa.Column("uuid", name(36), nullable=False),
        sa.Column("name", name(200), nullable=False),
        sa.Column("parent", name(36), nullable=True),
        sa.Column("root", name(36), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["providers.uuid"], name="fk_providers_parent"),
        sa.PrimaryKeyConstraint("uuid", name="pk_providers"),
        sa.UniqueConstraint("name", name="uq_providers_name"),
    )
    op.create_index("ix_providers_parent", "providers", ["parent"], unique=False)
    op.create_index("ix_providers_root", "providers", ["root"], unique=False)
    op.create_table(
        "resource_classes",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("name", name(255), nullable=False),
        sa.Column(
            "place",
            sa.Integer(),
            nullable=True,
            comment="place among the standard classes; NULL: custom",
        ),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_resource_classes"),
        sa.UniqueConstraint("name", name="uq_resource_classes_name"),
    )
    op.create_table(
        "topology",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_topology"),
        comment="One row: the whole topology.",
    )
    op.create_table(
        "traits",
        sa.Column("name", name(255), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_traits"),
    )
    op.create_table(
        "bookings",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("consumer", name(36), nullable=False),
        sa.Column("provider", name(36), nullable=False),
        sa.Column("resource_class", name(255), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("lapses_at", sa.BigInteger(), nullable=False),
        sa.Column("state", name(16), nullable=False),
        sa.Column("binding", name(16), nullable=False),
        sa.Column("decision", name(36), nullable=True),
        sa.ForeignKeyConstraint(["consumer"], ["consumers.uuid"], name="fk_bookings_consumer"),
        *judged_at_the_end(),
        sa.PrimaryKeyConstraint("number", name="pk_bookings"),
        sa.UniqueConstraint(
            "consumer",
            "provider",
            "resource_class",
            "state",
            name="uq_bookings_consumer_provider_resource_class_state",
        ),
    )
    op.create_index("ix_bookings_decision", "bookings", ["decision"], unique=False)
    op.create_index("ix_bookings_end_at", "bookings", ["end_at"], unique=False)
    op.create_index("ix_bookings_lapses_at", "bookings", ["lapses_at"], unique=False)
    op.create_index(
        "ix_bookings_provider_resource_class",
        "bookings",
        ["provider", "resource_class"],
        unique=False,
    )
    op.create_table(
        "inventories",
        sa.Column("provider", name(36), nullable=False),
        sa.Column("resource_class", name(255), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("min_unit", sa.BigInteger(), nullable=False),
        sa.Column("max_unit", sa.BigInteger(), nullable=False),
        sa.Column("step_size", sa.BigInteger(), nullable=False),
        sa.Column("allocation_ratio", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["provider"], ["providers.uuid"], name="fk_inventories_provider"),
        sa.ForeignKeyConstraint(
            ["resource_class"],
            ["resource_classes.name"],
            name="fk_inventories_resource_class",
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("provider", "resource_class", name="pk_inventories"),
    )
    op.create_index(
        "ix_inventories_resource_class", "inventories", ["resource_class"], unique=False
    )
    op.create_table(
        "provider_aggregates",
        sa.Column("provider", name(36), nullable=False),
        sa.Column("aggregate", name(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider"], ["providers.uuid"], name="fk_provider_aggregates_provider"
        ),
        sa.PrimaryKeyConstraint("provider", "aggregate", name="pk_provider_aggregates"),
    )
    op.create_index(
        "ix_provider_aggregates_aggregate", "provider_aggregates", ["aggregate"], unique=False
    )
    op.create_table(
        "provider_traits",
        sa.Column("provider", name(36), nullable=False),
        sa.Column("trait", name(255), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider"], ["providers.uuid"], name="fk_provider_traits_provider"
        ),
        sa.ForeignKeyConstraint(["trait"], ["traits.name"], name="fk_provider_traits_trait"),
        sa.PrimaryKeyConstraint("provider", "trait", name="pk_provider_traits"),
    )
    op.create_index("ix_provider_traits_trait", "provider_traits", ["trait"], unique=False)
    op.bulk_insert(
        sa.table(
            "ledger",
            sa.column("id", sa.Integer),
            sa.column("revision", sa.BigInteger),
            sa.column("topology_revision", sa.BigInteger),
            sa.column("log_start", sa.BigInteger),
        ),
        [{"id": 1, "revision": 0, "topology_revision": 0, "log_start": 0}],
    )


def downgrade() -> None:
    op.drop_index("ix_provider_traits_trait", table_name="provider_traits")
    op.drop_table("provider_traits")
    op.drop_index("ix_provider_aggregates_aggregate", table_name="provider_aggregates")
    op.drop_table("provider_aggregates")
    op.drop_index("ix_inventories_resource_class", table_name="inventories")
    op.drop_table("inventories")
    op.drop_index("ix_bookings_provider_resource_class", table_name="bookings")
    op.drop_index("ix_bookings_lapses_at", table_name="bookings")
    op.drop_index("ix_bookings_end_at", table_name="bookings")
    op.drop_index("ix_bookings_decision", table_name="bookings")
    op.drop_table("bookings")
    op.drop_table("traits")
    op.drop_table("topology")
    op.drop_table("resource_classes")
    op.drop_index("ix_providers_root", table_name="providers")
    op.drop_index("ix_providers_parent", table_name="providers")
    op.drop_table("providers")
    op.drop_index("ix_members_ensemble_id", table_name="members")
    op.drop_table("members")
    op.drop_table("ledger")
    op.drop_table("flavors")
    op.drop_table("explanations")
    op.drop_index("ix_ensembles_project_id", table_name="ensembles")
    op.drop_index("ix_ensembles_name", table_name="ensembles")
    op.drop_table("ensembles")
    op.drop_index("ix_decisions_state_expires_at", table_name="decisions")
    op.drop_index("ix_decisions_project_id", table_name="decisions")
    op.drop_index("ix_decisions_ensemble_id", table_name="decisions")
    op.drop_table("decisions")
    op.drop_index("ix_consumers_project_id_user_id", table_name="consumers")
    op.drop_table("consumers")
    op.drop_index("ix_claims_state_lapses_at", table_name="claims")
    op.drop_index("ix_claims_decision_id", table_name="claims")
    op.drop_table("claims")
    op.drop_table("changes")
