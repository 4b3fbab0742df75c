"""Of which ensemble an explanation is, who asked and when, so that refusals can be listed."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_NEW = ("ensemble_id", "name", "user_id", "stage", "at", "told")


def _text(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    columns: tuple[sa.Column[Any], ...] = (
        sa.Column("ensemble_id", _text(36)),
        sa.Column("name", _text(255)),
        sa.Column("user_id", _text(255)),
        sa.Column("stage", _text(16), nullable=False, server_default=""),
        sa.Column("at", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("told", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    for column in columns:
        op.add_column("explanations", column)
    stored = sa.table(
        "explanations", *(sa.column(name) for name in ("number", "body", "stage", "at"))
    )
    numbers = op.get_bind().execute(sa.select(stored.c.number)).scalars().all()
    for number in numbers:
        mine = stored.c.number == number
        body = json.loads(op.get_bind().execute(sa.select(stored.c.body).where(mine)).scalar_one())
        said = {"stage": body.get("stage", ""), "at": body.get("computed_at", 0)}
        op.execute(stored.update().where(mine).values(**said))


def downgrade() -> None:
    with op.batch_alter_table("explanations") as table:
        for name in _NEW:
            table.drop_column(name)
