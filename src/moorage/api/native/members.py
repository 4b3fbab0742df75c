"""`/v1/ensembles/{id}/members`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native import envelopes, reading, views
from moorage.api.native.call import Call, Reply
from moorage.api.native.errors import differences
from moorage.domain.errors import InvalidDescription
from moorage.usecases.add_members import Adding, add_members
from moorage.usecases.members import Joining, join, leave, list_members
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from moorage.api.native.requests import MemberBody


def listing(call: Call) -> Reply:
    """GET: every member and where it stands."""
    found = list_members(call.parts, call.caller, call.path["id"])
    return Reply(
        envelopes.Members(
            views.member_views(
                call,
                found.snapshot,
                found.ensemble,
                found.stand,
                (member.name for member in found.ensemble.members),
            )
        )
    )


def show(call: Call) -> Reply:
    """GET: one member."""
    found = list_members(call.parts, call.caller, call.path["id"])
    name = reading.member_name(call.path["name"])
    view = views.member_view(call, found.snapshot, found.ensemble, found.stand, name)
    return Reply(envelopes.OneMember(view))


def add(call: Call) -> Reply:
    """POST: more members by description, or a running server."""
    body: MemberBody = call.body.member
    if (body.role is None) == (body.server_id is None):
        raise InvalidDescription("give role or server_id, and not both", path="member")
    return _describe(call, body) if body.server_id is None else _join(call, body, body.server_id)


def remove(call: Call) -> Reply:
    """DELETE: take a member out; a server's allocations stay."""
    leave(
        call.parts,
        call.caller,
        call.path["id"],
        reading.member_name(call.path["name"]),
        keep_resources=call.flag("keep_resources"),
        dry_run=call.dry_run,
    )
    return Reply()


def _describe(call: Call, body: MemberBody) -> Reply:
    made = add_members(
        call.parts,
        call.caller,
        call.path["id"],
        Adding(
            reading.builtins(body.role),
            None if body.decide is None else reading.ask(call, body.decide),
        ),
        reading.naming(call, body, body.id),
        dry_run=call.dry_run,
    )
    decision = (
        UNSET
        if made.decision is None
        else views.decision_view(
            call,
            made.decision,
            made.ensemble,
            call.parts.store.snapshot(),
            dry_run=made.dry_run,
        )
    )
    view = views.ensemble_view(call, made.ensemble)
    return Reply(
        envelopes.Added(ensemble=view, decision=decision, dry_run=made.dry_run),
        status=200 if made.dry_run else None,
        generation=None if made.dry_run else made.ensemble.generation,
    )


def _join(call: Call, body: MemberBody, server_id: str) -> Reply:
    if body.name is None:
        raise InvalidDescription("say which role the server joins", path="member.name")
    joined = join(
        call.parts,
        call.caller,
        call.path["id"],
        Joining(body.name, server_id, reject=body.on_violation == "reject"),
        reading.naming(call, body, body.id),
        dry_run=call.dry_run,
    )
    snapshot = call.parts.store.snapshot()
    return Reply(
        envelopes.Added(
            ensemble=views.ensemble_view(call, joined.ensemble),
            member=views.member_view(
                call,
                snapshot,
                joined.ensemble,
                standing(snapshot, joined.ensemble),
                joined.member.name,
            ),
            violations=views.violations_view(call, joined.violations),
            diff=differences(joined.diff),
            dry_run=joined.dry_run,
        ),
        status=200 if joined.dry_run else None,
        generation=None if joined.dry_run else joined.ensemble.generation,
    )
