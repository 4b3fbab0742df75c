"""Check policies before a search (known, well-named, satisfiable), and against present places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.describe import has_sides
from moorage.domain.ensembles import KEEPING, SIDES, TAGGED, OnViolation
from moorage.domain.errors import (
    Contradiction,
    Forbidden,
    InvalidDescription,
    LimitExceeded,
    UnknownName,
)
from moorage.domain.refusal_commands import to_drop_policy
from moorage.domain.role_paths import is_known, names_above
from moorage.domain.words import did_you_mean
from moorage.policies.contradiction import refuse_contradictions
from moorage.policies.registry import parse
from moorage.policies.sides import MEMBERS, single, split
from moorage.usecases.shared.role_resolution import names_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.topology import Topology
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.contract import Edge, Policy
    from moorage.policies.sides import Between
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


MOST_LISTED: Final = 100_000
"""Most members in all hyperedges of an ensemble's policies together."""


def check_policies(topology: Topology, ensemble: Ensemble, *, own: bool = True) -> None:
    """Check that the policies are valid, select members, and do not contradict each other.

    `own` says that the caller wrote all of them, so an error may name their contents.

    Raises:
        UnknownPolicy, InvalidDescription, UnknownName: see `policies.parse` and `Policy.check`.
        Contradiction: they cannot be met together on any fleet.
        LimitExceeded: their hyperedges have too many members; see `MOST_LISTED`.
    """
    try:
        _check_policies(topology, ensemble, own=own)
    except Contradiction as error:
        stored = [one.name for one in ensemble.policies if not own and not one.path]
        for name in error.policies:
            if name in stored:
                told = f"{error.message}{to_drop_policy(ensemble.name, name)}"
                raise Contradiction(told, policies=error.policies) from error
        raise


def why_refused(topology: Topology, ensemble: Ensemble) -> str:
    """Why no change of an ensemble passes, whatever it is, until its policies change; or nothing.

    Its policies contradict each other with the members that there are, or name others.
    """
    try:
        check_policies(topology, ensemble, own=False)
    except InvalidDescription as error:
        return error.message
    return ""


def _check_policies(topology: Topology, ensemble: Ensemble, *, own: bool) -> None:
    paths = [one.path or f"policies[{i}]" for i, one in enumerate(ensemble.policies)]
    policies = [parse(one, path=at) for one, at in zip(ensemble.policies, paths, strict=True)]
    _bound_edges(ensemble, policies)
    for statement, policy, path in zip(ensemble.policies, policies, paths, strict=True):
        try:
            policy.check(topology)
        except UnknownName as error:
            # The policy's error has the parameter only, without the statement's index.
            error.path = f"{path}.{error.path}"
            raise
        try:
            check_selectors(ensemble, statement, path)
        except InvalidDescription as error:
            if own or statement.path:
                raise
            told = f"{error.message}{to_drop_policy(ensemble.name, statement.name)}"
            raise InvalidDescription(told, path=error.path) from error
    refuse_contradictions(
        ensemble.roles,
        [member.name for member in ensemble.members],
        ensemble.policies,
        levels=topology.levels,
        topology=None if own else topology,
    )


def _times_listed(statement: PolicyStatement, edge: Edge, between: Between) -> int:
    """How often each member of a hyperedge is listed in what its policy compiles to, at most."""
    if between == MEMBERS:
        return 1
    sides = split(edge, between)
    return 1 if statement.required and single(sides) else max(len(sides) - 1, 1)


def _bound_edges(ensemble: Ensemble, policies: Sequence[Policy]) -> None:
    """Check that the policies' hyperedges have at most `MOST_LISTED` members together.

    Between sides, a member counts for every other side; once, where each side is one member.

    Raises:
        LimitExceeded: they have more.
    """
    listed = 0
    for statement, policy in zip(ensemble.policies, policies, strict=True):
        between = getattr(policy, SIDES, MEMBERS)
        for edge in ensemble.edges(statement):
            listed += len(edge) * _times_listed(statement, edge, between)
        if listed > MOST_LISTED:
            counted = ", each once for every other side" if between != MEMBERS else ""
            raise LimitExceeded(
                f"members in all policies together{counted}", limit=MOST_LISTED, requested=listed
            )


def check_names(
    env: UseCaseEnvironment,
    caller: Caller,
    snapshot: Snapshot,
    ensemble: Ensemble,
    stored: tuple[PolicyStatement, ...] = (),
    *,
    compiled: frozenset[str] = frozenset(),
) -> None:
    """Check that the policies name existing traits, aggregates and domains.

    A tenant may name only domains of the levels in `Disclosure.levels`: otherwise a policy that
    names a host would disclose where the host is, or how full. Any other name is refused as if it
    did not exist, so the refusal discloses nothing either. An operator may name every domain and
    host. Policies in `stored` were checked when they were written; hosts and domains may have been
    deleted since. Policies named in `compiled` were not written by the caller.

    Raises:
        UnknownName: the name does not exist, or is not disclosed to tenants.
        Forbidden: a tenant's policy would refuse servers of others, which the service does not.
    """
    disclosure = env.limits.disclosure
    kind = f"{disclosure.words()} or aggregate"
    if caller.operator:
        kind = "host, domain or aggregate"
    known: frozenset[str] | None = None
    traits = names_for(env.store, caller)
    for index, statement in enumerate(ensemble.policies):
        if statement in stored or statement.name in compiled:
            continue
        path = statement.path or f"policies[{index}]"
        _check_refusal(env, caller, statement)
        policy = parse(statement, path=path)
        traits.check_traits(frozenset(getattr(policy, "traits", ())), f"{path}.traits")
        if domains := sorted(getattr(policy, "domains", ())):
            known = known or _known(snapshot, None if caller.operator else disclosure)
            for name in domains:
                if name not in known:
                    raise UnknownName(kind, name, path=f"{path}.domains")


def _check_refusal(env: UseCaseEnvironment, caller: Caller, statement: PolicyStatement) -> None:
    """Check that the caller may close hosts to servers of others.

    Any tenant may keep other ensembles away; one tenant must not empty the cloud for Nova.

    Raises:
        Forbidden: as it says.
    """
    asked = statement.type in KEEPING and statement.on_violation is OnViolation.REFUSE
    granted = caller.operator or env.limits.foreign_servers is OnViolation.REFUSE
    if asked and not granted:
        raise Forbidden(
            f"only operators may refuse servers of others: write policy {statement.name} without"
            " on_violation, and their arrival is reported"
        )


def _known(snapshot: Snapshot, disclosure: Disclosure | None) -> frozenset[str]:
    """Names that a policy may use; without `disclosure` those that an operator may use."""
    if disclosure is not None:
        return disclosure.names_of(snapshot.topology) | frozenset(snapshot.aggregates)
    rows = snapshot.hosts.tolist()
    hosts = {name for row in rows for name in (snapshot.names[row], snapshot.uuids[row])}
    return frozenset(
        {name for _, name in snapshot.topology.domains} | {*snapshot.aggregates} | hosts
    )


def check_selectors(ensemble: Ensemble, statement: PolicyStatement, path: str) -> None:
    """Check that the statement's selectors name roles, groups, members or tags of the ensemble.

    Raises:
        InvalidDescription: a selector names none of them; the nearest name is suggested.
    """
    roles = {role.name for role in ensemble.roles}
    tags = {tag for role in ensemble.roles for tag in role.tags}
    members = {member.name for member in ensemble.members}
    for selector in statement.members:
        known = (
            selector.everyone
            or selector.tag in tags
            or selector.member in members
            or (selector.group is not None and is_known(selector.group, roles))
        )
        if not known:
            names = {name for role in roles for name in names_above(role)}
            hint = did_you_mean(str(selector), names | {f"{TAGGED}{tag}" for tag in tags})
            raise InvalidDescription(
                f"policy {statement.name}: {selector} selects nothing here{hint}",
                path=f"{path}.{_selecting_field(statement)}",
            )


def _selecting_field(statement: PolicyStatement) -> str:
    if has_sides(statement.parameters):
        return SIDES
    return "zip" if statement.zip else "members"
