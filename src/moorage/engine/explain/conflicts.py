"""Minimal conflicts: which parts of a request cannot hold together on this fleet.

A request is taken apart into elements: each required policy, and for each role with members to
place its resources, its devices (its groups), its traits and its aggregates. Setting elements
aside only ever makes a request easier, because eligibility is judged by the whole request
throughout. So deletion finds a minimal set: drop what is not needed for the proof of
infeasibility, keep what is. Counting settles most questions, the solver the rest; a question left
open makes a set `minimal=False`. Hosts that may not be used, such as those that another ensemble
keeps to itself, are elements as well: so a shortage that they make is told as theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.ensembles import Phase
from moorage.domain.errors import Busy
from moorage.domain.explain import Element, closed_hosts_named
from moorage.domain.period import SECOND
from moorage.engine.joint.build import build_on_terrain, reason_of
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
    """Answers whether a problem has any placement, within a budget."""

    solver: SupportsSolve
    remaining: Callable[[], float]
    """Seconds left for the whole explanation."""
    seed: int = 0
    max_seconds: float = 2.0
    """Seconds for a single question at most."""

    def seconds_left(self) -> float:
        """Seconds left for the whole explanation, and for the work that it is part of."""
        return deadline.left(self.remaining())

    def feasible_if_time(self, make: Callable[[], Problem]) -> bool | None:
        """The same of a problem that is made only if there is time left, and in that time."""
        if self.seconds_left() <= 0:
            return None
        try:
            return self.feasible(make())
        except TimeExpired:
            return None

    def feasible(self, problem: Problem) -> bool | None:
        """True with an answer, False with a proof, None when neither was found in time."""
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
    """The same problem where nothing is preferred: only whether there is an answer counts."""
    required = tuple(one for one in problem.primitives if one.weight is None)
    return replace(problem, primitives=required, objective=None)


def elements(built: BuiltProblem) -> tuple[Element, ...]:
    """The removable parts of a request; those a reader understands last come first.

    Deletion tries to do without the first ones first, so among several minimal conflicts one
    in terms of policies is preferred.
    """
    request = built.request
    moving = {member.role for member in request.members if member not in request.fixed}
    roles = [role for role in request.roles if role.name in moving]
    return (
        *dict.fromkeys(_closed_element(key) for key, uuids in built.closed.items() if uuids),
        *(Element(RESOURCES, role.name) for role in roles if role.resources),
        *(Element(DEVICES, role.name) for role in roles if role.groups),
        *(Element(AGGREGATES, role.name) for role in roles if role.member_of),
        *(Element(TRAITS, role.name) for role in roles if role.required or role.forbidden),
        *(
            Element(POLICY, rule.statement.name)
            for rule in built.rules
            if rule.statement.required and rule.edges
        ),
    )


def without_elements(built: BuiltProblem, aside: Elements) -> BuiltProblem:
    """The request with these elements set aside; what its other policies mean stays."""
    changed, closed = _request_without(built, aside), _remaining_closed_hosts(built, aside)
    return build_on_terrain(changed, built.terrain, closed=closed, ground=built.ground)


def _problem_of(built: BuiltProblem, request: EnsembleRequest) -> Callable[[], Problem]:
    """The problem of a request that asks for less, to be made when it is wanted."""
    return lambda: (
        build_on_terrain(request, built.terrain, closed=built.closed, ground=built.ground).problem
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
            and Phase.CREATE in one.phases
            and Element(POLICY, one.name) not in aside
        ),
    )


def _remaining_closed_hosts(built: BuiltProblem, aside: Elements) -> dict[str, frozenset[str]]:
    """The hosts that stay closed when these elements are set aside."""
    return {key: uuids for key, uuids in built.closed.items() if _closed_element(key) not in aside}


def _closed_element(key: str) -> Element:
    """The hosts of one key of `Built.closed`, as an element."""
    return Element(CLOSED, closed_hosts_named(reason_of(key)))


def _role_without(role: Role, aside: Elements) -> Role:
    if Element(RESOURCES, role.name) in aside:
        role = replace(role, resources=MappingProxyType({}))
    if Element(TRAITS, role.name) in aside:
        role = replace(role, required=(), forbidden=frozenset())
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
    """Finds disjoint minimal conflicts in one request; remembers what it has asked."""

    built: BuiltProblem
    oracle: Oracle
    _known: dict[Elements, bool | None] = field(default_factory=dict)

    def feasible(self, aside: Elements) -> bool | None:
        """Whether the request has a placement once these are set aside."""
        if aside not in self._known:
            self._known[aside] = self.oracle.feasible_if_time(
                lambda: without_elements(self.built, aside).problem
            )
        return self._known[aside]

    def conflicts(self) -> Iterator[Core]:
        """Disjoint conflicts, until what is left is feasible or cannot be settled.

        Each is set aside as a whole before the next is looked for. Since they are disjoint,
        setting aside fewer of them leaves one intact, so all of them are needed.
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
        """Drop ever smaller runs of elements while the rest stays a conflict."""
        needed: set[Element] = set()
        minimal = True
        size = max(len(active) // 2, 1)
        while True:
            for run in _runs([one for one in active if one not in needed], size):
                rest = [one for one in active if one not in run]
                verdict = self.feasible(frozenset(every) - frozenset(rest))
                if verdict is False:
                    active = rest
                elif size == 1:
                    needed |= set(run)
                    minimal &= verdict is True
            if size == 1:
                return Core(tuple(active), minimal)
            size = max(size // 2, 1)


def binding_classes(built: BuiltProblem, core: Core, oracle: Oracle) -> dict[str, frozenset[str]]:
    """For each role whose resources are in a conflict: the classes that the conflict turns on.

    Under `groups_key`, for each role whose devices are: the names of such groups.

    Those that remain when one after the other is left out while nothing fits all the same.
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
    """The problem where roles take of these classes only, to be made when it is wanted.

    There may be thousands of roles: nothing is copied for a question that is not put any more.
    """

    def make() -> Problem:
        roles = tuple(_limited_to(role, needed.get(role.name)) for role in bare.roles)
        return _problem_of(built, replace(bare, roles=roles))()

    return make


def groups_key(role: str) -> str:
    """Where `binding` says which of a role's groups a conflict turns on."""
    return f"{DEVICES}:{role}"


def _binding_groups(
    built: BuiltProblem, bare: EnsembleRequest, core: Core, oracle: Oracle
) -> dict[str, frozenset[str]]:
    """The groups that remain when one after the other is left out while nothing fits."""
    found: dict[str, frozenset[str]] = {}
    for element in core.elements:
        if element.kind != DEVICES:
            continue
        role = next(one for one in bare.roles if one.name == element.name)
        for group in role.groups:
            less = without_group(role, group.name)
            roles = tuple(less if one.name == role.name else one for one in bare.roles)
            asked = replace(bare, roles=roles)
            if less.groups and oracle.feasible_if_time(_problem_of(built, asked)) is False:
                role, bare = less, asked
        found[groups_key(role.name)] = frozenset(one.name for one in role.groups)
    return found


def without_group(role: Role, name: str) -> Role:
    """The role with one group less."""
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
    """The request on the same hosts with nobody else on them."""
    return build_on_terrain(request, built.terrain.without_bookings())
