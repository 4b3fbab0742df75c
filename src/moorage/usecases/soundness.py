"""Judging policies before anything is placed: known, well-named, and possible at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription, LimitExceeded, UnknownName
from moorage.policies.contradiction import refuse_contradictions
from moorage.policies.registry import parse
from moorage.usecases.roles import Names

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.topology import Topology
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.ports import Caller, Store


MOST_LISTED: Final = 100_000
"""Members of one ensemble, counted once for every hyperedge they are in."""


def check_policies(topology: Topology, ensemble: Ensemble) -> None:
    """Let policies pass that are understood, select something, and can be met together.

    Raises:
        UnknownPolicy, InvalidDescription, UnknownName: see `policies.parse` and `Policy.check`.
        Contradiction: they cannot be met together on any fleet.
        LimitExceeded: they speak of members too often.
    """
    _bound_edges(ensemble)
    for index, statement in enumerate(ensemble.policies):
        path = f"policies[{index}]"
        try:
            parse(statement, path=path).check(topology)
        except UnknownName as error:
            # A policy knows the parameter, and not which of the statements it is.
            error.path = f"{path}.{error.path}"
            raise
        check_selectors(ensemble, statement, path)
    refuse_contradictions(
        ensemble.roles,
        [member.name for member in ensemble.members],
        ensemble.policies,
        levels=topology.levels,
    )


def _bound_edges(ensemble: Ensemble) -> None:
    """Let policies pass whose hyperedges can be listed: an absurd number is a mistake.

    Raises:
        LimitExceeded: they speak of members too often.
    """
    listed = 0
    for statement in ensemble.policies:
        listed += sum(len(edge) for edge in ensemble.edges(statement))
        if listed > MOST_LISTED:
            raise LimitExceeded(
                "members in all policies together", limit=MOST_LISTED, requested=listed
            )


def check_names(
    store: Store,
    caller: Caller,
    snapshot: Snapshot,
    ensemble: Ensemble,
    stored: tuple[PolicyStatement, ...] = (),
) -> None:
    """Let policies pass that name what is there: traits, and to a tenant domains and aggregates.

    Where a host is, or how full, would otherwise be told by whether a fence around its name can
    be met. A host's name or a provider's UUID is refused as any name that means nothing, so the
    refusal tells nothing either. An operator may name hosts as well. Policies that are `stored`
    already were judged then: hosts and domains come and go.

    Raises:
        UnknownName: it means nothing here, or nothing that a tenant may know.
    """
    kind = "host, domain or aggregate" if caller.operator else "domain or aggregate"
    known: frozenset[str] | None = None
    traits = Names(store)
    for index, statement in enumerate(ensemble.policies):
        if statement in stored:
            continue
        path = f"policies[{index}]"
        policy = parse(statement, path=path)
        traits.check_traits(frozenset(getattr(policy, "traits", ())), f"{path}.traits")
        if domains := sorted(getattr(policy, "domains", ())):
            known = known or _known(snapshot, hosts_too=caller.operator)
            for name in domains:
                if name not in known:
                    raise UnknownName(kind, name, path=f"{path}.domains")


def _known(snapshot: Snapshot, *, hosts_too: bool) -> frozenset[str]:
    """Names that a policy may say; every host's are looked at only where one says any."""
    known = {name for _, name in snapshot.topology.domains} | set(snapshot.aggregates)
    if hosts_too:
        rows = snapshot.roots.tolist()
        known |= {name for row in rows for name in (snapshot.names[row], snapshot.uuids[row])}
    return frozenset(known)


def check_selectors(ensemble: Ensemble, statement: PolicyStatement, path: str) -> None:
    """Let selectors pass that name a role, a member or a tag of the ensemble.

    Raises:
        InvalidDescription: one names nothing here.
    """
    roles = {role.name for role in ensemble.roles}
    tags = {tag for role in ensemble.roles for tag in role.tags}
    members = {member.name for member in ensemble.members}
    for selector in statement.members:
        known = (
            selector.everyone
            or selector.role in roles
            or selector.tag in tags
            or selector.member in members
        )
        if not known:
            raise InvalidDescription(
                f"policy {statement.name}: {selector} selects nothing here",
                path=f"{path}.{'zip' if statement.zip else 'members'}",
            )
