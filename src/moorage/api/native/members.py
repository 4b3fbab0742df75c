"""`/v1/ensembles/{id}/members`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.decisions import (
    decision_view,
    seen_by_caller,
    stay_view,
)
from moorage.api.native.ensembles import ensemble_view
from moorage.api.native.errors import differences
from moorage.api.native.paging import Listing, of_sequence
from moorage.api.native.policies import violations_view
from moorage.domain.errors import InvalidDescription
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.ensembles.members import (
    JoinRequest,
    MemberAddition,
    add_members,
    join,
    leave,
    list_members,
)
from moorage.usecases.leases.lease_sweeper import is_overrun
from moorage.usecases.preemption.stay_ends import stay_ends
from moorage.usecases.shared.role_access import sees_role
from moorage.wire import members as wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.preemption.stay_ends import StayEnd
    from moorage.wire.members import MemberBody


def listing(call: Call) -> Reply:
    """GET: a page of the members and where they stand."""
    found = call.perform(list_members, call.path["id"])
    names = [member.name for member in found.ensemble.members]
    view = member_viewer(call, found.snapshot, found.ensemble, found.member_places)
    listing_ = Listing(
        call,
        f"ensembles/{found.ensemble.id}/members",
        of_sequence(names, str),
        lambda some: ((str(name), view(name)) for name in some),
    )
    return listing_.reply("members")


def show(call: Call) -> Reply:
    """GET: one member."""
    found = call.perform(list_members, call.path["id"])
    name = reading.member_name(call.path["name"])
    view = member_view(call, found.snapshot, found.ensemble, found.member_places, name)
    return Reply(wire.OneMember(view))


def add(call: Call) -> Reply:
    """POST: add members by description, or a running server."""
    body: MemberBody = call.body.member
    if (body.role is None) == (body.server_id is None):
        raise InvalidDescription("give role or server_id, and not both", path="member")
    return _describe(call, body) if body.server_id is None else _join(call, body, body.server_id)


def remove(call: Call) -> Reply:
    """DELETE: take a member out, and say which policies break by it; a server keeps its place."""
    id_ = call.path["id"]
    left, impact = call.perform_judged(
        [id_],
        leave,
        id_,
        reading.member_name(call.path["name"]),
        keep_resources=call.flag("keep_resources"),
    )
    refusal = left.refusal or UNSET
    removed = wire.Removed(str(left.name), left.freed, call.dry_run, refusal)
    return Reply(wire.OneRemoved(removed, breaks=impact_view(impact)))


def _describe(call: Call, body: MemberBody) -> Reply:
    id_ = call.path["id"]
    made, impact = call.perform_judged(
        [id_],
        add_members,
        id_,
        MemberAddition(
            reading.builtins(body.role),
            None if body.decide is None else reading.decision_options(call, body.decide),
        ),
        reading.identity(call, body, body.id),
    )
    decision = (
        UNSET
        if made.decision is None
        else decision_view(
            call, made.decision, made.ensemble, call.env.store.snapshot(), dry_run=call.dry_run
        )
    )
    view = ensemble_view(call, made.ensemble)
    return call.made(
        wire.Added(
            ensemble=view,
            decision=decision,
            dry_run=call.dry_run,
            breaks=impact_view(impact),
        ),
        generation=made.ensemble.generation,
    )


def _join(call: Call, body: MemberBody, server_id: str) -> Reply:
    if body.name is None:
        raise InvalidDescription("say which role the server joins", path="member.name")
    id_ = call.path["id"]
    joined, impact = call.perform_judged(
        [id_],
        join,
        id_,
        JoinRequest(body.name, server_id, reject=body.on_violation == "reject"),
        reading.identity(call, body, body.id),
    )
    snapshot = call.env.store.snapshot()
    return call.made(
        wire.Added(
            ensemble=ensemble_view(call, joined.ensemble),
            member=member_view(
                call,
                snapshot,
                joined.ensemble,
                locate_members(snapshot, joined.ensemble),
                joined.member.name,
            ),
            violations=violations_view(call, joined.violations),
            diff=differences(joined.diff),
            dry_run=call.dry_run,
            breaks=impact_view(impact),
        ),
        generation=joined.ensemble.generation,
    )


def member_view(
    call: Call,
    snapshot: Snapshot,
    ensemble: Ensemble,
    member_places: MemberPlaces,
    name: MemberName,
) -> wire.Member:
    """One member and its present place."""
    return member_viewer(call, snapshot, ensemble, member_places)(name)


def member_viewer(
    call: Call, snapshot: Snapshot, ensemble: Ensemble, member_places: MemberPlaces
) -> Callable[[MemberName], wire.Member]:
    """A function that shows members and their present places, as the caller may see them."""
    ensemble = seen_by_caller(call, ensemble)
    ends = stay_ends(call.env.store, member_places.bookings)
    return lambda name: _member_view(
        call,
        snapshot,
        ensemble,
        member_places,
        ensemble.member(name),
        ensemble.role_of(name).kind,
        ends.get(name) if sees_role(call.caller, ensemble, name.role) else None,
    )


def _member_view(  # noqa: PLR0913, PLR0917 - what it says, and what it is read from
    call: Call,
    snapshot: Snapshot,
    ensemble: Ensemble,
    member_places: MemberPlaces,
    member: Member,
    kind: str,
    end: StayEnd | None,
) -> wire.Member:
    name = member.name
    place = member_places.places.get(name)
    first = member_places.bookings[name][0] if name in member_places.bookings else None
    own = sees_role(call.caller, ensemble, name.role)
    overrun = own and first is not None and is_overrun(first, member_places.at, call.env.limits)
    return wire.Member(
        name=str(name),
        role=name.role,
        kind=kind,
        status=member_places.of(name).value,
        server_id=member.server_id,
        uuid=member.uuid if call.caller.operator else UNSET,
        overrun=overrun or UNSET,
        alternative=member.choice if place and ensemble.role(name.role).alternatives else UNSET,
        **stay_view(call, place, ensemble, snapshot, end, own=own),
    )
