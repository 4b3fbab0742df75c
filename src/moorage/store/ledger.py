"""The store that use cases see: `usecases.ports.Store` over one database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import NotFound
from moorage.store import bodies, read, tables
from moorage.store.commit import commit
from moorage.store.feed import Feed
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Changeset, Committed
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation
    from moorage.domain.flavors import Flavor
    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.store.backends import Backend
    from moorage.usecases.ports import Clock, Named

_WHOLE_LEDGER = Page()


class Ledger:
    """Every method is a transaction of its own and may be called from any thread."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock
        self._feed = Feed(backend, clock)

    def close(self) -> None:
        """Let go of the database; the ledger cannot be used afterwards."""
        self._backend.close()

    def now(self) -> Instant:
        """See `Store`."""
        return self._clock.now()

    def snapshot(self) -> Snapshot:
        """See `Store`."""
        return self._feed.snapshot()

    def commit(self, changeset: Changeset) -> Committed:
        """See `Store`.

        Raises:
            Busy: too many writers at once; nothing was written.
        """
        with self._backend.writing() as connection:
            # The clock is read inside: later commits have later instants.
            return commit(connection, changeset, now=self.now())

    # --- names and bookings ---------------------------------------------------------------

    def resource_classes(self) -> Sequence[Named]:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.resource_classes(connection)

    def traits(self) -> Sequence[Named]:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.traits(connection)

    def consumer(self, uuid: str) -> tuple[Consumer, Sequence[Booking]] | None:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.consumer(connection, uuid)

    def allocations_of_provider(self, uuid: str) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.allocations_of_provider(connection, uuid)

    def usages(
        self, project_id: str, user_id: str | None = None
    ) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.usages(connection, project_id, user_id)

    def bookings(
        self,
        *,
        provider: str | None = None,
        consumer: str | None = None,
        decision: str | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`. Pages go by consumer: `limit` of them, after the one named `marker`."""
        with self._backend.reading() as connection:
            return read.bookings(
                connection,
                now=self.now(),
                provider=provider,
                consumer=consumer,
                decision=decision,
                page=page,
            )

    # --- ensembles, decisions, claims, explanations -------------------------------------------

    def ensemble(self, ensemble_id: str) -> Ensemble:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.one(connection, tables.ensembles, "ensemble", bodies.ENSEMBLE, ensemble_id)

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = _WHOLE_LEDGER
    ) -> Sequence[Ensemble]:
        """See `Store`."""
        wanted = read.matching(tables.ensembles, project_id=project_id, name=name)
        with self._backend.reading() as connection:
            return read.listed(
                connection,
                tables.ensembles,
                bodies.ENSEMBLE,
                wanted,
                newest_first=False,
                page=page,
            )

    def ensembles_with(self, policy_type: str) -> Sequence[Ensemble]:
        """See `Store`."""
        wanted = read.mentioning(tables.ensembles, f'"type":"{policy_type}"')
        with self._backend.reading() as connection:
            found = read.listed(
                connection,
                tables.ensembles,
                bodies.ENSEMBLE,
                wanted,
                newest_first=False,
                page=_WHOLE_LEDGER,
            )
        return [one for one in found if any(p.type == policy_type for p in one.policies)]

    def held(self, project_id: str) -> int:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.held(connection, project_id, now=self.now())

    def decision(self, decision_id: str) -> Decision:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.one(connection, tables.decisions, "decision", bodies.DECISION, decision_id)

    def decisions(
        self,
        *,
        project_id: str | None,
        ensemble_id: str | None = None,
        page: Page = _WHOLE_LEDGER,
    ) -> Sequence[Decision]:
        """See `Store`."""
        wanted = read.matching(tables.decisions, project_id=project_id, ensemble_id=ensemble_id)
        with self._backend.reading() as connection:
            return read.listed(
                connection,
                tables.decisions,
                bodies.DECISION,
                wanted,
                newest_first=True,
                page=page,
            )

    def claim(self, claim_id: str) -> Claim:
        """See `Store`."""
        with self._backend.reading() as connection:
            return read.one(connection, tables.claims, "claim", bodies.CLAIM, claim_id)

    def claims(self, *, decision_id: str) -> Sequence[Claim]:
        """See `Store`."""
        table = tables.claims
        wanted = read.matching(table, decision_id=decision_id).order_by(table.c.number)
        with self._backend.reading() as connection:
            return [bodies.CLAIM.decode(body) for body in connection.scalars(wanted)]

    def explanation(self, explanation_id: str) -> tuple[Explanation, str, str]:
        """See `Store`."""
        table = tables.explanations
        wanted = select(table).where(table.c.id == explanation_id)
        with self._backend.reading() as connection:
            row = connection.execute(wanted).one_or_none()
        if row is None:
            raise NotFound("explanation", explanation_id)
        return bodies.EXPLANATION.decode(row.body), row.project_id, row.instance

    # --- flavors ------------------------------------------------------------------------------

    def flavor(self, name: str) -> Flavor:
        """See `Store`. An id goes before an equal name."""
        table = tables.flavors
        wanted = select(table.c.id, table.c.body).where(
            or_(table.c.id == name, table.c.name == name)
        )
        with self._backend.reading() as connection:
            found = {row.id: row.body for row in connection.execute(wanted)}
        if not found:
            raise NotFound("flavor", name)
        return bodies.FLAVOR.decode(found.get(name) or next(iter(found.values())))

    def flavors(self) -> Sequence[Flavor]:
        """See `Store`."""
        table = tables.flavors
        with self._backend.reading() as connection:
            found = connection.scalars(select(table.c.body).order_by(table.c.name))
            return [bodies.FLAVOR.decode(body) for body in found]

    # --- time ---------------------------------------------------------------------------------

    def due(self, limit: int) -> Sequence[Decision | Claim]:
        """See `Store`."""
        now = self.now()
        with self._backend.reading() as connection:
            decisions = read.due(
                connection,
                bodies.DECISION,
                where=tables.decisions.c.state == DecisionState.HELD.value,
                time=tables.decisions.c.expires_at,
                now=now,
                limit=limit,
            )
            claims = read.due(
                connection,
                bodies.CLAIM,
                where=tables.claims.c.state == ClaimState.BUILDING.value,
                time=tables.claims.c.lapses_at,
                now=now,
                limit=limit - len(decisions),
            )
        return [*decisions, *claims]
