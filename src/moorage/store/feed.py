"""Keeps one columnar snapshot per process in step with the ledger (ADR-0007).

Every call reads the ledger's revision first, so a snapshot is never older than the newest
commit that finished before the call. When it moved, the change log says which providers to
load again; whoever slept longer than the log reaches back loads everything.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import select

from moorage.engine.snapshot import Snapshot
from moorage.store import states, tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from moorage.engine.snapshot import ProviderState
    from moorage.store.backends import Backend
    from moorage.usecases.ports import Clock

_HEAD = select(
    tables.ledger.c.revision, tables.ledger.c.topology_revision, tables.ledger.c.log_start
)


class Feed:
    """One snapshot, renewed by difference. Safe for threads."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock
        self._refreshing = Lock()
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """The ledger as it stands, seen now."""
        with self._backend.reading() as connection:
            revision = connection.execute(_HEAD).one().revision
        snapshot = self._snapshot
        if snapshot is None or snapshot.revision < revision:
            with self._refreshing:
                snapshot = self._snapshot
                # Another thread may have come this far, or farther, while this one waited.
                if snapshot is None or snapshot.revision < revision:
                    snapshot = self._snapshot = self._renewed(snapshot)
        # Read last: a clock that only advances is then never behind the snapshot, and going
        # back in time costs a look at every booking.
        now = self._clock.now()
        if now < snapshot.taken_at or now >= snapshot.valid_until:
            snapshot = self._kept(snapshot.at(now))
        return snapshot.at(now)

    def _kept(self, snapshot: Snapshot) -> Snapshot:
        """Remember what time has changed, unless the ledger has moved on meanwhile."""
        with self._refreshing:
            if self._snapshot is not None and self._snapshot.revision == snapshot.revision:
                self._snapshot = snapshot
        return snapshot

    def _renewed(self, old: Snapshot | None) -> Snapshot:
        now = self._clock.now()
        with self._backend.reading() as connection:
            head = connection.execute(_HEAD).one()
            topology = None
            if old is None or old.topology_revision != head.topology_revision:
                topology = states.topology(connection)
            if old is None or old.revision < head.log_start:
                return Snapshot.empty(now=now).with_states(
                    states.every_state(connection),
                    revision=head.revision,
                    topology=topology or states.topology(connection),
                    topology_revision=head.topology_revision,
                )
            changed, gone = _differing(connection, old)
            return old.with_states(
                changed,
                removed=gone,
                revision=head.revision,
                topology=topology,
                topology_revision=head.topology_revision,
                now=now,
            )


def _differing(connection: Connection, old: Snapshot) -> tuple[list[ProviderState], list[str]]:
    """The new states of providers that changed, and the UUIDs of those that went."""
    subjects, wholly = states.subjects(connection, old.revision)
    wholly |= {uuid for uuid in subjects if uuid not in old.row_of}
    known = {uuid: old.state(old.row_of[uuid]).provider for uuid in subjects - wholly}
    changed = [*states.states(connection, wholly), *states.rebooked(connection, known)]
    there = {state.provider.uuid for state in changed}
    return changed, sorted(subjects - there)
