"""SQLite: tables whose key is their name are kept in the order of it, without a number of a row.

Such a table was two B-trees, one by that number and one from the key to it, so each new row wrote
one page more, and the fleet's file held each key twice. `providers` stays as it was: with three
indexes, the key repeated in their entries costs more than it saves. So do `bookings`.

Whoever still runs an older version is not harmed: no statement ever named that number.
"""

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_UUID: Final = sa.String(36)
_NAME: Final = sa.String(255)
_COUNT: Final = sa.BigInteger()
_TABLES: Final[dict[str, dict[str, Any]]] = {
    "consumers": {
        "uuid": _UUID,
        "project_id": _NAME,
        "user_id": _NAME,
        "type": _NAME,
        "generation": _COUNT,
    },
    "inventories": {
        "provider": _UUID,
        "resource_class": _NAME,
        "total": _COUNT,
        "reserved": _COUNT,
        "min_unit": _COUNT,
        "max_unit": _COUNT,
        "step_size": _COUNT,
        "allocation_ratio": sa.Double(),
        "updated_at": _COUNT,
    },
    "provider_traits": {"provider": _UUID, "trait": _NAME},
    "provider_aggregates": {"provider": _UUID, "aggregate": _UUID},
}
_KEYS: Final = {
    "consumers": ["uuid"],
    "inventories": ["provider", "resource_class"],
    "provider_traits": ["provider", "trait"],
    "provider_aggregates": ["provider", "aggregate"],
}
_INDEXED: Final = {
    "consumers": ["project_id", "user_id"],
    "inventories": ["resource_class"],
    "provider_traits": ["trait"],
    "provider_aggregates": ["aggregate"],
}


def upgrade() -> None:
    _make_anew(numbered=False)


def downgrade() -> None:
    _make_anew(numbered=True)


def _make_anew(*, numbered: bool) -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    for name, columns in _TABLES.items():
        before = sa.table(f"{name}_before", *map(sa.column, columns))
        op.rename_table(name, before.name)
        table = op.create_table(
            name,
            *(sa.Column(column, kind, nullable=False) for column, kind in columns.items()),
            sa.PrimaryKeyConstraint(*_KEYS[name], name=f"pk_{name}"),
            sqlite_with_rowid=numbered,
        )
        # In the order of the key, so that pages are filled one after the other.
        every = sa.select(before).order_by(*(before.c[column] for column in _KEYS[name]))
        op.execute(table.insert().from_select(list(columns), every))
        op.drop_table(before.name)  # with its index, whose name is free then
        op.create_index(f"ix_{name}_{'_'.join(_INDEXED[name])}", name, _INDEXED[name])
