"""Keeps one columnar snapshot per process in step with the ledger (ADR-0007).

Every call asks the ledger's log first, so a snapshot is never older than the newest commit that
finished before the call. When it moved, the log says which providers to load again; whoever
slept longer than the log reaches back loads everything.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from moorage.engine.state.snapshot import Snapshot
from moorage.store.changelog.entries import all_added
from moorage.store.read import provider_states, request_mixes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.period import Instant
    from moorage.engine.state.arrivals import AddedBookings
    from moorage.engine.state.snapshot import ProviderState
    from moorage.store.backend import Backend
    from moorage.store.changelog.entries import Added, LogDelta
    from moorage.store.database.session import Session
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock

_AHEAD: Final = 1_000_000
"""Microseconds by which a clock read earlier may lag behind one that another thread read."""


class Feed:
    """One snapshot, renewed by difference. Safe for threads."""

    def __init__(self, backend: Backend, clock: Clock | None, watch: Watch | None) -> None:
        self._backend = backend
        self._clock = clock
        self._watch = watch
        self._refreshing = Lock()
        self._state: _State = (None, Snapshot.empty())

    def snapshot(self) -> Snapshot:
        """The ledger as it stands, seen now.

        Raises:
            Busy: the database is away.
        """
        state, log = self._state, self._backend.log
        poll = log.poll(state[0])
        if poll.moved:
            with self._refreshing:
                # Another thread may have come this far, or farther, while this one waited.
                if self._state is state or log.poll(self._state[0]).moved:
                    self._state = self._renewed(self._state)
                state = self._state
        snapshot = state[1]
        now = self._now(snapshot, poll.now)
        if now < snapshot.taken_at or now >= snapshot.valid_until:
            snapshot = self._kept(state, snapshot.at(now))
        return snapshot.at(now)

    def last_snapshot(self) -> Snapshot:
        """The one that was read last, without asking; at first, what `snapshot` returns."""
        cursor, found = self._state
        return self.snapshot() if cursor is None else found

    def _now(self, snapshot: Snapshot, polled: Instant | None) -> Instant:
        # Read last: a clock that only advances is then never behind the snapshot, and going
        # back in time costs a look at every booking.
        if self._clock is not None:
            return self._clock.now()
        now = self._backend.now() if polled is None else polled
        return snapshot.taken_at if now < snapshot.taken_at <= now + _AHEAD else now

    def _kept(self, seen: _State, snapshot: Snapshot) -> Snapshot:
        """Remember what time has changed, unless the ledger has moved on meanwhile."""
        with self._refreshing:
            if self._state is seen:
                self._state = (seen[0], snapshot)
        return snapshot

    def _renewed(self, state: _State) -> _State:
        def read() -> _State:
            return self._backend.read(lambda connection: self._read(connection, state))

        return read() if self._watch is None else self._watch.refresh(read)

    def _read(self, connection: Session, state: _State) -> _State:
        cursor, old = state
        delta = self._backend.log.delta(connection, cursor, old.revision)
        now = self._now(old, delta.now)
        topology, mix = None, old.stated_mix
        if not delta.complete or old.topology_revision != delta.topology_revision:
            topology = provider_states.topology(connection)
            mix = request_mixes.stated(connection)
        if not delta.complete:
            found = Snapshot.empty(now=now).with_states(
                provider_states.every_state(connection),
                revision=delta.revision,
                topology=topology,
                topology_revision=delta.topology_revision,
            )
        else:
            changed, gone = self._differing(connection, old, delta)
            found = old.with_states(
                changed,
                removed=gone,
                revision=delta.revision,
                topology=topology,
                topology_revision=delta.topology_revision,
                now=now,
            )
        if mix is not old.stated_mix:
            found = found.with_stated_mix(mix)
        return delta.cursor, found.with_ledger_state(
            exclusive_revision=delta.exclusive_revision, waited=delta.waited
        )

    def _differing(
        self, connection: Session, old: Snapshot, delta: LogDelta
    ) -> tuple[list[ProviderState | AddedBookings], list[str]]:
        """What became of providers that changed, and the UUIDs of those that went."""
        wholly: list[str] = []
        known: dict[str, ProviderState] = {}
        booked: list[tuple[ProviderState, Sequence[Added]]] = []
        row_of, state_of = old.row_of, old.states
        for uuid, entries in delta.entries.items():
            row = row_of.get(uuid) if all(one.bookings_only for one in entries) else None
            state = None if row is None else state_of[row]
            if state is None:
                wholly.append(uuid)
                continue
            added = all_added(entries)
            if added is not None and provider_states.are_new(state, added):
                booked.append((state, added))
            else:
                known[uuid] = state
        changed = [
            *provider_states.states(connection, wholly),
            *provider_states.rebooked(connection, known),
        ]
        there = {state.provider.uuid for state in changed}
        gone = sorted(uuid for uuid in (*wholly, *known) if uuid not in there)
        return [*changed, *provider_states.booked(connection, booked, tags=delta.tags)], gone


_State = tuple[object | None, Snapshot]
"""A cursor in the log (None: nothing read yet) and what the ledger was there."""
