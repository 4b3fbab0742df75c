"""The lifecycle of a lease over time: prepared, active, ending, closed.

Each step is one changeset: the lease in its next state, the changes that follow, and the effect,
marked as done. If two workers run the same effect, one commits and the other finds it done; a
worker that is killed before its commit leaves nothing behind. A due timer reads the lease as it is
now: it does nothing if the lease has passed that step, and is postponed if the edge has moved to a
later instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Binding, BookingState
from moorage.domain.changes import (
    Changeset,
    DropBookings,
    ExpectEnsemble,
    PutBookings,
    PutDecision,
    PutLease,
)
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.domain.effects import EffectKind
from moorage.domain.errors import DuplicateName, NotFound
from moorage.domain.lease_actions import ActionKind, Edge, actions_at, read_action
from moorage.domain.leases import LeaseState, LeaseStep, lease_after
from moorage.domain.words import counted
from moorage.usecases.decide.member_places import MemberStatus, consumer_of, locate_members
from moorage.usecases.decide.writes import member_consumer
from moorage.usecases.effects import notifications
from moorage.usecases.effects.lease_timers import edge_instant
from moorage.usecases.effects.notifications import checked_lease_end
from moorage.usecases.effects.outcome import effect_finished, finish, postponed
from moorage.usecases.leases.host_servers import host_servers, with_end_of_lease
from moorage.usecases.preemption.stay_ends import EndReason
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.ticket_flavors import (
    lease_flavor_creation,
    lease_flavor_deletion,
    lease_flavors,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.effects import Effect
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.leases import Lease, Terms
    from moorage.domain.period import Instant
    from moorage.domain.tickets import TicketFlavor
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment

_STEPS: Final[Mapping[EffectKind, LeaseStep]] = MappingProxyType(
    {
        EffectKind.PREPARE: LeaseStep.PREPARE,
        EffectKind.ACTIVATE: LeaseStep.ACTIVATE,
        EffectKind.END: LeaseStep.END,
        EffectKind.CLOSE: LeaseStep.CLOSE,
    }
)
_ORDER: Final = tuple(_STEPS.values())
_FROM: Final[Mapping[LeaseState, int]] = MappingProxyType(
    {
        state: number
        for number, state in enumerate(one for one in LeaseState if one is not LeaseState.OFFERED)
    }
)
"""The number of steps that a lease in each state has taken."""


def carry_out(env: UseCaseEnvironment, effect: Effect) -> str:
    """Carry out a due timer of a lease and return its outcome as text.

    Raises:
        ConcurrentUpdate, NotFound: another process changed the effect or the lease first.
    """
    try:
        progress = progress_of(env, env.store.lease(effect.subject))
    except NotFound:
        return finish(env.store, effect, "the lease is gone")
    if effect.kind is EffectKind.ACT:
        return _act(env, effect, progress)
    if progress.lease.state is LeaseState.CLOSED:
        return finish(env.store, effect, "the lease is closed")
    edge = edge_instant(progress.lease, effect.kind)
    if edge > progress.now:
        env.store.commit(Changeset((postponed(effect, edge, progress.now),)))
        return "not yet"
    step = _STEPS.get(effect.kind)
    outcome = progress.expire() if step is None else progress.advance_to(step)
    return _commit(env, effect, progress, outcome)


def progress_of(env: UseCaseEnvironment, lease: Lease, terms: Terms | None = None) -> LeaseProgress:
    """The progress of a lease from its stored state; with `terms` that are to be its new ones.

    Raises:
        NotFound: the lease's decision is gone.
    """
    decision = env.store.decision(lease.decision_id)
    ensemble = if_stored(env.store.ensemble, lease.ensemble_id)
    snapshot = env.store.snapshot()
    member_places = None if ensemble is None else locate_members(snapshot, ensemble)
    now = replace(lease, terms=terms or lease.terms)
    progress = LeaseProgress(now, decision, ensemble, member_places, snapshot.taken_at)
    if ensemble is not None and member_places is not None:
        progress.host_servers = host_servers(snapshot, lease, ensemble, member_places)
        progress.follows += with_end_of_lease(snapshot, lease, ensemble, member_places, now.terms)
    if ensemble is not None and env.limits.ticket_flavors:
        progress.flavors = lease_flavors(lease, ensemble)
    return progress


def _commit(env: UseCaseEnvironment, effect: Effect, progress: LeaseProgress, outcome: str) -> str:
    """Write the changes, and the effect as done.

    The changeset names the generations of lease and decision, so a concurrent claim or change makes
    it conflict and the step is tried again.
    """
    done = effect_finished(effect, outcome, progress.now)
    env.store.commit(Changeset((*progress.changes(), done)))
    return outcome


@dataclass
class LeaseProgress:
    """The steps a lease takes in one transaction, and the resulting changes."""

    lease: Lease
    decision: Decision
    ensemble: Ensemble | None
    member_places: MemberPlaces | None
    now: Instant
    follows: list[Change] = field(default_factory=list)
    flavors: tuple[TicketFlavor, ...] = ()
    """By which servers take its places, if the service manages them in Nova."""
    host_servers: tuple[str, ...] = ()
    """See `leases.host_servers`."""
    _lease: int | None = None
    """The stored generation of the lease, once a step has changed it; None before."""
    _decision: int | None = None

    def advance_to(self, step: LeaseStep) -> str:
        """Take the steps up to this one that the lease has not taken yet."""
        taken = []
        for number in range(_FROM[self.lease.state], _ORDER.index(step) + 1):
            step = _ORDER[number]
            self._become(step)
            told = {
                LeaseStep.PREPARE: self._prepare,
                LeaseStep.ACTIVATE: self._activate,
                LeaseStep.END: self._end,
                LeaseStep.CLOSE: self._close,
            }[step]()
            taken.append(f"{self.lease.state}{told}")
        return ", ".join(taken) or f"it is {self.lease.state} already"

    def release(self) -> str:
        """Free all unclaimed places, and confirm the decision."""
        if self.decision.state_at(self.now) is not DecisionState.HELD:
            return "the decision is not held any more"
        freed = self._free()
        self._decide(DecisionStep.CONFIRM)
        return f"freed {counted(freed, 'place')}"

    def expire(self) -> str:
        """Mark the decision as lapsed once its unclaimed places have lapsed."""
        if self.decision.state is not DecisionState.HELD:
            return "the decision is not held any more"
        if self.decision.expires_at > self.now:
            return "the decision is held for longer"
        self._decide(DecisionStep.LAPSE)
        return "unclaimed places have lapsed"

    def delete(self, reason: str, until: Instant) -> int:
        """Request the deletion of the lease's servers; return how many there are."""
        named: list[tuple[str, dict[str, object]]] = [
            (consumer_of(one), {"ensemble": self.lease.ensemble_id, "member": str(one.name)})
            for one in self._of(MemberStatus.ACTIVE)
        ]
        named += [(server, {}) for server in self.host_servers]
        self.follows += [
            notifications.deletion(
                server,
                self.lease.project_id,
                reason,
                until,
                self.now,
                lease=self.lease.id,
                order=number,
                of=len(named),
                because=EndReason.LEASE.value,
                **details,
            )
            for number, (server, details) in enumerate(named, 1)
        ]
        return len(named)

    @property
    def used(self) -> bool:
        """Whether a server has a place of the lease, or is being built in one."""
        members = self._of(MemberStatus.ACTIVE) or self._of(MemberStatus.BUILDING)
        return bool(members or self.host_servers)

    def changes(self) -> tuple[Change, ...]:
        """All changes of the steps taken, in the order in which they are written."""
        found: list[Change] = []
        if self._lease is not None:
            found.append(PutLease(self.lease, self._lease))
        if self._decision is not None:
            found.append(PutDecision(self.decision, self._decision))
        if self.ensemble is not None and self.follows:
            # A claim committed meanwhile changes the ensemble's generation and makes this changeset
            # conflict.
            found.append(ExpectEnsemble(self.ensemble.id, self.ensemble.generation))
        return (*found, *self.follows)

    # --- steps --------------------------------------------------------------------------------

    def _prepare(self) -> str:
        """Bind the lease's places: replanning does not move them any more."""
        self.lease = replace(self.lease, binding=Binding.BOUND)
        # Replanning writes the decision and not the lease: its generation detects a concurrent one.
        self._decision = self.decision.generation
        if self.ensemble is None or self.member_places is None:
            return ""
        for member in self._of(MemberStatus.HELD):
            bookings = self.member_places.bookings[member.name]
            if bookings[0].state is BookingState.RESERVED:
                bound = tuple(replace(one, binding=Binding.BOUND) for one in bookings)
                self.follows.append(PutBookings(member_consumer(self.ensemble, member), bound))
        return ""

    def _activate(self) -> str:
        self._at(Edge.ON_START, self.lease.terms.period.start)
        self.follows += lease_flavor_creation(self.lease, self.flavors, self.now)
        return ""

    def _end(self) -> str:
        """Free unclaimed places and request the deletion of the lease's servers."""
        end = self.lease.terms.period.end
        freed = self._free()
        if self.decision.state is DecisionState.HELD:
            lapsed = self.decision.expires_at <= self.now
            self._decide(DecisionStep.LAPSE if lapsed else DecisionStep.CONFIRM)
        servers = self.delete("its lease has ended", end)
        self._at(Edge.ON_END, end)
        self.follows += lease_flavor_deletion(self.lease, self.flavors, self.now)
        self.follows += checked_lease_end(self.lease, self.now)
        return f" ({counted(freed, 'place')} freed, {counted(servers, 'server')} to be ended)"

    def _close(self) -> str:
        """Close the lease after its cleaning time; the sweeper reports servers still there."""
        if self.decision.state is DecisionState.CONFIRMED:
            self._decide(DecisionStep.CLOSE)
        left = len(self._of(MemberStatus.ACTIVE))
        self.lease = replace(self.lease, degraded=False, missing=0, proposal=MappingProxyType({}))
        return (
            f" ({counted(left, 'server')} {'is' if left == 1 else 'are'} there still)"
            if left
            else ""
        )

    # --- parts of steps -----------------------------------------------------------------------

    def _become(self, step: LeaseStep) -> None:
        if self._lease is None:
            self._lease = self.lease.generation
        state = lease_after(self.lease.state, step)
        self.lease = replace(self.lease, state=state, updated_at=self.now)

    def _decide(self, step: DecisionStep) -> None:
        if self._decision is None:
            self._decision = self.decision.generation
        state = decision_after(self.decision.state, step)
        self.decision = replace(self.decision, state=state, updated_at=self.now)

    def _free(self) -> int:
        held = frozenset(member.uuid for member in self._of(MemberStatus.HELD))
        if held:
            self.follows.append(DropBookings(held, decision=self.decision.id))
        return len(held)

    def _at(self, edge: Edge, at: Instant) -> None:
        """Add the effects of the owner's actions at the edge itself, not before it."""
        for action in actions_at(self.lease.actions, edge):
            if not action.before:
                self.follows += notifications.action_effects(self.lease, edge, action, at, self.now)

    def _of(self, status: MemberStatus) -> list[Member]:
        if self.ensemble is None or self.member_places is None:
            return []
        return [one for one in self.ensemble.members if self.member_places.of(one.name) is status]


def _act(env: UseCaseEnvironment, effect: Effect, progress: LeaseProgress) -> str:
    """Carry out an owner's action before an edge, unless the edge has moved."""
    edge = Edge(str(effect.details["edge"]))
    action = read_action(str(effect.details["action"]), edge)
    period = progress.lease.terms.period
    at = period.start if edge is Edge.ON_START else period.end
    if progress.lease.state is LeaseState.CLOSED or at != effect.details["at"]:
        return finish(env.store, effect, "the lease has another edge")
    if effect.due > progress.now:
        env.store.commit(Changeset((postponed(effect, effect.due, progress.now),)))
        return "not yet"
    progress.follows += notifications.action_effects(progress.lease, edge, action, at, progress.now)
    outcome = "notified"
    if action.kind is ActionKind.RELEASE:
        outcome = progress.release()
    elif action.kind is ActionKind.DELETE:
        ended = progress.delete("its owner wants it ended", effect.due)
        outcome = f"{counted(ended, 'server')} to be ended"
    try:
        return _commit(env, effect, progress, outcome)
    except DuplicateName:
        # The same notice was written before the lease was changed.
        return finish(env.store, effect, "notified before")
