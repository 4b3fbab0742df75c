"""Repair of leases on failed hosts: new places for members, or a degraded lease.

Members whose places are missing (see `lease_health`) are placed anew, first with all others
staying, then together with all unclaimed members. A server that exists or is being built is never
moved. New places and the owner's notice are one transaction. If there is no room for all, as many
as possible are placed; the lease is degraded, with a proposal: the smallest change that a solver
has shown to give every member a place. The repair is tried again when the ledger has changed, and
the lease is healthy again once its hosts are back. If a member's place is taken by a server past
its end, the repair waits for the server's grace period; if a service deletes servers, the lease is
not degraded meanwhile.

Leases are repaired by priority, then by start. Several workers may do this at once: the slower one
finds the lease changed.
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
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.relocation.lease_health import (
    NOTHING,
    UnhealthyLease,
    members_in_grace,
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
"""Seconds of one round after which no further repair is started."""
BACKOFF: Final = 20
"""After a failed repair, the lease rests this many times as long as the failed repairs of all
leases took: they use at most a twentieth of a worker's time."""
SHORTEST_BACKOFF: Final = 5.0
"""Seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RepairAttempt:
    """The last failed repair of a lease."""

    unhealthy: UnhealthyLease
    snapshot_key: tuple[int, int]
    """Revision and validity of the snapshot; see `RepairWorker`."""
    took: float
    """Seconds."""
    retry_at: float
    """On the stopwatch."""


class RepairWorker:
    """Runs in one worker. Its cache only saves work."""

    def __init__(self, env: DecideEnvironment, degraded: frozenset[str]) -> None:
        """`degraded` are ids of leases stored as degraded."""
        self._env = env
        self._known = set(degraded)
        self._tried: dict[str, RepairAttempt] = {}
        self._unhealthy: dict[str, UnhealthyLease] = {}
        self._snapshot_key = (-1, 0)
        """Revision and end of validity of the last snapshot read."""
        self._in_grace: frozenset[str] = frozenset()
        """Members whose place is taken by a server within its grace period."""
        self._grace_ends: Instant = FOREVER
        """When the first of these grace periods ends."""

    def add_degraded(self, degraded: frozenset[str]) -> None:
        """Add leases that are stored as degraded."""
        if not degraded <= self._known:
            self._known |= degraded
            self._snapshot_key = (-1, 0)

    def run_round(self, snapshot: Snapshot) -> bool:
        """Repair leases with missing places; True if the time was over before all were tried.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        snapshot_key = (snapshot.revision, snapshot.valid_until)
        now, grace = self._env.store.now(), self._env.limits.notice
        if snapshot_key != self._snapshot_key or now >= self._grace_ends:
            self._in_grace, self._grace_ends = members_in_grace(snapshot, now, grace)
            self._unhealthy = self._without_members_in_grace(
                unhealthy_leases(self._env.store, snapshot, self._known)
            )
            self._snapshot_key = snapshot_key
        self._record_recovered()
        due = [one for one in self._unhealthy if self._is_due(one)]
        due.sort(key=lambda one: self._unhealthy[one].turn)
        ends = self._env.stopwatch() + BUDGET
        for number, one in enumerate(due):
            if number and self._env.stopwatch() >= ends:
                self._note_waiting(due[number:])
                return True
            self._repair(one)
        return False

    def _without_members_in_grace(
        self, found: Mapping[str, UnhealthyLease]
    ) -> dict[str, UnhealthyLease]:
        """The unhealthy leases without late members, if a service deletes servers."""
        if not self._env.limits.grace:
            return dict(found)
        pause = {
            id_: replace(one, members=one.members - self._in_grace) for id_, one in found.items()
        }
        return {id_: one for id_, one in pause.items() if one.members or one.servers}

    def _record_recovered(self) -> None:
        """Mark leases as healthy whose members have their places again."""
        for one in sorted(self._known - self._unhealthy.keys()):
            self._tried.pop(one, None)
            if write_health(self._env, one, 0):
                self._known.discard(one)

    def _lost(self, lease_id: str) -> UnhealthyLease:
        """The lease's missing members without those that wait for a grace period."""
        found = self._unhealthy[lease_id]
        return replace(found, members=found.members - self._in_grace)

    def _is_due(self, lease_id: str) -> bool:
        tried = self._tried.get(lease_id)
        return (
            tried is None
            or tried.unhealthy != self._lost(lease_id)
            or (
                tried.snapshot_key != self._snapshot_key and self._env.stopwatch() >= tried.retry_at
            )
        )

    def _note_waiting(self, leases: list[str]) -> None:
        """Record missing members of leases whose repair has to wait for the next round."""
        for one in leases:
            if one not in self._known:
                self._known.add(one)
                self._note(one, len(self._unhealthy[one].members))

    def _note(self, lease_id: str, missing: int, proposal: Mapping[str, object] = NOTHING) -> bool:
        """Record the health of a lease: `missing` members, and its servers on disabled hosts."""
        servers = self._unhealthy[lease_id].servers
        return write_health(self._env, lease_id, missing + len(servers), proposal, servers)

    def _repair(self, lease_id: str) -> None:
        lost, began = self._lost(lease_id), self._env.stopwatch()
        waiting = len(self._unhealthy[lease_id].members) - len(lost.members)
        self._known.add(lease_id)
        if not lost.members:
            if self._note(lease_id, waiting) and not waiting:
                self._back_off(lease_id, lost, 0.0)
            return
        try:
            found = repair_lease(self._env, lease_id, lost.members, lost.servers)
        except (ConcurrentUpdate, DuplicateName, NotFound):
            # Changed by another process: the next snapshot shows it.
            return
        except MoorageError as error:
            if not isinstance(error, Busy):
                _log.exception("could not repair lease %s", lease_id)
            found = UnrepairedMembers(len(lost.members))
        if found is not None and self._note(lease_id, found.missing + waiting, found.proposal):
            self._back_off(lease_id, lost, self._env.stopwatch() - began)

    def _back_off(self, lease_id: str, lost: UnhealthyLease, took: float) -> None:
        pause = BACKOFF * (took + sum(one.took for one in self._tried.values()))
        until = self._env.stopwatch() + max(pause, SHORTEST_BACKOFF)
        self._tried[lease_id] = RepairAttempt(lost, self._snapshot_key, took, until)


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
        env: ports.
        lease_id: the lease.
        members: UUIDs of members whose places are missing.
        servers: consumers that are missing too and cannot be moved.

    Returns:
        None if members were moved or need not be. Else the number of unplaced members and a
        proposal; nothing is written then.

    Raises:
        ConcurrentUpdate, NotFound: another process changed or ended the lease.
        Busy: time ran out, or too many conflicting commits.
    """
    lease = env.store.lease(lease_id)
    ensemble = env.store.ensemble(lease.ensemble_id)
    repair = LeaseRepair(env, lease, ensemble, env.store.decision(lease.decision_id), servers)
    member_places = locate_members(env.store.snapshot(), ensemble)
    lost = frozenset(
        one.name
        for one in ensemble.members
        if one.uuid in members and member_places.of(one.name) in PLACEABLE
    )
    if not lost:
        return None
    try:
        repair.place(lost)
    except Infeasible as error:
        changes = _relaxing(error.explanation)
    else:
        return None
    left = left_out(lost, changes)
    if 0 < len(left) < len(lost):
        try:
            repair.place(lost - left, without=frozenset(left))
        except (Busy, Infeasible):
            # A member left on a failed host may keep others from being placed, by a policy.
            return UnrepairedMembers(len(lost), repair.proposed(changes, lost))
        return None
    return UnrepairedMembers(len(lost), repair.proposed(changes, lost))


def _relaxing(explanation: object) -> tuple[EnsembleChange, ...]:
    """Relaxations that change policies or members; a granted lease's times are not changed."""
    found = explanation.relaxations if isinstance(explanation, Explanation) else ()
    return tuple(one.change for one in found if one.change.subject in {"policy", "member"})
