"""Relaxations: changes to a request after which it fits, each shown by a real solve.

Candidates come from the conflicts alone: weaker parameters and growth as the policies propose
them, fewer members of the roles concerned, a trait or aggregate less. A required policy made
preferred is the last resort, tried only when nothing smaller helps. Nothing is named that
a solver has not placed and the meanings have not accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.ensembles import EnsembleChange, MemberName
from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.explain import Relaxation
from moorage.domain.period import SECOND
from moorage.engine.build import state
from moorage.engine.conflicts import AGGREGATES, POLICY, TRAITS, any_placement
from moorage.engine.counting import refuted
from moorage.engine.problem import Verdict
from moorage.engine.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.build import Built
    from moorage.engine.conflicts import Core, Oracle
    from moorage.engine.rules import Rule

MOST = 5
"""Relaxations named at most."""
MOST_SOLVES = 60
_FILTER_COST = 3
_SOFT_COST = 10
_FEWER_STEPS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change, its cost, and the request it leads to."""

    change: EnsembleChange
    cost: int
    request: EnsembleRequest


def relaxations(built: Built, cores: Sequence[Core], oracle: Oracle) -> tuple[Relaxation, ...]:
    """The cheapest changes that make the request fit, at most `MOST`.

    Of several values of one field only the nearest is named.
    """
    touched = _Touched(built, cores)
    first = sorted(
        chain(touched.fewer(), touched.weaker(), touched.filters()), key=lambda one: one.cost
    )
    return _verified(built, first, oracle) or _verified(built, touched.soft(), oracle)


def _verified(
    built: Built, candidates: Iterable[Candidate], oracle: Oracle
) -> tuple[Relaxation, ...]:
    found: dict[tuple[str, str, str, bool], Relaxation] = {}
    solves = 0
    for one in candidates:
        key = _direction(one.change)
        if key in found:
            continue
        if len(found) == MOST or solves == MOST_SOLVES or oracle.remaining() <= 0:
            break
        solves += 1
        if _fits(built, one.request, oracle):
            found[key] = Relaxation(change=one.change, cost=one.cost)
    return tuple(sorted(found.values(), key=lambda one: one.cost))


def _direction(change: EnsembleChange) -> tuple[str, str, str, bool]:
    """Changes of one field in one direction are steps on one way; the nearest is enough."""
    before, after = change.before, change.after
    up = isinstance(before, int) and isinstance(after, int) and after > before
    return change.subject, change.name, change.field, up


def _fits(built: Built, request: EnsembleRequest, oracle: Oracle) -> bool:
    """Whether a solver places the changed request, and the meanings accept the answer."""
    try:
        changed = state(request, built.terrain, kept=built.kept)
    except InvalidDescription:
        # A policy proposed a value that means nothing in this topology.
        return False
    problem = any_placement(changed.problem)
    if refuted(problem):
        return False
    limit = min(oracle.remaining(), oracle.longest)
    if limit <= 0:
        return False
    try:
        outcome = oracle.solver.solve(problem, time_limit=int(limit * SECOND), seed=oracle.seed)
    except Busy:
        return False
    if outcome.verdict is not Verdict.FEASIBLE or outcome.hosts is None:
        return False
    verify(changed.problem, changed.ground, changed.rules, outcome.hosts)
    return True


class _Touched:
    """The policies and roles that conflicts name, and the changes they suggest."""

    def __init__(self, built: Built, cores: Sequence[Core]) -> None:
        self.request = built.request
        parts = [one for core in cores for one in core.elements]
        named = {one.name for one in parts if one.kind == POLICY}
        self.rules = [rule for rule in built.rules if rule.statement.name in named]
        roles = {one.name for one in parts if one.kind != POLICY}
        roles |= {m.role for rule in self.rules for edge in rule.edges for m in edge}
        self.roles = [role for role in built.request.roles if role.name in roles]
        self.parts = {(one.kind, one.name) for one in parts}

    def weaker(self) -> Iterator[Candidate]:
        """What the policies propose themselves."""
        for rule in self.rules:
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
        more = tuple(MemberName(role, max(present) + 1 + i) for i in range(grow))
        change = EnsembleChange("member", role, "count", len(present), len(present) + grow)
        yield Candidate(change, cost, replace(self.request, members=(*self.request.members, *more)))

    def fewer(self) -> Iterator[Candidate]:
        """Leave out the last members of a role that stand nowhere yet; one must remain."""
        for role in self.roles:
            mine = sorted(m for m in self.request.members if m.role == role.name)
            moving = [m for m in mine if m not in self.request.fixed]
            for step in _FEWER_STEPS:
                if step > len(moving) or step >= len(mine):
                    break
                gone = set(moving[-step:])
                rest = tuple(m for m in self.request.members if m not in gone)
                change = EnsembleChange("member", role.name, "count", len(mine), len(mine) - step)
                yield Candidate(change, step, replace(self.request, members=rest))

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
            if (AGGREGATES, role.name) in self.parts:
                for i in range(len(role.member_of)):
                    rest = (*role.member_of[:i], *role.member_of[i + 1 :])
                    yield self._filtered(role, replace(role, member_of=rest), "member_of")

    def _filtered(self, old: Role, new: Role, field: str) -> Candidate:
        roles = tuple(new if role is old else role for role in self.request.roles)
        change = EnsembleChange(
            "member", old.name, field, _words(getattr(old, field)), _words(getattr(new, field))
        )
        return Candidate(change, _FILTER_COST, replace(self.request, roles=roles))

    def soft(self) -> Iterator[Candidate]:
        """Prefer what was required."""
        for rule in self.rules:
            old = rule.statement
            change = EnsembleChange("policy", old.name, "strength", "required", "preferred")
            yield Candidate(change, _SOFT_COST, self._with_policy(old, replace(old, weight=1)))

    def _with_policy(self, old: PolicyStatement, new: PolicyStatement) -> EnsembleRequest:
        policies = tuple(new if one is old else one for one in self.request.policies)
        return replace(self.request, policies=policies)


def _words(value: Iterable[object]) -> list[str]:
    """A filter as written in a description: any-of sets joined by `|`."""
    return [
        "|".join(sorted(one)) if isinstance(one, frozenset) else str(one)
        for one in (sorted(value, key=str) if isinstance(value, frozenset) else value)
    ]
