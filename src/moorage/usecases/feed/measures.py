"""What thresholds are about: time left of leases, room for a role, free capacity. Only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.events import Happened
from moorage.domain.leases import LeaseState
from moorage.domain.period import Period, format_duration, format_instant
from moorage.domain.requests import Objective
from moorage.domain.subscriptions import LeaseEdge
from moorage.domain.topology import Level
from moorage.engine.build import state
from moorage.engine.fitting import fitting, in_domain, used_share
from moorage.engine.terrain import survey
from moorage.usecases.additional import additional
from moorage.usecases.closed import closed_hosts
from moorage.usecases.joint import find, request_for
from moorage.usecases.ports import Page
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.leases import Lease
    from moorage.domain.subscriptions import Subscription
    from moorage.engine.snapshot import Bools, Snapshot
    from moorage.usecases.parts import Parts

ALIVE: Final = (LeaseState.PENDING, LeaseState.STARTING, LeaseState.ACTIVE)
TIME: Final = "lease.time_left"
ROOM: Final = "ensemble.max_additional"
CAPACITY: Final = "capacity.threshold"
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Crossing:
    """How one quantity stands, to be remembered, and what is told where that differs."""

    key: str
    stands: int
    event: Happened | None = None


Last: TypeAlias = "MutableMapping[str, float]"
"""What a worker has measured last, by subscription and key: told as what was before."""


# --- time left --------------------------------------------------------------------------------


def time_left(parts: Parts, one: Subscription) -> Iterator[Crossing]:
    """Leases whose edge is as near as is asked for, each told once for each edge."""
    before = one.threshold.before
    if before is None or not one.wants.has(TIME):
        return
    now = parts.store.now()
    for lease in _leases(parts, one):
        period = lease.terms.period
        at = period.start if one.threshold.edge is LeaseEdge.START else period.end
        if not now < at <= now + before:
            continue
        body = {
            "name": lease.name,
            "edge": one.threshold.edge.value,
            "at": format_instant(at),
            "left": format_duration(at - now),
            "subscription": one.id,
        }
        yield Crossing(
            f"{TIME} {lease.id}",
            at,
            Happened(TIME, lease.project_id, lease.id, lease.generation, body),
        )


def _leases(parts: Parts, one: Subscription) -> Iterator[Lease]:
    if one.wants.lease is not None:
        lease = parts.store.lease(one.wants.lease)
        if lease.state in ALIVE:
            yield lease
        return
    for state_ in ALIVE:
        marker: str | None = None
        while True:
            page = parts.store.leases(
                project_id=one.project_id, state=state_, page=Page(_MOST, marker)
            )
            yield from (lease for lease in page if one.wants.ensemble in {None, lease.ensemble_id})
            if len(page) < _MOST:
                break
            marker = page[-1].id


# --- room -------------------------------------------------------------------------------------


def ensembles(parts: Parts, one: Subscription) -> Iterator[Ensemble]:
    """The ensembles of its project that have the role it asks about."""
    if one.wants.ensemble is not None:
        yield parts.store.ensemble(one.wants.ensemble)
        return
    for ensemble in parts.store.ensembles(project_id=one.project_id, page=Page(_MOST)):
        if any(role.name == one.wants.role for role in ensemble.roles):
            yield ensemble


def room(
    parts: Parts, one: Subscription, ensemble: Ensemble, snapshot: Snapshot, last: Last
) -> Iterator[Crossing]:
    """Whether fewer of a role fit than is asked for. Only of ensembles that stand somewhere."""
    role = next((role for role in ensemble.roles if role.name == one.wants.role), None)
    below = one.threshold.below
    if role is None or below is None:
        return
    most = max(below, parts.limits.tenant_additional)
    count = max_additional(parts, ensemble, role, snapshot, most=most)
    if count is None:
        return
    key = f"{ROOM} {ensemble.id}"
    was = one.standing.get(key)
    if (count < below) == (was is not None and was < below):
        last[f"{one.id} {key}"] = count
        yield Crossing(key, count if was is None else was)
        return
    body = {
        "name": ensemble.name,
        "role": role.name,
        "before": last.get(f"{one.id} {key}", was),
        "now": count,
        "below": below,
        "crossed": "below" if count < below else "back",
        "subscription": one.id,
    }
    event = Happened(ROOM, ensemble.project_id, ensemble.id, ensemble.generation, body)
    last[f"{one.id} {key}"] = count
    yield Crossing(key, count, event)


def max_additional(
    parts: Parts, ensemble: Ensemble, role: Role, snapshot: Snapshot, *, most: int
) -> int | None:
    """How many more of a role fit now, at most `most`, everybody staying; None: nobody stands.

    Raises:
        Busy: time ran out.
    """
    stand = standing(snapshot, ensemble)
    if not stand.places:
        return None
    period = Period(snapshot.taken_at)
    request = request_for(ensemble, stand, frozenset(), period, Objective.SPREAD)
    closed = closed_hosts(parts.store.keepers().ensembles, snapshot, ensemble, period)
    limit = parts.limits.time_limit // 2
    built = state(request, survey(snapshot, request), closed=closed)
    found = find(parts.solver, built, time_limit=limit, seed=0)
    if found is None:
        return 0  # those who stand break a required policy: nothing joins them
    return additional(parts.solver, found, role, most=most, time_limit=limit).count


# --- capacity ---------------------------------------------------------------------------------


def capacity(parts: Parts, one: Subscription, snapshot: Snapshot, last: Last) -> Iterator[Crossing]:
    """Whether less is free, or more used, than an operator asks for."""
    asked = one.threshold
    if not one.wants.has(CAPACITY) or (asked.flavor is None and asked.resource_class is None):
        return
    measured: float
    among = _zone(snapshot, asked.zone)
    if asked.above_share is not None and asked.resource_class is not None:
        measured = round(used_share(snapshot, asked.resource_class, among), 4)
        crossed, side = measured > asked.above_share, "above"
    else:
        amounts = (
            parts.store.flavor(asked.flavor).resources
            if asked.flavor is not None
            else {str(asked.resource_class): 1}
        )
        measured = fitting(snapshot, amounts, among)
        crossed, side = measured < (asked.below or 0), "below"
    before = last.get(f"{one.id} {CAPACITY}")
    last[f"{one.id} {CAPACITY}"] = measured
    if bool(one.standing.get(CAPACITY, 0)) == crossed:
        yield Crossing(CAPACITY, int(crossed))
        return
    body = {
        "flavor": asked.flavor,
        "resource_class": asked.resource_class,
        "zone": asked.zone,
        "before": before,
        "now": measured,
        "below": asked.below,
        "above_share": asked.above_share,
        "crossed": side if crossed else "back",
        "subscription": one.id,
    }
    event = Happened(CAPACITY, one.project_id, one.id, one.generation, body)
    yield Crossing(CAPACITY, int(crossed), event)


def _zone(snapshot: Snapshot, name: str | None) -> Bools:
    """Living providers in a domain of this name, at whatever level; in all without a name."""
    if name is None:
        return snapshot.alive
    found = snapshot.alive & False
    for (tree, known), domain in snapshot.topology.domains.items():
        if known == name:
            found |= in_domain(snapshot, Level(tree, domain.level), name)
    return found & snapshot.alive
