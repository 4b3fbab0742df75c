"""Warnings and evictions of preemptible servers that end for a lease."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DropEffects, PutEffect
from moorage.domain.effects import EVICTION, EffectKind, EffectState, fact_id
from moorage.domain.errors import DuplicateName, NotFound
from moorage.domain.period import FOREVER, format_instant, parse_instant
from moorage.usecases.decide.search_result import DisplacedConsumer
from moorage.usecases.effects import notifications
from moorage.usecases.effects.outcome import effect_finished, finish, postponed
from moorage.usecases.preemption.stay_ends import EndReason
from moorage.usecases.preemption.victims import displaced_for, last_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.effects import Effect
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment


def owner_details(store: Store, consumer: str, decision: str | None = None) -> dict[str, object]:
    """The details `ensemble`, `member` and `server` of a consumer; empty if it is no member's.

    `server` is None for a member that only holds its place.

    `consumer` is the UUID of a server, or of a member without one; `decision` is that whose place
    it has, None to take it from its bookings.
    """
    if decision is None:
        there = (one.decision for _, one in store.bookings(consumer=consumer))
        decision = next((one for one in there if one is not None), None)
    if decision is None:
        return {}
    try:
        ensemble = store.ensemble(store.decision(decision).ensemble_id)
    except NotFound:
        return {}
    for one in ensemble.members:
        if consumer in {one.uuid, one.server_id}:
            return {
                "ensemble": ensemble.id,
                "member": str(one.name),
                "server": one.server_id,
            }
    return {}


ORDER = "lowest priority first, then fewest units, then the youngest, then by id"
"""The order in which servers are chosen and evicted; it is part of every warning."""


def warnings(
    store: Store, displaced: Sequence[DisplacedConsumer], decision: Decision, **more: object
) -> Iterator[Change]:
    """The warnings and evictions of displaced consumers, for the changeset that displaces them.

    The owner of each is notified at once; a server still there at its end is deleted then. Pending
    warnings and evictions of the consumers are dropped.

    `displaced` is in the order in which they were chosen, `decision` is the lease's placement, and
    `more` are further details for each.
    """
    now = decision.created_at
    for number, one in enumerate(displaced, 1):
        details = {
            "lease": decision.lease_id,
            "needed_at": format_instant(decision.period.start),
            "server": one.consumer,
            "ends": format_instant(one.end),
            "declared_end": format_instant(one.declared_end),
            "order": number,
            "of": len(displaced),
            "why": ORDER,
            **(
                {}
                if more or one.decision is None
                else owner_details(store, one.consumer, one.decision)
            ),
            **more,
        }
        yield from dropped_warnings([one.consumer])
        for kind, due in ((EffectKind.WARN, now), (EffectKind.EVICT, one.end)):
            yield notifications.idempotent_effect(
                kind,
                one.consumer,
                one.project_id,
                due=due,
                now=now,
                details=details,
                same=(one.consumer, decision.id, one.end, now),
            )


def warnings_of_accepted(env: Environment, lease_id: str, decision: Decision) -> Iterator[Change]:
    """The warnings of consumers that an offer displaced, when it becomes a lease."""
    end = last_end(decision.created_at, decision.period.start, env.limits.notice)
    if end is not None:
        silent = [one for one in displaced_for(env.store, lease_id) if one.end <= end]
        yield from warnings(env.store, silent, decision)


def early_end_warnings(
    store: Store, ensemble: Ensemble, name: MemberName, bookings: Sequence[Booking], now: Instant
) -> Iterator[Change]:
    """The warning of a member whose place it has only until a lease begins.

    Nothing if the member was warned of the same end before; it may have lost its place since.

    `bookings` are the member's place, booked for the member or the server that takes it.
    """
    first = bookings[0]
    if first.yields_to is None or first.declared_end is None:
        return
    owner, ends = ensemble.project_of(name.role), first.period.end
    known = _eviction(store, first.consumer)
    if known is not None and known.details.get("ends") == format_instant(ends):
        return
    yields = DisplacedConsumer(first.consumer, owner, ends, first.declared_end, first.priority)
    told = {
        "ensemble": ensemble.id,
        "member": str(name),
        "server": ensemble.member(name).server_id,
    }
    yield from _warned(store, yields, first.yields_to, now, **told)


def _warned(
    store: Store, displaced: DisplacedConsumer, lease_id: str, now: Instant, **more: object
) -> Iterator[Change]:
    """The warning of a consumer that ends for a lease; none if the lease is gone."""
    try:
        placement = store.decision(store.lease(lease_id).decision_id)
    except NotFound:
        return
    yield from warnings(store, (displaced,), replace(placement, created_at=now), **more)


def _eviction(store: Store, consumer: str) -> Effect | None:
    """The pending eviction of a consumer, if there is one."""
    return next(
        (
            one
            for one in reversed(store.effects(consumer))
            if one.kind is EffectKind.EVICT and one.state is EffectState.PENDING
        ),
        None,
    )


def transferred_warning(
    store: Store, ensemble: Ensemble, member: Member, bookings: Sequence[Booking], now: Instant
) -> Iterator[Change]:
    """Move the warning of a member to the server that takes its place, unless the end differs.

    The member has its server; `bookings` are the place as booked for that.
    """
    ends, server = format_instant(bookings[0].period.end), bookings[0].consumer
    known = _eviction(store, member.uuid)
    if known is None or known.details.get("ends") != ends:
        yield from dropped_warnings([member.uuid])
        yield from early_end_warnings(store, ensemble, member.name, bookings, now)
        return
    yield DropEffects(member.uuid, frozenset({EffectKind.EVICT}))
    details = {**known.details, "server": server}
    id_ = fact_id(EffectKind.EVICT, server, known.id)
    yield PutEffect(replace(known, id=id_, subject=server, details=details), None)


def dropped_warnings(consumers: Iterable[str]) -> Iterator[Change]:
    """Drop pending warnings and evictions of consumers."""
    for one in consumers:
        yield DropEffects(one, frozenset({EffectKind.WARN, EffectKind.EVICT}))


def carry_out(env: Environment, effect: Effect) -> str:
    """Carry out an eviction that is due; return its outcome.

    Raises:
        ConcurrentUpdate, NotFound: another process changed the effect first.
    """
    now = env.store.now()
    there = [one for _, one in env.store.bookings(consumer=effect.subject)]
    if not any(one.state is BookingState.ALLOCATED for one in there):
        return finish(env.store, effect, "nothing is there any more")
    if all(one.yields_to is None for one in there):
        return finish(env.store, effect, "it does not yield any more")
    end = min(one.period.end for one in there)
    if end > now:
        # The end was moved back, or the clock was set back.
        env.store.commit(Changeset((postponed(effect, end, now),)))
        return "not yet"
    request = deletion(effect.subject, effect.project_id, end, now, **deletion_details(effect))
    outcome = "to be ended"
    try:
        env.store.commit(Changeset((request, effect_finished(effect, outcome, now))))
    except DuplicateName:
        return finish(env.store, effect, outcome)  # somebody else has looked, too
    return outcome


def deletion_details(effect: Effect) -> dict[str, object]:
    """The details that the deletion of an evicted server takes over from its eviction."""
    names = ("ends", "declared_end", "order", "of", "why", "ensemble", "member")
    return {name: effect.details[name] for name in names if name in effect.details}


def later_end_notice(
    store: Store, displaced: DisplacedConsumer, yields_to: str | None, now: Instant
) -> Iterator[Change]:
    """The notice of a later end to a consumer that was warned of an earlier one.

    A consumer displaced for an offer was not warned; if it is displaced for a lease now, it is
    warned.

    `displaced` is a server, or a member without one, with its new end; `yields_to` is the lease
    that it still ends early for, or None.
    """
    known, ends = _eviction(store, displaced.consumer), format_instant(displaced.end)
    if known is None or parse_instant(str(known.details["ends"])) > displaced.end:
        if yields_to is not None:
            yield from _warned(store, displaced, yields_to, now)
        return
    if known.details["ends"] == ends:
        return
    yield DropEffects(displaced.consumer, frozenset({EffectKind.EVICT}))
    if yields_to is not None:
        yield notifications.idempotent_effect(
            EffectKind.EVICT,
            displaced.consumer,
            displaced.project_id,
            due=displaced.end,
            now=now,
            details={**known.details, "lease": yields_to, "ends": ends},
            same=(known.id, displaced.end, now),
        )
    names = (name for name in ("ensemble", "member") if name in known.details)
    details = {
        **{name: known.details[name] for name in names},
        "server": known.details.get("server", displaced.consumer),
        "ends": None if displaced.end == FOREVER else ends,
        "declared_end": format_instant(displaced.declared_end),
    }
    yield notifications.idempotent_effect(
        EffectKind.REPRIEVE,
        displaced.consumer,
        known.project_id,
        due=now,
        now=now,
        details=details,
        same=(known.id, displaced.end, now),
    )


def deletion(
    server: str, project_id: str, end: Instant, now: Instant, **details: object
) -> PutEffect:
    """The effect that deletes a server at its end for a lease."""
    because = EndReason.PREEMPTED.value
    return notifications.deletion(
        server, project_id, EVICTION, end, now, because=because, **details
    )


def why_needless(env: Environment, effect: Effect) -> str:
    """Why a warning is obsolete; empty if it is not."""
    there = [one for _, one in env.store.bookings(consumer=_taker(env.store, effect))]
    if not there:
        return "nothing is there any more"
    if all(one.yields_to is None for one in there):
        return "it does not yield any more"
    return ""


def _taker(store: Store, effect: Effect) -> str:
    """The consumer that has a warned consumer's place now: the member's server, or itself."""
    try:
        members = store.ensemble(str(effect.details["ensemble"])).members
    except (KeyError, NotFound):
        return effect.subject
    taken = (one.server_id for one in members if one.uuid == effect.subject)
    return next(taken, None) or effect.subject
