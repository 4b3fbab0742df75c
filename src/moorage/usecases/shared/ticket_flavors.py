"""Flavors of held decisions and of leases, and the effects that create and delete them in Nova.

The flavors are created as soon as a decision is held, and deleted when it is confirmed or released,
or its hold has lapsed. A decision that replaces a held one keeps its ticket, and so its flavors.
Those of a lease's reservations are there from its start to its end.
The deletion waits until no attempt to create them can be under way: what is created after it would
stay in Nova for ever.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import PutEffect
from moorage.domain.decisions import DecisionState
from moorage.domain.effects import Effect, EffectKind, EffectState, fact_id
from moorage.domain.leases import LeaseState, reservation_class
from moorage.domain.period import SECOND
from moorage.domain.tickets import reservation_flavor, ticket_flavor
from moorage.usecases.paging import Page
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.domain.tickets import TicketFlavor
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment

NOT_HELD = "nothing is held for the ticket any more"
"""The outcome of a creation that was not needed any more."""


def ticket_flavors(
    store: Store, decision: Decision, ensemble: Ensemble
) -> tuple[TicketFlavor, ...]:
    """A flavor for each role of servers; none unless the decision is held, for no lease.

    Members of a role with alternatives may be of several sizes: they are claimed.
    """
    if not decision.ticket or decision.state_at(store.now()) is not DecisionState.HELD:
        return ()
    return tuple(
        ticket_flavor(ensemble.name, role, decision.ticket)
        for role in ensemble.roles
        if role.of_nova and not role.alternatives and (role.share is None or role.share.joined)
    )


def lease_flavors(lease: Lease, ensemble: Ensemble) -> tuple[TicketFlavor, ...]:
    """A flavor for each reservation of servers; none for whole hosts and addresses."""
    return tuple(
        reservation_flavor(one.id, reservation_class(one.id), role)
        for one in lease.reservations
        if (role := ensemble.role(one.role)).of_nova and role.resources
    )


def lease_flavor_creation(
    lease: Lease, flavors: Sequence[TicketFlavor], now: Instant
) -> Iterator[PutEffect]:
    """The effect that creates the flavors of a lease which begins now."""
    if flavors:
        details = {"flavors": [_body(one) for one in flavors]}
        yield _effect(EffectKind.CREATE_FLAVORS, lease.id, lease, now, now, details)


def lease_flavor_deletion(
    lease: Lease, flavors: Sequence[TicketFlavor], now: Instant
) -> Iterator[PutEffect]:
    """The effect that deletes the flavors of a lease which ends now."""
    if flavors:
        details = {"flavors": [one.id for one in flavors]}
        yield _effect(EffectKind.DELETE_FLAVORS, lease.id, lease, now, now, details)


def flavor_creation(
    env: Environment, decision: Decision, ensemble: Ensemble
) -> Iterator[PutEffect]:
    """The effects that create the flavors of a new decision now, and delete them when it lapses.

    Each project may use those of its own roles. None unless the service manages flavors in Nova.
    """
    if not env.limits.ticket_flavors:
        return
    flavors = ticket_flavors(env.store, decision, ensemble)
    if not flavors:
        return
    kind = EffectKind.CREATE_FLAVORS
    made = decision.created_at
    of_project: dict[str, list[object]] = {}
    for one in flavors:
        of_project.setdefault(ensemble.project_of(one.role), []).append(_body(one))
    for project, some in of_project.items():
        details = {"flavors": some}
        yield _effect(kind, decision.ticket, decision, made, made, details, project)
    yield from flavor_deletion(env, decision, ensemble, decision.created_at, decision.expires_at)


def flavor_deletion(
    env: Environment,
    decision: Decision,
    ensemble: Ensemble,
    now: Instant,
    due: Instant | None = None,
) -> Iterator[PutEffect]:
    """The effect that deletes the flavors of a decision that was held until now.

    Args:
        env: whether the service manages flavors in Nova.
        decision: the decision, held.
        ensemble: its ensemble.
        now: the present.
        due: when; None: now.
    """
    if env.limits.ticket_flavors:
        ids = {one.id for one in ticket_flavors(env.store, decision, ensemble)}
        if decision.ticket and (due is None or decision.ticket != decision.id):
            ids |= _created(env.store, decision.ticket)
        if ids:
            due = now if due is None else due
            kind = EffectKind.DELETE_FLAVORS
            yield _effect(kind, decision.ticket, decision, due, now, {"flavors": sorted(ids)})


def _created(store: Store, ticket: str) -> set[str]:
    """Ids of all flavors of a ticket; roles that have left the ensemble since had some, too."""
    creations = (one for one in store.effects(ticket) if one.kind is EffectKind.CREATE_FLAVORS)
    found: set[str] = set()
    for one in creations:
        flavors = one.details["flavors"]
        assert isinstance(flavors, list)
        found.update(str(flavor["id"]) for flavor in flavors)
    return found


def held_decision(store: Store, ticket: str) -> Decision | None:
    """The decision that holds the places of a ticket; None: nothing is held for it any more."""
    first = if_stored(store.decision, ticket)
    if first is None:
        return None
    newest = store.decisions(
        project_id=first.project_id, ensemble_id=first.ensemble_id, page=Page(limit=1)
    )
    now = store.now()
    held = (one for one in newest if one.state_at(now) is DecisionState.HELD)
    return next((one for one in held if one.ticket == ticket), None)


def held_until(store: Store, effect: Effect) -> Instant | None:
    """When the places of an effect's ticket or lease are over; None: they are over already."""
    lease = if_stored(store.lease, effect.subject)
    if lease is not None:
        now = store.now()
        lasts = lease.state is LeaseState.ACTIVE and lease.terms.period.end > now
        return lease.terms.period.end if lasts else None
    decision = held_decision(store, effect.subject)
    return None if decision is None else decision.expires_at


def created_until(store: Store, ticket: str, timeout: Duration) -> Instant:
    """Until when an attempt to create the flavors of a ticket may be under way; past if none is.

    `timeout` is longer than any attempt takes.
    """
    now = store.now()
    creations = (one for one in store.effects(ticket) if one.kind is EffectKind.CREATE_FLAVORS)
    return max((_under_way_until(one, timeout, now) for one in creations), default=0)


def _under_way_until(creation: Effect, timeout: Duration, now: Instant) -> Instant:
    if creation.state is EffectState.PENDING:
        return max(creation.not_before, now + SECOND)
    succeeded = creation.state is EffectState.DONE and creation.outcome != NOT_HELD
    if succeeded or not creation.attempts:
        return 0
    return creation.updated_at + timeout  # a failed attempt may have been cut off


def _effect(  # noqa: PLR0913, PLR0917 - what an effect says
    kind: EffectKind,
    subject: str,
    of: Decision | Lease,
    due: Instant,
    now: Instant,
    details: Mapping[str, object],
    project: str | None = None,
) -> PutEffect:
    """The effect, for another project than that of the decision or lease if one is given."""
    other = () if project in {None, of.project_id} else (project,)
    return PutEffect(
        Effect(
            id=fact_id(kind, of.id, due, *other),
            kind=kind,
            subject=subject,
            project_id=project or of.project_id,
            due=due,
            not_before=due,
            details=MappingProxyType(dict(details)),
            created_at=now,
            updated_at=now,
        ),
        None,
    )


def _body(flavor: TicketFlavor) -> dict[str, object]:
    return {
        "id": flavor.id,
        "name": flavor.name,
        "vcpus": flavor.size.vcpus,
        "ram": flavor.size.memory_mb,
        "disk": flavor.size.root_gb,
        "OS-FLV-EXT-DATA:ephemeral": flavor.size.ephemeral_gb,
        "swap": flavor.size.swap_mb,
        "extra_specs": dict(flavor.extra_specs),
    }
