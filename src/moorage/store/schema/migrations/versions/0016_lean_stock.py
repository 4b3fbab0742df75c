"""No foreign keys at all: what a row names is judged by the commit, under its locks; see 0004.

PostgreSQL looked up, and locked, each name once more, row by row.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

KEYS = {
    "inventories": {
        "provider": ("providers", "uuid"),
        "resource_class": ("resource_classes", "name"),
    },
    "provider_traits": {"provider": ("providers", "uuid"), "trait": ("traits", "name")},
    "provider_aggregates": {"provider": ("providers", "uuid")},
    "providers": {"parent": ("providers", "uuid")},
}
"""By table and column, in an order in which SQLite can make the tables anew."""


def upgrade() -> None:
    for name, keys in KEYS.items():
        with op.batch_alter_table(name) as table:
            for column in keys:
                table.drop_constraint(f"fk_{name}_{column}", type_="foreignkey")


def downgrade() -> None:
    for name, keys in reversed(KEYS.items()):
        with op.batch_alter_table(name) as table:
            for column, (parent, key) in keys.items():
                follows = "CASCADE" if parent == "resource_classes" else None
                table.create_foreign_key(
                    f"fk_{name}_{column}", parent, [column], [key], onupdate=follows
                )
