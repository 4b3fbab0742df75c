"""`/v1/ensembles`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType, structs

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import deleted, impact_view
from moorage.api.native.decisions import decision_view, seen_by_caller, summaries
from moorage.api.native.formats import view
from moorage.api.native.paging import Listing
from moorage.api.native.policies import statement_view, violations_view
from moorage.domain.describe import read_metadata
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import format_instant
from moorage.domain.request_groups import GroupKind
from moorage.usecases.compliance.judgement import broken_policies
from moorage.usecases.decide.writes import current_decision
from moorage.usecases.ensembles.change import ChangeRequest, change_ensemble
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.ensembles.headroom import headroom_of
from moorage.usecases.leases.cancel import delete_leased_ensemble
from moorage.usecases.shared.access import list_ensembles, sees
from moorage.usecases.shared.host_labels import label
from moorage.usecases.shared.role_access import seen_ensemble, sees_role
from moorage.usecases.simulations.member_survivability import survivability
from moorage.wire import decisions as decisions_wire
from moorage.wire import ensembles as wire
from moorage.wire.groups import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain import decisions
    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.nova_servers import ServerOptions
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.ensembles.create import EnsembleResult
    from moorage.usecases.simulations.member_survivability import LevelLoss, RoleLoss
    from moorage.wire.decisions import Decision
    from moorage.wire.ensembles import EnsembleBody, EnsembleChangeBody


def create(call: Call) -> Reply:
    """POST: create an ensemble; with `decide` place and hold it at once."""
    body: EnsembleBody = call.body.ensemble
    created = call.perform(
        create_ensemble,
        reading.description(body),
        None if body.decide is None else reading.decision_options(call, body.decide),
        reading.identity(call, body, body.id),
    )
    return made(call, created, location=True)


def listing(call: Call) -> Reply:
    """GET: a page of ensembles."""
    read = partial(
        list_ensembles,
        call.env,
        call.caller,
        name=call.query.get("name"),
        project_id=call.query.get("project_id"),
        all_projects=call.flag("all_projects"),
    )

    def shown(found: Sequence[Ensemble]) -> Iterator[tuple[str, wire.Ensemble]]:
        broken = call.env.store.compliance.broken([one.id for one in found])
        decided = summaries(call, found)
        for one in found:
            yield (
                one.id,
                structs.replace(
                    ensemble_view(call, one),
                    broken=broken.get(one.id, 0),
                    decision_summary=decided.get(one.id),
                ),
            )

    return Listing(call, "ensembles", read, shown).reply("ensembles")


def show(call: Call) -> Reply:
    """GET: one ensemble with its current decision."""
    ensemble = seen_ensemble(call.env.store, call.caller, call.path["id"])
    decision = current_decision(call.env.store, ensemble)
    compliance = (
        violations_view(
            call,
            broken_policies(call.env.store.snapshot(), ensemble),
        )
        if call.flag("compliance") and sees(call.caller, ensemble.project_id)
        else UNSET
    )
    view = ensemble_view(call, ensemble, decision_or_none(call, ensemble, decision), compliance)
    return Reply(wire.OneEnsemble(view), generation=ensemble.generation)


def change(call: Call) -> Reply:
    """PATCH: change counts, policies and metadata; held places are decided anew at once."""
    body: EnsembleChangeBody = call.body.ensemble
    source = reading.builtins(body)
    id_ = call.path["id"]
    changed, impact = call.perform_judged(
        [id_],
        change_ensemble,
        id_,
        ChangeRequest(
            name=body.name,
            metadata=None if body.metadata is None else read_metadata(body.metadata),
            members=source["members"],
            policies=source["policies"],
            remove_policies=frozenset(body.remove_policies),
            generation=call.expected(body.generation),
        ),
        None if body.decide is None else reading.decision_options(call, body.decide),
    )
    return made(call, changed, location=False, impact=impact)


def delete(call: Call) -> Reply:
    """DELETE: delete it; its holds end, its servers stay."""
    cascade = call.query.get("cascade")
    if cascade not in {None, "leases"}:
        raise InvalidDescription(f"cascade is leases, not {cascade!r}", path="cascade")
    delete_it = delete_ensemble if cascade is None else delete_leased_ensemble
    id_ = call.path["id"]
    _, impact = call.perform_judged([id_], delete_it, id_, call.expected(None))
    return deleted(impact)


def survives(call: Call) -> Reply:
    """GET: how many members survive the loss of any one domain."""
    ensemble, found = call.perform(survivability, call.path["id"])
    return Reply(wire.Survivability([_survival(call, ensemble, loss) for loss in found]))


def _survival(call: Call, ensemble: Ensemble, loss: LevelLoss) -> wire.Survival:
    stuck = loss.stuck
    if not call.caller.operator:
        stuck = tuple(sorted(label(ensemble.salt, loss.level, name) for name in stuck))
    return wire.Survival(
        str(loss.level),
        1,
        [_role_loss(call, one) for one in loss.roles],
        None if loss.again is None else loss.again.value,
        list(stuck),
    )


def _role_loss(call: Call, one: RoleLoss) -> wire.Loss:
    left, needed = (None, None) if one.hosts is None else one.hosts
    told: int | str | None = left
    if left is not None and not call.caller.operator:
        told = call.env.limits.disclosure.count_text(left)
    return view(wire.Loss, one, ok=one.survives, hosts_left=told, hosts_needed=needed)


def made(
    call: Call, made: EnsembleResult, *, location: bool, impact: Impact | None = None
) -> Reply:
    """The reply to the creation or change of an ensemble."""
    snapshot, dry = made.snapshot or call.env.store.snapshot(), call.dry_run
    decision = decision_or_none(call, made.ensemble, made.decision, snapshot, dry_run=dry)
    return call.made(
        wire.OneEnsemble(
            ensemble=ensemble_view(call, made.ensemble),
            decision=decision,
            to_resize=list(map(str, made.to_resize)) or UNSET,
            dry_run=dry,
            computed_at=format_instant(snapshot.taken_at),
            revision=snapshot.revision,
            breaks=UNSET if impact is None else impact_view(impact),
        ),
        generation=made.ensemble.generation,
        location=f"ensembles/{made.ensemble.id}" if location else None,
    )


def decision_or_none(
    call: Call,
    ensemble: Ensemble,
    decision: decisions.Decision | None,
    snapshot: Snapshot | None = None,
    *,
    dry_run: bool = False,
) -> Decision | None:
    """An ensemble's decision, if there is one; shown by the newest snapshot, or by this one."""
    if decision is None:
        return None
    store = call.env.store
    claims = () if dry_run else store.claims(decision_id=decision.id)
    snapshot = snapshot or store.snapshot()
    return decision_view(call, decision, ensemble, snapshot, claims, dry_run=dry_run)


def role_view(role: Role, count: int, *, others: bool = False) -> wire.Role:
    """A role with its number of members; `others` if they are another project's."""
    if role.alternatives:
        shown = role_view(replace(role, alternatives=()), count, others=others)
        choices = (replace(one, alternatives=(), share=None) for one in role.choices)
        return structs.replace(shown, alternatives=[role_view(one, 0) for one in choices])
    server = role.nova_server
    share = role.share
    return view(
        wire.Role,
        role,
        count=count,
        ports=_groups(role, GroupKind.PORT),
        volumes=_groups(role, GroupKind.VOLUME),
        groups=_groups(role, GroupKind.GROUP),
        group_policy="isolate" if role.isolate else "none",
        server=role.server and _server(role.server),
        flavor_groups=_groups(role, GroupKind.FLAVOR),
        image_properties=server and server.image_properties,
        boot_from_volume=server is not None and server.from_volume,
        project_id=share and share.project_id,
        share=share and wire.RoleShare(share.id, share.state.value),
        min_available=role.min_available or None,
        alternatives=[],
        others=others,
    )


def _server(options: ServerOptions) -> wire.ServerBody:
    """How a role's servers are created, without what is not said."""
    said = {name: getattr(options, name) for name in wire.ServerBody.__struct_fields__}
    told: dict[str, Any] = {
        name: one for name, one in said.items() if one or isinstance(one, str | bool)
    }
    return view(wire.ServerBody, **told)


def _groups(role: Role, kind: GroupKind) -> list[Group]:
    return [view(Group, one) for one in role.groups if one.kind is kind]


def ensemble_view(
    call: Call,
    ensemble: Ensemble,
    decision: decisions_wire.Decision | UnsetType | None = UNSET,
    compliance: list[wire.Violation] | UnsetType = UNSET,
) -> wire.Ensemble:
    """An ensemble, as the caller may see it."""
    ensemble = seen_by_caller(call, ensemble)
    counts = ensemble.counts
    own = {one.name for one in ensemble.roles if sees_role(call.caller, ensemble, one.name)}
    return view(
        wire.Ensemble,
        ensemble,
        members=[
            role_view(role, counts.get(role.name, 0), others=role.name not in own)
            for role in ensemble.roles
        ],
        policies=[statement_view(call, ensemble, one) for one in ensemble.policies],
        links=[
            call.link("self", "ensembles", ensemble.id),
            call.link("members", "ensembles", ensemble.id, "members"),
        ],
        decision=decision,
        compliance=compliance,
        template=ensemble.template and wire.MadeOf(*ensemble.template),
        headroom=headroom_of(ensemble),
    )
