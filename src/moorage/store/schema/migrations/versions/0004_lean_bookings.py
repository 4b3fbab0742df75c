"""Bookings without foreign keys, and without index entries for what never lapses.

What a booking names is judged by the commit, under its locks. Each key cost PostgreSQL a query
per row; each entry of the three indexes, which nobody looks an allocation up by, as much again.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEYS = ("consumer", "provider", "resource_class")
LATE: dict[str, Any] = {"deferrable": True, "initially": "DEFERRED"}
PARTIAL = {
    "lapses_at": sa.text("state <> 'allocated'"),
    "end_at": sa.text("state <> 'allocated'"),
    "decision": sa.text("decision IS NOT NULL"),
}


def upgrade() -> None:
    database = op.get_bind().dialect.name
    if database == "mysql":  # has never had the other two, and knows no partial indexes
        op.drop_constraint("fk_bookings_consumer", "bookings", type_="foreignkey")
        return
    with op.batch_alter_table("bookings") as table:
        for column in KEYS:
            table.drop_constraint(f"fk_bookings_{column}", type_="foreignkey")
    for column, where in PARTIAL.items():
        name = f"ix_bookings_{column}"
        op.drop_index(name, table_name="bookings")
        op.create_index(name, "bookings", [column], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    if op.get_bind().dialect.name == "mysql":
        op.create_foreign_key(
            "fk_bookings_consumer", "bookings", "consumers", ["consumer"], ["uuid"]
        )
        return
    for column in PARTIAL:
        name = f"ix_bookings_{column}"
        op.drop_index(name, table_name="bookings")
        op.create_index(name, "bookings", [column])
    with op.batch_alter_table("bookings") as table:
        table.create_foreign_key("fk_bookings_consumer", "consumers", ["consumer"], ["uuid"])
        table.create_foreign_key(
            "fk_bookings_provider", "providers", ["provider"], ["uuid"], **LATE
        )
        table.create_foreign_key(
            "fk_bookings_resource_class",
            "resource_classes",
            ["resource_class"],
            ["name"],
            onupdate="CASCADE",
            **LATE,
        )
