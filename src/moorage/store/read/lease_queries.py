"""Reads leases, series, effects, quotas, capacity windows, server providers and the waitlist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, func, select

from moorage.domain.effects import EffectState, Lane
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.waitlist import EntryState
from moorage.store.database.statements import chunks
from moorage.store.read import leases
from moorage.store.read.stored_values import Reader, due_rows, matching
from moorage.store.schema import tables
from moorage.store.values import stored_bodies
from moorage.usecases.paging import WHOLE_LEDGER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import ColumnElement, Select

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant, Period
    from moorage.domain.quotas import Quota, QuotaName, QuotaUse
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.server_providers import ServerProvider
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.time.quotas import ProjectLeases
    from moorage.store.database.session import Question
    from moorage.usecases.paging import Page

_l, _w = tables.leases.c, tables.waitlist.c
_OCCURRENCES: Final = (
    select(_l.series_id, _l.state, func.count().label("number"))
    .where(_l.series_id.in_(bindparam("some", expanding=True)))
    .group_by(_l.series_id, _l.state)
)
_DUE_EFFECTS: Final = due_rows(tables.effects.c.not_before).where(
    tables.effects.c.state == EffectState.PENDING.value
)
_DUE_IN_LANE: Final = _DUE_EFFECTS.where(tables.effects.c.lane == bindparam("lane"))
_WAITING: Final = _w.state == EntryState.WAITING.value
_LINE: Final = (
    select(_w.body)
    .where(_WAITING, _w.start_at < bindparam("end"), _w.end_at > bindparam("start"))
    .order_by(_w.priority.desc(), _w.entered_at, _w.number)
    .limit(bindparam("most", type_=Integer))
)
_COUNTS: Final = select(_w.state, func.count().label("count")).group_by(_w.state)


def _overlapping(period: Period | None) -> tuple[ColumnElement[bool], ...]:
    """What is true of rows of leases whose own period has an instant in common with this one."""
    return () if period is None else (_l.start_at < period.end, _l.end_at > period.start)


class LeaseQueries(Reader):
    """See `Store`."""

    def lease(self, lease_id: str) -> Lease:
        return self._one(tables.leases, "lease", stored_bodies.LEASE, lease_id)

    def leases(
        self,
        *,
        project_id: str | None,
        name: str | None = None,
        state: LeaseState | None = None,
        series_id: str | None = None,
        overlaps: Period | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        value = None if state is None else state.value
        wanted = matching(
            tables.leases, project_id=project_id, name=name, state=value, series_id=series_id
        )
        wanted = wanted.where(_l.state.not_in(leases.PROPOSED), *_overlapping(overlaps))
        return self._leases(wanted, page)

    def offers(
        self,
        *,
        project_id: str | None,
        over: bool = False,
        series_id: str | None = None,
        overlaps: Period | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        states = leases.PROPOSED if over else leases.PROPOSED[:1]
        mine = _l.series_id.is_(None) if series_id is None else _l.series_id == series_id
        wanted = matching(tables.leases, project_id=project_id)
        wanted = wanted.where(_l.state.in_(states), mine, *_overlapping(overlaps))
        return self._leases(wanted, page)

    def leases_of(self, ensemble_id: str) -> Sequence[Lease]:
        return self._leases(matching(tables.leases, ensemble_id=ensemble_id))

    def exclusive_until_start(self) -> Sequence[Lease]:
        return self._leases(matching(tables.leases).where(_l.shuts_out > ""))

    def _leases(self, wanted: Select[Any], page: Page = WHOLE_LEDGER) -> Sequence[Lease]:
        return self._listed(tables.leases, stored_bodies.LEASE, wanted, page)

    def lease_of_reservation(self, reservation_id: str) -> Lease:
        of = _l.id == tables.reservations.c.lease_id
        query = select(_l.body).join(tables.reservations, of)
        mine = query.where(tables.reservations.c.id == reservation_id)
        body = self._ask(mine).scalar_one_or_none()
        if body is None:
            raise NotFound("reservation", reservation_id)
        return stored_bodies.LEASE.decode(body)

    def series(self, series_id: str) -> Series:
        return self._one(tables.series, "series", stored_bodies.SERIES, series_id)

    def all_series(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Series]:
        wanted = matching(tables.series, project_id=project_id, name=name)
        return self._listed(tables.series, stored_bodies.SERIES, wanted, page)

    def occurrences(self, series_ids: Collection[str]) -> Mapping[str, Mapping[LeaseState, int]]:
        """How many leases of each of these series are in which state, without offers."""
        found: dict[str, dict[LeaseState, int]] = {one: {} for one in series_ids}
        questions: list[Question] = [(_OCCURRENCES, {"some": some}) for some in chunks(series_ids)]
        for answer in self._backend.ask(*questions) if questions else ():
            for row in answer:
                if row.state not in leases.PROPOSED:
                    found[row.series_id][LeaseState(row.state)] = row.number
        return found

    def effects(self, subject: str, *, page: Page = WHOLE_LEDGER) -> Sequence[Effect]:
        wanted = matching(tables.effects, subject=subject)
        return self._listed(tables.effects, stored_bodies.EFFECT, wanted, page)

    def due_effects(self, limit: int, lane: Lane | None = None) -> Sequence[Effect]:
        """Effects that may be taken on, of one lane or of all, the longest due first."""
        now = self.now()
        if lane is None:
            return self._every(stored_bodies.EFFECT, _DUE_EFFECTS, now=now, limit=limit)
        given = {"now": now, "limit": limit, "lane": lane.value}
        return self._every(stored_bodies.EFFECT, _DUE_IN_LANE, **given)

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        """How many effects of each lane are due, and the longest due one's instant."""
        e = tables.effects.c
        query = (
            select(e.lane, func.count(), func.min(e.not_before))
            .where(e.state == EffectState.PENDING.value, e.not_before <= self.now())
            .group_by(e.lane)
        )
        return {Lane(lane): (number, oldest) for lane, number, oldest in self._ask(query)}

    def capacity_window(self, window_id: str) -> CapacityWindow:
        table, shape = tables.capacity_windows, stored_bodies.CAPACITY_WINDOW
        return self._one(table, "capacity window", shape, window_id)

    def capacity_windows(self, *, page: Page = WHOLE_LEDGER) -> Sequence[CapacityWindow]:
        table = tables.capacity_windows
        return self._listed(table, stored_bodies.CAPACITY_WINDOW, matching(table), page)

    def server_providers(
        self, *, server_id: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[ServerProvider]:
        table = tables.server_providers
        wanted = matching(table, server_id=server_id)
        return self._listed(table, stored_bodies.SERVER_PROVIDER, wanted, page)

    def reservables(self, kind: ReservableKind) -> Sequence[Reservable]:
        table = tables.reservables
        wanted = matching(table, kind=kind.value).order_by(table.c.number)
        return self._every(stored_bodies.RESERVABLE, wanted)

    def quota(self, project_id: str) -> Quota | None:
        return leases.quota(self._backend, project_id)

    def quotas(self, page: Page = WHOLE_LEDGER) -> Sequence[Quota]:
        project = tables.quotas.c.project_id
        wanted = select(tables.quotas.c.body).order_by(project).limit(page.limit)
        if page.marker is not None:  # one that is not set any more says where to go on, too
            wanted = wanted.where(project > page.marker)
        return self._every(stored_bodies.QUOTA, wanted)

    def lessee(self, project_id: str, since: Instant, *, but: str = "") -> ProjectLeases:
        now = self.now()
        return self._backend.read(
            lambda connection: leases.lessee(connection, project_id, since, now, but=but)
        )

    def stored(self, project_id: str) -> Mapping[QuotaName, int]:
        return leases.counts(self._backend, project_id)

    def uses_of_lease(self, lease_id: str) -> Sequence[QuotaUse]:
        return self._backend.read(lambda connection: leases.uses_of_lease(connection, lease_id))

    def waitlist_entry(self, entry_id: str) -> WaitlistEntry:
        return self._one(tables.waitlist, "waitlist entry", stored_bodies.ENTRY, entry_id)

    def waitlist(
        self,
        *,
        project_id: str | None,
        state: EntryState | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[WaitlistEntry]:
        value = None if state is None else state.value
        wanted = matching(tables.waitlist, project_id=project_id, state=value)
        return self._listed(tables.waitlist, stored_bodies.ENTRY, wanted, page)

    def waiting_entries(self, period: Period, limit: int) -> Sequence[WaitlistEntry]:
        """Those that wait and might have places at some time of a period, the first ones."""
        given = {"start": period.start, "end": period.end, "most": limit}
        return self._every(stored_bodies.ENTRY, _LINE, **given)

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        return {EntryState(row.state): int(row.count) for row in self._ask(_COUNTS)}
