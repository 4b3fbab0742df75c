"""Repair of leases: members on failed hosts get new places, or the lease is degraded.

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
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import PutLease
from moorage.domain.errors import (
    Busy,
    ConcurrentUpdate,
    DuplicateName,
    Infeasible,
    MoorageError,
    NotFound,
)
from moorage.domain.explain import Explanation
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER
from moorage.usecases.decide.loop import DecisionResult, decide_proposal
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.request import (
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.relocation.lease_health import (
    NOTHING,
    UnhealthyLease,
    health_notice,
    members_in_grace,
    unhealthy_leases,
    with_missing,
    write_health,
)
from moorage.usecases.relocation.lease_promise import unchanged_promise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.explain import EnsembleChange
    from moorage.domain.leases import Lease, Reservation
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.member_places import MemberPlaces


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
            self._in_grace, self._grace_ends = members_in_grace(
                self._env.store, snapshot, now, grace
            )
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

    `members` are UUIDs; `servers` are consumers that are missing too and cannot be moved.

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
        why = error.explanation
        relaxations = why.relaxations if isinstance(why, Explanation) else ()
        found = (one.change for one in relaxations)
        # A granted lease's times are not changed.
        changes = tuple(one for one in found if one.subject in {"policy", "member"})
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


_NOBODY: frozenset[MemberName] = frozenset()
_UNREAD: Final = RefusalReader(detail=RefusalDetail.UNSTORED)
PLACEABLE: Final = frozenset({MemberStatus.HELD, MemberStatus.UNPLACED})
"""States of members without a server that would have to move."""


def left_out(lost: frozenset[MemberName], changes: Sequence[EnsembleChange]) -> set[MemberName]:
    """Members to leave unplaced, if a relaxation removes only some of the missing members."""
    for one in changes:
        if _leaves_out(one):
            number = int(str(one.before)) - int(str(one.after))
            mine = sorted((name for name in lost if name.role == one.name), reverse=True)
            return set(mine[:number])
    return set()


@dataclass(frozen=True, slots=True)
class LeaseRepair:
    """A lease with members that need other places."""

    env: DecideEnvironment
    lease: Lease
    ensemble: Ensemble
    decision: Decision
    servers: frozenset[str]

    def place(
        self, members: frozenset[MemberName], *, without: frozenset[MemberName] = _NOBODY
    ) -> None:
        """Place members anew on the lease's terms, and notify its owner.

        Other unclaimed members move if that helps; those in `without` keep their failed places, and
        count as missing.

        Raises:
            Infeasible: there is no room; the explanation has the relaxations.
            Busy, ConcurrentUpdate: as for every decision.
        """
        proposal = Proposal(
            self.ensemble,
            self.ensemble.generation,
            (
                lambda member_places: _placeable(members, member_places),
                lambda member_places: (
                    (_unclaimed(member_places) | _placeable(members, member_places)) - without
                ),
            ),
            promise=replace(unchanged_promise(self.lease, self.decision), gives_back=True),
            further_changes=partial(self._further_changes, len(without)),
            reader=_UNREAD,
        )
        self._settled(self.env, proposal)

    def proposed(
        self, changes: Sequence[EnsembleChange], lost: frozenset[MemberName]
    ) -> Mapping[str, object]:
        """The smallest relaxation as a proposal; see `Lease.proposal`."""
        best = _best(changes)
        if best is None:
            return NOTHING
        places = self._places(best, lost)
        found = asdict(best) | ({"places": places} if places else {})
        del found["alternative"]  # roles of leases have none
        return MappingProxyType(found)

    def _places(self, change: EnsembleChange, lost: frozenset[MemberName]) -> dict[str, str]:
        """The hosts of missing members after a policy change: member -> host."""
        policies = tuple(_changed(one, change) for one in self.ensemble.policies)
        if change.subject != "policy":
            return {}
        proposal = Proposal(
            replace(self.ensemble, policies=policies),
            self.ensemble.generation,
            (lambda member_places: _placeable(lost, member_places),),
            promise=unchanged_promise(self.lease, self.decision),
            before=self.ensemble,
            restated=frozenset({change.name}),
            reader=_UNREAD,
        )
        try:
            places = self._settled(self.env.in_dry_run(), proposal).decision.places
        except (Busy, Infeasible):
            return {}  # it takes that others move, or too long
        return {str(name): places[name].host for name in sorted(lost)}

    def _settled(self, env: DecideEnvironment, proposal: Proposal) -> DecisionResult:
        options = DecisionOptions(objective=self.decision.objective, seed=self.decision.solve.seed)
        return decide_proposal(env, proposal, options, RequestIdentity(env.ids.uuid()))

    def _further_changes(self, missing: int, made: Decision) -> tuple[Change, ...]:
        """The lease with its new placement, and the notice to its owner."""
        before, now = self.decision.places, made.updated_at
        moved = [
            name
            for name, place in sorted(made.places.items())
            if name not in before or before[name].host != place.host
        ]
        missing += len(self.servers)
        placed = replace(
            with_missing(self.lease, missing, NOTHING, now),
            decision_id=made.id,
            reservations=self._reservations({name.role for name in moved}),
        )
        return (
            PutLease(placed, self.lease.generation),
            health_notice(placed, now, map(str, moved), self.servers),
        )

    def _reservations(self, moved: AbstractSet[str]) -> tuple[Reservation, ...]:
        """The lease's reservations, marked where members of these roles move while it runs."""
        if self.lease.state is not LeaseState.ACTIVE:
            return self.lease.reservations
        return tuple(
            replace(one, moved=True) if one.role in moved else one
            for one in self.lease.reservations
        )


def _changed(policy: PolicyStatement, change: EnsembleChange) -> PolicyStatement:
    """The policy as it is after a change."""
    if policy.name != change.name:
        return policy
    if change.field == "strength":
        return replace(policy, weight=1)
    parameters = {**policy.parameters, change.field: change.after}
    return replace(policy, parameters=MappingProxyType(parameters))


def _unclaimed(member_places: MemberPlaces) -> frozenset[MemberName]:
    return frozenset(n for n, status in member_places.status.items() if status is MemberStatus.HELD)


def _placeable(
    members: frozenset[MemberName], member_places: MemberPlaces
) -> frozenset[MemberName]:
    return frozenset(name for name in members if member_places.of(name) in PLACEABLE)


def _best(changes: Sequence[EnsembleChange]) -> EnsembleChange | None:
    """The first change that keeps all members; if there is none, the first of all."""
    keeping = (one for one in changes if not _leaves_out(one))
    return next(keeping, changes[0] if changes else None)


def _leaves_out(change: EnsembleChange) -> bool:
    before, after = change.before, change.after
    return (
        (change.subject, change.field) == ("member", "count")
        and isinstance(before, int)
        and isinstance(after, int)
        and after < before
    )
