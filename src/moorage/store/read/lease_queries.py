"""Reads leases, series, effects, quotas, capacity windows and the waitlist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, func, select

from moorage.domain.waitlist import EntryState
from moorage.store.read import bookings, leases, stored_counts, stored_values
from moorage.store.read.stored_values import WHOLE_LEDGER, Reader
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.consumers import Consumer
    from moorage.domain.effects import Effect, Lane
    from moorage.domain.leases import Lease, LeaseState
    from moorage.domain.period import Instant, Period
    from moorage.domain.quotas import Quota, QuotaName, QuotaUse
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.time.quotas import ProjectLeases
    from moorage.store.database.session import Session
    from moorage.usecases.ports import OverrunConsumer, Page

_w = tables.waitlist.c
_WAITING: Final = _w.state == EntryState.WAITING.value
_LINE: Final = (
    select(_w.body)
    .where(_WAITING, _w.start_at < bindparam("end"), _w.end_at > bindparam("start"))
    .order_by(_w.priority.desc(), _w.entered_at, _w.number)
    .limit(bindparam("most", type_=Integer))
)
_COUNTS: Final = select(_w.state, func.count().label("count")).group_by(_w.state)


def waiting_entries(connection: Session, period: Period, limit: int) -> list[WaitlistEntry]:
    """Those that wait and might have places at some time of a period, the first ones."""
    given: dict[str, Any] = {"start": period.start, "end": period.end, "most": limit}
    return [stored_bodies.ENTRY.decode(body) for body in connection.scalars(_LINE, given)]


def counts(connection: Session) -> Mapping[EntryState, int]:
    """How many entries there are in each state."""
    return {EntryState(row.state): int(row.count) for row in connection.execute(_COUNTS)}


class LeaseQueries(Reader):
    """See `Store`."""

    def lease(self, lease_id: str) -> Lease:
        return stored_values.one(
            self._backend, tables.leases, "lease", stored_bodies.LEASE, lease_id
        )

    def leases(
        self,
        *,
        project_id: str | None,
        name: str | None = None,
        state: LeaseState | None = None,
        series_id: str | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        value = None if state is None else state.value
        wanted = stored_values.matching(
            tables.leases, project_id=project_id, name=name, state=value, series_id=series_id
        )
        granted = wanted.where(tables.leases.c.state.not_in(leases.PROPOSED))
        return self._listed(tables.leases, stored_bodies.LEASE, granted, page)

    def offers(
        self,
        *,
        project_id: str | None,
        over: bool = False,
        series_id: str | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        states = leases.PROPOSED if over else leases.PROPOSED[:1]
        wanted = stored_values.matching(tables.leases, project_id=project_id)
        of = tables.leases.c.series_id
        mine = of.is_(None) if series_id is None else of == series_id
        proposed = wanted.where(tables.leases.c.state.in_(states), mine)
        return self._listed(tables.leases, stored_bodies.LEASE, proposed, page)

    def series(self, series_id: str) -> Series:
        return stored_values.one(
            self._backend, tables.series, "series", stored_bodies.SERIES, series_id
        )

    def all_series(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Series]:
        wanted = stored_values.matching(tables.series, project_id=project_id, name=name)
        return self._listed(tables.series, stored_bodies.SERIES, wanted, page)

    def occurrences(self, series_ids: Collection[str]) -> Mapping[str, Mapping[LeaseState, int]]:
        return self._backend.read(lambda connection: leases.occurrences(connection, series_ids))

    def leases_of(self, ensemble_id: str) -> Sequence[Lease]:
        wanted = stored_values.matching(tables.leases, ensemble_id=ensemble_id)
        return self._listed(tables.leases, stored_bodies.LEASE, wanted, WHOLE_LEDGER)

    def exclusive_until_start(self) -> Sequence[Lease]:
        wanted = stored_values.matching(tables.leases).where(tables.leases.c.shuts_out > "")
        return self._listed(tables.leases, stored_bodies.LEASE, wanted, WHOLE_LEDGER)

    def lease_of_reservation(self, reservation_id: str) -> Lease:
        return self._backend.read(
            lambda connection: leases.lease_of_reservation(connection, reservation_id)
        )

    def yielding(self, lease_id: str) -> Sequence[tuple[Consumer, Booking]]:
        now = self.now()
        return self._backend.read(
            lambda connection: bookings.yielding(connection, lease_id, now=now)
        )

    def effects(self, subject: str, *, page: Page = WHOLE_LEDGER) -> Sequence[Effect]:
        wanted = stored_values.matching(tables.effects, subject=subject)
        return self._listed(tables.effects, stored_bodies.EFFECT, wanted, page)

    def due_effects(self, limit: int, lane: Lane | None = None) -> Sequence[Effect]:
        now = self.now()
        return self._backend.read(
            lambda connection: leases.due_effects(connection, now, limit, lane)
        )

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        now = self.now()
        return self._backend.read(lambda connection: leases.pending_effects(connection, now))

    def overrun(self, after: tuple[Instant, str], limit: int) -> Sequence[OverrunConsumer]:
        now = self.now()
        return self._backend.read(
            lambda connection: bookings.overrun(connection, now, after, limit)
        )

    def capacity_window(self, window_id: str) -> CapacityWindow:
        table, shape = tables.capacity_windows, stored_bodies.CAPACITY_WINDOW
        return self._backend.read(
            lambda connection: stored_values.one(
                connection, table, "capacity window", shape, window_id
            )
        )

    def capacity_windows(self, *, page: Page = WHOLE_LEDGER) -> Sequence[CapacityWindow]:
        wanted = stored_values.matching(tables.capacity_windows)
        return self._listed(tables.capacity_windows, stored_bodies.CAPACITY_WINDOW, wanted, page)

    def reservables(self, kind: ReservableKind) -> Sequence[Reservable]:
        table = tables.reservables
        wanted = stored_values.matching(table, kind=kind.value).order_by(table.c.number)
        found = self._backend.read(lambda connection: connection.scalars(wanted).all())
        return [stored_bodies.RESERVABLE.decode(body) for body in found]

    def quota(self, project_id: str) -> Quota | None:
        return leases.quota(self._backend, project_id)

    def quotas(self, page: Page = WHOLE_LEDGER) -> Sequence[Quota]:
        project = tables.quotas.c.project_id
        wanted = select(tables.quotas.c.body).order_by(project).limit(page.limit)
        if page.marker is not None:  # one that is not set any more says where to go on, too
            wanted = wanted.where(project > page.marker)
        found = self._backend.read(lambda connection: connection.scalars(wanted).all())
        return [stored_bodies.QUOTA.decode(body) for body in found]

    def lessee(self, project_id: str, since: Instant, *, but: str = "") -> ProjectLeases:
        now = self.now()
        return self._backend.read(
            lambda connection: leases.lessee(connection, project_id, since, now, but=but)
        )

    def stored(self, project_id: str) -> Mapping[QuotaName, int]:
        return stored_counts.counts(self._backend, project_id)

    def uses_of_lease(self, lease_id: str) -> Sequence[QuotaUse]:
        return self._backend.read(lambda connection: leases.uses_of_lease(connection, lease_id))

    def waitlist_entry(self, entry_id: str) -> WaitlistEntry:
        table, shape = tables.waitlist, stored_bodies.ENTRY
        return stored_values.one(self._backend, table, "waitlist entry", shape, entry_id)

    def waitlist(
        self,
        *,
        project_id: str | None,
        state: EntryState | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[WaitlistEntry]:
        value = None if state is None else state.value
        wanted = stored_values.matching(tables.waitlist, project_id=project_id, state=value)
        return self._listed(tables.waitlist, stored_bodies.ENTRY, wanted, page)

    def waiting_entries(self, period: Period, limit: int) -> Sequence[WaitlistEntry]:
        return self._backend.read(lambda connection: waiting_entries(connection, period, limit))

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        return self._backend.read(counts)
