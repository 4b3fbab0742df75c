"""Reads ensembles, decisions, claims, explanations, refusals, flavors and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, exists, func, or_, select

from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import NotFound
from moorage.store.read import leases, stored_values
from moorage.store.read.leases import LIVE
from moorage.store.read.stored_values import WHOLE_LEDGER, Reader
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation, Refusal, Stage
    from moorage.domain.flavors import Flavor
    from moorage.domain.period import Instant
    from moorage.domain.templates import Template
    from moorage.store.database.session import Asked, Session
    from moorage.usecases.ports import Page

_e, _l, _d, _c = tables.ensembles.c, tables.leases.c, tables.decisions.c, tables.claims.c
_older = tables.decisions.alias("older")
_LEASES_ENDED: Final = and_(
    exists().where(_l.ensemble_id == _e.id), ~exists().where(_l.ensemble_id == _e.id, *LIVE)
)
"""It was leased, or kept for an offer, and no lease of it is left."""
_NEWEST: Final = (
    select(func.max(_older.c.number))
    .where(_older.c.ensemble_id == _d.ensemble_id)
    .correlate(tables.decisions)
    .scalar_subquery()
)
_PLACES_GONE: Final = exists().where(
    _d.ensemble_id == _e.id,
    _d.number == _NEWEST,
    or_(
        _d.state == DecisionState.RELEASED.value,
        _d.state == DecisionState.EXPIRED.value,
        and_(_d.state == DecisionState.HELD.value, _d.expires_at <= bindparam("now")),
    ),
    ~exists().where(_c.decision_id == _d.id, _c.state == ClaimState.ACTIVE.value),
)
"""Its places were given back, or their hold has lapsed, before a server had one."""
_NAMESAKE: Final = (
    select(_e.id)
    .where(
        _e.project_id == bindparam("of"),
        _e.name == bindparam("named"),
        _e.id != bindparam("but"),
        ~_LEASES_ENDED,
        ~_PLACES_GONE,
    )
    .order_by(_e.number)
    .limit(1)
)


def namesake(
    asked: Asked, project_id: str, name: str, now: Instant, *, but: str = ""
) -> str | None:
    """The id of the oldest ensemble in use of a name, but for one; see `ExpectUniqueName`."""
    given = {"of": project_id, "named": name, "but": but, "now": now}
    found = asked.ask((_NAMESAKE, given))[0].first()
    return None if found is None else str(found.id)


class EnsembleQueries(Reader):
    """See `Store`."""

    def ensemble(self, ensemble_id: str) -> Ensemble:
        return stored_values.one(
            self._backend, tables.ensembles, "ensemble", stored_bodies.ENSEMBLE, ensemble_id
        )

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Ensemble]:
        wanted = stored_values.matching(tables.ensembles, project_id=project_id, name=name)
        wanted = wanted.where(~leases.OF_AN_OFFER)
        return self._backend.read(
            lambda connection: stored_values.listed(
                connection,
                tables.ensembles,
                stored_bodies.ENSEMBLE,
                wanted,
                newest_first=False,
                page=page,
            )
        )

    def ensemble_named(self, project_id: str, name: str) -> str | None:
        return namesake(self._backend, project_id, name, self.now())

    def decision(self, decision_id: str) -> Decision:
        return stored_values.one(
            self._backend, tables.decisions, "decision", stored_bodies.DECISION, decision_id
        )

    def decisions(
        self,
        *,
        project_id: str | None,
        ensemble_id: str | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Decision]:
        wanted = stored_values.matching(
            tables.decisions, project_id=project_id, ensemble_id=ensemble_id
        )
        return self._backend.read(
            lambda connection: stored_values.listed(
                connection,
                tables.decisions,
                stored_bodies.DECISION,
                wanted,
                newest_first=True,
                page=page,
            )
        )

    def claim(self, claim_id: str) -> Claim:
        return stored_values.one(
            self._backend, tables.claims, "claim", stored_bodies.CLAIM, claim_id
        )

    def claims(self, *, decision_id: str, page: Page | None = None) -> Sequence[Claim]:
        table = tables.claims
        wanted = stored_values.matching(table, decision_id=decision_id)
        if page is not None:
            some = page
            return self._backend.read(
                lambda connection: stored_values.listed(
                    connection, table, stored_bodies.CLAIM, wanted, newest_first=False, page=some
                )
            )
        wanted = wanted.order_by(table.c.number)
        return self._backend.read(
            lambda connection: [
                stored_bodies.CLAIM.decode(body) for body in connection.scalars(wanted)
            ]
        )

    def explanation(self, explanation_id: str) -> tuple[Explanation, str, str]:
        table = tables.explanations
        wanted = select(table).where(table.c.id == explanation_id)
        row = self._backend.read(lambda connection: connection.execute(wanted).one_or_none())
        if row is None:
            raise NotFound("explanation", explanation_id)
        return stored_bodies.EXPLANATION.decode(row.body), row.project_id, row.instance

    def refusals(
        self,
        *,
        project_id: str | None,
        ensemble: str | None = None,
        stage: Stage | None = None,
        since: Instant | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Refusal]:
        return self._backend.read(
            lambda connection: stored_values.refusals(
                connection,
                project_id=project_id,
                ensemble=ensemble,
                stage=stage,
                since=since,
                page=page,
            )
        )

    def refusal(
        self, request: str, *, project_id: str | None, digest: str | None = None
    ) -> tuple[Explanation, str, str]:
        wanted = stored_values.refusal(request, project_id=project_id, digest=digest)
        row = self._backend.ask((wanted, {}))[0].first()
        if row is None:
            raise NotFound("explanation", request)
        return stored_bodies.EXPLANATION.decode(row.body), row.project_id, row.instance

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
        return stored_bodies.FLAVOR.decode(found.get(name) or next(iter(found.values())))

    def flavors(self, page: Page | None = None) -> Sequence[Flavor]:
        table = tables.flavors

        def work(connection: Session) -> list[str]:
            wanted = select(table.c.body).order_by(table.c.name)
            if page is not None and page.marker is not None:
                name = select(table.c.name).where(table.c.id == page.marker)
                last = connection.scalars(name).one_or_none()
                if last is None:
                    raise NotFound("marker", page.marker)
                wanted = wanted.where(table.c.name > last)
            return list(connection.scalars(wanted if page is None else wanted.limit(page.limit)))

        return [stored_bodies.FLAVOR.decode(body) for body in self._backend.read(work)]

    def template(self, template_id: str, version: int | None = None) -> Template:
        return self._backend.read(
            lambda connection: stored_values.template(connection, template_id, version)
        )

    def templates(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Template]:
        wanted = stored_values.templates(project_id, name)
        return self._listed(tables.templates, stored_bodies.TEMPLATE, wanted, page)
