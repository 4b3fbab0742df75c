"""Thresholds of subscriptions, measured by workers after the ledger has changed.

The measured quantities are the time left of leases, how many more members of a role fit, and free
capacity. Every worker measures at most once per interval, and only if a relevant part of the ledger
has changed. A crossing is written together with the subscription's standing, so that only one of
several workers commits it. After each measurement a worker pauses for `REST` times its duration.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.changes import Changeset, PutEvent, PutSubscription
from moorage.domain.errors import Busy, ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.events import DerivedEvent
from moorage.domain.leases import LeaseState
from moorage.domain.period import SECOND, Period, format_duration, format_instant
from moorage.domain.requests import Objective
from moorage.domain.subscriptions import LeaseEdge
from moorage.domain.topology import Level
from moorage.engine.capacity.fit_now import count_fitting, in_domain, used_share
from moorage.engine.joint.build import build
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.max_additional import count_additional
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.solution import request_for, solve_and_verify
from moorage.usecases.paging import Page
from moorage.usecases.shared.lookup import every_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.leases import Lease
    from moorage.domain.subscriptions import Subscription
    from moorage.engine.state.snapshot import Bools, Snapshot
    from moorage.usecases.environment import UseCaseEnvironment


ALIVE: Final = (LeaseState.PENDING, LeaseState.STARTING, LeaseState.ACTIVE)
TIME: Final = "lease.time_left"
ROOM: Final = "ensemble.max_additional"
CAPACITY: Final = "capacity.threshold"
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Crossing:
    """The state of a measured quantity, and the event if it has crossed its threshold."""

    key: str
    stands: int
    event: DerivedEvent | None = None


LastValues: TypeAlias = "MutableMapping[str, float]"
"""Subscription id and key -> the value measured last; reported as `before` in events."""


# --- time left --------------------------------------------------------------------------------


def time_left(env: UseCaseEnvironment, subscription: Subscription) -> Iterator[Crossing]:
    """Crossings of leases whose edge is less than `threshold.before` away."""
    before = subscription.threshold.before
    if before is None or not subscription.wants.has(TIME):
        return
    now = env.store.now()
    for lease in _leases(env, subscription):
        period = lease.terms.period
        at = period.start if subscription.threshold.edge is LeaseEdge.START else period.end
        if not now < at <= now + before:
            continue
        body = {
            "name": lease.name,
            "edge": subscription.threshold.edge.value,
            "at": format_instant(at),
            "left": format_duration(at - now),
            "subscription": subscription.id,
        }
        yield Crossing(
            f"{TIME} {lease.id}",
            at,
            DerivedEvent(TIME, lease.project_id, lease.id, lease.generation, body),
        )


def _leases(env: UseCaseEnvironment, subscription: Subscription) -> Iterator[Lease]:
    if subscription.wants.lease is not None:
        lease = env.store.lease(subscription.wants.lease)
        if lease.state in ALIVE:
            yield lease
        return
    for state in ALIVE:
        read = partial(env.store.leases, project_id=subscription.project_id, state=state)
        for lease in every_record(read):
            if subscription.wants.ensemble in {None, lease.ensemble_id}:
                yield lease


# --- room -------------------------------------------------------------------------------------


def ensembles(env: UseCaseEnvironment, subscription: Subscription) -> Iterator[Ensemble]:
    """The ensembles that a subscription watches: with its role, in its project."""
    if subscription.wants.ensemble is not None:
        yield env.store.ensemble(subscription.wants.ensemble)
        return
    for ensemble in env.store.ensembles(project_id=subscription.project_id, page=Page(_MOST)):
        if any(role.name == subscription.wants.role for role in ensemble.roles):
            yield ensemble


def room(
    env: UseCaseEnvironment,
    subscription: Subscription,
    ensemble: Ensemble,
    snapshot: Snapshot,
    last_values: LastValues,
) -> Iterator[Crossing]:
    """The standing of `max_additional` against `threshold.below`; only for placed ensembles."""
    role = next((role for role in ensemble.roles if role.name == subscription.wants.role), None)
    below = subscription.threshold.below
    if role is None or below is None:
        return
    few = env.limits.tenant_additional
    most = max(below, few) if subscription.operator else few
    count = max_additional(env, ensemble, role, snapshot, most=most)
    if count is None:
        return
    if not subscription.operator:
        # Compare the rounded count, or a tenant could find the exact one by varying `below`.
        count = env.limits.told_additional(count)
    key = f"{ROOM} {ensemble.id}"
    was = subscription.standing.get(key)
    if was is not None and not subscription.operator:
        was = env.limits.told_additional(was)  # noted before counts were rounded
    if (count < below) == (was is not None and was < below):
        last_values[f"{subscription.id} {key}"] = count
        yield Crossing(key, count if was is None else was)
        return
    body = {
        "name": ensemble.name,
        "role": role.name,
        "before": last_values.get(f"{subscription.id} {key}", was),
        "now": count,
        "below": below,
        "crossed": "below" if count < below else "back",
        "subscription": subscription.id,
    }
    event = DerivedEvent(ROOM, ensemble.project_id, ensemble.id, ensemble.generation, body)
    last_values[f"{subscription.id} {key}"] = count
    yield Crossing(key, count, event)


def max_additional(
    env: UseCaseEnvironment, ensemble: Ensemble, role: Role, snapshot: Snapshot, *, most: int
) -> int | None:
    """How many more members of a role fit now, at most `most`; None: no member is placed.

    Raises:
        Busy: time ran out.
    """
    member_places = locate_members(snapshot, ensemble)
    if not member_places.places:
        return None
    period = Period(snapshot.taken_at)
    request = request_for(ensemble, member_places, frozenset(), period, Objective.SPREAD)
    exclusive = env.store.exclusive_ensembles(snapshot).ensembles
    closed = closed_hosts(exclusive, snapshot, ensemble, period)
    limit = env.limits.time_limit // 2
    built = build(request, snapshot, closed=closed)
    found = solve_and_verify(env.solver, built, time_limit=limit, seed=0)
    if found is None:
        return 0  # the placed members break a required policy, so no member can be added
    return count_additional(env.solver, found, (role,), most=most, time_limit=limit).count


# --- capacity ---------------------------------------------------------------------------------


def capacity(
    env: UseCaseEnvironment, subscription: Subscription, snapshot: Snapshot, last_values: LastValues
) -> Iterator[Crossing]:
    """The standing of free capacity against `below`, or of the used share against `above_share`."""
    threshold = subscription.threshold
    if not subscription.wants.has(CAPACITY) or (
        threshold.flavor is None and threshold.resource_class is None
    ):
        return
    measured: float
    among = _zone(snapshot, threshold.zone)
    if threshold.above_share is not None and threshold.resource_class is not None:
        measured = round(used_share(snapshot, threshold.resource_class, among), 4)
        crossed, side = measured > threshold.above_share, "above"
    else:
        amounts = (
            env.store.flavor(threshold.flavor).whole
            if threshold.flavor is not None
            else {str(threshold.resource_class): 1}
        )
        measured = count_fitting(snapshot, amounts, among)
        crossed, side = measured < (threshold.below or 0), "below"
    before = last_values.get(f"{subscription.id} {CAPACITY}")
    last_values[f"{subscription.id} {CAPACITY}"] = measured
    if bool(subscription.standing.get(CAPACITY, 0)) == crossed:
        yield Crossing(CAPACITY, int(crossed))
        return
    body = {
        "flavor": threshold.flavor,
        "resource_class": threshold.resource_class,
        "zone": threshold.zone,
        "before": before,
        "now": measured,
        "below": threshold.below,
        "above_share": threshold.above_share,
        "crossed": side if crossed else "back",
        "subscription": subscription.id,
    }
    event = DerivedEvent(
        CAPACITY, subscription.project_id, subscription.id, subscription.generation, body
    )
    yield Crossing(CAPACITY, int(crossed), event)


def _zone(snapshot: Snapshot, name: str | None) -> Bools:
    """[P] the fleet's providers in a domain of this name, at any level; None: all of them."""
    if name is None:
        return snapshot.fleet
    found = snapshot.alive & False
    for (tree, known), domain in snapshot.topology.domains.items():
        if known == name:
            found |= in_domain(snapshot, Level(tree, domain.level), name)
    return found & snapshot.fleet


REST: Final = 9
"""Length of a worker's pause, as a multiple of the duration of the measurement before."""

_log = logging.getLogger(__name__)


@dataclass
class ThresholdWatcher:
    """Measures thresholds in one worker. Its cache only saves work."""

    env: UseCaseEnvironment
    _next: float = 0.0
    _until: int = 0
    """The instant from which on measurements may change without any commit."""
    _seen: dict[str, object] = field(default_factory=dict)
    """Subscription id -> the state of the ledger that was measured last."""
    _last_values: dict[str, float] = field(default_factory=dict)

    def run_round(self) -> bool:
        """Measure the thresholds if it is time; always False: there is never more to do at once.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        env, began = self.env, self.env.stopwatch()
        if began < self._next:
            return False
        self._next = began + env.limits.thresholds / SECOND
        some = env.store.event_log.with_thresholds()
        if some:
            self._look_at(some)
        took = env.stopwatch() - began
        self._next = max(self._next, began + took * (1 + REST))
        return False

    def _look_at(self, some: Sequence[Subscription]) -> None:
        snapshot = self.env.store.snapshot()
        fleet, due = _digest(snapshot), snapshot.taken_at >= self._until
        self._until = snapshot.valid_until
        known: dict[str, object] = {}
        for one in some:
            try:
                known[one.id] = self._one(one, snapshot, fleet, due=due)
            except (ConcurrentUpdate, NotFound):
                continue  # another worker committed first; measured again in the next round
            except Busy as busy:
                _log.info("threshold of subscription %s: %s", one.id, busy.message)
            except MoorageError:
                _log.exception("could not look at the threshold of subscription %s", one.id)
        self._seen = known

    def _one(
        self, subscription: Subscription, snapshot: Snapshot, fleet: bytes, *, due: bool
    ) -> tuple[object, ...]:
        env = self.env
        some = (
            list(ensembles(env, subscription))
            if subscription.wants.has(ROOM) and _asks_for_room(subscription)
            else []
        )
        basis = (fleet, subscription.threshold, tuple((each.id, each.generation) for each in some))
        crossings = list(time_left(env, subscription))
        kept: Mapping[str, int] = {}
        if due or self._seen.get(subscription.id) != basis:
            for each in some:
                crossings += room(env, subscription, each, snapshot, self._last_values)
            crossings += capacity(env, subscription, snapshot, self._last_values)
        else:
            kept = {
                key: value
                for key, value in subscription.standing.items()
                if not key.startswith(TIME)
            }
        _write(env, subscription, crossings, kept)
        return basis


def _digest(snapshot: Snapshot) -> bytes:
    """A digest of all revisions that change with any booking, provider or topology."""
    revisions = snapshot.revisions.tobytes()
    return sha256(revisions + b"%d" % snapshot.topology_revision).digest()


def _asks_for_room(subscription: Subscription) -> bool:
    return subscription.wants.role is not None and subscription.threshold.below is not None


def _write(
    env: UseCaseEnvironment,
    subscription: Subscription,
    crossings: list[Crossing],
    kept: Mapping[str, int],
) -> None:
    """Commit the subscription's new standing and the events; nothing if it is unchanged."""
    stands = {**kept, **{each.key: each.stands for each in crossings}}
    if stands == dict(subscription.standing):
        return
    told = [
        PutEvent(each.event)
        for each in crossings
        if each.event is not None and subscription.standing.get(each.key) != each.stands
    ]
    after = replace(subscription, standing=stands, updated_at=env.store.now())
    env.store.commit(Changeset((PutSubscription(after, subscription.generation), *told)))
