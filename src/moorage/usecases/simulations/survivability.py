"""What the fleet survives: for the loss of each domain, who has too few members left.

Who has is counted in columns. Whether the lost members of those can be placed again now is tried on
the emptiest hosts first, and by a whole search only where that finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.period import SECOND
from moorage.domain.topology import HOST
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.limits import time_limit_within
from moorage.usecases.shared.lookup import level_named
from moorage.usecases.simulations.domain_members import DomainMembers
from moorage.usecases.simulations.loss_replacement import LossReplacements
from moorage.usecases.simulations.replacement import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moorage.domain.period import Duration, Instant
    from moorage.domain.topology import Level
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.simulations.domain_members import LostDomains, SetLeft

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

MOST_LOST: Final = 2
"""Domains that are lost together, unless they are named."""
MOST_NAMED: Final = 100
"""Domains that are named."""


@dataclass(frozen=True, slots=True)
class SurvivabilityQuery:
    """Which losses are considered."""

    level: str = ""
    """`rack`, `host`, `power:feed`; empty: the lowest level above the hosts."""
    lose: int = 1
    """How many domains are lost together."""
    domains: tuple[str, ...] = ()
    """Only the loss of all of these together; empty: of any."""
    time_limit: Duration | None = None


@dataclass(frozen=True, slots=True)
class EnsembleWithoutQuorum:
    """An ensemble that has too few members left after a loss."""

    ensemble_id: str
    ensemble: str
    project_id: str
    lost: int
    """How many of its members in service are lost."""
    too_few: tuple[SetLeft, ...]
    again: Verdict
    """Whether its lost members can be placed again."""


@dataclass(frozen=True, slots=True)
class DomainLoss:
    """The loss of a domain, or of several together."""

    domains: tuple[str, ...]
    hosts: int
    members: int
    """Members in service that are lost."""
    ensembles: int
    """How many ensembles lose any."""
    without_quorum: tuple[EnsembleWithoutQuorum, ...]
    """Those that miss most members first."""

    def count(self, verdict: Verdict) -> int:
        """How many of the ensembles without quorum have this verdict."""
        return sum(one.again is verdict for one in self.without_quorum)


@dataclass(frozen=True, slots=True)
class FleetSurvivability:
    """What the fleet survives."""

    level: Level
    lose: int
    at: Instant
    revision: int
    domains: int
    """How many domains with hosts the level has."""
    ensembles: int
    """How many ensembles have members in service."""
    already: int
    """How many have too few of them as it is."""
    considered: int
    """How many losses were considered."""
    fatal: int
    """How many of them leave any ensemble without quorum."""
    losses: tuple[DomainLoss, ...]
    """The fatal ones, the worst first: those after which most cannot be placed again."""


def fleet_survivability(
    env: UseCaseEnvironment, caller: Caller, query: SurvivabilityQuery
) -> FleetSurvivability:
    """For the loss of each domain of a level: which ensembles have too few members left.

    That is a role with fewer than `min_available` of its members left (none, if it has no such
    number), or a required `survive` policy of that level that keeps fewer than it is to. For each
    loss the lost members of all of these are placed again jointly, as far as time allows.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: there is no such level or domain.
        InvalidDescription: so many domains cannot be lost together.
        LimitExceeded: the level has too many domains to consider every two, or the time limit.
    """
    require_operator(caller)
    remaining = env.countdown(time_limit_within(env.limits, query.time_limit) / SECOND)
    snapshot = env.store.snapshot()
    level = level_named(snapshot.topology, query.level or _lowest(snapshot), "level")
    named = _named(snapshot, level, query)
    members = DomainMembers(env.store, snapshot, level, max(len(named), query.lose))
    if named or query.lose == 1:
        fatal = members.of_named(named) if named else members.of_any()
        every = len(fatal)
    else:
        fatal, every = members.of_any_two()
    replacements = LossReplacements(env, snapshot, remaining)
    losses = [_loss(replacements, members, one) for one in fatal]
    losses.sort(key=lambda one: (_lasting(one), len(one.without_quorum), one.members), reverse=True)
    number = len(np.unique(members.numbers[members.numbers >= 0]))
    return FleetSurvivability(
        level=level,
        lose=members.lose,
        at=snapshot.taken_at,
        revision=snapshot.revision,
        domains=number,
        ensembles=len(members.ensembles),
        already=members.already,
        considered=1 if named else number if query.lose == 1 else number * (number - 1) // 2,
        fatal=every,
        losses=tuple(losses),
    )


def _lasting(one: DomainLoss) -> int:
    return len(one.without_quorum) - one.count(Verdict.PLACED)


def _lowest(snapshot: Snapshot) -> str:
    """The lowest level of the first tree that has any above the hosts."""
    return next((str(level[-1]) for level in _levels(snapshot)), HOST)


def _levels(snapshot: Snapshot) -> Iterator[list[Level]]:
    by_tree: dict[str, list[Level]] = {}
    for one in snapshot.topology.every_level:
        by_tree.setdefault(one.tree, []).append(one)
    yield from by_tree.values()


def _named(snapshot: Snapshot, level: Level, query: SurvivabilityQuery) -> tuple[int, ...]:
    """Numbers of the named domains.

    Raises:
        UnknownName: there is no such domain of the level.
        InvalidDescription: their number is not that of what is to be lost.
    """
    if not query.domains:
        if not 1 <= query.lose <= MOST_LOST:
            raise InvalidDescription(
                f"lose is 1 or {MOST_LOST}, not {query.lose}; or name the domains", path="lose"
            )
        return ()
    if len(query.domains) > MOST_NAMED:
        raise InvalidDescription(f"name at most {MOST_NAMED} domains", path="domains")
    if query.lose not in {1, len(query.domains)}:
        raise InvalidDescription(
            f"{len(query.domains)} domains are named, and {query.lose} are to be lost", path="lose"
        )
    names = snapshot.domain_names(level)
    if level.name == HOST:
        known = {snapshot.names[row]: row for row in snapshot.hosts.tolist()}
    else:
        known = {name: number for number, name in enumerate(names)}
    for one in query.domains:
        if one not in known:
            raise UnknownName(str(level), one, path="domains", known=known)
    return tuple(sorted({known[one] for one in query.domains}))


def _loss(replacements: LossReplacements, members: DomainMembers, case: LostDomains) -> DomainLoss:
    """The loss, with who has too few members left and whether they can be placed again."""
    hosts = members.hosts(case.domains)
    losing = list(members.without_quorum(case))
    lost = [(members.ensembles[number], members.lost(number, hosts)) for number, _ in losing]
    verdicts = replacements.verdicts(lost, hosts)
    number, ensembles = members.concerned(case.domains)
    names = members.snapshot.domain_names(members.level)
    return DomainLoss(
        domains=tuple(names[one] for one in case.domains),
        hosts=int(hosts.sum()),
        members=number,
        ensembles=ensembles,
        without_quorum=tuple(
            EnsembleWithoutQuorum(
                ensemble.id, ensemble.name, ensemble.project_id, len(gone), too_few, verdict
            )
            for (_, too_few), (ensemble, gone), verdict in zip(losing, lost, verdicts, strict=True)
        ),
    )
