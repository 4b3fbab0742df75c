"""Reads violations, and which ensembles are to be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, func, or_, select, text, true

from moorage.domain.host_states import ToldHost
from moorage.domain.references import REFERENCE
from moorage.store.database.statements import chunks
from moorage.store.read.ensemble_queries import EnsembleQueries
from moorage.store.read.leases import OF_AN_OFFER
from moorage.store.read.stored_values import page_of
from moorage.store.schema import tables
from moorage.store.values import stored_bodies
from moorage.usecases.compliance_ports import WrittenEnsemble

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import Select

    from moorage.domain.actors import Actor
    from moorage.domain.violations import Violation
    from moorage.usecases.compliance_ports import ViolationFilter
    from moorage.usecases.paging import Page

_v, _e, _d = tables.violations.c, tables.ensembles.c, tables.decisions.c
_s = tables.member_servers.c
_SOME: Final[Any] = bindparam("some", expanding=True)
_OPEN: Final = (
    select(_v.body).where(_v.ensemble_id.in_(_SOME), _v.ended_at.is_(None)).order_by(_v.number)
)
_BROKEN: Final = (
    select(_v.ensemble_id, func.count().label("number"))
    .where(_v.ensemble_id.in_(_SOME), _v.ended_at.is_(None), _v.required == true())
    .group_by(_v.ensemble_id)
)
_COUNTS: Final = (
    select(_v.type, _v.required, func.count().label("number"))
    .where(_v.ended_at.is_(None))
    .group_by(_v.type, _v.required)
)
_UNJUDGED: Final = (
    select(_e.id, _e.generation)
    .where(text(tables.UNJUDGED), ~OF_AN_OFFER)
    .order_by(_e.number)
    .limit(bindparam("most", type_=Integer))
)
_EVERY: Final = select(_e.id).where(~OF_AN_OFFER).order_by(_e.number)
_PROJECTS: Final = select(_e.id, _e.project_id).where(_e.id.in_(_SOME))
_ENSEMBLES: Final = (
    select(_e.body, _e.unjudged, _e.actor).where(_e.id.in_(_SOME), ~OF_AN_OFFER).order_by(_e.number)
)
_TOLD: Final = select(tables.told_hosts.c.provider, tables.told_hosts.c.told)
_TOPOLOGY_ACTOR: Final = select(tables.topology.c.actor)
_OF_SERVERS: Final = select(_s.ensemble_id).where(_s.server.in_(_SOME)).distinct()
_NAMED: Final = tables.ensembles.alias().c
_REFERRING: Final = select(_e.id).where(
    _e.project_id.in_(select(_NAMED.project_id).where(_NAMED.id == bindparam("of"))),
    text(tables.REFERS),
    _e.body.like(bindparam("named")),
)
_OF_DECISIONS: Final = select(_d.ensemble_id).where(_d.id.in_(_SOME)).distinct()


class ComplianceStore(EnsembleQueries):
    """See `usecases.compliance_ports.ComplianceRecords`."""

    def page(self, wanted: ViolationFilter, page: Page) -> Sequence[Violation]:
        query: Select[Any] = select(_v.body, _v.number)
        if wanted.project_id is not None:
            query = query.where(_v.project_id == wanted.project_id)
        if wanted.ensembles is not None:
            query = query.where(_v.ensemble_id.in_(sorted(wanted.ensembles)))
        if wanted.types:
            query = query.where(_v.type.in_(sorted(wanted.types)))
        if wanted.required is not None:
            query = query.where(_v.required == wanted.required)
        if wanted.open is not None:
            query = query.where(_v.ended_at.is_(None) if wanted.open else _v.ended_at.is_not(None))
        if wanted.since is not None:
            query = query.where(or_(_v.ended_at.is_(None), _v.ended_at > wanted.since))
        rows = self._backend.read(
            lambda connection: page_of(
                connection, tables.violations, query, page, newest_first=True
            )
        )
        return [stored_bodies.VIOLATION.decode(row.body) for row in rows]

    def violation(self, id_: str) -> Violation:
        return self._one(tables.violations, "violation", stored_bodies.VIOLATION, id_)

    def open_of(self, ensembles: Collection[str]) -> Mapping[str, Sequence[Violation]]:
        found: dict[str, list[Violation]] = {}
        for some in chunks(ensembles):
            for body in self._ask(_OPEN, some=some).scalars():
                one = stored_bodies.VIOLATION.decode(body)
                found.setdefault(one.ensemble_id, []).append(one)
        return found

    def broken(self, ensembles: Collection[str]) -> Mapping[str, int]:
        return {
            row.ensemble_id: int(row.number)
            for some in chunks(ensembles)
            for row in self._ask(_BROKEN, some=some)
        }

    def counts(self) -> Mapping[tuple[str, bool], int]:
        return {(row.type, bool(row.required)): int(row.number) for row in self._ask(_COUNTS)}

    def unjudged(self, most: int) -> Sequence[tuple[str, int]]:
        return [(str(row.id), int(row.generation)) for row in self._ask(_UNJUDGED, most=most)]

    def every_ensemble(self) -> Sequence[str]:
        return [str(id_) for id_ in self._ask(_EVERY).scalars()]

    def projects_of(self, ids: Collection[str]) -> Mapping[str, str]:
        return {
            str(row.id): str(row.project_id)
            for some in chunks(ids)
            for row in self._ask(_PROJECTS, some=some)
        }

    def ensembles_of(self, servers: Iterable[str], decisions: Iterable[str]) -> frozenset[str]:
        return frozenset(
            str(id_)
            for query, ids in ((_OF_SERVERS, servers), (_OF_DECISIONS, decisions))
            for some in chunks(ids)
            for id_ in self._ask(query, some=some).scalars()
        )

    def referring(self, ensembles: Iterable[str]) -> frozenset[str]:
        found = (
            self._ask(_REFERRING, of=one, named=f"%{REFERENCE}{one}%") for one in set(ensembles)
        )
        return frozenset(str(id_) for rows in found for id_ in rows.scalars())

    def told_hosts(self) -> Mapping[str, ToldHost]:
        return {str(row.provider): ToldHost.parse(row.told) for row in self._ask(_TOLD)}

    def topology_actor(self) -> Actor:
        return stored_bodies.actor_of(self._ask(_TOPOLOGY_ACTOR).scalar_one_or_none())

    def ensembles_by_id(self, ids: Collection[str]) -> Sequence[WrittenEnsemble]:
        rows = [row for some in chunks(ids) for row in self._ask(_ENSEMBLES, some=some)]
        found = self._with_references([stored_bodies.ENSEMBLE.decode(row.body) for row in rows])
        return [
            WrittenEnsemble(one, bool(row.unjudged), stored_bodies.actor_of(row.actor))
            for one, row in zip(found, rows, strict=True)
        ]
