"""Tells when the state of a host becomes another one, whatever has changed it (ADR-0056).

What was told last of each host is stored, and written with the event: of several processes the
first to commit tells it, and one that starts tells what became of a host while none was running.
A host that comes back is told after `host_settle_time`, so that one that flaps makes one event;
what operators close and open is told at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.changes import Changeset, TellHost
from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.domain.host_states import NOTHING_CLOSES, ClosingReason, HostState, ToldHost
from moorage.domain.period import SECOND
from moorage.engine.state.host_states import closings, host_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.actors import Actor
    from moorage.domain.host_states import Closing
    from moorage.engine.state.host_states import HostStates
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment

_AT_ONCE: Final = 100
"""Hosts that are told in one round."""


@dataclass
class HostWatch:
    """The watch of one process."""

    env: UseCaseEnvironment
    _told: dict[str, ToldHost] | None = None
    """Host -> what was told of it, of those that are not open; None: to be read."""
    _seen: HostStates | None = None
    """The states of the last look, if all of them were told."""
    _last: Snapshot | None = None
    """The snapshot of the last look."""
    _new: set[str] = field(default_factory=set)
    """Hosts that have come since, and have had no inventory yet: nothing of them has closed."""
    _settling: dict[str, tuple[float, int | None]] = field(default_factory=dict)
    """Host that came back -> when that is told, by the stopwatch; the revision before it."""

    def look(self, snapshot: Snapshot) -> None:
        """Tell of hosts whose state is not the one that was told last.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        states = host_states(snapshot)
        if states is self._seen and not self._settling:
            return
        if self._told is None:
            self._told = dict(self.env.store.compliance.told_hosts())
        due = list(islice(self._due(snapshot, states, self._told), _AT_ONCE))
        try:
            for actor, some in self._by_actor(snapshot, due):
                store = self.env.store if actor is None else self.env.store.by(actor)
                store.commit(Changeset(tuple(some)))
                self._told |= {one.provider: one.now for one in some}
        except (ConcurrentUpdate, NotFound):
            self._told = self._seen = None
            return
        for one in due:
            self._settling.pop(one.provider, None)
        self._seen = states if len(due) < _AT_ONCE else None
        self._last = snapshot

    def _due(
        self, snapshot: Snapshot, states: HostStates, told: dict[str, ToldHost]
    ) -> Iterator[TellHost]:
        """What is to be told now."""
        at = snapshot.locations.hosts
        rows = {row for row in np.flatnonzero(states.severity).tolist() if at[row] == row}
        rows |= {snapshot.row_of[one] for one in told if one in snapshot.row_of}
        for row in sorted(rows):
            uuid, name = snapshot.uuids[row], snapshot.names[row]
            why = closings(snapshot, row)
            by_operator = any(one.why is ClosingReason.OPERATOR for one in why)
            now, was = ToldHost(states.state(row), by_operator), told.get(uuid, NOTHING_CLOSES)
            if now == was or self._is_new(uuid, why):
                self._settling.pop(uuid, None)
            elif self._settled(uuid, was, now):
                shut = tuple(one for one in why if one.why.state is not HostState.OPEN)
                reasons = tuple(dict.fromkeys(one.why.value for one in shut))
                reason = next((one.reason for one in shut if one.reason), "")
                yield TellHost(uuid, name, was, now, reasons, reason)

    @property
    def _after(self) -> int | None:
        """The revision of the last look."""
        return None if self._last is None else self._last.revision

    def _is_new(self, host: str, why: tuple[Closing, ...]) -> bool:
        empty = [one.why for one in why] == [ClosingReason.EMPTY]
        if empty and self._last is not None and host not in self._last.row_of:
            self._new.add(host)
        elif not empty:
            self._new.discard(host)
        return host in self._new

    def _settled(self, host: str, was: ToldHost, now: ToldHost) -> bool:
        settle = self.env.limits.compliance_settle / SECOND
        worse = now.state.severity > was.state.severity
        if worse or now.by_operator != was.by_operator or not settle:
            return True
        at = self.env.stopwatch()
        until, _ = self._settling.setdefault(host, (at + settle, self._after))
        return until <= at

    def _by_actor(
        self, snapshot: Snapshot, due: Iterable[TellHost]
    ) -> Iterator[tuple[Actor | None, list[TellHost]]]:
        """The changes by who changed the host: an operator, or None where that is not known."""
        found: dict[Actor | None, list[TellHost]] = {}
        for one in due:
            _, after = self._settling.get(one.provider, (0.0, self._after))
            actor = None
            if after is not None:
                row = snapshot.row_of[one.provider]
                tree = [snapshot.uuids[at] for at in snapshot.at_host(row)]
                actor = self.env.store.last_actor(tree, after)
            # Bookings name tenants, and close no host.
            known = actor if actor is not None and actor.operator else None
            project = "" if known is None else known.project_id or ""
            found.setdefault(known, []).append(replace(one, project_id=project))
        yield from found.items()
