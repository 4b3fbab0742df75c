"""`/v1/ensembles/{id}/extend`, `/shrink` and `/headroom`."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from moorage.api.native import reading
from moorage.api.native.compliance import impact_view
from moorage.api.native.decisions import domains_view
from moorage.api.native.ensembles import decision_or_none, ensemble_view
from moorage.api.native.formats import view
from moorage.domain.errors import InvalidDescription
from moorage.domain.topology import HOST
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.ensembles.extend import Extension
from moorage.usecases.ensembles.extend import extend as extend_ensemble
from moorage.usecases.ensembles.headroom import set_headroom
from moorage.usecases.ensembles.shrink import Reduction
from moorage.usecases.ensembles.shrink import shrink as shrink_ensemble
from moorage.usecases.ensembles.size_changes import RoleCounts
from moorage.wire import growth as wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.native.call import Call, Reply
    from moorage.usecases.ensembles.shrink import ShrinkResult
    from moorage.wire.growth import ExtendBody, HeadroomBody, ShrinkBody, SizeBody


def extend(call: Call) -> Reply:
    """POST: decide more members beside those that there are."""
    body: ExtendBody = call.body.extend
    id_ = call.path["id"]
    made, impact = call.perform_judged(
        [id_],
        extend_ensemble,
        id_,
        Extension(
            _counts(body),
            least=body.least,
            movable=body.movable,
            options=None if body.decide is None else reading.decision_options(call, body.decide),
        ),
        reading.identity(call, body, body.id),
    )
    decision = decision_or_none(call, made.ensemble, made.decision, dry_run=call.dry_run)
    extended = view(
        wire.Extended,
        made,
        ensemble=ensemble_view(call, made.ensemble),
        decision=decision,
        max_additional={} if decision is None else decision.max_additional,
        dry_run=call.dry_run,
    )
    return call.made(
        wire.OneExtended(extended, impact_view(impact)), generation=made.ensemble.generation
    )


def shrink(call: Call) -> Reply:
    """POST: take members out so that the policies keep holding."""
    body: ShrinkBody = call.body.shrink
    counts = _counts(body)
    id_ = call.path["id"]
    made, impact = call.perform_judged(
        [id_],
        shrink_ensemble,
        id_,
        Reduction(
            counts,
            prefer=tuple(reading.member_name(one) for one in body.prefer),
            servers=body.servers,
        ),
        reading.identity(call, body, body.id),
    )
    view = wire.Shrunk(
        ensemble=ensemble_view(call, made.ensemble),
        decision=decision_or_none(call, made.ensemble, made.decision),
        victims=[wire.GoneMember(str(m.name), m.name.role, m.server_id) for m in made.gone],
        after=_after(call, made, {*counts.counts, *counts.sizes}),
        dry_run=call.dry_run,
    )
    return call.made(wire.OneShrunk(view, impact_view(impact)), generation=made.ensemble.generation)


def headroom(call: Call) -> Reply:
    """PUT: hold places for more members of a role, or fewer of them."""
    body: HeadroomBody = call.body.headroom
    made = call.perform(set_headroom, call.path["id"], body.role, body.count)
    view = wire.Headroom(ensemble_view(call, made.ensemble), call.dry_run)
    return call.made(wire.OneHeadroom(view), generation=made.ensemble.generation)


def _counts(body: SizeBody) -> RoleCounts:
    """The counts that a body asks for.

    Raises:
        InvalidDescription: it gives none, or in two ways.
    """
    ways = (body.count is not None) + (body.size is not None)
    for name, several in (("roles", body.roles), ("sizes", body.sizes)):
        if several and (body.role is not None or ways or (body.roles and body.sizes)):
            raise InvalidDescription("give only one of role, roles and sizes", path=name)
    if body.roles or body.sizes:
        return RoleCounts(body.roles, body.sizes)
    if body.role is None or ways != 1:
        raise InvalidDescription("give role with count or size, or roles, or sizes", path="role")
    if body.count is not None:
        return RoleCounts({body.role: body.count})
    assert body.size is not None
    return RoleCounts({}, {body.role: body.size})


def _after(
    call: Call, made: ShrinkResult, roles: Iterable[str]
) -> dict[str, dict[str, dict[str, int]]]:
    """Role -> level -> domain -> members that stay there; without the level of hosts."""
    found: dict[str, defaultdict[str, Counter[str]]] = {
        role: defaultdict(Counter) for role in sorted(roles)
    }
    for name, place in locate_members(made.snapshot, made.ensemble).places.items():
        if name.role in found:
            for level, domain in domains_view(call, made.snapshot, made.ensemble, place).items():
                if level != HOST:
                    found[name.role][level][domain] += 1
    return {
        role: {level: dict(sorted(counts.items())) for level, counts in levels.items()}
        for role, levels in found.items()
    }
