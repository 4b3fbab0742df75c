"""What is recorded of names, bookings and ensembles, and of what they are described by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from moorage.domain.errors import NotFound
from moorage.store import bodies, read, read_bookings, read_leases, tables
from moorage.store.recorded import WHOLE_LEDGER, Recorded

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation
    from moorage.domain.flavors import Flavor
    from moorage.domain.templates import Template
    from moorage.usecases.ports import Named, Page


class RecordedPlacements(Recorded):
    """See `Store`."""

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
        page: Page = WHOLE_LEDGER,
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

    def ensemble(self, ensemble_id: str) -> Ensemble:
        """See `Store`."""
        return read.one(self._backend, tables.ensembles, "ensemble", bodies.ENSEMBLE, ensemble_id)

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
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
        page: Page = WHOLE_LEDGER,
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

    def template(self, template_id: str, version: int | None = None) -> Template:
        """See `Store`."""
        return self._backend.read(
            lambda connection: read.template(connection, template_id, version)
        )

    def templates(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Template]:
        """See `Store`."""
        wanted = read.templates(project_id, name)
        return self._listed(tables.templates, bodies.TEMPLATE, wanted, page)
