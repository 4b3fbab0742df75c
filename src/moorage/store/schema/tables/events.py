"""The tables of events and of those who hear of them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Table

from moorage.store.schema.columns import LONG, NAME, UUID, numbered_with_id, text_column
from moorage.store.schema.naming import metadata

events = Table(
    "events",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("id", UUID, nullable=False),
    Column("type", text_column(48), nullable=False),
    Column("project_id", NAME, nullable=False),
    Column("subject", NAME, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
    Column("actor", LONG, comment="who caused it; JSON"),
    Index(None, "project_id", "position"),
    Index(None, "subject", "position"),
    comment="What happened: the commit's revision and a number in it make the position.",
)

event_starts = Table(
    "event_starts",
    metadata,
    Column("project_id", NAME, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    comment="Up to where events of a project are deleted because it had too many.",
)

subscriptions = Table(
    "subscriptions",
    metadata,
    *numbered_with_id(),
    Column("project_id", NAME, nullable=False, index=True),
    Column("name", NAME, nullable=False),
    Column("thresholds", Boolean, nullable=False),
    Column("reached", BigInteger, nullable=False),
    Column("not_before", BigInteger, nullable=False, index=True),
    Column("generation", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    *numbered_with_id(),
    Column("subscription_id", UUID, nullable=False),
    Column("queued", Boolean, nullable=False),
    Column("body", LONG, nullable=False),
    Index(None, "subscription_id", "queued"),
    comment="Events that were given up for a subscription.",
)
