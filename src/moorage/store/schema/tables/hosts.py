"""The tables of hosts: when they are away, who has closed them, and what Nova says of them."""

from sqlalchemy import BigInteger, Column, Table

from moorage.store.schema.columns import LONG, UUID, numbered_with_id, text_column
from moorage.store.schema.naming import metadata

capacity_windows = Table(
    "capacity_windows",
    metadata,
    *numbered_with_id(),
    Column("body", LONG, nullable=False),
    comment="Planned changes of capacity: when hosts are away.",
)

away = Table(
    "away",
    metadata,
    Column("provider", UUID, primary_key=True),
    Column("window_id", UUID, primary_key=True, index=True),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    comment="The hosts of capacity windows: root providers without capacity from start to end.",
)

told_hosts = Table(
    "told_hosts",
    metadata,
    Column("provider", UUID, primary_key=True),
    Column("told", text_column(32), nullable=False),
    comment="What the last event said of each host that it did not say is open.",
)

host_records = Table(
    "host_records",
    metadata,
    Column("provider", UUID, primary_key=True),
    Column("closing", LONG, comment="By an operator; NULL: none has closed it."),
    Column("service", LONG, comment="Nova's word; NULL: its service is enabled and up."),
    comment="Hosts that an operator has closed, or that Nova says do not serve.",
)
