"""Reads ensembles, decisions, claims, explanations, refusals, flavors and templates."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, exists, func, or_, select, true, union

from moorage.domain.bookings import BookingState
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.effects import EffectState
from moorage.domain.errors import NotFound
from moorage.domain.explain import Refusal, RefusedRequest
from moorage.domain.period import FOREVER
from moorage.domain.plans import PlanState
from moorage.domain.references import references_of
from moorage.store.database.statements import chunks
from moorage.store.read import leases
from moorage.store.read.leases import LIVE
from moorage.store.read.stored_values import Reader, due_rows, matching, page_of
from moorage.store.schema import tables
from moorage.store.values import stored_bodies
from moorage.usecases.paging import WHOLE_LEDGER
from moorage.usecases.ports import ExclusiveEnsembles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Row

    from moorage.domain.actors import Actor
    from moorage.domain.decision_records import DecisionRecord
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Stage
    from moorage.domain.flavors import Flavor
    from moorage.domain.period import Instant
    from moorage.domain.plans import Move, Plan
    from moorage.domain.templates import Template
    from moorage.engine.state.snapshot import Snapshot
    from moorage.store.backend import Backend
    from moorage.store.database.session import Queryable, Session
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Clock

_e, _l, _d, _c = tables.ensembles.c, tables.leases.c, tables.decisions.c, tables.claims.c
_b, _s = tables.bookings.c, tables.member_servers.c
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
_HAS_SERVERS: Final = exists().where(
    _s.ensemble_id == _e.id,
    _b.consumer == _s.server,
    _b.state == BookingState.ALLOCATED.value,
)
_PLACES_GONE: Final = and_(
    exists().where(
        _d.ensemble_id == _e.id,
        _d.number == _NEWEST,
        or_(_d.state != DecisionState.HELD.value, _d.expires_at <= bindparam("now")),
        ~exists().where(
            _b.decision == _d.id,
            _b.state != BookingState.ALLOCATED.value,
            _b.lapses_at > bindparam("now"),
        ),
    ),
    ~_HAS_SERVERS,
    ~exists().where(_l.ensemble_id == _e.id, *LIVE),
)
"""It was decided, and no member has a place any more: held, claimed, or with a server."""
_x, _t = tables.explanations.c, tables.templates.c
# What workers ask again and again, in every process: worded once.
_DUE_DECISIONS: Final = due_rows(_d.expires_at).where(_d.state == DecisionState.HELD.value)
_CLAIMS_OF_DECISION: Final = (
    select(_c.body).where(_c.decision_id == bindparam("of")).order_by(_c.number)
)
_NEWEST_DECISIONS: Final = select(_d.ensemble_id, _d.body).where(
    _d.ensemble_id.in_(bindparam("some", expanding=True)), _d.number == _NEWEST
)
_OPEN_CLAIMS: Final = (
    select(_c.decision_id, func.count().label("number"))
    .where(
        _c.decision_id.in_(bindparam("some", expanding=True)),
        or_(
            _c.state == ClaimState.ACTIVE.value,
            and_(_c.state == ClaimState.BUILDING.value, _c.lapses_at > bindparam("now")),
        ),
    )
    .group_by(_c.decision_id)
)
_DUE_CLAIMS: Final = due_rows(_c.lapses_at).where(_c.state == ClaimState.BUILDING.value)
_f = tables.effects.c
_NEXT_DUE: Final = [
    select(func.min(time).label("time")).where(state == waits.value, time > bindparam("now"))
    for time, state, waits in (
        (_f.not_before, _f.state, EffectState.PENDING),
        (_d.expires_at, _d.state, DecisionState.HELD),
        (_c.lapses_at, _c.state, ClaimState.BUILDING),
    )
]
_EXCLUSIVE: Final = (
    select(tables.ledger.c.exclusive_revision, _e.body)
    .select_from(tables.ledger)
    .outerjoin(tables.exclusive_ensembles, true())
    .outerjoin(tables.ensembles, _e.id == tables.exclusive_ensembles.c.ensemble_id)
    .order_by(_e.number)
)
_HELD_TARGETS: Final = (
    select(tables.plans.c.body)
    .where(tables.plans.c.ended_at.is_(None), tables.plans.c.state != PlanState.READY.value)
    .order_by(tables.plans.c.number)
)
_OF_SERVER: Final = (
    select(_e.body)
    .join(tables.member_servers, tables.member_servers.c.ensemble_id == _e.id)
    .where(tables.member_servers.c.server == bindparam("server"))
    .order_by(_e.number)
)
_REFERENCED: Final = select(_e.id, _e.body).where(_e.id.in_(bindparam("some", expanding=True)))
_h = tables.shares.c
_OF_SHARE: Final = (
    select(_e.body).join(tables.shares, _h.ensemble_id == _e.id).where(_h.id == bindparam("of"))
)
_RECORD: Final = select(_d.record, _d.actor).where(_d.id == bindparam("of"))
_NAMESAKES: Final = (
    select(_e.id)
    .where(
        _e.project_id == bindparam("of"),
        _e.name == bindparam("named"),
        _e.id != bindparam("but"),
        ~_LEASES_ENDED,
        ~_PLACES_GONE,
    )
    .order_by(_e.number)
)


def namesakes(
    source: Queryable, project_id: str, name: str, now: Instant, *, but: str = ""
) -> list[str]:
    """Ids of the ensembles in use of a name, oldest first, but for one; see `ExpectUniqueName`."""
    given = {"of": project_id, "named": name, "but": but, "now": now}
    return [str(row.id) for row in source.ask((_NAMESAKES, given))[0]]


def _refusal(row: Row[Any]) -> Refusal:
    known = row.ensemble_id is not None
    return Refusal(
        stored_bodies.EXPLANATION.decode(row.body),
        row.project_id,
        RefusedRequest(row.ensemble_id, row.name, row.user_id) if known else None,
    )


def keeping_out(
    ensembles: tuple[Ensemble, ...], targets: Mapping[str, tuple[Move, ...]]
) -> ExclusiveEnsembles:
    """What keeps others out; of ensembles with the consumers of their members and spares."""
    found: dict[str, list[Ensemble]] = {}
    for ensemble in ensembles:
        for member in (*ensemble.members, *ensemble.headroom):
            for consumer in {member.uuid, member.server_id} - {None}:
                found.setdefault(str(consumer), []).append(ensemble)
    of_consumer = {consumer: tuple(owners) for consumer, owners in found.items()}
    return ExclusiveEnsembles(ensembles, MappingProxyType(of_consumer), targets)


def _targets(plans: Iterable[Plan]) -> Mapping[str, tuple[Move, ...]]:
    """Server -> its moves whose targets are held."""
    found: dict[str, list[Move]] = {}
    for one in plans:
        for move in one.holding:
            found.setdefault(move.server, []).append(move)
    return MappingProxyType({server: tuple(moves) for server, moves in found.items()})


class EnsembleQueries(Reader):
    """See `Store`."""

    def __init__(self, backend: Backend, clock: Clock | None) -> None:
        super().__init__(backend, clock)
        none = ExclusiveEnsembles((), MappingProxyType({}))
        self._exclusive: list[tuple[int, ExclusiveEnsembles]] = [(-1, none)]
        """Those read last, and their revision: one for all views of a ledger."""

    def ensemble(self, ensemble_id: str) -> Ensemble:
        found = self._one(tables.ensembles, "ensemble", stored_bodies.ENSEMBLE, ensemble_id)
        return self._with_references([found])[0]

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Ensemble]:
        wanted = matching(tables.ensembles, project_id=project_id, name=name)
        own = wanted.where(~leases.OF_AN_OFFER)
        found = self._listed(tables.ensembles, stored_bodies.ENSEMBLE, own, page)
        return self._with_references(found)

    def ensembles_named(self, project_id: str, name: str) -> Sequence[str]:
        return namesakes(self._backend, project_id, name, self.now())

    def ensembles_of_server(self, server: str) -> Sequence[Ensemble]:
        found = self._ask(_OF_SERVER, server=server)
        return self._with_references([stored_bodies.ENSEMBLE.decode(row.body) for row in found])

    def _with_references(self, ensembles: Sequence[Ensemble]) -> list[Ensemble]:
        """The ensembles with the consumers of the others to which their policies refer."""
        names = [
            {name for policy in one.policies for name in references_of(policy)} for one in ensembles
        ]
        every = sorted(frozenset().union(*names))
        if not every:
            return list(ensembles)
        found = self._ask(_REFERENCED, some=every)
        there = {row.id: stored_bodies.ENSEMBLE.decode(row.body).consumers for row in found}
        return [
            replace(one, references=MappingProxyType({name: there[name] for name in mine}))
            for one, mine in zip(ensembles, (some & there.keys() for some in names), strict=True)
        ]

    def ensemble_of_share(self, share_id: str) -> Ensemble:
        body = self._ask(_OF_SHARE, of=share_id).scalar_one_or_none()
        if body is None:
            raise NotFound("share", share_id)
        return self._with_references([stored_bodies.ENSEMBLE.decode(body)])[0]

    def shares(
        self, *, project_id: str | None, page: Page = WHOLE_LEDGER
    ) -> Sequence[tuple[str, Ensemble]]:
        wanted = select(_h.id, _e.body).join(tables.ensembles, _e.id == _h.ensemble_id)
        if project_id is not None:
            wanted = wanted.where(or_(_h.project_id == project_id, _e.project_id == project_id))
        rows = self._backend.read(
            lambda connection: page_of(connection, tables.shares, wanted, page, newest_first=False)
        )
        return [(row.id, stored_bodies.ENSEMBLE.decode(row.body)) for row in rows]

    def exclusive_ensembles(self, snapshot: Snapshot) -> ExclusiveEnsembles:
        """Ensembles that keep others out; read again only after one of them has changed."""
        ((revision, known),) = self._exclusive
        if snapshot.exclusive_revision != revision:
            found, plans = self._backend.ask((_EXCLUSIVE, {}), (_HELD_TARGETS, {}))
            ensembles = tuple(stored_bodies.ENSEMBLE.decode(row.body) for row in found if row.body)
            targets = _targets(stored_bodies.PLAN.decode(body) for body in plans.scalars())
            known = keeping_out(ensembles, targets)
            self._exclusive[0] = found[0].exclusive_revision, known
        return known

    def due(self, limit: int) -> Sequence[Decision | Claim]:
        """Held decisions, then building claims, whose time has come."""
        given = {"now": self.now(), "limit": limit}
        held, building = self._backend.ask((_DUE_DECISIONS, given), (_DUE_CLAIMS, given))
        due: list[Decision | Claim] = [stored_bodies.DECISION.decode(row.body) for row in held]
        due += [stored_bodies.CLAIM.decode(row.body) for row in building]
        return due[:limit]

    def next_due(self) -> Instant:
        """The next instant at which an effect, a held decision or a building claim is due."""
        given = {"now": self.now()}
        found = self._backend.ask(*((query, given) for query in _NEXT_DUE))
        return min((time for (time,) in (rows.one() for rows in found) if time), default=FOREVER)

    def decision(self, decision_id: str) -> Decision:
        return self._one(tables.decisions, "decision", stored_bodies.DECISION, decision_id)

    def decision_record(self, decision_id: str) -> tuple[DecisionRecord | None, Actor]:
        row = self._ask(_RECORD, of=decision_id).one_or_none()
        if row is None:
            raise NotFound("decision", decision_id)
        record = None if row.record is None else stored_bodies.DECISION_RECORD.decode(row.record)
        return record, stored_bodies.actor_of(row.actor)

    def decisions(
        self,
        *,
        project_id: str | None,
        ensemble_id: str | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Decision]:
        table, shape = tables.decisions, stored_bodies.DECISION
        wanted = matching(table, project_id=project_id, ensemble_id=ensemble_id)
        return self._listed(table, shape, wanted, page, newest_first=True)

    def decisions_seen_by(self, project_id: str, page: Page) -> Sequence[Decision]:
        table, shape = tables.decisions, stored_bodies.DECISION
        own = select(_d.number).where(_d.project_id == project_id)
        others = select(_d.number).join(tables.shares, _h.ensemble_id == _d.ensemble_id)
        # A union, as each half has an index.
        seen = union(own, others.where(_h.project_id == project_id)).subquery()
        wanted = matching(table).join(seen, seen.c.number == _d.number)
        return self._listed(table, shape, wanted, page, newest_first=True)

    def newest_decisions(self, ensembles: Collection[str]) -> Mapping[str, Decision]:
        return {
            row.ensemble_id: stored_bodies.DECISION.decode(row.body)
            for some in chunks(ensembles)
            for row in self._ask(_NEWEST_DECISIONS, some=some)
        }

    def claim(self, claim_id: str) -> Claim:
        return self._one(tables.claims, "claim", stored_bodies.CLAIM, claim_id)

    def claims(self, *, decision_id: str, page: Page | None = None) -> Sequence[Claim]:
        table, shape = tables.claims, stored_bodies.CLAIM
        if page is not None:
            return self._listed(table, shape, matching(table, decision_id=decision_id), page)
        return self._every(shape, _CLAIMS_OF_DECISION, of=decision_id)

    def open_claims(self, decisions: Collection[str]) -> Mapping[str, int]:
        return {
            row.decision_id: int(row.number)
            for some in chunks(decisions)
            for row in self._ask(_OPEN_CLAIMS, some=some, now=self.now())
        }

    def explanation(self, explanation_id: str) -> tuple[Refusal, str]:
        return self._explained(_x.id == explanation_id, explanation_id)

    def refusal(
        self, request: str, *, project_id: str | None, digest: str | None = None
    ) -> tuple[Refusal, str]:
        """The newest explanation of a request that was refused."""
        mine = _x.request == request
        if project_id is not None:
            mine &= _x.project_id == project_id
        if digest is not None:
            mine &= _x.digest == digest
        return self._explained(mine, request)

    def _explained(self, mine: ColumnElement[bool], name: str) -> tuple[Refusal, str]:
        wanted = select(tables.explanations).where(mine).order_by(_x.number.desc()).limit(1)
        row = self._ask(wanted).first()
        if row is None:
            raise NotFound("explanation", name)
        return _refusal(row), row.instance

    def refusals(
        self,
        *,
        project_id: str | None,
        ensemble: str | None = None,
        stage: Stage | None = None,
        since: Instant | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Refusal]:
        wanted = select(_x.body, _x.project_id, _x.ensemble_id, _x.name, _x.user_id)
        if project_id is not None:
            wanted = wanted.where(_x.project_id == project_id)
        if ensemble is not None:
            wanted = wanted.where(or_(_x.ensemble_id == ensemble, _x.name == ensemble))
        if stage is not None:
            wanted = wanted.where(_x.stage == stage.value)
        if since is not None:
            wanted = wanted.where(_x.at >= since)
        rows = self._backend.read(
            lambda connection: page_of(
                connection, tables.explanations, wanted, page, newest_first=True
            )
        )
        return [_refusal(row) for row in rows]

    def flavor(self, name: str) -> Flavor:
        """See `Store`. An id goes before an equal name."""
        table = tables.flavors
        wanted = select(table.c.id, table.c.body).where(
            or_(table.c.id == name, table.c.name == name)
        )
        found = {row.id: row.body for row in self._ask(wanted)}
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
        newest = _t.newest == true() if version is None else _t.version == version
        wanted = select(_t.body).where(_t.id == template_id, newest)
        body = self._ask(wanted).scalar_one_or_none()
        if body is None:
            name = template_id if version is None else f"{template_id}@{version}"
            raise NotFound("template", name)
        return stored_bodies.TEMPLATE.decode(body)

    def templates(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Template]:
        """The newest versions that a project may use; None: those of every project."""
        wanted = matching(tables.templates, name=name).where(_t.newest == true())
        if project_id is not None:
            wanted = wanted.where(or_(_t.project_id == project_id, _t.shared == true()))
        return self._listed(tables.templates, stored_bodies.TEMPLATE, wanted, page)
