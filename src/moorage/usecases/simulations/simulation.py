"""Simulate: suppose changes, and see what breaks, what can be placed again, and what fits then.

All of it is done by the use cases themselves, in a hypothetical ledger (ADR-0061).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.describe import read_statement
from moorage.domain.errors import (
    Busy,
    Infeasible,
    InvalidDescription,
    LimitExceeded,
    NotFound,
    Undecided,
)
from moorage.domain.explain import Explanation
from moorage.domain.host_states import HostState
from moorage.domain.period import SECOND, format_instant
from moorage.domain.simulations import (
    MOST_ADDED,
    MOST_CHANGES,
    Addition,
    Admission,
    Closure,
    Loss,
    PolicyChange,
    SimulationRequest,
)
from moorage.domain.words import natural
from moorage.engine.state.host_states import host_states
from moorage.engine.state.hypothetical_hosts import (
    Likeness,
    with_hosts_closed,
    with_hosts_down,
    with_hosts_like,
)
from moorage.usecases.capacity.fleet_map import servers_that_fit
from moorage.usecases.compliance.impact import Impact, ensembles_at, newly_broken
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.policies import merged_statement, put_policy
from moorage.usecases.paging import Page
from moorage.usecases.shared.access import own_ensemble, require_operator
from moorage.usecases.shared.limits import time_limit_within
from moorage.usecases.shared.lookup import domain_named, host_named, hosts_named
from moorage.usecases.shared.pending_work import leaving_work
from moorage.usecases.shared.role_resolution import known_flavor
from moorage.usecases.simulations.replacement import (
    Replacement,
    Verdict,
    lost_members,
    place_again,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.simulations import SupposedChange
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, HypotheticalStore

NAMED: Final = 100
"""Ensembles and hosts that are named; all are counted."""
EXPLAINED: Final = 10
"""Refusals of members that are explained, which takes longer than to find them."""
MOST_FLAVORS: Final = 20
"""Flavors whose capacity is counted."""
_SHARES: Final = 4
"""A search may take so great a part of the time that is left, unless it is the last ones'."""
_JUDGING: Final = 0.4
"""The part of the time limit in which is judged what breaks."""


@dataclass(frozen=True, slots=True)
class RoleLeft:
    """A role of an ensemble that lost members."""

    role: str
    placed: int
    left: int
    """Of the placed ones, those whose hosts are in service."""
    needed: int
    """How many must be up: `Role.min_available`, or 1."""

    @property
    def quorum(self) -> bool:
        """Whether enough are left."""
        return self.left >= self.needed


@dataclass(frozen=True, slots=True)
class EnsembleLoss:
    """An ensemble with members on hosts that are supposed to be down."""

    ensemble: Ensemble
    lost: tuple[MemberName, ...]
    roles: tuple[RoleLeft, ...]
    again: Replacement

    @property
    def quorum(self) -> bool:
        """Whether each of its roles has enough members left."""
        return all(one.quorum for one in self.roles)


@dataclass(frozen=True, slots=True)
class Admitted:
    """An ensemble that was to be placed."""

    name: str
    verdict: Verdict
    hosts: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Member -> name of its host."""
    explanation: Explanation | None = None
    why: str = ""
    """Instead of an explanation: the limit that it exceeds."""


@dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """How many servers of a flavor fit, each host taken by itself."""

    flavor: str
    before: int
    after: int
    """With all that is supposed, before lost members are placed again."""
    left: int
    """And after that."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What would be."""

    at: Instant
    revision: int
    down: tuple[str, ...]
    """Names of the hosts that are supposed to be down."""
    closed: tuple[str, ...]
    added: tuple[str, ...]
    breaks: Impact
    """The violations that begin."""
    losses: tuple[EnsembleLoss, ...]
    """Those that lose their quorum first."""
    admitted: tuple[Admitted, ...]
    capacity: tuple[FlavorCapacity, ...]

    def count(self, verdict: Verdict) -> int:
        """How many ensembles that lost members have this verdict."""
        return sum(one.again.verdict is verdict for one in self.losses)

    @property
    def without_quorum(self) -> int:
        """How many ensembles lose their quorum."""
        return sum(not one.quorum for one in self.losses)


def simulate(env: UseCaseEnvironment, caller: Caller, request: SimulationRequest) -> Simulation:
    """What would be if all this changed, in this order; nothing is written.

    Then is judged what breaks, and members on hosts that are supposed to be down are placed again,
    ensemble by ensemble: first those whose quorum is lost. Each finds taken what those before it
    were given. What does not fit into the time limit is counted as undecided, or not judged.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName, NotFound: a host, domain, level, flavor, ensemble or policy that is not there.
        InvalidDescription: a past instant, a domain without hosts, or nothing is supposed.
        UnknownPolicy, Contradiction, LimitExceeded, NameTaken: as the use cases that are tried.
    """
    require_operator(caller)
    limit = time_limit_within(env.limits, request.time_limit) / SECOND
    if not 1 <= len(request.changes) <= MOST_CHANGES:
        raise InvalidDescription(
            f"suppose 1 to {MOST_CHANGES} changes, not {len(request.changes)}",
            path="simulation.changes",
        )
    now = env.store.now()
    if request.at is not None and request.at < now:
        raise InvalidDescription(
            f"the instant lies in the past; now is {format_instant(now)}", path="simulation.at"
        )
    remaining = env.countdown(limit)
    with leaving_work(None):
        before = env.store.hypothetical(request.at)
        changed = _Changed(env, caller, before.hypothetical())
        for number, one in enumerate(request.changes):
            changed.suppose(one, f"simulation.changes[{number}]")
        return _outcome(env, caller, request, before, changed, remaining)


def _outcome(
    env: UseCaseEnvironment,
    caller: Caller,
    request: SimulationRequest,
    before: HypotheticalStore,
    changed: _Changed,
    remaining: Callable[[], float],
) -> Simulation:
    store, flavors = changed.store, _flavors(env, request)
    known, after = before.snapshot(), store.snapshot()
    rows = [row for row in changed.down if _down(after, row)]
    hit = ensembles_at(store, after, *rows)
    first = {*hit, *changed.ensembles}
    first |= store.compliance.referring(first)
    every = store.compliance.every_ensemble()
    order = [*(one for one in every if one in first), *(one for one in every if one not in first)]
    breaks = newly_broken(
        env.over(before), known, after, ensembles=order, seconds=remaining() * _JUDGING, then=store
    )
    fits = [_fits(env.over(one), caller, flavors) for one in (before, store)]
    losses = tuple(_losses(changed.env, store, hit, remaining))
    fits.append(_fits(changed.env, caller, flavors) if losses else fits[-1])
    return Simulation(
        at=after.taken_at,
        revision=after.revision,
        down=_names(after, changed.down),
        closed=_names(after, changed.closed),
        added=tuple(changed.added),
        breaks=breaks,
        losses=losses,
        admitted=tuple(changed.admitted),
        capacity=tuple(
            FlavorCapacity(name, *counts) for name, *counts in zip(flavors, *fits, strict=True)
        ),
    )


class _Changed:
    """The ledger with what is supposed, as far as that is done."""

    def __init__(self, env: UseCaseEnvironment, caller: Caller, store: HypotheticalStore) -> None:
        self.store = store
        self.env = env.over(store)
        self._caller = caller
        self.down: dict[int, None] = {}
        self.closed: dict[int, None] = {}
        self.added: list[str] = []
        self.admitted: list[Admitted] = []
        self.ensembles: set[str] = set()
        """Ids of those that were admitted or changed."""

    def suppose(self, change: SupposedChange, path: str) -> None:
        """Do one change; `path` is its place in the request."""
        snapshot = self.store.snapshot()
        match change:
            case Loss(what):
                rows = hosts_named(snapshot, what, path=f"{path}.lose")
                self.down |= dict.fromkeys(rows)
                self.store.suppose(partial(with_hosts_down, rows=rows))
            case Closure(what):
                rows = hosts_named(snapshot, what, path=f"{path}.close")
                self.closed |= dict.fromkeys(rows)
                self.store.suppose(
                    partial(with_hosts_closed, rows=rows, user_id=self._caller.user_id)
                )
            case Addition():
                self._add(snapshot, change, path)
            case Admission(description):
                self._admit(description)
            case PolicyChange():
                self._change_policy(change, path)

    def _add(self, snapshot: Snapshot, change: Addition, path: str) -> None:
        if not 1 <= change.count <= MOST_ADDED:
            raise InvalidDescription(
                f"add 1 to {MOST_ADDED} hosts at once, not {change.count}", path=f"{path}.add.count"
            )
        model = host_named(snapshot, change.like)
        if model in snapshot.offered_by:
            raise NotFound("host", change.like)
        domains: dict[str, str] = {}
        for text in change.domains:
            domain = domain_named(snapshot.topology, text, f"{path}.add.domains")
            if domain.tree in domains:
                raise InvalidDescription(
                    f"{domains[domain.tree]} and {domain.name} are both of tree {domain.tree}",
                    path=f"{path}.add.domains",
                )
            domains[domain.tree] = domain.name
        taken = set(snapshot.names)
        names = (f"new-{number}" for number in range(1, len(taken) + change.count + 1))
        free = [name for name in names if name not in taken][: change.count]
        likeness = Likeness(model, tuple(free), domains if change.domains else None)
        self.store.suppose(partial(with_hosts_like, added=likeness, new_uuid=self.env.ids.uuid))
        self.added += free

    def _admit(self, description: EnsembleDescription) -> None:
        env, name = self.env, description.name
        identity = RequestIdentity(env.ids.uuid())
        described = replace(description, name=self._free(name))
        try:
            made = create_ensemble(env, self._caller, described, DecisionOptions(), identity)
        except (Infeasible, Undecided) as error:
            verdict = Verdict.UNDECIDED if isinstance(error, Undecided) else Verdict.REFUSED
            found = error.explanation
            why = found if isinstance(found, Explanation) else None
            self.admitted.append(Admitted(name, verdict, explanation=why))
        except LimitExceeded as error:
            self.admitted.append(Admitted(name, Verdict.REFUSED, why=error.message))
        except Busy as error:
            self.admitted.append(Admitted(name, Verdict.UNDECIDED, why=error.message))
        else:
            snapshot = self.store.snapshot()
            hosts = {
                one: snapshot.names[snapshot.row_of[place.host]]
                for one, place in locate_members(snapshot, made.ensemble).places.items()
            }
            self.ensembles.add(made.ensemble.id)
            self.admitted.append(Admitted(name, Verdict.PLACED, MappingProxyType(hosts)))

    def _free(self, name: str) -> str:
        """The name, or if an ensemble has it, one with a number: it does not matter here."""
        project = self._caller.project_id
        taken = {one.name for one in self.admitted}
        names = chain((name,), (f"{name}-{number}" for number in count(2)))
        return next(
            one
            for one in names
            if one not in taken and not self.store.ensembles_named(project, one)
        )

    def _change_policy(self, change: PolicyChange, path: str) -> None:
        ensemble = own_ensemble(self.store, self._caller, change.ensemble_id)
        statement = _statement(ensemble, change, f"{path}.policy")
        put_policy(self.env, self._caller, ensemble.id, statement, None)
        self.ensembles.add(ensemble.id)


def _statement(ensemble: Ensemble, change: PolicyChange, path: str) -> PolicyStatement:
    """The policy with these fields replaced; if there is none of that name, a new one."""
    before = next((one for one in ensemble.policies if one.name == change.name), None)
    if before is not None:
        return merged_statement(before, change.fields, path)
    if "type" not in change.fields:
        known = ", ".join(one.name for one in ensemble.policies) or "none"
        raise NotFound("policy", change.name, f"; a new one needs a type; its policies: {known}")
    return read_statement({**change.fields, "name": change.name}, path)


def _down(snapshot: Snapshot, row: int) -> bool:
    return not host_states(snapshot).in_service[row]


def _losses(
    env: UseCaseEnvironment,
    store: HypotheticalStore,
    hit: frozenset[str],
    remaining: Callable[[], float],
) -> Iterator[EnsembleLoss]:
    """The ensembles that lost members, each placed again; those without quorum come first."""
    snapshot = store.snapshot()
    found = []
    for one in store.compliance.ensembles_by_id(hit):
        lost = lost_members(snapshot, one.ensemble)
        if lost:
            found.append((one.ensemble, lost, roles_left(snapshot, one.ensemble)))
    found.sort(key=lambda one: all(role.quorum for role in one[2]))
    refused = 0
    for number, (ensemble, lost, roles) in enumerate(found):
        share = remaining() / min(len(found) - number, _SHARES)
        again = place_again(
            env, store, ensemble, lost, max(share, 0), explained=refused < EXPLAINED
        )
        refused += again.verdict is Verdict.REFUSED
        yield EnsembleLoss(ensemble, tuple(sorted(lost)), roles, again)


def roles_left(snapshot: Snapshot, ensemble: Ensemble) -> tuple[RoleLeft, ...]:
    """What of each role runs, of those that have placed members: on closed hosts it does."""
    states = host_states(snapshot)
    placed, left = Counter[str](), Counter[str]()
    for name, place in locate_members(snapshot, ensemble).places.items():
        placed[name.role] += 1
        left[name.role] += states.state(snapshot.row_of[place.host]) is not HostState.DOWN
    return tuple(
        RoleLeft(one.name, placed[one.name], left[one.name], max(1, one.min_available))
        for one in ensemble.roles
        if placed[one.name]
    )


def _flavors(env: UseCaseEnvironment, request: SimulationRequest) -> list[str]:
    """Names of the flavors whose capacity is counted.

    Raises:
        NotFound: there is no such flavor. InvalidDescription: too many.
    """
    if len(request.flavors) > MOST_FLAVORS:
        raise InvalidDescription(
            f"capacity is counted for at most {MOST_FLAVORS} flavors", path="simulation.flavors"
        )
    if request.flavors:
        return [known_flavor(env.store, one).name for one in request.flavors]
    return [one.name for one in env.store.flavors(Page(limit=MOST_FLAVORS))]


def _fits(env: UseCaseEnvironment, caller: Caller, flavors: Sequence[str]) -> list[int]:
    """How many servers of each flavor fit, each by itself."""
    snapshot = env.store.snapshot()
    return [int(np.sum(servers_that_fit(env, caller, snapshot, one))) for one in flavors]


def _names(snapshot: Snapshot, rows: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted((snapshot.names[row] for row in rows), key=natural))
