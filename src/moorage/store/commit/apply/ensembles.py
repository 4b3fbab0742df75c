"""Ensembles, decisions, claims, explanations and templates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, delete, false, func, insert, select, true, update

from moorage.domain.decisions import DecisionState
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, HoldExpired, NameTaken, NotFound
from moorage.domain.period import MINUTE
from moorage.domain.quotas import QuotaName, too_much_held, too_much_held_by
from moorage.domain.references import REFERENCE
from moorage.domain.refusal_commands import to_place
from moorage.domain.shares import ShareState
from moorage.store.commit.apply.kinds import OF, Kind, expect, insert_new, write
from moorage.store.commit.apply.violations import drop_violations
from moorage.store.database.statements import chunks
from moorage.store.read import bookings, leases
from moorage.store.read.ensemble_queries import namesakes
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import (
        BoundHeld,
        DeleteEnsemble,
        DeleteTemplate,
        ExpectEnsemble,
        ExpectUniqueName,
        FinishExplanation,
        PutClaim,
        PutDecision,
        PutEnsemble,
        PutExplanation,
        PutTemplate,
    )
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation
    from moorage.domain.period import Instant
    from moorage.domain.quotas import Quota
    from moorage.store.commit.batch import Batch

_t = tables.templates.c
_NEWEST: Final = select(_t.version).where(_t.id == OF, _t.newest == true())
_NAMED: Final = select(_t.id).where(_t.project_id == bindparam("of"), _t.name == bindparam("named"))
_AGED: Final = update(tables.templates).where(_t.id == OF).values(newest=false())
_INSERT: Final = insert(tables.templates)
_DELETE: Final = delete(tables.templates).where(_t.id == OF)


def put_template(batch: Batch, change: PutTemplate) -> None:
    """See `PutTemplate`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate.
    """
    one = change.template
    newest = batch.connection.scalars(_NEWEST, {"of": one.id}).one_or_none()
    if one.version == 1:
        named = {"of": one.project_id, "named": one.name}
        if newest is not None:
            raise DuplicateName("template", one.id)
        if batch.connection.scalars(_NAMED, named).first() is not None:
            raise DuplicateName("template", one.name)
    elif newest is None:
        raise NotFound("template", one.id)
    elif newest != one.version - 1:
        raise ConcurrentUpdate(
            f"template {one.id}: version {newest} is the newest, not {one.version - 1}",
            subject=one.id,
        )
    batch.connection.do(_AGED, {"of": one.id})
    values = {
        "id": one.id,
        "version": one.version,
        "project_id": one.project_id,
        "name": one.name,
        "shared": one.shared,
        "newest": True,
        "body": stored_bodies.TEMPLATE.encode(one),
    }
    batch.connection.do(_INSERT, values)


def delete_template(batch: Batch, change: DeleteTemplate) -> None:
    """See `DeleteTemplate`.

    Raises:
        NotFound: there is none.
    """
    if batch.connection.scalars(_NEWEST, {"of": change.id}).first() is None:
        raise NotFound("template", change.id)
    batch.connection.do(_DELETE, {"of": change.id})


_SOME: Final[Any] = bindparam("some", expanding=True)


_ENSEMBLE: Final = Kind.of(
    "ensemble",
    tables.ensembles.c.generation,
    tables.ensembles.c.project_id,
    tables.ensembles.c.name,
)
_DECISION: Final = Kind.of("decision", tables.decisions.c.generation, tables.decisions.c.state)
_CLAIM: Final = Kind.of("claim", tables.claims.c.state)
_EXPLANATION: Final = Kind.of("explanation", tables.explanations.c.number)

OVER: Final = frozenset(
    {
        DecisionState.CLOSED,
        DecisionState.EXPIRED,
        DecisionState.RELEASED,
        DecisionState.SUPERSEDED,
    }
)
"""States of decisions in which nothing is held, nor kept for claims that are building."""

_EXCLUSIVE: Final = select(tables.exclusive_ensembles).where(
    tables.exclusive_ensembles.c.ensemble_id == OF
)
_NEW_EXCLUSIVE: Final = insert(tables.exclusive_ensembles)
_NO_EXCLUSIVE: Final = delete(tables.exclusive_ensembles).where(
    tables.exclusive_ensembles.c.ensemble_id == OF
)
EXCLUSIVE_MOVED: Final = update(tables.ledger).values(
    exclusive_revision=tables.ledger.c.exclusive_revision + 1
)

_m, _b, _e = tables.members.c, tables.bookings.c, tables.explanations.c
_MEMBERS: Final = select(_m.consumer, _m.tags).where(_m.ensemble_id == OF)
_ELSEWHERE: Final = select(_m.consumer).where(_m.consumer.in_(_SOME), _m.ensemble_id != OF)
_NEW_MEMBERS: Final = insert(tables.members)
_NO_MEMBERS: Final = delete(tables.members).where(_m.consumer.in_(_SOME))
_s = tables.member_servers.c
_SERVERS: Final = select(_s.server).where(_s.ensemble_id == OF)
_NEW_SERVERS: Final = insert(tables.member_servers)
_NO_SERVERS: Final = delete(tables.member_servers).where(_s.ensemble_id == OF, _s.server.in_(_SOME))
_h = tables.shares.c
_SHARES: Final = select(_h.id, _h.offered).where(_h.ensemble_id == OF)
_NEW_SHARES: Final = insert(tables.shares)
_ANSWERED: Final = update(tables.shares).where(_h.id == OF).values(offered=bindparam("offered"))
_NO_SHARES: Final = delete(tables.shares).where(_h.id.in_(_SOME))
_NO_SHARES_LEFT: Final = delete(tables.shares).where(_h.ensemble_id == OF)
_STANDING: Final = select(_b.provider).where(_b.consumer.in_(_SOME)).distinct()

_SURPLUS: Final = (
    select(_e.number)
    .where(_e.project_id == OF)
    .order_by(_e.number.desc())
    .offset(bindparam("kept", type_=Integer))
    .limit(1)
)
_TOLD_LATELY: Final = (
    select(_e.name, _e.stage)
    .where(_e.project_id == OF, _e.told == true(), _e.at > bindparam("since"))
    .order_by(_e.number.desc())
    .limit(bindparam("most", type_=Integer))
)
_was: Final = tables.explanations.alias("was")
_UNTOLD: Final = select(func.count()).where(
    _e.project_id == OF,
    _e.number
    > func.coalesce(
        select(func.max(_was.c.number))
        .where(_was.c.project_id == OF, _was.c.told == true())
        .scalar_subquery(),
        0,
    ),
)
_FINISHED: Final = (
    update(tables.explanations)
    .where(_e.id == OF)
    .values(stage=bindparam("stage"), body=bindparam("body"))
)
_CUT: Final = delete(tables.explanations).where(_e.project_id == OF, _e.number <= bindparam("last"))


def put_ensemble(batch: Batch, change: PutEnsemble) -> None:
    """See `PutEnsemble`.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
        DuplicateName: one of its servers is a member of another ensemble.
    """
    ensemble = change.stored
    body = batch.bodies.of(change)
    values = {
        "project_id": ensemble.project_id,
        "name": ensemble.name,
        "generation": ensemble.generation,
        "unjudged": True,
        "actor": batch.actor,
        "body": body,
        "refers": f'"{REFERENCE}' in body,
    }
    write(batch, _ENSEMBLE, ensemble.id, values, change.generation)
    if change.generation is None:
        _enlist(batch, ensemble.id, _tags(ensemble), {})
        _list_servers(batch, ensemble.id, _bookers(ensemble), frozenset())
        kept = False
    else:
        _list_members(batch, ensemble.id, _tags(ensemble))
        _list_servers(batch, ensemble.id, _bookers(ensemble), _servers(batch, ensemble.id))
        kept = _is_exclusive(batch, ensemble.id)
    _list_exclusive(batch, ensemble.id, kept=kept, keeps=ensemble.keeps_others_out)
    if ensemble.shared_roles:
        _list_shares(batch, ensemble)


def _is_exclusive(batch: Batch, ensemble_id: str) -> bool:
    return batch.connection.execute(_EXCLUSIVE, {"of": ensemble_id}).first() is not None


def _list_exclusive(batch: Batch, ensemble_id: str, *, kept: bool, keeps: bool) -> None:
    """Say whether an ensemble keeps others out; which conflicts with reliance on all that do."""
    mine = {"of": ensemble_id}
    if keeps and not kept:
        batch.connection.do(_NEW_EXCLUSIVE, {"ensemble_id": ensemble_id})
    elif kept and not keeps:
        batch.connection.do(_NO_EXCLUSIVE, mine)
    if kept or keeps:
        batch.connection.do(EXCLUSIVE_MOVED)


def _bookers(ensemble: Ensemble) -> frozenset[str]:
    """Its consumers that no decision tells of: its members' servers, and its headroom."""
    return ensemble.servers | ensemble.spares


def _tags(ensemble: Ensemble) -> dict[str, str]:
    """Consumer -> its role's tags, for members whose role has any."""
    tags = {role.name: json.dumps(sorted(role.tags)) for role in ensemble.roles if role.tags}
    return {
        consumer: tags[member.name.role]
        for member in (*ensemble.members, *ensemble.headroom)
        if member.name.role in tags
        for consumer in (member.uuid, member.server_id)
        if consumer is not None
    }


def _list_members(batch: Batch, ensemble_id: str, wanted: dict[str, str]) -> None:
    """Say which consumers have tags; providers they stand on look different afterwards.

    Raises:
        DuplicateName: a server is a member of another ensemble.
    """
    rows = batch.connection.execute(_MEMBERS, {"of": ensemble_id})
    _enlist(batch, ensemble_id, wanted, {row.consumer: row.tags for row in rows})


def _enlist(batch: Batch, ensemble_id: str, wanted: dict[str, str], stored: dict[str, str]) -> None:
    differing = {name for name, _ in stored.items() ^ wanted.items()}
    for some in chunks(differing):
        taken, standing = batch.connection.ask(
            (_ELSEWHERE, {"some": some, "of": ensemble_id}), (_STANDING, {"some": some})
        )
        if taken:
            raise DuplicateName("member", taken[0].consumer)
        batch.connection.do(_NO_MEMBERS, {"some": some})
        for provider in standing.scalars():
            batch.touch(provider, bookings_only=True)
    fresh = [
        {"consumer": consumer, "ensemble_id": ensemble_id, "tags": tags}
        for consumer, tags in wanted.items()
        if consumer in differing
    ]
    if fresh:
        batch.connection.do(_NEW_MEMBERS, fresh)


def _servers(batch: Batch, ensemble_id: str) -> frozenset[str]:
    return frozenset(batch.connection.scalars(_SERVERS, {"of": ensemble_id}))


def _list_servers(
    batch: Batch, ensemble_id: str, wanted: frozenset[str], stored: frozenset[str]
) -> None:
    """Say which servers are members of an ensemble, and which consumers its headroom."""
    for some in chunks(stored - wanted):
        batch.connection.do(_NO_SERVERS, {"of": ensemble_id, "some": some})
    if fresh := sorted(wanted - stored):
        rows = [{"ensemble_id": ensemble_id, "server": server} for server in fresh]
        batch.connection.do(_NEW_SERVERS, rows)


def _list_shares(batch: Batch, ensemble: Ensemble) -> None:
    """Say which projects an ensemble's roles belong to; a role that has some keeps having one."""
    wanted = {share.id: share for _, share in ensemble.shared_roles}
    stored = {row.id: row.offered for row in batch.connection.execute(_SHARES, {"of": ensemble.id})}
    for some in chunks(stored.keys() - wanted.keys()):
        batch.connection.do(_NO_SHARES, {"some": some})
    rows = []
    for id_, share in wanted.items():
        offered = share.state is ShareState.OFFERED
        if id_ not in stored:
            row = {"id": id_, "project_id": share.project_id, "ensemble_id": ensemble.id}
            rows.append({**row, "offered": offered})
        elif stored[id_] != offered:
            batch.connection.do(_ANSWERED, {"of": id_, "offered": offered})
    if rows:
        batch.connection.do(_NEW_SHARES, rows)


def delete_ensemble(batch: Batch, change: DeleteEnsemble) -> None:
    """See `DeleteEnsemble`.

    Raises:
        NotFound, ConcurrentUpdate: it is not there, or of another generation.
    """
    seen = expect(batch, _ENSEMBLE, change.id, change.generation)
    batch.replaced[_ENSEMBLE.name, change.id] = seen
    drop_ensemble(batch, change.id)


def drop_ensemble(batch: Batch, ensemble_id: str) -> None:
    """Delete an ensemble that is there."""
    _list_members(batch, ensemble_id, {})
    _list_servers(batch, ensemble_id, frozenset(), _servers(batch, ensemble_id))
    _list_exclusive(batch, ensemble_id, kept=_is_exclusive(batch, ensemble_id), keeps=False)
    batch.connection.do(_NO_SHARES_LEFT, {"of": ensemble_id})
    drop_violations(batch, ensemble_id)
    batch.connection.do(_ENSEMBLE.delete, {"of": ensemble_id})


def expect_ensemble(batch: Batch, change: ExpectEnsemble) -> None:
    """See `ExpectEnsemble`.

    Raises:
        NotFound, ConcurrentUpdate: it is not there, or of another generation.
    """
    expect(batch, _ENSEMBLE, change.id, change.generation)


def expect_unique_name(batch: Batch, change: ExpectUniqueName) -> None:
    """See `ExpectUniqueName`.

    Raises:
        NameTaken: another has it.
    """
    named = change.project_id, change.name
    others = namesakes(batch.connection, *named, batch.now, but=change.ensemble_id)
    if others:
        raise NameTaken("ensemble", change.name, others[0])


def put_decision(batch: Batch, change: PutDecision) -> None:
    """See `PutDecision`.

    Raises:
        HoldExpired: it is too late.
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
    """
    decision = change.stored
    _in_time(batch, change.not_after, decision.ensemble_id)
    values = {
        "ensemble_id": decision.ensemble_id,
        "project_id": decision.project_id,
        "state": decision.state.value,
        "expires_at": decision.expires_at,
        "generation": decision.generation,
        "ended_at": batch.now if decision.state in OVER else None,
        "body": batch.bodies.of(change),
    }
    if change.record is not None:
        values["record"] = stored_bodies.DECISION_RECORD.encode(change.record)
        values["actor"] = batch.actor
    write(batch, _DECISION, decision.id, values, change.generation)


def bound_held(batch: Batch, change: BoundHeld) -> None:
    """See `BoundHeld`.

    Raises:
        QuotaExceeded, OtherQuotaExceeded: the project holds more.
    """
    held = bookings.held(batch.connection, change.project_id, now=batch.now)
    check_held(change, held, leases.quota(batch.connection, change.project_id))


def check_held(change: BoundHeld, held: int, quota: Quota | None) -> None:
    """Check that a project which holds so many places, those of the change included, may do so.

    Raises:
        QuotaExceeded, OtherQuotaExceeded: see `BoundHeld`.
    """
    limit = change.limit if quota is None else quota.limits.get(QuotaName.HELD, change.limit)
    if held > limit and change.requested > 0:
        if not change.disclosed:
            raise too_much_held_by(change.project_id, requested=change.requested)
        used = max(held - change.requested, 0)
        raise too_much_held(limit=limit, used=used, requested=change.requested)


def put_claim(batch: Batch, change: PutClaim) -> None:
    """See `PutClaim`.

    Raises:
        HoldExpired: it is too late.
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or in another state.
    """
    claim = change.claim
    _in_time(batch, change.not_after, claim.ensemble_id)
    values = {
        "decision_id": claim.decision_id,
        "state": claim.state.value,
        "lapses_at": claim.lapses_at,
        "body": stored_bodies.CLAIM.encode(claim),
    }
    if change.expected_state is None:
        insert_new(batch, _CLAIM, claim.id, values)
        return
    state = batch.connection.scalars(_CLAIM.seen, {"of": claim.id}).one_or_none()
    if state is None:
        raise NotFound("claim", claim.id)
    if state != change.expected_state:
        raise ConcurrentUpdate(
            f"claim {claim.id} is {state}, no longer {change.expected_state}", subject=claim.id
        )
    batch.connection.do(_CLAIM.update, {"of": claim.id, **values})


def put_explanation(batch: Batch, change: PutExplanation) -> None:
    """See `PutExplanation`.

    Raises:
        DuplicateName: there is one of that id.
    """
    asked, explanation = change.asked, change.explanation
    unsaid = None
    if asked is not None and not change.silent:
        unsaid = _untold(batch, change.project_id, asked.name, explanation)
    if unsaid is not None:
        batch.untold[explanation.id] = unsaid
    values = {
        "ensemble_id": None if asked is None else asked.ensemble_id,
        "name": None if asked is None else asked.name,
        "user_id": None if asked is None else asked.user_id,
        "stage": explanation.stage.value,
        "at": batch.now,
        "told": unsaid is not None,
        "project_id": change.project_id,
        "body": stored_bodies.EXPLANATION.encode(change.explanation),
        "instance": change.instance,
        "request": change.request,
        "digest": change.digest,
    }
    insert_new(batch, _EXPLANATION, change.explanation.id, values)
    if change.keep is not None:
        mine = {"of": change.project_id}
        surplus = batch.connection.scalars(_SURPLUS, mine | {"kept": change.keep})
        last = surplus.one_or_none()
        if last is not None:
            batch.connection.do(_CUT, mine | {"last": last})


def finish_explanation(batch: Batch, change: FinishExplanation) -> None:
    """See `FinishExplanation`."""
    why = change.explanation
    body = stored_bodies.EXPLANATION.encode(why)
    batch.connection.do(_FINISHED, {"of": why.id, "stage": why.stage.value, "body": body})


TELL_AGAIN: Final = MINUTE
"""The time in which one event is written for equal refusals of a project."""
TELL_MOST: Final = 10
"""Refusals of a project for which an event is written in that time, at most."""


def _untold(batch: Batch, project_id: str, name: str, why: Explanation) -> int | None:
    """Refusals of a project without an event since the last one that has one.

    None: this one is not told, either: the same was just now, or many others were.
    """
    mine = {"of": project_id}
    since = mine | {"since": batch.now - TELL_AGAIN, "most": TELL_MOST}
    lately = batch.connection.execute(_TOLD_LATELY, since).all()
    same = any((row.name, row.stage) == (name, why.stage.value) for row in lately)
    if same or len(lately) >= TELL_MOST:
        return None
    return int(batch.connection.scalars(_UNTOLD, mine).one())


def _in_time(batch: Batch, not_after: Instant | None, ensemble_id: str) -> None:
    if not_after is not None and batch.now >= not_after:
        remedy = to_place(ensemble_id, what="its members")
        raise HoldExpired(f"the hold has lapsed{remedy}")
