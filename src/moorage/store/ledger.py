"""The store that use cases see: `usecases.ports.Store` over one database."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import or_, select

from moorage.domain.errors import NotFound
from moorage.store import bodies, read, read_bookings, read_leases, states, tables, waiting
from moorage.store.alone import commit_alone
from moorage.store.commit import commit
from moorage.store.feed import Feed
from moorage.store.patience import WAIT
from moorage.store.told import ToldStore
from moorage.store.turnstile import Queue
from moorage.store.upgrade import check_schema
from moorage.store.watch import Unwatched
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlalchemy import Select, Table

    from moorage.domain.bookings import Booking
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import Changeset, Committed
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect, Lane
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation
    from moorage.domain.flavors import Flavor
    from moorage.domain.leases import Lease, LeaseState
    from moorage.domain.period import Instant, Period
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.quotas import Quota, Use
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.templates import Template
    from moorage.domain.waitlist import EntryState, WaitlistEntry
    from moorage.engine.quotas import Lessee
    from moorage.engine.snapshot import Snapshot
    from moorage.store.answers import Connections
    from moorage.store.backends import Backend
    from moorage.store.codec import Shape
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock, Keepers, Named, Overrun

    T = TypeVar("T")

_WHOLE_LEDGER = Page()
_UNWATCHED = Unwatched()


class Ledger:
    """Every method is a transaction of its own and may be called from any thread."""

    def __init__(self, backend: Backend, clock: Clock | None, watch: Watch = _UNWATCHED) -> None:
        self._backend = backend
        self._clock = clock
        self._watch = watch
        self._feed = Feed(backend, clock, watch)
        self._keepers: Keepers | None = None
        self._turns = Queue(WAIT)
        self.told = ToldStore(backend, self.now)
        """See `Store`."""

    def close(self) -> None:
        """Let go of the database; the ledger cannot be used afterwards."""
        self._backend.close()

    def check_schema(self) -> None:
        """Return if the database has the schema that this version of the program works with.

        Raises:
            InvalidDescription: it has not: some other version has changed it meanwhile.
            Busy: the database is away.
        """
        self._backend.read(check_schema)

    def connections(self) -> Connections:
        """How many connections this process has to the database now."""
        return self._backend.connections()

    def now(self) -> Instant:
        """See `Store`."""
        return self._backend.now() if self._clock is None else self._clock.now()

    def snapshot(self) -> Snapshot:
        """See `Store`."""
        return self._feed.snapshot()

    def commit(self, changeset: Changeset) -> Committed:
        """See `Store`.

        Raises:
            Busy: too many writers at once, or the database is away.
        """
        with self._backend.log.queue(changeset):
            committed, ended = self._write(partial(commit, changeset=changeset))
        self._feed.own.note(ended)
        return committed

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        """See `Store`. In each process one at a time, so that others come in between.

        Raises:
            Busy: too many before it, too many writers at once, or the database is away.
        """
        with self._turns:
            done = self._write(partial(commit_alone, propose=propose))
        if done is not None:
            self._feed.own.note(done[1])
        return done and done[0]

    def _write(self, work: Callable[..., T]) -> T:
        known = partial(work, log=self._backend.log, clock=self._clock)
        return self._watch.commit(lambda: self._backend.write(known))

    def provider(self, uuid: str) -> ResourceProvider:
        """See `Store`."""
        return states.provider(self._backend, uuid)

    # --- names and bookings ---------------------------------------------------------------

    def resource_classes(self) -> Sequence[Named]:
        """See `Store`."""
        return self._backend.read(read.resource_classes)

    def traits(self, names: Collection[str] | None = None) -> Sequence[Named]:
        """See `Store`."""
        return read.traits(self._backend, names)

    def consumer(self, uuid: str) -> tuple[Consumer, Sequence[Booking]] | None:
        """See `Store`."""
        return read_bookings.consumer(self._backend, uuid)

    def allocations_of_consumer(
        self, uuid: str
    ) -> tuple[Consumer, Sequence[Booking], Mapping[str, int]] | None:
        """See `Store`."""
        return read_bookings.allocations_of_consumer(self._backend, uuid)

    def allocations_of_provider(self, uuid: str) -> tuple[int, Sequence[tuple[Consumer, Booking]]]:
        """See `Store`."""
        return read_bookings.allocations_of_provider(self._backend, uuid)

    def usages(
        self, project_id: str, user_id: str | None = None
    ) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read_bookings.usages(connection, project_id, user_id)
        )

    def bookings(
        self,
        *,
        provider: str | None = None,
        consumer: str | None = None,
        decision: str | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`. Pages go by consumer: `limit` of them, after the one named `marker`."""
        return self._backend.read(
            lambda connection: read_bookings.bookings(
                connection,
                now=self.now(),
                provider=provider,
                consumer=consumer,
                decision=decision,
                page=page,
            )
        )

    def idle_consumers(self) -> Sequence[str]:
        """See `Store`."""
        return self._backend.read(read_bookings.idle_consumers)

    # --- ensembles, decisions, claims, explanations -------------------------------------------

    def ensemble(self, ensemble_id: str) -> Ensemble:
        """See `Store`."""
        return read.one(self._backend, tables.ensembles, "ensemble", bodies.ENSEMBLE, ensemble_id)

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = _WHOLE_LEDGER
    ) -> Sequence[Ensemble]:
        """See `Store`."""
        wanted = read.matching(tables.ensembles, project_id=project_id, name=name)
        wanted = wanted.where(~read_leases.OF_AN_OFFER)
        return self._backend.read(
            lambda connection: read.listed(
                connection,
                tables.ensembles,
                bodies.ENSEMBLE,
                wanted,
                newest_first=False,
                page=page,
            )
        )

    def keepers(self) -> Keepers:
        """See `Store`. Read in again only after one of them has changed."""
        known = self._keepers
        revision, waited = read.keepers_revision(self._backend)
        if known is None or known.revision != revision:
            known = self._keepers = self._backend.read(read.keepers)
        return replace(known, waited=waited)

    def held(self, project_id: str | None) -> int:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read_bookings.held(connection, project_id, now=self.now())
        )

    def decision(self, decision_id: str) -> Decision:
        """See `Store`."""
        return read.one(self._backend, tables.decisions, "decision", bodies.DECISION, decision_id)

    def decisions(
        self,
        *,
        project_id: str | None,
        ensemble_id: str | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[Decision]:
        """See `Store`."""
        wanted = read.matching(tables.decisions, project_id=project_id, ensemble_id=ensemble_id)
        return self._backend.read(
            lambda connection: read.listed(
                connection,
                tables.decisions,
                bodies.DECISION,
                wanted,
                newest_first=True,
                page=page,
            )
        )

    def claim(self, claim_id: str) -> Claim:
        """See `Store`."""
        return read.one(self._backend, tables.claims, "claim", bodies.CLAIM, claim_id)

    def claims(self, *, decision_id: str) -> Sequence[Claim]:
        """See `Store`."""
        table = tables.claims
        wanted = read.matching(table, decision_id=decision_id).order_by(table.c.number)
        return self._backend.read(
            lambda connection: [bodies.CLAIM.decode(body) for body in connection.scalars(wanted)]
        )

    def explanation(self, explanation_id: str) -> tuple[Explanation, str, str]:
        """See `Store`."""
        table = tables.explanations
        wanted = select(table).where(table.c.id == explanation_id)
        row = self._backend.read(lambda connection: connection.execute(wanted).one_or_none())
        if row is None:
            raise NotFound("explanation", explanation_id)
        return bodies.EXPLANATION.decode(row.body), row.project_id, row.instance

    def refusal(
        self, request: str, *, project_id: str | None, digest: str | None = None
    ) -> tuple[Explanation, str, str]:
        """See `Store`."""
        wanted = read.refusal(request, project_id=project_id, digest=digest)
        row = self._backend.ask((wanted, {}))[0].first()
        if row is None:
            raise NotFound("explanation", request)
        return bodies.EXPLANATION.decode(row.body), row.project_id, row.instance

    # --- flavors ------------------------------------------------------------------------------

    def flavor(self, name: str) -> Flavor:
        """See `Store`. An id goes before an equal name."""
        table = tables.flavors
        wanted = select(table.c.id, table.c.body).where(
            or_(table.c.id == name, table.c.name == name)
        )
        rows = self._backend.read(lambda connection: connection.execute(wanted).all())
        found = {row.id: row.body for row in rows}
        if not found:
            raise NotFound("flavor", name)
        return bodies.FLAVOR.decode(found.get(name) or next(iter(found.values())))

    def flavors(self) -> Sequence[Flavor]:
        """See `Store`."""
        wanted = select(tables.flavors.c.body).order_by(tables.flavors.c.name)
        found = self._backend.read(lambda connection: connection.scalars(wanted).all())
        return [bodies.FLAVOR.decode(body) for body in found]

    # --- leases -------------------------------------------------------------------------------

    def lease(self, lease_id: str) -> Lease:
        """See `Store`."""
        return read.one(self._backend, tables.leases, "lease", bodies.LEASE, lease_id)

    def leases(
        self,
        *,
        project_id: str | None,
        name: str | None = None,
        state: LeaseState | None = None,
        series_id: str | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        """See `Store`."""
        value = None if state is None else state.value
        wanted = read.matching(
            tables.leases, project_id=project_id, name=name, state=value, series_id=series_id
        )
        granted = wanted.where(tables.leases.c.state.not_in(read_leases.PROPOSED))
        return self._listed(tables.leases, bodies.LEASE, granted, page)

    def offers(
        self,
        *,
        project_id: str | None,
        over: bool = False,
        series_id: str | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        """See `Store`."""
        states = read_leases.PROPOSED if over else read_leases.PROPOSED[:1]
        wanted = read.matching(tables.leases, project_id=project_id)
        of = tables.leases.c.series_id
        mine = of.is_(None) if series_id is None else of == series_id
        proposed = wanted.where(tables.leases.c.state.in_(states), mine)
        return self._listed(tables.leases, bodies.LEASE, proposed, page)

    def series(self, series_id: str) -> Series:
        """See `Store`."""
        return read.one(self._backend, tables.series, "series", bodies.SERIES, series_id)

    def all_series(
        self, *, project_id: str | None, name: str | None = None, page: Page = _WHOLE_LEDGER
    ) -> Sequence[Series]:
        """See `Store`."""
        wanted = read.matching(tables.series, project_id=project_id, name=name)
        return self._listed(tables.series, bodies.SERIES, wanted, page)

    def occurrences(self, series_ids: Collection[str]) -> Mapping[str, Mapping[LeaseState, int]]:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read_leases.occurrences(connection, series_ids)
        )

    def leases_of(self, ensemble_id: str) -> Sequence[Lease]:
        """See `Store`."""
        wanted = read.matching(tables.leases, ensemble_id=ensemble_id)
        return self._listed(tables.leases, bodies.LEASE, wanted, _WHOLE_LEDGER)

    def shutting_out(self) -> Sequence[Lease]:
        """See `Store`."""
        wanted = read.matching(tables.leases).where(tables.leases.c.shuts_out > "")
        return self._listed(tables.leases, bodies.LEASE, wanted, _WHOLE_LEDGER)

    def lease_of_reservation(self, reservation_id: str) -> Lease:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read_leases.lease_of_reservation(connection, reservation_id)
        )

    def yielding(self, lease_id: str) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`."""
        now = self.now()
        return self._backend.read(
            lambda connection: read_bookings.yielding(connection, lease_id, now=now)
        )

    def effects(self, subject: str, *, page: Page = _WHOLE_LEDGER) -> Sequence[Effect]:
        """See `Store`."""
        wanted = read.matching(tables.effects, subject=subject)
        return self._listed(tables.effects, bodies.EFFECT, wanted, page)

    def due_effects(self, limit: int, lane: Lane | None = None) -> Sequence[Effect]:
        """See `Store`."""
        now = self.now()
        return self._backend.read(
            lambda connection: read_leases.due_effects(connection, now, limit, lane)
        )

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        """See `Store`."""
        now = self.now()
        return self._backend.read(lambda connection: read_leases.pending_effects(connection, now))

    def overrun(self, after: tuple[Instant, str], limit: int) -> Sequence[Overrun]:
        """See `Store`."""
        now = self.now()
        return self._backend.read(
            lambda connection: read_bookings.overrun(connection, now, after, limit)
        )

    def _listed(
        self, table: Table, shape: Shape[T], wanted: Select[Any], page: Page
    ) -> Sequence[T]:
        """Values by creation, one page of them."""
        return self._backend.read(
            lambda connection: read.listed(
                connection, table, shape, wanted, newest_first=False, page=page
            )
        )

    # --- templates ----------------------------------------------------------------------------

    def template(self, template_id: str, version: int | None = None) -> Template:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read.template(connection, template_id, version)
        )

    def templates(
        self, *, project_id: str | None, name: str | None = None, page: Page = _WHOLE_LEDGER
    ) -> Sequence[Template]:
        """See `Store`."""
        wanted = read.templates(project_id, name)
        return self._listed(tables.templates, bodies.TEMPLATE, wanted, page)

    def capacity_window(self, window_id: str) -> CapacityWindow:
        """See `Store`."""
        table, shape = tables.capacity_windows, bodies.CAPACITY_WINDOW
        return self._backend.read(
            lambda connection: read.one(connection, table, "capacity window", shape, window_id)
        )

    def capacity_windows(self, *, page: Page = _WHOLE_LEDGER) -> Sequence[CapacityWindow]:
        """See `Store`."""
        wanted = read.matching(tables.capacity_windows)
        return self._listed(tables.capacity_windows, bodies.CAPACITY_WINDOW, wanted, page)

    def reservables(self, kind: ReservableKind) -> Sequence[Reservable]:
        """See `Store`."""
        table = tables.reservables
        wanted = read.matching(table, kind=kind.value).order_by(table.c.number)
        found = self._backend.read(lambda connection: connection.scalars(wanted).all())
        return [bodies.RESERVABLE.decode(body) for body in found]

    # --- quotas -------------------------------------------------------------------------------

    def quota(self, project_id: str) -> Quota | None:
        """See `Store`."""
        return read_leases.quota(self._backend, project_id)

    def quotas(self) -> Sequence[Quota]:
        """See `Store`."""
        wanted = select(tables.quotas.c.body).order_by(tables.quotas.c.project_id)
        found = self._backend.read(lambda connection: connection.scalars(wanted).all())
        return [bodies.QUOTA.decode(body) for body in found]

    def lessee(self, project_id: str, since: Instant, *, but: str = "") -> Lessee:
        """See `Store`."""
        now = self.now()
        return self._backend.read(
            lambda connection: read_leases.lessee(connection, project_id, since, now, but=but)
        )

    def uses_of_lease(self, lease_id: str) -> Sequence[Use]:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read_leases.uses_of_lease(connection, lease_id)
        )

    # --- waitlist -----------------------------------------------------------------------------

    def waitlist_entry(self, entry_id: str) -> WaitlistEntry:
        """See `Store`."""
        table, shape = tables.waitlist, bodies.ENTRY
        return read.one(self._backend, table, "waitlist entry", shape, entry_id)

    def waitlist(
        self,
        *,
        project_id: str | None,
        state: EntryState | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[WaitlistEntry]:
        """See `Store`."""
        value = None if state is None else state.value
        wanted = read.matching(tables.waitlist, project_id=project_id, state=value)
        return self._listed(tables.waitlist, bodies.ENTRY, wanted, page)

    def in_line(self, period: Period, limit: int) -> Sequence[WaitlistEntry]:
        """See `Store`."""
        return self._backend.read(lambda connection: waiting.in_line(connection, period, limit))

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        """See `Store`."""
        return self._backend.read(waiting.counts)

    # --- time ---------------------------------------------------------------------------------

    def due(self, limit: int) -> Sequence[Decision | Claim]:
        """See `Store`."""
        now = self.now()
        return self._backend.read(lambda connection: read.due_items(connection, now, limit))
