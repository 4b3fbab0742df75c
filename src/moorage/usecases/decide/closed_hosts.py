"""Hosts on which a decision may place no member, by reason.

- Disabled: Nova's own queries leave out disabled compute hosts by a forbidden trait; joint
  decisions do the same.
- Out of service: closed for another reason that has no known end (see `engine.state.host_states`).
- Away: what servers offer whose host is planned to be away. What hosts have is not there then.
- Exclusive to others: a required `exclusive` policy must also hold against members that are placed
  later. Every joint decision therefore leaves out the domains of placed exclusive members to which
  its own members are foreign.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.ensembles import KEEPING, edges
from moorage.domain.host_states import ClosingReason
from moorage.domain.placement import Occupant
from moorage.domain.topology import Level
from moorage.engine.joint.host_filters import closed_to_role
from moorage.engine.state.host_states import host_states
from moorage.policies.exclusive import Exclusive
from moorage.policies.registry import parse
from moorage.usecases.decide.member_places import hosts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble, PolicyStatement, Role
    from moorage.domain.period import Period
    from moorage.engine.state.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]

DISABLED: Final = "disabled"
"""Reason id of hosts whose compute service is disabled."""
OUT_OF_SERVICE: Final = "out-of-service"
"""Reason id of hosts that are closed for any other reason, whose end is not known."""
AWAY: Final = "away"
"""Reason id of servers on hosts that are planned to be away; such hosts have no capacity."""
EXCLUSIVE: Final = "exclusive"
"""Reason id of hosts that are exclusive to others."""


def closed_hosts(
    exclusive: Iterable[Ensemble], snapshot: Snapshot, newcomer: Ensemble, period: Period
) -> Mapping[str, frozenset[str]]:
    """Reason id -> UUIDs of providers closed to the members of `newcomer` that are placed now.

    For `exclusive` see `exclusive_hosts`; `period` is when the members are placed there.
    """
    states = host_states(snapshot)
    disabled = states.closed.get(ClosingReason.DISABLED)
    marked = np.zeros_like(states.lasting) if disabled is None else snapshot.located(disabled)
    return MappingProxyType(
        {
            **exclusive_hosts(exclusive, snapshot, newcomer, period),
            DISABLED: _roots(snapshot, marked),
            OUT_OF_SERVICE: _roots(snapshot, states.lasting & ~marked),
            AWAY: servers_away(snapshot, period),
        }
    )


def servers_away(snapshot: Snapshot, period: Period) -> frozenset[str]:
    """UUIDs of what is offered by servers whose host is planned to be away during `period`.

    The capacity of hosts themselves says so; that of a server does not.
    """
    at = snapshot.locations.on_host
    return frozenset(
        snapshot.uuids[row]
        for host, rows in at.items()
        if any(one.overlaps(period) for one in snapshot.state(host).down)
        for row in rows
    )


def _roots(snapshot: Snapshot, marked: Bools) -> frozenset[str]:
    """UUIDs of the root providers, server providers too, that are marked in [P]."""
    roots = snapshot.roots
    return frozenset(snapshot.uuids[row] for row in roots[marked[roots]].tolist())


def exclusive_hosts(
    exclusive: Iterable[Ensemble], snapshot: Snapshot, newcomer: Ensemble, period: Period
) -> Mapping[str, frozenset[str]]:
    """`EXCLUSIVE` -> UUIDs of providers closed to the members of `newcomer` during `period`.

    Those closed only to some of its roles, because of their tags, are under the key that
    `engine.joint.host_filters.closed_to_role` makes.
    """
    others = [owner for owner in exclusive if owner.id != newcomer.id]
    by_tags = {
        stranger: _hosts(snapshot, others, stranger, period)
        for stranger in {_stranger(newcomer, role) for role in newcomer.roles}
    }
    every = frozenset.intersection(*by_tags.values()) if by_tags else frozenset[str]()
    found = {EXCLUSIVE: every}
    for role in newcomer.roles:
        more = by_tags[_stranger(newcomer, role)] - every
        if more:
            found[closed_to_role(role.name, EXCLUSIVE)] = more
    return MappingProxyType(found)


def _hosts(
    snapshot: Snapshot, exclusive: Iterable[Ensemble], stranger: Occupant, period: Period
) -> frozenset[str]:
    """UUIDs of the providers that any exclusive ensemble closes to the stranger.

    All of a host's tree: what it lends is closed to members on other hosts, too.
    """
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for owner in exclusive:
        closed |= providers_closed_to(stranger, owner, snapshot, period)
    rows = np.flatnonzero(closed & snapshot.alive)
    return frozenset(snapshot.uuids[row] for row in rows.tolist())


def foreign_occupant(newcomer: Ensemble, role: str) -> Occupant:
    """One role's members as an occupant that other ensembles' `exclusive` policies judge."""
    return _stranger(newcomer, newcomer.role(role))


def _stranger(newcomer: Ensemble, role: Role) -> Occupant:
    return Occupant(consumer="", project_id=newcomer.project_id, tags=role.tags)


def providers_closed_to(
    stranger: Occupant, owner: Ensemble, snapshot: Snapshot, period: Period
) -> Bools:
    """[P] whether an exclusive ensemble closes each provider to a stranger during `period`."""
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for statement in owner.policies:
        if statement.required and statement.type in KEEPING:
            closed |= providers_closed_by(snapshot, owner, statement, stranger, period)
    return closed


def providers_closed_by(
    snapshot: Snapshot,
    owner: Ensemble,
    statement: PolicyStatement,
    stranger: Occupant,
    period: Period,
) -> Bools:
    """[P] whether each provider is in a domain that a statement of `KEEPING` closes to somebody."""
    policy = parse(statement)
    if isinstance(policy, Exclusive) and policy.forbids(stranger, owner.project_id):
        return _kept_by(snapshot, owner, statement, policy, period)
    return np.zeros(len(snapshot.uuids), dtype=np.bool_)


def providers_kept(exclusive: Iterable[Ensemble], snapshot: Snapshot, period: Period) -> Bools:
    """[P] providers that any of these ensembles keeps to some during `period`."""
    kept = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for owner in exclusive:
        for statement in owner.policies:
            if statement.required and statement.type in KEEPING:
                policy = parse(statement)
                if isinstance(policy, Exclusive):
                    kept |= _kept_by(snapshot, owner, statement, policy, period)
    return kept


def _kept_by(
    snapshot: Snapshot,
    owner: Ensemble,
    statement: PolicyStatement,
    policy: Exclusive,
    period: Period,
) -> Bools:
    """[P] whether each provider is in a domain that the selected members use during `period`."""
    everybody = (*owner.members, *owner.headroom)
    names = [one.name for one in everybody]
    selected = {name for edge in edges(statement, owner.roles, names) for name in edge}
    members = (one for one in everybody if one.name in selected)
    rows = hosts_of(snapshot, members, period)
    if not rows:
        return np.zeros(len(snapshot.uuids), dtype=np.bool_)
    numbers = snapshot.domains(Level(policy.tree, policy.level))
    used = np.unique(numbers[rows])
    kept: Bools = np.isin(numbers, used[used >= 0])
    return kept
