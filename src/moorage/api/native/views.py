"""From values to response bodies; here it is decided what a tenant does not see.

A tenant gets opaque labels instead of domains' and hosts' names, and no provider; an operator
gets names, allocations per provider and exact counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from moorage.api.native import answers
from moorage.domain.decisions import ClaimState
from moorage.domain.ensembles import GroupKind, server_metadata
from moorage.domain.period import FOREVER, format_duration, format_instant
from moorage.usecases.labels import domains_of, label
from moorage.usecases.leases.ends import ends_as_decided, ends_of
from moorage.usecases.leases.overrun import is_overrun
from moorage.usecases.merge import written_statement
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from moorage.api.native.call import Call
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble, MemberName, Role
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.compare import Comparison
    from moorage.usecases.compliance import PolicyViolation
    from moorage.usecases.leases.ends import End
    from moorage.usecases.standing import Standing


def instant(when: Instant) -> str | None:
    """An instant on the wire; null for never."""
    return None if when == FOREVER else format_instant(when)


def wall(clock: datetime) -> str:
    """What a clock on a wall shows: seconds only where there are any."""
    whole = not (clock.second or clock.microsecond)
    return clock.isoformat(timespec="minutes" if whole else "auto")


def any_of(groups: Iterable[frozenset[str]]) -> list[str | list[str]]:
    """Groups on the wire: one name alone, or a nested list."""
    return [next(iter(group)) if len(group) == 1 else sorted(group) for group in groups]


def role_view(ensemble: Ensemble, role: Role) -> answers.Role:
    """A role."""
    return answers.Role(
        name=role.name,
        kind=role.kind,
        count=ensemble.count(role.name),
        flavor=role.flavor,
        resources=dict(role.resources),
        required=any_of(role.required),
        forbidden=sorted(role.forbidden),
        member_of=any_of(role.member_of),
        tags=sorted(role.tags),
        ports=_groups(role, GroupKind.PORT),
        volumes=_groups(role, GroupKind.VOLUME),
        groups=_groups(role, GroupKind.GROUP),
        same_subtree=[sorted(names) for names in role.same_subtree],
        group_policy="isolate" if role.isolate else "none",
    )


def _groups(role: Role, kind: GroupKind) -> list[answers.Group]:
    return [
        answers.Group(
            name=one.name,
            resources=dict(one.resources),
            required=any_of(one.required),
            forbidden=sorted(one.forbidden),
            member_of=any_of(one.member_of),
            same_subtree=one.beside,
        )
        for one in role.groups
        if one.kind is kind
    ]


def ensemble_view(
    call: Call,
    ensemble: Ensemble,
    decision: answers.Decision | UnsetType | None = UNSET,
    compliance: list[answers.Violation] | UnsetType = UNSET,
) -> answers.Ensemble:
    """An ensemble."""
    return answers.Ensemble(
        id=ensemble.id,
        name=ensemble.name,
        project_id=ensemble.project_id,
        user_id=ensemble.user_id,
        metadata=dict(ensemble.metadata),
        members=[role_view(ensemble, role) for role in ensemble.roles],
        policies=[plain(written_statement(one)) for one in ensemble.policies],
        generation=ensemble.generation,
        created_at=format_instant(ensemble.created_at),
        updated_at=format_instant(ensemble.updated_at),
        links=[
            call.link("self", "ensembles", ensemble.id),
            call.link("members", "ensembles", ensemble.id, "members"),
        ],
        decision=decision,
        compliance=compliance,
        template=UNSET if ensemble.template is None else answers.MadeOf(*ensemble.template),
    )


def plain(value: Any) -> Any:  # noqa: ANN401 - whatever a policy's parameters hold
    """Parameters as JSON values: sets as sorted lists."""
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if hasattr(value, "items"):
        return {name: plain(one) for name, one in value.items()}
    return value


def domains_view(
    call: Call, snapshot: Snapshot, ensemble: Ensemble, place: Place
) -> dict[str, str]:
    """Level -> domain: names for operators, the ensemble's own labels for tenants."""
    host = snapshot.names[snapshot.row_of[place.host]]
    found = domains_of(snapshot.topology, host)
    if call.caller.operator:
        return {str(level): name for level, name in found.items()}
    return {str(level): label(ensemble.salt, level, name) for level, name in found.items()}


def allocations_view(call: Call, place: Place) -> dict[str, dict[str, int]] | UnsetType:
    """Provider UUID -> amounts, for operators."""
    if not call.caller.operator:
        return UNSET
    return {provider: dict(amounts) for provider, amounts in place.allocations.items()}


def host_view(call: Call, snapshot: Snapshot, place: Place) -> str | UnsetType:
    """The host's name, for operators."""
    return snapshot.names[snapshot.row_of[place.host]] if call.caller.operator else UNSET


def decision_view(  # noqa: PLR0913 - what it says, and what it is read from
    call: Call,
    decision: Decision,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    claims: Sequence[Claim] = (),
    *,
    dry_run: bool = False,
    lease: Lease | None = None,
) -> answers.Decision:
    """A decision with its assignments. A host that has left the fleet has no domains."""
    now = snapshot.taken_at
    ends = _ends(call, decision, ensemble, snapshot, lease, dry_run=dry_run)
    return answers.Decision(
        id=decision.id,
        ensemble_id=decision.ensemble_id,
        ensemble_generation=decision.ensemble_generation,
        project_id=decision.project_id,
        status=decision.state_at(now).value,
        expires_at=instant(decision.expires_at),
        hold=format_duration(decision.hold),
        renewals=decision.renewals,
        interval=answers.Interval(
            format_instant(decision.period.start), instant(decision.period.end)
        ),
        objective=decision.objective.value,
        solve=answers.Solve(
            solver=decision.solve.solver,
            optimal=decision.solve.proven,
            value=decision.solve.value,
            bound=decision.solve.bound,
            wall_ms=round(decision.solve.wall_ms, 3),
            seed=decision.solve.seed,
        ),
        assignments=[
            assignment_view(
                call,
                name,
                place,
                ensemble,
                snapshot,
                _claimant(now, claims, name),
                end=ends.get(name),
            )
            for name, place in sorted(decision.places.items())
        ],
        policies=[
            answers.PolicyStatus(one.name, one.satisfied, one.slack, one.penalty, one.standing)
            for one in decision.policies
        ],
        max_additional={
            role: additional_view(call, count, exact=role not in decision.at_least)
            for role, count in decision.max_additional.items()
        },
        revision=decision.revision,
        generation=decision.generation,
        computed_at=format_instant(decision.created_at),
        updated_at=format_instant(decision.updated_at),
        dry_run=dry_run,
        links=[] if dry_run else [call.link("self", "decisions", decision.id)],
        preemptible=decision.preemptible,
        lease_id=decision.lease_id,
        priority=decision.priority,
    )


def additional_view(call: Call, count: int, *, exact: bool) -> answers.Additional:
    """How many more fit; a tenant is told no more than a few."""
    most = call.parts.limits.tenant_additional
    if call.caller.operator or count <= most:
        return answers.Additional(count, exact)
    return answers.Additional(most, exact=False)


def assignment_view(  # noqa: PLR0913 - what it says, and what it is read from
    call: Call,
    name: MemberName,
    place: Place,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    claim_id: str | None,
    *,
    end: End | None,
) -> answers.Assignment:
    """Where a member was placed, and until when it may stay if that ends."""
    known = place.host in snapshot.row_of
    kinds = {} if ensemble is None else {role.name: role.kind for role in ensemble.roles}
    return answers.Assignment(
        member=str(name),
        kind=kinds.get(name.role, "server"),
        domains=domains_view(call, snapshot, ensemble, place) if known and ensemble else {},
        claimed_by=claim_id,
        host=host_view(call, snapshot, place) if known else UNSET,
        allocations=allocations_view(call, place),
        until=UNSET if end is None else format_instant(end.at),
        until_because=UNSET if end is None else end.because.value,
    )


def _ends(
    call: Call,
    decision: Decision,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    lease: Lease | None,
    *,
    dry_run: bool,
) -> Mapping[MemberName, End]:
    """When members end as things are, or would be."""
    if dry_run:
        return ends_as_decided(decision)
    if ensemble is None:
        return {}
    known = {decision.id: lease} if lease is not None or decision.lease_id is None else {}
    return ends_of(call.parts.store, standing(snapshot, ensemble), known)


def _claimant(now: Instant, claims: Sequence[Claim], name: MemberName) -> str | None:
    open_states = {ClaimState.BUILDING, ClaimState.ACTIVE}
    ours = (claim for claim in claims if claim.member == name)
    return next((c.id for c in ours if c.state_at(now) in open_states), None)


def member_view(
    call: Call, snapshot: Snapshot, ensemble: Ensemble, stand: Standing, name: MemberName
) -> answers.Member:
    """One member and where it stands now."""
    return member_views(call, snapshot, ensemble, stand, [name])[0]


def member_views(
    call: Call,
    snapshot: Snapshot,
    ensemble: Ensemble,
    stand: Standing,
    names: Iterable[MemberName],
) -> list[answers.Member]:
    """Members and where they stand now."""
    ends = ends_of(call.parts.store, stand)
    return [_member_view(call, snapshot, ensemble, stand, one, ends.get(one)) for one in names]


def _member_view(
    call: Call,
    snapshot: Snapshot,
    ensemble: Ensemble,
    stand: Standing,
    name: MemberName,
    end: End | None,
) -> answers.Member:
    member = ensemble.member(name)
    place = stand.places.get(name)
    first = stand.bookings[name][0] if name in stand.bookings else None
    overrun = first is not None and is_overrun(first, stand.at, call.parts.limits)
    return answers.Member(
        name=str(name),
        role=name.role,
        kind=ensemble.role(name.role).kind,
        status=stand.of(name).value,
        server_id=member.server_id,
        domains={} if place is None else domains_view(call, snapshot, ensemble, place),
        uuid=member.uuid if call.caller.operator else UNSET,
        host=UNSET if place is None else host_view(call, snapshot, place),
        allocations=UNSET if place is None else allocations_view(call, place),
        until=UNSET if end is None else format_instant(end.at),
        until_because=UNSET if end is None else end.because.value,
        overrun=overrun or UNSET,
    )


def claim_view(
    call: Call, claim: Claim, comparison: Comparison, *, dry_run: bool = False
) -> answers.Claim:
    """A claim, and how to present it to the scheduler."""
    return answers.Claim(
        id=claim.id,
        decision_id=claim.decision_id,
        ensemble_id=claim.ensemble_id,
        project_id=claim.project_id,
        member=str(claim.member),
        status=claim.state_at(call.parts.store.now()).value,
        expires_at=instant(claim.lapses_at),
        server_id=claim.server_id,
        comparison=answers.Comparison(
            comparison.verdict,
            [answers.Difference(**plain(one)) for one in comparison.diff],
        ),
        present_as=answers.PresentAs({"X-Openstack-Request-Id": f"req-{claim.id}"}, None),
        server_patch=answers.ServerPatch(server_metadata(claim.ensemble_id, str(claim.member))),
        created_at=format_instant(claim.created_at),
        updated_at=format_instant(claim.updated_at),
        links=[call.link("self", "claims", claim.id)],
        dry_run=dry_run,
    )


def violations_view(call: Call, violations: Iterable[PolicyViolation]) -> list[answers.Violation]:
    """What is broken. The text names domains, so a tenant gets the members only."""
    return [
        answers.Violation(
            policy=one.policy,
            members=[str(member) for member in one.members],
            text=one.text if call.caller.operator else f"{one.policy} is violated",
            amount=one.amount,
        )
        for one in violations
    ]
