"""Relaxations: changes to a request after which it fits, each shown by a real solve.

Candidates come from the conflicts alone: weaker parameters and growth as the policies propose
them, fewer members of the roles concerned, a trait or aggregate less. A required policy made
preferred is the last resort, tried only when nothing smaller helps. Nothing is named that
a solver has not placed and the meanings have not accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.deadline import TimeExpired
from moorage.domain.disclosure import EXACT
from moorage.domain.ensembles import EnsembleChange, MemberName
from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.explain import Relaxation
from moorage.domain.period import SECOND
from moorage.engine.explain.conflicts import (
    AGGREGATES,
    CLOSED,
    DEVICES,
    POLICY,
    TRAITS,
    any_placement,
    without_group,
)
from moorage.engine.joint.build import state
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.explain.conflicts import Core, Oracle
    from moorage.engine.joint.build import Built
    from moorage.engine.joint.policy_rules import Rule

MOST = 5
"""Relaxations named at most."""
MOST_SOLVES = 60
_FILTER_COST = 3
_SOFT_COST = 10
_SINGLY = 4
"""Steps up to here are tried one by one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change, its cost, and the request it leads to.

    Costs between `beyond` and `cost` were skipped; `nearer` makes the candidate of such a cost.
    """

    change: EnsembleChange
    cost: int
    request: EnsembleRequest
    beyond: int | None = None
    nearer: Callable[[int], Candidate] | None = None


def relaxations(
    built: Built, cores: Sequence[Core], oracle: Oracle, rough: Disclosure = EXACT
) -> tuple[Relaxation, ...]:
    """The cheapest changes that make the request fit, at most `MOST`.

    Of several values of one field only the nearest is named, of those that are told.
    """
    touched = _Touched(built, cores, rough)

    def fits(request: EnsembleRequest) -> bool:
        return _fits(built, request, oracle)

    found = _verified(touched.first(), fits, oracle.left)
    return found or _verified(touched.soft(), fits, oracle.left)


def nearer(
    built: Built,
    cores: Sequence[Core],
    known: Sequence[Relaxation],
    granted: Callable[[EnsembleRequest], bool],
    remaining: Callable[[], float],
    rough: Disclosure = EXACT,
) -> tuple[Relaxation, ...]:
    """The same where others make room for the changed request, which its problem does not say.

    Args:
        built: the problem that has no answer.
        cores: the conflicts in it.
        known: what helps with everybody where he is.
        granted: whether a changed request is granted.
        remaining: seconds left; past them what is known stays.
        rough: how exactly they are told.
    """
    touched = _Touched(built, cores, rough)
    least = {_direction(one.change): one for one in known if one.cost < _SOFT_COST}

    def cheaper(one: Candidate) -> bool:
        key = _direction(one.change)
        return key not in least or one.cost < least[key].cost

    found = _verified(filter(cheaper, touched.first()), granted, remaining)
    if not (found or known):
        return _verified(touched.soft(), granted, remaining)
    if not (found or least):
        return tuple(known)
    least |= {_direction(one.change): one for one in found}
    return tuple(sorted(least.values(), key=lambda one: one.cost)[:MOST])


def _verified(
    candidates: Iterable[Candidate],
    fits: Callable[[EnsembleRequest], bool],
    remaining: Callable[[], float],
) -> tuple[Relaxation, ...]:
    found: dict[tuple[str, str, str, bool], Relaxation] = {}
    solves = 0
    for one in candidates:
        key = _direction(one.change)
        if key in found:
            continue
        if len(found) == MOST or solves == MOST_SOLVES or remaining() <= 0:
            break
        solves += 1
        if fits(one.request):
            least = _least(one, fits, remaining)
            found[key] = Relaxation(change=least.change, cost=least.cost)
    return tuple(sorted(found.values(), key=lambda one: one.cost))


def _least(
    hit: Candidate,
    fits: Callable[[EnsembleRequest], bool],
    remaining: Callable[[], float],
) -> Candidate:
    """The cheapest that fits between the last step that did not and one that does, by halves."""
    if hit.nearer is None or hit.beyond is None:
        return hit
    best, short = hit, hit.beyond
    while best.cost - short > 1 and remaining() > 0:
        middle = hit.nearer((best.cost + short) // 2)
        if fits(middle.request):
            best = middle
        else:
            short = middle.cost
    return best


def _direction(change: EnsembleChange) -> tuple[str, str, str, bool]:
    """Changes of one field in one direction are steps on one way; the nearest is enough."""
    before, after = change.before, change.after
    up = isinstance(before, int) and isinstance(after, int) and after > before
    return change.subject, change.name, change.field, up


def _fits(built: Built, request: EnsembleRequest, oracle: Oracle) -> bool:
    """Whether a solver places the changed request, and the meanings accept the answer."""
    try:
        changed = state(request, built.terrain, closed=built.closed)
    except (InvalidDescription, TimeExpired):
        # A policy proposed a value that means nothing in this topology, or time is up.
        return False
    problem = any_placement(changed.problem)
    if refuted(problem):
        return False
    limit = min(oracle.left(), oracle.longest)
    if limit <= 0:
        return False
    try:
        outcome = solve(oracle.solver, problem, time_limit=int(limit * SECOND), seed=oracle.seed)
    except Busy:
        return False
    if outcome.verdict is not Verdict.FEASIBLE or outcome.hosts is None:
        return False
    verify(changed, outcome.hosts)
    return True


class _Touched:
    """The policies and roles that conflicts name, and the changes they suggest."""

    def __init__(self, built: Built, cores: Sequence[Core], rough: Disclosure) -> None:
        self.request = built.request
        self.rough = rough
        parts = [one for core in cores for one in core.elements]
        named = {one.name for one in parts if one.kind == POLICY}
        self.rules = [rule for rule in built.rules if rule.statement.name in named]
        # What names places that who asks may not name, they cannot state otherwise either.
        topology, aggregates = built.terrain.topology, built.terrain.aggregates
        nameable = rough.names_of(topology) | frozenset(aggregates)
        self.restatable = [
            rule
            for rule in self.rules
            if rough.exact or frozenset(getattr(rule.policy, "domains", ())) <= nameable
        ]
        roles = {one.name for one in parts if one.kind not in {POLICY, CLOSED}}
        roles |= {m.role for rule in self.rules for edge in rule.edges for m in edge}
        self.roles = [role for role in built.request.roles if role.name in roles]
        self.parts = {(one.kind, one.name) for one in parts}

    def first(self) -> list[Candidate]:
        """Everything but the last resort, the cheapest first."""
        every = chain(self.fewer(), self.weaker(), self.filters())
        return sorted(every, key=lambda one: one.cost)

    def weaker(self) -> Iterator[Candidate]:
        """What the policies propose themselves."""
        for rule in self.restatable:
            seen: set[str] = set()
            for edge in rule.edges:
                for step in rule.policy.weaker(edge):
                    for one in (
                        *self._parameters(rule, step.cost, step.parameters),
                        *self._grown(rule, step.cost, step.grow),
                    ):
                        if str(one.change) not in seen:
                            seen.add(str(one.change))
                            yield one

    def _parameters(
        self, rule: Rule, cost: int, parameters: Mapping[str, object]
    ) -> Iterator[Candidate]:
        given = dict(parameters)
        if len(given) != 1:
            return
        ((name, after),) = given.items()
        before = getattr(rule.policy, name)
        before = sorted(before) if isinstance(before, frozenset) else before
        after = self.rough.changed(before, after)
        if after is None:
            return
        old = rule.statement
        new = replace(old, parameters=MappingProxyType({**old.parameters, name: after}))
        change = EnsembleChange("policy", old.name, name, before, after)
        yield Candidate(change, cost, self._with_policy(old, new))

    def _grown(self, rule: Rule, cost: int, grow: int) -> Iterator[Candidate]:
        roles = {member.role for edge in rule.edges for member in edge}
        if grow <= 0 or len(roles) != 1:
            return
        (role,) = roles
        present = [member.index for member in self.request.members if member.role == role]
        told = self.rough.changed(len(present), len(present) + grow)
        if not isinstance(told, int):
            return
        grow = told - len(present)
        more = tuple(MemberName(role, max(present) + 1 + i) for i in range(grow))
        change = EnsembleChange("member", role, "count", len(present), len(present) + grow)
        yield Candidate(change, cost, replace(self.request, members=(*self.request.members, *more)))

    def fewer(self) -> Iterator[Candidate]:
        """Leave out the last members of a role that stand nowhere yet; one must remain.

        Ever larger steps, up to all that may go. A member that a policy names stays, and so do
        those before it: without it the description would mean nothing.
        """
        named = {one.member for policy in self.request.policies for one in policy.members}
        for role in self.roles:
            mine = sorted(m for m in self.request.members if m.role == role.name)
            moving = [m for m in mine if m not in self.request.fixed]
            free = tuple(takewhile(lambda m: m not in named, reversed(moving)))
            free = free[: len(mine) - 1]
            if not self.rough.exact:
                for left in reversed(self.rough.sizes(len(mine))):
                    if left and len(mine) - left <= len(free):
                        yield self._without(role.name, len(mine), free, len(mine) - left)
                continue
            before = 0
            for step in _steps(len(free)):
                yield replace(self._without(role.name, len(mine), free, step), beyond=before)
                before = step

    def _without(self, role: str, count: int, free: tuple[MemberName, ...], step: int) -> Candidate:
        gone = frozenset(free[:step])
        rest = tuple(m for m in self.request.members if m not in gone)
        return Candidate(
            EnsembleChange("member", role, "count", count, count - step),
            step,
            replace(self.request, members=rest),
            nearer=(lambda other: self._without(role, count, free, other))
            if self.rough.exact
            else None,
        )

    def filters(self) -> Iterator[Candidate]:
        """One required or forbidden trait, or one aggregate rule, less."""
        for role in self.roles:
            if (TRAITS, role.name) in self.parts:
                for i in range(len(role.required)):
                    rest = (*role.required[:i], *role.required[i + 1 :])
                    yield self._filtered(role, replace(role, required=rest), "required")
                for trait in sorted(role.forbidden):
                    new = replace(role, forbidden=role.forbidden - {trait})
                    yield self._filtered(role, new, "forbidden")
            if (DEVICES, role.name) in self.parts:
                yield from self._fewer_devices(role)
            if (AGGREGATES, role.name) in self.parts:
                for i in range(len(role.member_of)):
                    rest = (*role.member_of[:i], *role.member_of[i + 1 :])
                    yield self._filtered(role, replace(role, member_of=rest), "member_of")

    def _fewer_devices(self, role: Role) -> Iterator[Candidate]:
        """A group that need not be beside the own resources, or one group less."""
        for group in role.groups:
            if group.beside:
                apart = tuple(
                    replace(one, beside=False) if one is group else one for one in role.groups
                )
                change = EnsembleChange(
                    "member", role.name, f"{group.name} same_subtree", before=True, after=False
                )
                yield self._changed(role, replace(role, groups=apart), change)
            change = EnsembleChange("member", role.name, f"{group.kind} {group.name}", 1, 0)
            yield self._changed(role, without_group(role, group.name), change)

    def _changed(self, old: Role, new: Role, change: EnsembleChange) -> Candidate:
        roles = tuple(new if role is old else role for role in self.request.roles)
        return Candidate(change, _FILTER_COST, replace(self.request, roles=roles))

    def _filtered(self, old: Role, new: Role, field: str) -> Candidate:
        change = EnsembleChange(
            "member", old.name, field, _words(getattr(old, field)), _words(getattr(new, field))
        )
        return self._changed(old, new, change)

    def soft(self) -> Iterator[Candidate]:
        """Prefer what was required."""
        for rule in self.restatable:
            old = rule.statement
            change = EnsembleChange("policy", old.name, "strength", "required", "preferred")
            yield Candidate(change, _SOFT_COST, self._with_policy(old, replace(old, weight=1)))

    def _with_policy(self, old: PolicyStatement, new: PolicyStatement) -> EnsembleRequest:
        policies = tuple(new if one is old else one for one in self.request.policies)
        restated = self.request.restated | {new.name}
        return replace(self.request, policies=policies, restated=restated)


def _steps(most: int) -> Iterator[int]:
    """1, 2, 3, 4, then doubled, and `most` at last: any size in few steps."""
    step = 1
    while step < most:
        yield step
        step = step + 1 if step < _SINGLY else 2 * step
    if most > 0:
        yield most


def _words(value: Iterable[object]) -> list[str]:
    """A filter as written in a description: any-of sets joined by `|`."""
    return [
        "|".join(sorted(one)) if isinstance(one, frozenset) else str(one)
        for one in (sorted(value, key=str) if isinstance(value, frozenset) else value)
    ]
