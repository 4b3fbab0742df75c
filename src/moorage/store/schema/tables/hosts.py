"""The tables of hosts: absences, closings, what Nova says of them, and plans to move servers."""

from sqlalchemy import BigInteger, Column, Index, Table

from moorage.store.schema.columns import (
    LONG,
    STATE,
    UUID,
    numbered_with_id,
    partial_index,
    text_column,
)
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

plans = Table(
    "plans",
    metadata,
    *numbered_with_id(),
    Column("kind", STATE, nullable=False),
    Column("state", STATE, nullable=False),
    Column("ended_at", BigInteger, comment="When it was over; NULL while it is not."),
    Column("generation", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
    Index(None, "state"),
    partial_index("ended_at", "ended_at IS NOT NULL", "ix_plans_over"),
    comment="Plans: ordered moves of servers, and how far they are.",
)
