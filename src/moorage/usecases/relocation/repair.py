"""Repair of leases whose hosts fail: other places for their members, or a degraded lease.

Members that lost their places (see `lease_health`) are placed anew with all others staying put;
where that gives nothing, together with all whose places are not claimed; a server that is there, or
is being built, is never moved. All of it is one transaction, in which the owner is told. Where not
all of them have room, as many as have it move. For the rest the lease is degraded, with a proposal:
the smallest change after which everybody would have a place, as a solve has shown. It is looked for
again when the ledger has moved, and mended when the hosts are back. Where a server stays that
should be gone it gets some time to go before others are moved because of it; where somebody ends
servers, before the lease is degraded.

Leases have their turn by priority, those of one priority by when they begin.
Several workers may do this at once: whoever is slower finds the lease changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import (
    Busy,
    ConcurrentUpdate,
    DuplicateName,
    Infeasible,
    MoorageError,
    NotFound,
)
from moorage.domain.explain import Explanation
from moorage.domain.period import FOREVER
from moorage.usecases.decide.member_places import member_places
from moorage.usecases.relocation.lease_health import (
    NOTHING,
    UnhealthyLease,
    late_members,
    unhealthy_leases,
    write_health,
)
from moorage.usecases.relocation.repair_placement import PLACEABLE, LeaseRepair, left_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import (
        EnsembleChange,
    )
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment

BUDGET: Final = 2.0
"""Seconds in one look after which no further lease is healed before others have their turn."""
REST: Final = 20
"""How many times as long as it took in vain, for all leases together, nothing is looked for again
for the same lease: so what is in vain takes a twentieth of a worker's time at most."""
SHORTEST_REST: Final = 5.0
"""Seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RepairAttempt:
    """The last failed repair of a lease."""

    hurt: UnhealthyLease
    looked: tuple[int, int]
    """What of the ledger was looked at: see `RepairWorker`."""
    took: float
    """Seconds."""
    rests_until: float
    """On the stopwatch."""


class RepairWorker:
    """Runs in one worker. Its cache only saves work."""

    def __init__(self, env: DecideEnvironment, degraded: frozenset[str]) -> None:
        """`degraded` are leases that are written down as such."""
        self._parts = env
        self._known = set(degraded)
        self._tried: dict[str, RepairAttempt] = {}
        self._hurt: dict[str, UnhealthyLease] = {}
        self._looked = (-1, 0)
        """Revision and end of validity of the snapshot that was looked at last."""
        self._late: frozenset[str] = frozenset()
        """Members that get their places back if servers go that should be gone."""
        self._over: Instant = FOREVER
        """When the first of these servers has had its time."""

    def know(self, degraded: frozenset[str]) -> None:
        """Add leases that are stored as degraded."""
        if not degraded <= self._known:
            self._known |= degraded
            self._looked = (-1, 0)

    def look(self, snapshot: Snapshot) -> bool:
        """Find places for those who have lost theirs; True if some have not had their turn.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        looked = (snapshot.revision, snapshot.valid_until)
        now, grace = self._parts.store.now(), self._parts.limits.notice
        if looked != self._looked or now >= self._over:
            self._late, self._over = late_members(snapshot, now, grace)
            self._hurt = self._without_late(
                unhealthy_leases(self._parts.store, snapshot, self._known)
            )
            self._looked = looked
        self._mend()
        due = [one for one in self._hurt if self._is_due(one)]
        due.sort(key=lambda one: self._hurt[one].turn)
        ends = self._parts.stopwatch() + BUDGET
        for number, one in enumerate(due):
            if number and self._parts.stopwatch() >= ends:
                self._note_waiting(due[number:])
                return True
            self._heal(one)
        return False

    def _without_late(self, found: Mapping[str, UnhealthyLease]) -> dict[str, UnhealthyLease]:
        """Leave out members whose places are taken by servers still within their grace period."""
        if not self._parts.limits.grace:
            return dict(found)
        rest = {id_: replace(one, members=one.members - self._late) for id_, one in found.items()}
        return {id_: one for id_, one in rest.items() if one.members or one.servers}

    def _mend(self) -> None:
        """Record leases as whole whose members have their places again."""
        for one in sorted(self._known - self._hurt.keys()):
            self._tried.pop(one, None)
            if write_health(self._parts, one, 0):
                self._known.discard(one)

    def _lost(self, lease_id: str) -> UnhealthyLease:
        """Without those for whom it is too early to look for other places."""
        found = self._hurt[lease_id]
        return replace(found, members=found.members - self._late)

    def _is_due(self, lease_id: str) -> bool:
        tried = self._tried.get(lease_id)
        return (
            tried is None
            or tried.hurt != self._lost(lease_id)
            or (tried.looked != self._looked and self._parts.stopwatch() >= tried.rests_until)
        )

    def _note_waiting(self, leases: list[str]) -> None:
        """What is missing is known before anybody has looked for other places."""
        for one in leases:
            if one not in self._known:
                self._known.add(one)
                self._note(one, len(self._hurt[one].members))

    def _note(self, lease_id: str, missing: int, proposal: Mapping[str, object] = NOTHING) -> bool:
        """See `write_health`; of members without servers."""
        servers = self._hurt[lease_id].servers
        return write_health(self._parts, lease_id, missing + len(servers), proposal, servers)

    def _heal(self, lease_id: str) -> None:
        lost, began = self._lost(lease_id), self._parts.stopwatch()
        waiting = len(self._hurt[lease_id].members) - len(lost.members)
        self._known.add(lease_id)
        if not lost.members:
            if self._note(lease_id, waiting) and not waiting:
                self._rest(lease_id, lost, 0.0)
            return
        try:
            found = repair_lease(self._parts, lease_id, lost.members, lost.servers)
        except (ConcurrentUpdate, DuplicateName, NotFound):
            # Changed or healed by somebody else: then the ledger has moved, and is looked at again.
            return
        except MoorageError as error:
            if not isinstance(error, Busy):
                _log.exception("could not look for other places of lease %s", lease_id)
            found = UnrepairedMembers(len(lost.members))
        if found is not None and self._note(lease_id, found.missing + waiting, found.proposal):
            self._rest(lease_id, lost, self._parts.stopwatch() - began)

    def _rest(self, lease_id: str, lost: UnhealthyLease, took: float) -> None:
        rest = REST * (took + sum(one.took for one in self._tried.values()))
        until = self._parts.stopwatch() + max(rest, SHORTEST_REST)
        self._tried[lease_id] = RepairAttempt(lost, self._looked, took, until)


@dataclass(frozen=True, slots=True)
class UnrepairedMembers:
    """The number of members without a place, and the proposal that would help."""

    missing: int
    proposal: Mapping[str, object] = field(default_factory=lambda: NOTHING)
    """See `Lease.proposal`."""


def repair_lease(
    env: DecideEnvironment,
    lease_id: str,
    members: frozenset[str],
    servers: frozenset[str] = frozenset(),
) -> UnrepairedMembers | None:
    """Place these members of a lease anew, or as many of them as have room.

    Args:
        env: the ports.
        lease_id: which.
        members: UUIDs of members that have lost their places.
        servers: consumers that are missing besides, and are not moved.

    Returns:
        None where members have moved, or need not: then the ledger is to be looked at again. Else
        what is wanting, of which nothing is written.

    Raises:
        ConcurrentUpdate, NotFound: somebody else changed the lease, or ended it.
        Busy: time ran out, or too many conflicting commits.
    """
    lease = env.store.lease(lease_id)
    ensemble = env.store.ensemble(lease.ensemble_id)
    patient = LeaseRepair(env, lease, ensemble, env.store.decision(lease.decision_id), servers)
    stand = member_places(env.store.snapshot(), ensemble)
    lost = frozenset(
        one.name
        for one in ensemble.members
        if one.uuid in members and stand.of(one.name) in PLACEABLE
    )
    if not lost:
        return None
    try:
        patient.place(lost)
    except Infeasible as error:
        changes = _relaxing(error.explanation)
    else:
        return None
    left = left_out(lost, changes)
    if 0 < len(left) < len(lost):
        try:
            patient.place(lost - left, without=frozenset(left))
        except (Busy, Infeasible):
            # Those who stay where they cannot be may keep the others away by a policy.
            return UnrepairedMembers(len(lost), patient.proposed(changes, lost))
        return None
    return UnrepairedMembers(len(lost), patient.proposed(changes, lost))


def _relaxing(explanation: object) -> tuple[EnsembleChange, ...]:
    """Changes of the ensemble that help. When a lease is, is settled."""
    found = explanation.relaxations if isinstance(explanation, Explanation) else ()
    return tuple(one.change for one in found if one.change.subject in {"policy", "member"})
