"""Minimal conflicts: which parts of a request cannot hold together on this fleet.

A request is divided into elements: each required policy, and for each role with members to place
its resources, its devices (its groups), its traits and its aggregates. Removing elements never
makes a request harder, because eligibility stays that of the whole request. So a deletion filter
finds a minimal conflict: it drops every element that the proof of infeasibility does not need.
Counting decides most questions, the solver the rest; an undecided question makes a conflict
`minimal=False`. Closed hosts, such as those exclusive to another ensemble, are elements as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.errors import Busy
from moorage.domain.explain import Element, closed_hosts_named
from moorage.domain.period import SECOND
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.host_filters import reason_of
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from moorage.domain.ensembles import Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem, SupportsSolve

POLICY = "policy"
RESOURCES = "resources"
TRAITS = "traits"
AGGREGATES = "aggregates"
DEVICES = "devices"
CLOSED = "closed"

Elements = frozenset[Element]


@dataclass(frozen=True, eq=False)
class Oracle:
    """Decides whether a problem has any placement, within a time budget."""

    solver: SupportsSolve
    remaining: Callable[[], float]
    """Seconds left for the whole explanation."""
    seed: int = 0
    max_seconds: float = 2.0
    """Seconds for a single question at most."""

    def seconds_left(self) -> float:
        """Seconds left for the whole explanation and of the current work's deadline."""
        return deadline.left(self.remaining())

    def feasible_if_time(self, make: Callable[[], Problem]) -> bool | None:
        """As `feasible`, for a problem that is built only if there is time left."""
        if self.seconds_left() <= 0:
            return None
        try:
            return self.feasible(make())
        except TimeExpired:
            return None

    def refuted_if_time(self, make: Callable[[], Problem]) -> bool:
        """Whether counting alone proves that a problem has no placement."""
        if self.seconds_left() <= 0:
            return False
        try:
            return refuted(any_placement(make()))
        except TimeExpired:
            return False

    def feasible(self, problem: Problem) -> bool | None:
        """True with a placement, False with a proof, None if neither was found in time."""
        bare = any_placement(problem)
        if refuted(bare):
            return False
        seconds = min(self.seconds_left(), self.max_seconds)
        if seconds <= 0:
            return None
        try:
            limit = int(seconds * SECOND)
            outcome = solve(self.solver, bare, time_limit=limit, seed=self.seed)
        except Busy:
            return None
        known = {Verdict.FEASIBLE: True, Verdict.INFEASIBLE: False}
        return known.get(outcome.verdict)


def any_placement(problem: Problem) -> Problem:
    """The problem without preferences and objective, to decide feasibility only."""
    required = tuple(one for one in problem.primitives if one.weight is None)
    return replace(problem, primitives=required, objective=None)


def elements(built: BuiltProblem) -> tuple[Element, ...]:
    """The removable elements of a request, in the order in which deletion tries to drop them.

    Policies come last, so among several minimal conflicts one of policies is preferred, unless
    counting shows another one.
    """
    request = built.request
    moving = {member.role for member in request.members if member not in request.fixed}
    roles = [role for role in request.roles if role.name in moving]
    return (
        *dict.fromkeys(_closed_element(key) for key, uuids in built.closed.items() if uuids),
        *(Element(RESOURCES, one) for one in _with_choice(roles, lambda role: role.resources)),
        *(Element(DEVICES, one) for one in _with_choice(roles, lambda role: role.groups)),
        *(Element(AGGREGATES, one) for one in _with_choice(roles, lambda role: role.member_of)),
        *(Element(TRAITS, one) for one in _with_choice(roles, _names_traits)),
        *(
            Element(POLICY, rule.statement.name)
            for rule in built.rules
            if rule.statement.required and rule.edges
        ),
    )


def _with_choice(roles: Iterable[Role], asks: Callable[[Role], object]) -> Iterator[str]:
    """The names of the roles of which some choice asks for something."""
    return (role.name for role in roles if any(asks(one) for one in role.choices))


def without_elements(built: BuiltProblem, aside: Elements) -> BuiltProblem:
    """The request without these elements; the meaning of its other policies stays."""
    changed, closed = _request_without(built, aside), _remaining_closed_hosts(built, aside)
    return build_on_terrain(changed, built.terrain, closed=closed, policy_view=built.policy_view)


def _problem_of(built: BuiltProblem, request: EnsembleRequest) -> Callable[[], Problem]:
    """A function that builds the problem of a request with fewer requirements."""
    return lambda: (
        build_on_terrain(
            request, built.terrain, closed=built.closed, policy_view=built.policy_view
        ).problem
    )


def _request_without(built: BuiltProblem, aside: Elements) -> EnsembleRequest:
    request = built.request
    return replace(
        request,
        roles=tuple(_role_without(role, aside) for role in request.roles),
        policies=tuple(
            one
            for one in request.policies
            if one.required
            and not request.phases.isdisjoint(one.phases)
            and Element(POLICY, one.name) not in aside
        ),
    )


def _remaining_closed_hosts(built: BuiltProblem, aside: Elements) -> dict[str, frozenset[str]]:
    """The closed hosts that remain without these elements."""
    return {key: uuids for key, uuids in built.closed.items() if _closed_element(key) not in aside}


def _closed_element(key: str) -> Element:
    """The element of one key of `BuiltProblem.closed`."""
    return Element(CLOSED, closed_hosts_named(reason_of(key)))


def _names_traits(role: Role) -> bool:
    return bool(role.required or role.forbidden or role.root_required)


def _role_without(role: Role, aside: Elements) -> Role:
    """The role, and each of its alternatives, without these elements."""
    if role.alternatives:
        others = tuple(_role_without(one, aside) for one in role.alternatives)
        return replace(_role_without(replace(role, alternatives=()), aside), alternatives=others)
    if Element(RESOURCES, role.name) in aside:
        role = replace(role, resources=MappingProxyType({}))
    if Element(TRAITS, role.name) in aside:
        role = replace(role, required=(), forbidden=frozenset(), root_required=frozenset())
    if Element(DEVICES, role.name) in aside:
        role = replace(role, groups=(), same_subtree=(), isolate=False)
    if Element(AGGREGATES, role.name) in aside:
        role = replace(role, member_of=())
    return role


@dataclass(frozen=True, slots=True)
class Core:
    """Elements that cannot hold together; `minimal` when every proper subset provably can."""

    elements: tuple[Element, ...]
    minimal: bool


@dataclass(eq=False)
class DeletionFilter:
    """Finds disjoint minimal conflicts of one request by deletion; caches the oracle's answers."""

    built: BuiltProblem
    oracle: Oracle
    _known: dict[Elements, bool | None] = field(default_factory=dict)

    def feasible(self, aside: Elements) -> bool | None:
        """Whether the request has a placement without these elements."""
        if aside not in self._known:
            verdict = self._implied(aside)
            if verdict is None:
                verdict = self.oracle.feasible_if_time(self._problem_without(aside))
            self._known[aside] = verdict
        return self._known[aside]

    def _refuted(self, aside: Elements) -> bool:
        """Whether counting, or another answer, proves: no placement even without these elements."""
        if aside not in self._known:
            verdict = self._implied(aside)
            if verdict is None and self.oracle.refuted_if_time(self._problem_without(aside)):
                verdict = False
            if verdict is not None:
                self._known[aside] = verdict
        return self._known.get(aside) is False

    def _problem_without(self, aside: Elements) -> Callable[[], Problem]:
        return lambda: without_elements(self.built, aside).problem

    def _implied(self, aside: Elements) -> bool | None:
        """What other answers imply, as fewer elements never make a request harder."""
        for known, verdict in self._known.items():
            if verdict is True and known <= aside:
                return True
            if verdict is False and aside <= known:
                return False
        return None

    def conflicts(self) -> Iterator[Core]:
        """Disjoint conflicts, until the rest is feasible or undecided.

        Each conflict is removed as a whole before the next search. As they are disjoint, all of
        them must be resolved to make the request feasible.
        """
        every = elements(self.built)
        aside: Elements = frozenset()
        while self.feasible(aside) is False:
            core = self._shrink([one for one in every if one not in aside], every)
            if not core.elements:
                return
            yield core
            aside |= frozenset(core.elements)

    def _shrink(self, active: list[Element], every: tuple[Element, ...]) -> Core:
        """Shrink a conflict: drop ever smaller runs of elements while the rest is infeasible.

        If counting shows the conflict, elements are first dropped as long as it does: that takes a
        fraction of a search that finds a placement. Mostly each element that is left then is
        needed, so they are tried one by one.
        """
        whole, counted, size = frozenset(every), active, len(active) // 2
        if self.oracle.refuted_if_time(self._problem_without(whole - frozenset(active))):
            counted = _dropped(active, lambda rest: self._refuted(whole - rest), size)
            size = 1
        core = _dropped(counted, lambda rest: self.feasible(whole - rest) is False, size)
        without_one = (whole - frozenset(core) | {one} for one in core)
        return Core(tuple(core), all(self._implied(aside) is True for aside in without_one))


def _dropped(
    active: list[Element], infeasible: Callable[[Elements], bool], size: int
) -> list[Element]:
    """What is left of a conflict after dropping ever smaller runs of it, the first of this size."""
    while True:
        size = max(size, 1)
        for run in _runs(active, size):
            rest = [one for one in active if one not in run]
            if infeasible(frozenset(rest)):
                active = rest
        if size == 1:
            return active
        size //= 2


def binding_classes(built: BuiltProblem, core: Core, oracle: Oracle) -> dict[str, frozenset[str]]:
    """Role -> the resource classes that a conflict needs, for roles with resources in it.

    Under `groups_key(role)`, for roles with devices in it: the names of the groups. Found by
    deletion: classes are dropped one by one while the problem stays infeasible.
    """
    conflict = frozenset(core.elements)
    aside = frozenset(elements(built)) - conflict
    bare = _request_without(built, aside)
    built = replace(built, closed=_remaining_closed_hosts(built, aside))
    needed = {
        role.name: frozenset(role.resources)
        for role in bare.roles
        if Element(RESOURCES, role.name) in conflict
    }
    for name in tuple(needed):
        for one in sorted(needed[name], reverse=True):
            less = needed[name] - {one}
            if (
                less
                and oracle.feasible_if_time(
                    _problem_with_classes(built, bare, needed | {name: less})
                )
                is False
            ):
                needed[name] = less
    return needed | _binding_groups(built, bare, core, oracle)


def _problem_with_classes(
    built: BuiltProblem, bare: EnsembleRequest, needed: Mapping[str, frozenset[str]]
) -> Callable[[], Problem]:
    """A function that builds the problem in which roles take only these classes.

    There may be thousands of roles: they are copied only if the problem is built.
    """

    def make() -> Problem:
        roles = tuple(_limited_to(role, needed.get(role.name)) for role in bare.roles)
        return _problem_of(built, replace(bare, roles=roles))()

    return make


def groups_key(role: str) -> str:
    """The key in the result of `binding_classes` for the groups of a role."""
    return f"{DEVICES}:{role}"


def _binding_groups(
    built: BuiltProblem, bare: EnsembleRequest, core: Core, oracle: Oracle
) -> dict[str, frozenset[str]]:
    """The groups that a conflict needs, found by deletion."""
    found: dict[str, frozenset[str]] = {}
    for element in core.elements:
        if element.kind != DEVICES:
            continue
        role = next(one for one in bare.roles if one.name == element.name)
        for group in role.groups:
            less = without_group(role, group.name)
            roles = tuple(less if one.name == role.name else one for one in bare.roles)
            reduced = replace(bare, roles=roles)
            if less.groups and oracle.feasible_if_time(_problem_of(built, reduced)) is False:
                role, bare = less, reduced
        found[groups_key(role.name)] = frozenset(one.name for one in role.groups)
    return found


def without_group(role: Role, name: str) -> Role:
    """The role without one group."""
    return replace(
        role,
        groups=tuple(one for one in role.groups if one.name != name),
        same_subtree=tuple(names - {name} for names in role.same_subtree),
    )


def _limited_to(role: Role, classes: frozenset[str] | None) -> Role:
    if classes is None:
        return role
    kept = {name: amount for name, amount in role.resources.items() if name in classes}
    return replace(role, resources=MappingProxyType(kept))


def _runs(items: list[Element], size: int) -> list[list[Element]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def on_empty_hosts(request: EnsembleRequest, built: BuiltProblem) -> BuiltProblem:
    """The request built on the same hosts without any bookings."""
    return build_on_terrain(request, built.terrain.without_bookings())
