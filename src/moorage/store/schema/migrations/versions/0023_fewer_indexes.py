"""Indexes that every host pays for as it comes, and that hardly anybody asked by, are dropped.

Which hosts have a class or a trait is asked when a custom one is renamed or deleted; reading the
table takes milliseconds then. Nobody asked for the hosts of an aggregate here: snapshots answer
that. Children have their parent's root, so whether a provider has any is asked by that index.

A host with 80 traits touched 80 places in the index of traits when it was loaded.
"""

from typing import Final

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_DROPPED: Final = (
    ("providers", "parent"),
    ("inventories", "resource_class"),
    ("provider_traits", "trait"),
    ("provider_aggregates", "aggregate"),
)


def upgrade() -> None:
    for table, column in _DROPPED:
        op.drop_index(f"ix_{table}_{column}", table_name=table)


def downgrade() -> None:
    for table, column in _DROPPED:
        op.create_index(f"ix_{table}_{column}", table, [column])
