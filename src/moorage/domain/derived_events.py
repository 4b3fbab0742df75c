"""Derives events from the changes of a changeset.

Pure. The committing store gives the previous state of what is replaced (`StoredState`), and numbers
the events. A change without events is not in the table.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from moorage.domain import changes
from moorage.domain.decisions import ClaimState
from moorage.domain.effects import ENDED, EffectKind
from moorage.domain.ensembles import described_otherwise
from moorage.domain.events import DerivedEvent
from moorage.domain.host_states import HostState
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, format_instant
from moorage.domain.plan_events import plan_events
from moorage.domain.waitlist import EntryState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Claim
    from moorage.domain.effects import Effect
    from moorage.domain.ensembles import Ensemble, Member, Role
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.plans import Plan
    from moorage.domain.server_providers import ServerProvider
    from moorage.domain.shares import Share
    from moorage.domain.waitlist import Estimate, WaitlistEntry

_WARNED: Final = (*("server", "ends", "declared_end", "order", "of", "why", "ensemble", "member"),)
_ENDED: Final = ("because", *_WARNED)
_REPRIEVED: Final = ("server", "ends", "declared_end", "ensemble", "member")
_OVERRUN: Final = ("server", "ended", "ensemble", "member")
_NOTICE: Final = ("name", "start", "end", "edge", "at", "state")


class StoredState(Protocol):
    """The state of what a change replaces or removes."""

    def lease(self, id_: str) -> Lease | None:
        """The lease before the change; None: it is new."""

    def entry(self, id_: str) -> WaitlistEntry | None:
        """The waitlist entry before the change; None: it is new."""

    def decision_state(self, id_: str) -> str | None:
        """The state of a decision before the change; None: it is new."""

    def owner(self, id_: str) -> tuple[str, str]:
        """The project and the name of an ensemble that is deleted."""

    def untold_refusals(self, explanation_id: str) -> int | None:
        """How many refusals had no event since one that had; None: this one has none either."""

    def shared_ensemble(self, id_: str) -> Ensemble | None:
        """An ensemble after the changes; None: it is gone, or all its roles are one project's."""

    def server_provider(self, id_: str) -> ServerProvider | None:
        """A server provider after the changes; None: it is gone."""

    def window(self, id_: str) -> CapacityWindow:
        """A planned window that is deleted."""

    def plan(self, id_: str) -> Plan | None:
        """A plan before the change; None: it is new."""


def derive_events(every: Iterable[Change], before: StoredState) -> Iterator[DerivedEvent]:
    """The events of these changes, in their order."""
    for change in every:
        tell = _TOLD.get(type(change))
        if tell is not None:
            yield from tell(change, before)


def _lease(change: changes.PutLease, before: StoredState) -> Iterator[DerivedEvent]:
    lease, old = change.lease, before.lease(change.lease.id)
    if lease.proposed and lease.occurrence is not None:
        # An occurrence held while its series is granted is no offer: only the grant makes an event.
        return
    generation = lease.generation if change.generation is None else change.generation + 1
    body = _of_lease(lease)

    def told(word: str, **more: object) -> DerivedEvent:
        return DerivedEvent(
            f"lease.{word}", lease.project_id, lease.id, generation, MappingProxyType(body | more)
        )

    if old is None or old.state is not lease.state:
        yield told(lease.state.value)
    if old is not None and (changed := sorted(_changed(old, lease))):
        yield told("changed", changed=changed)
    was, missed = (False, 0) if old is None else (old.degraded, old.missing)
    proposed = old is not None and bool(old.proposal)
    if lease.degraded and not was:
        yield told("degraded")
    if lease.degraded and (lease.missing != missed or (lease.proposal and not proposed)):
        yield told("missing")
    if was and not lease.degraded:
        yield told("whole")


def _of_lease(lease: Lease) -> dict[str, object]:
    one = lease.occurrence
    series = {} if one is None else {"series": one.series, "index": one.index}
    return {
        "name": lease.name,
        "status": lease.state.value,
        "start": format_instant(lease.terms.period.start),
        "end": format_instant(lease.terms.period.end),
        "degraded": lease.degraded,
        "missing": lease.missing,
        "proposal": _proposed(lease.proposal),
        "ensemble": lease.ensemble_id,
        **series,
    }


def _proposed(change: Mapping[str, object]) -> dict[str, object] | None:
    """A proposal on the wire: `{"policy": "one-per-host", "max_per_domain": [1, 2]}`."""
    if not change:
        return None
    return {
        str(change["subject"]): change["name"],
        str(change["field"]): [change["before"], change["after"]],
    }


def _changed(old: Lease, new: Lease) -> Iterator[str]:
    if old.name != new.name:
        yield "name"
    if old.terms.period != new.terms.period:
        yield "period"
    if old.reservations != new.reservations:
        yield "reservations"
    if old.decision_id != new.decision_id:
        yield "places"


def _decision(change: changes.PutDecision, before: StoredState) -> Iterator[DerivedEvent]:
    one = change.decision
    if change.generation is not None and before.decision_state(one.id) == one.state.value:
        return
    body = {
        "ensemble": one.ensemble_id,
        "status": one.state.value,
        "expires_at": _instant(one.expires_at),
        "members": len(one.places),
        "lease": one.lease_id,
    }
    generation = one.generation if change.generation is None else change.generation + 1
    told = DerivedEvent(f"decision.{one.state}", one.project_id, one.id, generation, body)
    yield told
    for project, own in _of_others(before, one.ensemble_id, one.places):
        yield replace(told, project_id=project, body=body | {"members": len(own)})


def _of_others(
    before: StoredState, ensemble_id: str, members: Iterable[MemberName]
) -> Iterator[tuple[str, list[MemberName]]]:
    """Each other project that takes part in an ensemble, with those of the members that it owns."""
    ensemble = before.shared_ensemble(ensemble_id)
    if ensemble is None:
        return
    own: dict[str, list[MemberName]] = {}
    for one in members:
        own.setdefault(ensemble.project_of(one.role), []).append(one)
    yield from ((project, own[project]) for project in own if ensemble.is_joined_by(project))


def _claim(change: changes.PutClaim, before: StoredState) -> Iterator[DerivedEvent]:
    one = change.claim
    if change.expected_state == one.state.value:
        return
    body = _claim_body(one, one.state)
    if one.state is ClaimState.FAILED:
        body["reason"] = one.reason or None
    yield DerivedEvent(f"claim.{one.state}", one.project_id, one.id, 0, body)
    if change.expected_state is None and one.lease_id is not None:
        claimed = {"claim": one.id, **body}
        yield DerivedEvent("lease.claimed", one.project_id, one.lease_id, 0, claimed)
    if one.server_provider is not None:
        offered = before.server_provider(one.server_provider)
        if offered is not None:  # else it ends by this commit, which says it
            yield slice_event(one, offered)


def slice_event(one: Claim, offered: ServerProvider) -> DerivedEvent:
    """The event for the owner of the server, who makes and removes what the slice stands for.

    Of other projects it has the id only where the owner has named it.
    """
    word = {ClaimState.BUILDING: "claimed", ClaimState.ACTIVE: "active"}.get(one.state, "gone")
    body = {
        "server_provider": offered.id,
        "server": offered.server_id,
        "resources": dict(one.resources),
        "status": one.state.value,
        "slice": one.server_id,
        "project": one.project_id if offered.names(one.project_id) else None,
    }
    return DerivedEvent(f"slice.{word}", offered.project_id, one.id, 0, body)


def _claim_body(one: Claim, state: ClaimState) -> dict[str, object]:
    return {
        "member": str(one.member),
        "status": state.value,
        "ensemble": one.ensemble_id,
        "decision": one.decision_id,
        "server": one.server_id,
        "lease": one.lease_id,
    }


def spent_claim(one: Claim, state: ClaimState, server: str, *, refused: bool) -> DerivedEvent:
    """The event of a claim that a new server presents when it is over, in this state."""
    body = {"presented_by": server, "refused": refused, **_claim_body(one, state)}
    return DerivedEvent("claim.spent", one.project_id, one.id, 0, body)


def misplaced_member(
    ensemble: Ensemble, member: MemberName, server: str, policies: Sequence[str]
) -> DerivedEvent:
    """The event of a member whose server is moved to a host on which it breaks policies."""
    body = {"ensemble": ensemble.id, "member": str(member), "policies": list(policies)}
    project = ensemble.project_of(member.role)
    return DerivedEvent("member.misplaced", project, server, 0, body)


def removed_member(ensemble: Ensemble, member: Member, policies: Sequence[str]) -> DerivedEvent:
    """The event of a member that is taken out, with the policies that break by it."""
    body = {
        "name": ensemble.name,
        "member": str(member.name),
        "server": member.server_id,
        "policies": list(policies),
    }
    return DerivedEvent("member.removed", ensemble.project_id, ensemble.id, 0, body)


def share_event(
    ensemble: Ensemble, shared: Sequence[tuple[Role, Share]], project_id: str
) -> DerivedEvent:
    """The event of shares that are offered, accepted or revoked together, for one project."""
    state = shared[0][1].state
    body = {
        "status": state.value,
        "ensemble": ensemble.id,
        "name": ensemble.name,
        "roles": [role.name for role, _ in shared],
        "shares": [share.id for _, share in shared],
        "owner": ensemble.project_id,
        "projects": sorted({share.project_id for _, share in shared}),
    }
    return DerivedEvent(f"share.{state}", project_id, ensemble.id, 0, body)


_MEMBERS: Final = 100
"""Members named in an event of a policy."""


def _violation(change: changes.PutViolation, before: StoredState) -> Iterator[DerivedEvent]:
    """A violation that begins, becomes worse or ends; of other changes there is no event."""
    one = change.stored
    if change.generation is not None and one.open and not change.worse:
        return
    body: dict[str, object] = {
        "violation": one.id,
        "name": one.ensemble,
        "since": format_instant(one.since),
        "until": _instant(one.until),
        "because": (one.ended_by or one.cause).kind.value,
    }
    if one.policy is None:
        (member,) = one.members
        body |= {"member": str(member), "server": one.servers.get(str(member))}
        word = f"member.{one.type if one.open else 'recovered'}"
        yield DerivedEvent(word, one.project_id, one.ensemble_id, 0, body)
        return
    body |= {
        "policy": one.policy,
        "type": one.type,
        "required": one.required,
        "amount": one.amount,
    }
    word = "policy.violated" if one.open else "policy.restored"
    for project, own in (
        (one.project_id, one.members),
        *_of_others(before, one.ensemble_id, one.members),
    ):
        named = {"members": [str(member) for member in own[:_MEMBERS]]}
        yield DerivedEvent(word, project, one.ensemble_id, 0, body | named)


def _ensemble(change: changes.PutEnsemble, before: StoredState) -> Iterator[DerivedEvent]:
    del before
    one, old = change.ensemble, change.described
    if change.generation is None:
        body: dict[str, object] = {"name": one.name, "members": len(one.members)}
        yield DerivedEvent("ensemble.created", one.project_id, one.id, one.generation, body)
    elif old is not None and (changed := described_otherwise(old, one)):
        body = {"name": one.name, **changed}
        generation = change.generation + 1
        yield DerivedEvent("ensemble.changed", one.project_id, one.id, generation, body)


def _no_ensemble(change: changes.DeleteEnsemble, before: StoredState) -> Iterator[DerivedEvent]:
    project, name = before.owner(change.id)
    yield DerivedEvent(
        "ensemble.deleted", project, change.id, change.generation or 0, {"name": name}
    )


def _effect(change: changes.PutEffect, before: StoredState) -> Iterator[DerivedEvent]:
    """Events of new effects that are facts, and of a notice at its first attempt.

    A member's end has an event once the server deleter has done it.
    """
    effect = change.effect
    if change.attempts is None and effect.kind is EffectKind.WARN:
        yield _told("member.warned", effect, _WARNED)
    elif change.attempts is None and effect.kind is EffectKind.OVERRUN:
        yield _told("member.overrun", effect, _OVERRUN)
    elif change.attempts is None and effect.kind is EffectKind.REPRIEVE:
        yield _told("member.reprieved", effect, _REPRIEVED)
    elif change.attempts is None and effect.kind is EffectKind.REPLACE:
        yield from _unplaced(effect, before)
    elif effect.kind is EffectKind.DELETE and effect.details.get(ENDED):
        yield _told("member.evicted", effect, _ENDED)
    elif change.attempts == 0 and effect.kind is EffectKind.NOTIFY and "edge" in effect.details:
        if "capacity_window" in effect.details:
            yield _of_edge(effect)
        else:
            yield _notice(effect)


def _unplaced(effect: Effect, before: StoredState) -> Iterator[DerivedEvent]:
    details = effect.details
    body = {name: details.get(name) for name in ("ensemble", "members")}
    told = DerivedEvent("decision.unplaced", effect.project_id, str(details["decision"]), 0, body)
    yield told
    members = details.get("members")
    names = map(MemberName.parse, members if isinstance(members, list | tuple) else ())
    for project, own in _of_others(before, str(details.get("ensemble")), names):
        yield replace(told, project_id=project, body=body | {"members": list(map(str, own))})


def _notice(effect: Effect) -> DerivedEvent:
    """A notice's event, with the id under which the operator's webhook gets it."""
    told = _told("lease.notice", effect, _NOTICE)
    return replace(told, body={**told.body, "notice": effect.id})


def _of_edge(effect: Effect) -> DerivedEvent:
    """A planned window's event: how many hosts are away soon, now, or no more, without names."""
    details = effect.details
    hosts = details.get("hosts")
    body = {name: details.get(name) for name in ("kind", "start", "end", "reason")}
    body["hosts"] = len(hosts) if isinstance(hosts, list | tuple) else None
    edge = "ends" if details["edge"] == "there" else details["edge"]
    return DerivedEvent(f"capacity.{edge}", effect.project_id, effect.subject, 0, body)


def _window(change: changes.PutCapacityWindow, before: StoredState) -> Iterator[DerivedEvent]:
    del before
    yield _of_window("capacity.planned", change.window)


def _no_window(change: changes.DropCapacityWindow, before: StoredState) -> Iterator[DerivedEvent]:
    yield _of_window("capacity.removed", before.window(change.id))


def _host(change: changes.TellHost, before: StoredState) -> Iterator[DerivedEvent]:
    del before
    state = change.now.state
    body = {
        "host": change.name,
        "state": state.value,
        "former_state": change.was.state.value,
        "closed": list(change.closed),
        "reason": change.reason,
    }
    type_ = "host.opened" if state is HostState.OPEN else "host.closed"
    yield DerivedEvent(type_, change.project_id, change.provider, 0, body)


def _of_window(type_: str, one: CapacityWindow) -> DerivedEvent:
    body = {
        "kind": one.kind.value,
        "hosts": len(one.hosts),
        "start": format_instant(one.period.start),
        "end": _instant(one.period.end),
        "reason": one.reason,
    }
    return DerivedEvent(type_, one.project_id, one.id, 0, body)


def _told(type_: str, effect: Effect, fields: tuple[str, ...]) -> DerivedEvent:
    """An event with the details that its owner may see: not the lease that displaces it."""
    details = effect.details
    body = {name: details.get(name) for name in fields}
    subject = effect.subject
    if details.get("server", subject) is None and "ensemble" in details:
        subject = str(details["ensemble"])  # a member that has no server yet
    return DerivedEvent(type_, effect.project_id, subject, 0, body)


def _entry(change: changes.PutEntry, before: StoredState) -> Iterator[DerivedEvent]:
    """An entry's new state, or the new estimate of one that goes on waiting."""
    one, old = change.stored, before.entry(change.entry.id)
    if old is None or old.state is not one.state:
        word = one.state.value
    elif _start(old.estimate) != _start(one.estimate):
        word = "estimate"
    else:
        return
    body = {
        "name": one.name,
        "status": one.state.value,
        "earliest_start": format_instant(one.terms.period.start),
        "latest_start": format_instant(one.latest),
        "waits_for": one.waits_for.value,
        "estimate": None if one.estimate is None else format_instant(one.estimate.start),
        "lease": one.id if one.state is EntryState.GRANTED else None,
    }
    yield DerivedEvent(f"waitlist.{word}", one.project_id, one.id, one.generation, body)


def _start(estimate: Estimate | None) -> Instant | None:
    return None if estimate is None else estimate.start


def _explanation(change: changes.PutExplanation, before: StoredState) -> Iterator[DerivedEvent]:
    """A refusal, as tenants may see it; of repeated ones only the first in a while."""
    why, asked = change.explanation, change.asked
    untold = before.untold_refusals(why.id)
    if asked is None or untold is None:
        return
    body = {
        "ensemble": asked.ensemble_id or None,
        "name": asked.name or None,
        "user": asked.user_id,
        "stage": why.stage.value,
        "why": why.shortly,
        "explanation": why.id,
        "untold": untold,
    }
    yield DerivedEvent("request.refused", change.project_id, why.id, 0, body)


def _plan(change: changes.PutPlan, before: StoredState) -> Iterator[DerivedEvent]:
    return plan_events(change.stored, before.plan(change.plan.id))


def _event(change: changes.PutEvent, before: StoredState) -> Iterator[DerivedEvent]:
    del before
    yield change.happened


def _instant(instant: Instant) -> str | None:
    return None if instant == FOREVER else format_instant(instant)


_TOLD: Final[Mapping[type, Callable[[Any, StoredState], Iterator[DerivedEvent]]]] = (
    MappingProxyType(
        {
            changes.PutLease: _lease,
            changes.PutDecision: _decision,
            changes.PutClaim: _claim,
            changes.PutEnsemble: _ensemble,
            changes.DeleteEnsemble: _no_ensemble,
            changes.PutEffect: _effect,
            changes.PutCapacityWindow: _window,
            changes.DropCapacityWindow: _no_window,
            changes.TellHost: _host,
            changes.PutEntry: _entry,
            changes.PutExplanation: _explanation,
            changes.PutViolation: _violation,
            changes.PutPlan: _plan,
            changes.PutEvent: _event,
        }
    )
)
TELLING: Final = frozenset(_TOLD)
"""Kinds of changes that may mean an event."""
