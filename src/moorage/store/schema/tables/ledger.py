"""The tables of the ledger, in SQLAlchemy Core.

Keys are the names of the wire (UUIDs, class and trait names), so that a write needs no
look-up of surrogate ids. Instants are BIGINT microseconds since the epoch; "never" is
`FOREVER`, not NULL, so that every comparison is plain arithmetic. What is searched is a
column; what is only carried is JSON in `body`.

No foreign keys: the commit judges what a row names, under its locks. A database would ask for each
of them once more, row by row, and PostgreSQL lock what is named.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    false,
    true,
)

from moorage.store.schema.columns import (
    LONG,
    NAME,
    NUMBER,
    ONCE,
    STATE,
    UUID,
    numbered_with_id,
    partial_index,
    text_column,
)
from moorage.store.schema.naming import metadata

HAS_END = "end_at < 9223372036854775807"
"""Bookings with a declared end. As a text: what a query asks must look like what is indexed."""

PLACE_TAKEN = "state IN ('held', 'claimed')"
"""Bookings that keep a place for a member without a server, for quotas. As a text, as above."""

UNJUDGED = "unjudged = true"
REFERS = "refers = true"
"""Ensembles whose compliance is to be judged. As a text, as above."""

ledger = Table(
    "ledger",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),  # MariaDB's; elsewhere the log tells it
    Column("topology_revision", BigInteger, nullable=False),
    Column("exclusive_revision", BigInteger, nullable=False, server_default="0"),
    Column("log_start", BigInteger, nullable=False),
    Column("events_start", BigInteger, nullable=False, server_default="0"),
    Column("events_start_at", BigInteger, nullable=False, server_default="0"),
    comment="One row: the newest revision; the log holds every revision after log_start.",
)

changes = Table(
    "changes",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("subject", UUID, primary_key=True),
    Column("bookings_only", Boolean, nullable=False),
    Column("at", BigInteger),
    Column("added", LONG, comment="the bookings it added, if it did nothing else; JSON"),
    Column("actor", LONG, comment="who committed it; JSON"),
    sqlite_with_rowid=False,
    comment="The change log: which providers a revision touched.",
)

resource_classes = Table(
    "resource_classes",
    metadata,
    Column("number", NUMBER, primary_key=True),
    Column("name", NAME, nullable=False, unique=True),
    Column("place", Integer, comment="place among the standard classes; NULL: custom"),
    Column("updated_at", BigInteger, nullable=False),
    Column("offered", Boolean, nullable=False, server_default=false()),
)

traits = Table(
    "traits",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("updated_at", BigInteger, nullable=False),
    Column("offered", Boolean, nullable=False, server_default=false()),
)

providers = Table(
    "providers",
    metadata,
    Column("uuid", UUID, primary_key=True),
    Column("name", text_column(200), nullable=False, unique=True),
    Column("parent", UUID),
    Column("root", UUID, nullable=False, index=True),
    Column("offered_by", UUID, comment="of a server provider: the consumer that offers it"),
    Column("generation", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    partial_index("offered_by", "offered_by IS NOT NULL"),
)

server_providers = Table(
    "server_providers",
    metadata,
    *numbered_with_id(),
    Column("server_id", UUID, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
    comment="Whose the providers with offered_by are, and who may use them.",
)

inventories = Table(
    "inventories",
    metadata,
    Column("provider", UUID, primary_key=True),
    Column("resource_class", NAME, primary_key=True),
    Column("total", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    Column("min_unit", BigInteger, nullable=False),
    Column("max_unit", BigInteger, nullable=False),
    Column("step_size", BigInteger, nullable=False),
    Column("allocation_ratio", Double, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

provider_traits = Table(
    "provider_traits",
    metadata,
    Column("provider", UUID, primary_key=True),
    Column("trait", NAME, primary_key=True),
    sqlite_with_rowid=False,
)

provider_aggregates = Table(
    "provider_aggregates",
    metadata,
    Column("provider", UUID, primary_key=True),
    Column("aggregate", UUID, primary_key=True),
    sqlite_with_rowid=False,
)

consumers = Table(
    "consumers",
    metadata,
    Column("uuid", UUID, primary_key=True),
    Column("project_id", NAME, nullable=False),
    Column("user_id", NAME, nullable=False),
    Column("type", NAME, nullable=False),
    Column("generation", BigInteger, nullable=False, comment="0 while it has holds only"),
    Column("migration_of", UUID, comment="the server whose allocations it took over to move it"),
    Index(None, "project_id", "user_id"),
    sqlite_with_rowid=False,
)

bookings = Table(
    "bookings",
    metadata,
    Column("number", NUMBER, primary_key=True),
    Column("consumer", UUID, nullable=False),
    Column("provider", UUID, nullable=False),
    Column("resource_class", NAME, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Column("lapses_at", BigInteger, nullable=False),
    Column("state", STATE, nullable=False),
    Column("binding", text_column(16), nullable=False),
    Column("decision", UUID),
    Column("preemptible", Boolean, nullable=False, server_default=false()),
    Column("yields_to", UUID, comment="the lease for which it ends early"),
    Column(
        "declared_end",
        BigInteger,
        comment="where it ends early, for a lease or as its host goes: the end it had before",
    ),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("holder", NAME, comment="of a hold: the project for whose member it keeps the place"),
    UniqueConstraint("consumer", "provider", "resource_class", "state"),
    Index(None, "provider", "resource_class"),
    partial_index("lapses_at", "state <> 'allocated'"),
    partial_index("end_at", "state <> 'allocated'"),
    # All that a count of held places reads, and consumer by consumer: it looks at no row.
    partial_index(
        *("holder", PLACE_TAKEN, "ix_bookings_places_taken"),
        *("consumer", "state", "lapses_at", "end_at"),
    ),
    partial_index("decision", "decision IS NOT NULL"),
    partial_index("yields_to", "yields_to IS NOT NULL"),
    partial_index("end_at", HAS_END, "ix_bookings_declared_ends"),
)

ensembles = Table(
    "ensembles",
    metadata,
    *numbered_with_id(),
    Column("project_id", NAME, nullable=False, index=True),
    Column("name", NAME, nullable=False, index=True),
    Column("generation", BigInteger, nullable=False),
    Column("unjudged", Boolean, nullable=False, server_default=true()),
    Column("actor", LONG, comment="who wrote it last; JSON"),
    Column("body", LONG, nullable=False),
    Column("refers", Boolean, nullable=False, server_default=false(), comment="to others"),
    partial_index("unjudged", UNJUDGED),
    partial_index("project_id", REFERS, "ix_ensembles_refers", "refers"),
)

violations = Table(
    "violations",
    metadata,
    *numbered_with_id(),
    Column("ensemble_id", UUID, nullable=False),
    Column("project_id", NAME, nullable=False, index=True),
    Column("subject", text_column(320), nullable=False, comment="see Violation.key"),
    Column("type", text_column(64), nullable=False),
    Column("required", Boolean, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("ended_at", BigInteger, comment="When it was over; NULL while it is not."),
    Column("generation", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
    Index(None, "ensemble_id", "ended_at"),
    partial_index("ended_at", "ended_at IS NOT NULL", "ix_violations_over"),
    comment="Broken policies of ensembles and members out of service, while it lasts and after.",
)

exclusive_ensembles = Table(
    "exclusive_ensembles",
    metadata,
    Column("ensemble_id", UUID, primary_key=True),
    comment="Ensembles that keep others out: with a required policy of the type exclusive.",
)

members = Table(
    "members",
    metadata,
    Column("consumer", UUID, primary_key=True),
    Column("ensemble_id", UUID, nullable=False, index=True),
    Column("tags", LONG, nullable=False, comment="JSON list: its role's tags"),
    comment="Which consumers are members: by the member's UUID and by its server's.",
)

member_servers = Table(
    "member_servers",
    metadata,
    Column("ensemble_id", UUID, primary_key=True),
    Column("server", UUID, primary_key=True, index=True),
    comment="The servers of every ensemble's members.",
)

shares = Table(
    "shares",
    metadata,
    *numbered_with_id(),
    Column("ensemble_id", UUID, nullable=False, index=True),
    Column("project_id", NAME, nullable=False, index=True),
    Column(
        "offered",
        Boolean,
        nullable=False,
        server_default=true(),
        comment="whether it waits to be accepted",
    ),
    comment="The roles of ensembles that belong to other projects; the ensembles say the rest.",
)

decisions = Table(
    "decisions",
    metadata,
    *numbered_with_id(),
    Column("ensemble_id", UUID, nullable=False, index=True),
    Column("project_id", NAME, nullable=False, index=True),
    Column("state", STATE, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("ended_at", BigInteger, comment="When it was over; NULL while it is not."),
    Column("body", LONG, nullable=False),
    Column("record", LONG, info={ONCE: True}, comment="what it was made from; JSON"),
    Column("actor", LONG, info={ONCE: True}, comment="who made it; JSON"),
    Index(None, "state", "expires_at"),
    partial_index("ended_at", "ended_at IS NOT NULL"),
)

claims = Table(
    "claims",
    metadata,
    *numbered_with_id(),
    Column("decision_id", UUID, nullable=False, index=True),
    Column("state", STATE, nullable=False),
    Column("lapses_at", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
    Index(None, "state", "lapses_at"),
)

LAPSED = "lapsed"
"""The `state` of a row in `leases` that was an offer and nobody accepted."""

leases = Table(
    "leases",
    metadata,
    *numbered_with_id(),
    Column("project_id", NAME, nullable=False, index=True),
    Column("name", NAME, nullable=False, index=True),
    Column("ensemble_id", UUID, nullable=False, index=True),
    Column("state", STATE, nullable=False),
    Column("series_id", UUID, index=True, comment="The series that it is an occurrence of."),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("serial", BigInteger, nullable=False, server_default="0"),
    Column(
        "shuts_out",
        text_column(32),
        nullable=False,
        server_default="",
        index=True,
        comment="Whom it does not let use its places until it begins; empty once it has.",
    ),
    Column("ended_at", BigInteger, comment="When it was over; NULL while it is not."),
    Column("body", LONG, nullable=False),
    Index(None, "state", "start_at"),
    Index(None, "project_id", "serial", unique=True),
    partial_index("ended_at", "ended_at IS NOT NULL"),
)

lease_serials = Table(
    "lease_serials",
    metadata,
    Column("project_id", NAME, primary_key=True),
    Column("last", BigInteger, nullable=False),
    comment="The highest number of a project's leases that are deleted: none is given twice.",
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("lease_id", UUID, nullable=False, index=True),
    comment="Which lease a reservation is of: servers are drawn by the reservation's id.",
)

effects = Table(
    "effects",
    metadata,
    *numbered_with_id(),
    Column("subject", UUID, nullable=False),
    Column("state", STATE, nullable=False),
    Column("lane", text_column(8), nullable=False, server_default="life"),
    Column("not_before", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("ended_at", BigInteger, comment="When it was over; NULL while it is not."),
    Column("body", LONG, nullable=False),
    # By the state alone SQLite, which has no statistics, would look for one subject's among all.
    Index(None, "subject", "state"),
    Index(None, "state", "lane", "not_before"),
    partial_index("ended_at", "ended_at IS NOT NULL"),
    comment="What must happen at an instant; done ones are kept as a record.",
)

waitlist = Table(
    "waitlist",
    metadata,
    *numbered_with_id(),
    Column("project_id", NAME, nullable=False, index=True),
    Column("state", STATE, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("entered_at", BigInteger, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("ended_at", BigInteger, comment="When it was over; NULL while it is not."),
    Column("body", LONG, nullable=False),
    Index(None, "state", "priority", "entered_at"),
    partial_index("ended_at", "ended_at IS NOT NULL"),
    comment="Leases that wait, from their first window's start to their last one's end.",
)

templates = Table(
    "templates",
    metadata,
    Column("number", NUMBER, primary_key=True),
    Column("id", UUID, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("project_id", NAME, nullable=False),
    Column("name", NAME, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("newest", Boolean, nullable=False),
    Column("body", LONG, nullable=False),
    UniqueConstraint("id", "version"),
    Index(None, "project_id", "name"),
    comment="One row a version.",
)

reservables = Table(
    "reservables",
    metadata,
    Column("number", NUMBER, primary_key=True),
    Column("kind", text_column(16), nullable=False),
    Column("id", UUID, nullable=False),
    Column("name", NAME, nullable=False),
    Column("body", LONG, nullable=False),
    UniqueConstraint("kind", "id"),
    UniqueConstraint("kind", "name"),
    comment="Hosts and addresses that are offered for reservation.",
)

series = Table(
    "series",
    metadata,
    *numbered_with_id(),
    Column("project_id", NAME, nullable=False, index=True),
    Column("name", NAME, nullable=False, index=True),
    Column("generation", BigInteger, nullable=False),
    Column("body", LONG, nullable=False),
    comment="What the leases of a series have in common.",
)

quotas = Table(
    "quotas",
    metadata,
    Column("project_id", NAME, primary_key=True),
    Column("body", LONG, nullable=False),
    comment="What an operator has said of a project; for others the defaults hold.",
)

lease_uses = Table(
    "lease_uses",
    metadata,
    Column("number", NUMBER, primary_key=True),
    Column("lease_id", UUID, nullable=False, index=True),
    Column("project_id", NAME, nullable=False),
    Column("units", BigInteger, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Index(None, "project_id", "end_at"),
    comment="What leases count for: a row for each part of a lease that has one size.",
)

explanations = Table(
    "explanations",
    metadata,
    *numbered_with_id(),
    Column("project_id", NAME, nullable=False),
    Column("body", LONG, nullable=False),
    Column("instance", LONG, nullable=False),
    Column("request", UUID),
    Column("digest", text_column(64)),
    Column("ensemble_id", UUID),
    Column("name", NAME),
    Column("user_id", NAME),
    Column("stage", text_column(16), nullable=False, server_default=""),
    Column("at", BigInteger, nullable=False, server_default="0"),
    Column("told", Boolean, nullable=False, server_default=false()),
    Index(None, "project_id", "request"),
)

flavors = Table(
    "flavors",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("name", NAME, nullable=False, unique=True),
    Column("body", LONG, nullable=False),
)

topology = Table(
    "topology",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("body", LONG, nullable=False),
    Column("actor", LONG, comment="who wrote it last; JSON"),
    comment="One row: the whole topology.",
)

request_mix = Table(
    "request_mix",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("body", LONG, nullable=False),
    comment="One row, or none: what others are expected to ask for, as an operator stated it.",
)

session_keys = Table(
    "session_keys",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", text_column(64), nullable=False),
    comment="One row: what seals the sessions of browsers, unless a file has the key.",
)
