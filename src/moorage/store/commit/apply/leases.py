"""Leases with their reservations, series, entries of the waitlist, and effects of decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, func, insert, select

from moorage.domain.effects import LANES, EffectState
from moorage.domain.errors import ConcurrentUpdate, DuplicateName
from moorage.domain.leases import LeaseState, Yielding
from moorage.domain.period import Period
from moorage.domain.quotas import QuotaName
from moorage.domain.waitlist import EntryState
from moorage.store.commit.apply.kinds import OF, Kind, expect, write
from moorage.store.commit.apply.quotas import put_uses, refuse_beyond
from moorage.store.database.statements import chunks
from moorage.store.read.leases import count
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.changes import (
        DropEffects,
        ExpectLease,
        PutEffect,
        PutEntry,
        PutLease,
        PutSeries,
    )
    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.store.commit.batch import Batch

_w = tables.waitlist.c
_ENTRY: Final = Kind.of("waitlist entry", _w.generation, _w.body)


def put_entry(batch: Batch, change: PutEntry) -> None:
    """See `PutEntry`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate, QuotaExceeded.
    """
    one = change.stored
    if change.limit is not None:
        used = count(batch.connection, one.project_id, QuotaName.WAITLIST)
        refuse_beyond(batch, one.project_id, QuotaName.WAITLIST, change.limit, used + 1)
    whole = one.whole
    values: dict[str, Any] = {
        "project_id": one.project_id,
        "state": one.state.value,
        "priority": one.terms.priority,
        "entered_at": one.entered_at,
        "start_at": whole.start,
        "end_at": whole.end,
        "generation": one.generation,
        "ended_at": None if one.state is EntryState.WAITING else batch.now,
        "body": stored_bodies.ENTRY.encode(one),
    }
    write(batch, _ENTRY, one.id, values, change.generation)


_SERIES: Final = Kind.of("series", tables.series.c.generation)


def put_series(batch: Batch, change: PutSeries) -> None:
    """See `PutSeries`.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
    """
    one = change.stored
    values = {
        "project_id": one.project_id,
        "name": one.name,
        "generation": one.generation,
        "body": stored_bodies.SERIES.encode(one),
    }
    write(batch, _SERIES, one.id, values, change.generation)


_LEASE: Final = Kind.of("lease", tables.leases.c.generation, tables.leases.c.body)
_EFFECT: Final = Kind.of("effect", tables.effects.c.attempts)

_r, _e = tables.reservations.c, tables.effects.c
_RESERVATIONS: Final = select(_r.id).where(_r.lease_id == OF)
_NEW_RESERVATIONS: Final = insert(tables.reservations)
_NO_RESERVATIONS: Final = delete(tables.reservations).where(
    _r.id.in_(bindparam("some", expanding=True))
)
_l = tables.leases.c
_KNOWN: Final = select(_l.start_at, _l.end_at, _l.serial).where(_l.id == OF)
_s = tables.lease_serials.c
_LAST: Final = select(func.max(_l.serial)).where(_l.project_id == OF)
_LAST_DELETED: Final = select(_s.last).where(_s.project_id == OF)
_STATE: Final = select(_e.state).where(_e.id == OF)
_TAKEN: Final = select(_e.id).where(_e.id.in_(bindparam("some", expanding=True)))
_NEW_EFFECTS: Final = insert(tables.effects)
_PENDING: Final = (_e.subject == OF) & (_e.state == EffectState.PENDING.value)
_TO_BE_DONE: Final = select(_e.body).where(_PENDING)
_NO_EFFECTS: Final = delete(tables.effects).where(
    _PENDING, _e.id.in_(bindparam("some", expanding=True))
)


def put_lease(batch: Batch, change: PutLease) -> None:
    """See `PutLease`.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
        QuotaExceeded: see `PutLease.within`.
    """
    before, serial = _before(batch, change)
    lease = replace(change.stored, serial=serial)
    values: dict[str, Any] = {
        "project_id": lease.project_id,
        "name": lease.name,
        "ensemble_id": lease.ensemble_id,
        "state": _listed_as(lease),
        "series_id": None if lease.occurrence is None else lease.occurrence.series,
        "start_at": lease.terms.period.start,
        "end_at": lease.terms.period.end,
        "generation": lease.generation,
        "serial": lease.serial,
        "shuts_out": _shut_out(lease),
        "ended_at": batch.now if lease.state is LeaseState.CLOSED else None,
        "body": stored_bodies.LEASE.encode(lease),
    }
    write(batch, _LEASE, lease.id, values, change.generation)
    put_uses(batch, change, before)
    wanted, stored = {one.id for one in lease.reservations}, set()
    if change.generation is not None:
        stored = set(batch.connection.scalars(_RESERVATIONS, {"of": lease.id}))
    if gone := sorted(stored - wanted):
        batch.connection.do(_NO_RESERVATIONS, {"some": gone})
    if fresh := [{"id": one, "lease_id": lease.id} for one in sorted(wanted - stored)]:
        batch.connection.do(_NEW_RESERVATIONS, fresh)


def _before(batch: Batch, change: PutLease) -> tuple[Period | None, int]:
    """The period that a lease had, and its number: for a new one its project's next.

    No number is given twice.
    """
    if change.generation is None:
        return None, _next_serial(batch, change.lease)
    row = batch.connection.execute(_KNOWN, {"of": change.lease.id}).one_or_none()
    return (None, 0) if row is None else (Period(row.start_at, row.end_at), row.serial)


def _next_serial(batch: Batch, lease: Lease) -> int:
    last = batch.last_serials.get(lease.project_id)
    if last is None:
        mine = {"of": lease.project_id}
        stored, deleted = batch.connection.ask((_LAST, mine), (_LAST_DELETED, mine))
        last = max(stored.scalar_one() or 0, deleted.scalar_one_or_none() or 0)
    serial = last + 1
    batch.last_serials[lease.project_id] = batch.serials[lease.id] = serial
    return serial


def _listed_as(lease: Lease) -> str:
    """The state by which it is listed: what was never more than an offer ends as `lapsed`."""
    over = lease.proposed and lease.state is LeaseState.CLOSED
    return tables.LAPSED if over else lease.state.value


def _shut_out(lease: Lease) -> str:
    """Whom it does not let use its places before it begins; see `exclusive_until_start`."""
    if lease.state not in {LeaseState.PENDING, LeaseState.STARTING}:
        return ""
    return " ".join(one.value for one in Yielding if one not in lease.terms.before_start)


def expect_lease(batch: Batch, change: ExpectLease) -> None:
    """See `ExpectLease`.

    Raises:
        NotFound, ConcurrentUpdate: it is not there, or of another generation.
    """
    expect(batch, _LEASE, change.id, change.generation)


def put_effects(batch: Batch, every: Sequence[PutEffect]) -> None:
    """See `PutEffect`; all new ones by one statement.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: a stored one is gone, or was taken on or done meanwhile.
    """
    new = {one.effect.id: one.effect for one in every if one.attempts is None}
    if len(new) < sum(one.attempts is None for one in every):
        raise DuplicateName("effect", "of one changeset")
    taken = batch.taken.get("effect")
    if taken is None:
        taken = {
            id_ for some in chunks(new) for id_ in batch.connection.scalars(_TAKEN, {"some": some})
        }
    for id_ in new.keys() & taken:
        raise DuplicateName("effect", id_)
    if new:
        batch.connection.do(
            _NEW_EFFECTS, [{"id": id_, **_columns(one, batch.now)} for id_, one in new.items()]
        )
    for one in every:
        if one.attempts is not None:
            _change_effect(batch, one.effect, one.attempts)


def _columns(effect: Effect, now: Instant) -> dict[str, Any]:
    return {
        "subject": effect.subject,
        "state": effect.state.value,
        "lane": LANES[effect.kind].value,
        "not_before": effect.not_before,
        "attempts": effect.attempts,
        "ended_at": None if effect.state is EffectState.PENDING else now,
        "body": stored_bodies.EFFECT.encode(effect),
    }


def _change_effect(batch: Batch, effect: Effect, attempts: int) -> None:
    stored = batch.connection.scalars(_STATE, {"of": effect.id}).one_or_none()
    if stored is not None and stored != EffectState.PENDING.value:
        raise ConcurrentUpdate(f"effect {effect.id} is {stored} already", subject=effect.id)
    write(batch, _EFFECT, effect.id, _columns(effect, batch.now), attempts)


def drop_effects(batch: Batch, change: DropEffects) -> None:
    """See `DropEffects`."""
    bodies_ = batch.connection.scalars(_TO_BE_DONE, {"of": change.subject}).all()
    pending = [stored_bodies.EFFECT.decode(body) for body in bodies_]
    gone = [one.id for one in pending if change.kinds is None or one.kind in change.kinds]
    for some in chunks(gone):
        batch.connection.do(_NO_EFFECTS, {"of": change.subject, "some": some})
