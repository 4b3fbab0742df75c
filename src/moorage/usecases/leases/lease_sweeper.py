"""The lease sweeper: reports overrun servers, repairs leases on failed hosts, replans leases.

A booking's end does not stop its server: a booking past its end counts as open-ended, and a
deletion of its server is requested. If the server is still there after the grace period it is
overrun, and owner and operator are notified once. The grace period is zero where no service deletes
servers.

Edges take effect in the order of their instants, however many have passed since the last round, as
after an outage or a jump of a simulation's clock: places are judged only once all due effects
by which servers end were tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset
from moorage.domain.effects import LANES, EffectKind, EffectState
from moorage.domain.errors import DuplicateName
from moorage.domain.period import MINUTE, format_instant
from moorage.usecases.effects import notifications
from moorage.usecases.preemption import eviction
from moorage.usecases.preemption.eviction import owner_details
from moorage.usecases.preemption.stay_ends import EndReason
from moorage.usecases.relocation import lease_health
from moorage.usecases.relocation.late_replanning import ReplanWorker
from moorage.usecases.relocation.repair import RepairWorker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import PutEffect
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import OverrunConsumer, Store
    from moorage.usecases.shared.limits import Limits


PAGE: Final = 500
"""Servers read in one round."""

_BACK: Final = 10 * MINUTE
"""How far a round looks back before the start of the previous one, as clocks may differ."""


@dataclass(frozen=True, slots=True)
class OverrunScan:
    """The progress of a worker's scan for overrun servers."""

    after: tuple[Instant, str] = (0, "")
    more: bool = False
    """Whether the next page should be read at once."""
    known: Mapping[str, Instant] = field(default_factory=lambda: MappingProxyType({}))
    """Ids of effects that are written already, with the ends of the bookings they are about."""


def report_overrun(env: UseCaseEnvironment, seen: OverrunScan) -> OverrunScan:
    """Write the effects of servers whose end has passed since the last scan."""
    now, notice = env.store.now(), env.limits.notice
    after = seen.after
    if not seen.more:
        after = (max(min(after[0], now) - max(_BACK, 2 * notice), 0), "")
    page = env.store.overrun(after, PAGE)
    known = {one: end for one, end in seen.known.items() if end >= after[0] or seen.more}
    for one in page:
        first, deletion = _due(one, now, _patience(env.limits, one.yields_to))
        if first.effect.id not in known:
            _write(env, first, deletion)
            known[first.effect.id] = one.end
    if len(page) == PAGE:
        return OverrunScan((page[-1].end, page[-1].consumer.uuid), more=True, known=known)
    return OverrunScan((now, ""), known=known)


def is_overrun(booking: Booking, now: Instant, limits: Limits) -> bool:
    """Whether the booking's server still exists after its end and its grace period."""
    patience = _patience(limits, booking.yields_to)
    return booking.state is BookingState.ALLOCATED and booking.period.end + patience <= now


def _patience(limits: Limits, yields_to: str | None) -> Duration:
    """A server's grace period: `limits.notice` if it yields to a lease, else `limits.grace`."""
    return limits.grace if yields_to is None else limits.notice


def _due(
    one: OverrunConsumer, now: Instant, patience: Duration
) -> tuple[PutEffect, PutEffect | None]:
    """The effects due for a server past its end: the first marks it as handled.

    Until its patience is over that is its deletion alone; then it is the report of the overrun,
    with another deletion. A server that yields to a lease is reported once the lease needs its
    place.
    """
    server, project = one.consumer.uuid, one.consumer.project_id
    if now < one.end + patience:
        if one.yields_to is not None:
            return eviction.deletion(server, project, one.end, now), None
        because = EndReason.DECLARED.value
        reason = "its end has come"
        return notifications.deletion(server, project, reason, one.end, now, because=because), None
    told = notifications.idempotent_effect(
        EffectKind.OVERRUN,
        server,
        project,
        due=one.end,
        now=now,
        details={
            "server": server,
            "user_id": one.consumer.user_id,
            "ended": format_instant(one.end),
            "yields_to": one.yields_to,
        },
        same=(server, one.end),
    )
    because = EndReason.DECLARED if one.yields_to is None else EndReason.PREEMPTED
    reason = "it is overrun"
    return told, notifications.deletion(
        server, project, reason, one.end, now, because=because.value
    )


def _write(env: UseCaseEnvironment, first: PutEffect, deletion: PutEffect | None) -> None:
    """Write effects that are not stored yet; request no deletion while one is pending."""
    server = first.effect.subject
    earlier = env.store.effects(server)
    if any(effect.id == first.effect.id for effect in earlier):
        return
    busy = any(
        effect.kind is EffectKind.DELETE and effect.state is EffectState.PENDING
        for effect in earlier
    )
    told = owner_details(env.store, server)
    if first.effect.kind is EffectKind.DELETE:
        if busy:
            return  # its lease has ended, too
        evictions = (one for one in earlier if one.kind is EffectKind.EVICT)
        told |= next((eviction.deletion_details(one) for one in evictions), {})
    details = {**told, **first.effect.details}
    every = [replace(first, effect=replace(first.effect, details=details))]
    if deletion is not None and not busy:
        details = {**told, **deletion.effect.details}
        every.append(replace(deletion, effect=replace(deletion.effect, details=details)))
    try:
        env.store.commit(Changeset(tuple(every)))
    except DuplicateName:
        return  # another worker was quicker


AFRESH: Final = 300
"""Rounds after which a worker looks at everything again, whatever it has seen before."""

AGAIN: Final = 20
"""Rounds after which it looks which leases are written as degraded."""

PATIENCE: Final = 60
"""Rounds in succession in which the judgement of places waits for due effects."""
_FREEING: Final = frozenset({EffectKind.END, EffectKind.EVICT, EffectKind.DELETE})
"""Effects by which servers end."""


def is_behind(store: Store) -> bool:
    """Whether an effect by which a server ends is due and was not tried yet."""
    return any(
        one.kind in _FREEING and not one.attempts
        for lane in {LANES[kind] for kind in _FREEING}
        for one in store.due_effects(_MOST_DUE, lane)
    )


_MOST_DUE: Final = 1_000
"""Due effects of a lane that are looked at, the longest due first."""


@dataclass
class LeaseSweeper:
    """Runs in one worker. Its cache only saves work."""

    env: UseCaseEnvironment
    _rounds: int = 0
    _seen: OverrunScan = field(default_factory=OverrunScan)
    _waited: int = 0
    """Rounds in succession that have waited for due effects."""
    _repairs: RepairWorker | None = None
    _replanning: ReplanWorker = field(init=False)

    def __post_init__(self) -> None:
        self._replanning = ReplanWorker(self.env)

    def run_round(self) -> bool:
        """Look once; True if there is more to be looked at now.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        if self._repairs is None or self._rounds % AFRESH == 0:
            self._seen = OverrunScan()
            self._repairs = RepairWorker(self.env, lease_health.degraded(self.env.store))
        elif self._rounds % AGAIN == 0:
            # Other processes write leases as degraded, too.
            self._repairs.add_degraded(lease_health.degraded(self.env.store))
        self._rounds += 1
        self._seen = report_overrun(self.env, self._seen)
        # Without a grace period no service ends servers.
        behind = bool(self.env.limits.grace) and is_behind(self.env.store)
        self._waited = self._waited + 1 if behind else 0
        if 0 < self._waited <= PATIENCE:
            return self._seen.more
        more_repairs = self._repairs.run_round(self.env.store.snapshot())
        more_replans = self._replanning.run_round(self.env.store.snapshot())
        return self._seen.more or more_repairs or more_replans
