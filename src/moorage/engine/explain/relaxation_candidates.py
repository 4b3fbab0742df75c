"""Candidates for relaxations: changes of the policies and roles in the conflicts of a request.

They are weaker parameters and growth as the policies propose them, fewer members of the roles
concerned, one trait, aggregate or group less. Making a required policy preferred is the last
resort.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain import deadline
from moorage.domain.disclosure import EXACT
from moorage.domain.explain import EnsembleChange
from moorage.domain.member_names import MemberName
from moorage.engine.explain.elements import (
    AGGREGATES,
    CLOSED,
    DEVICES,
    POLICY,
    TRAITS,
    without_group,
)
from moorage.policies.proximity import Proximity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.explain.conflicts import Core
    from moorage.engine.joint.build import BuiltProblem
    from moorage.policies.rules import PolicyRule

_FILTER_COST = 3
SOFT_COST = 10
_FieldChange: TypeAlias = tuple[str, object, object]
"""A field, and its value before and after."""
_SINGLE_STEPS = 4
"""Steps up to here are tried one by one."""


@dataclass(frozen=True)
class RelaxationCandidate:
    """A change, its cost, and how to make the changed request.

    Costs between `failed_cost` and `cost` were skipped; `with_cost` makes the candidate of such a
    cost.
    """

    change: EnsembleChange
    cost: int
    make: Callable[[], EnsembleRequest]
    failed_cost: int | None = None
    with_cost: Callable[[int], RelaxationCandidate] | None = None

    @cached_property
    def request(self) -> EnsembleRequest:
        """The changed request, made when it is tried.

        A role of 5,000 members has as many candidates, of which few are tried.
        """
        return self.make()


@dataclass(frozen=True)
class ChangeTerms:
    """Which changes may be proposed to whom."""

    disclosure: Disclosure = EXACT
    present: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> its present count: a request to resize it is not answered with that count, nor one to
    let it grow with a smaller one."""


ANY_CHANGE: Final = ChangeTerms()


class ChangeProposals:
    """The policies and roles in the conflicts, and the candidate changes to them."""

    def __init__(self, built: BuiltProblem, cores: Sequence[Core], terms: ChangeTerms) -> None:
        self.request = built.request
        self.disclosure = disclosure = terms.disclosure
        self.present = terms.present
        parts = [one for core in cores for one in core.elements]
        named = {one.name for one in parts if one.kind == POLICY}
        self.rules = [rule for rule in built.rules if rule.statement.name in named]
        # Policies with names that the caller may not see cannot be changed by the caller.
        self.topology = topology = built.terrain.topology
        aggregates = built.terrain.aggregates
        nameable = disclosure.names_of(topology) | frozenset(aggregates)
        self.changeable_rules = [
            rule
            for rule in self.rules
            if disclosure.exact or frozenset(getattr(rule.policy, "domains", ())) <= nameable
        ]
        roles = {one.name for one in parts if one.kind not in {POLICY, CLOSED}}
        roles |= {m.role for rule in self.rules for edge in rule.edges for m in edge}
        self.roles = [role for role in built.request.roles if role.name in roles]
        self.elements = {(one.kind, one.name) for one in parts}

    def small_changes(self) -> list[RelaxationCandidate]:
        """All candidates but the last resort, the cheapest first."""
        every = chain(self.fewer_members(_steps), self.weaker_policies(), self.fewer_filters())
        return self._allowed(every)

    def skipped_counts(self) -> list[RelaxationCandidate]:
        """Fewer members by the steps that are not among the small changes."""

        def skipped(most: int) -> Iterator[int]:
            yield from sorted(set(range(1, most)) - set(_steps(most)))

        if not self.disclosure.exact:
            return []
        # All around them have been tried.
        alone = (replace(one, failed_cost=None) for one in self.fewer_members(skipped))
        return self._allowed(alone)

    def _allowed(self, candidates: Iterable[RelaxationCandidate]) -> list[RelaxationCandidate]:
        """The candidates that may be proposed, the cheapest first."""
        allowed = (one for one in candidates if not self._undoes(one.change))
        return sorted(allowed, key=lambda one: one.cost)

    def _undoes(self, change: EnsembleChange) -> bool:
        """Whether a role that is to grow would keep its present count, or have fewer."""
        present = self.present.get(change.name)
        if (change.subject, change.field) != ("member", "count") or present is None:
            return False
        before, after = change.before, change.after
        assert isinstance(before, int)
        assert isinstance(after, int)
        return after == present or after < present < before

    def weaker_policies(self) -> Iterator[RelaxationCandidate]:
        """The changes that policies propose (`Policy.weaker`), and nearness at higher levels."""
        for rule in self.changeable_rules:
            yield from self._higher_levels(rule)
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
        self, rule: PolicyRule, cost: int, parameters: Mapping[str, object]
    ) -> Iterator[RelaxationCandidate]:
        given = dict(parameters)
        if len(given) != 1:
            return
        ((name, after),) = given.items()
        before = getattr(rule.policy, name)
        before = sorted(before) if isinstance(before, frozenset) else before
        after = self.disclosure.changed(before, after)
        if after is None:
            return
        old = rule.statement
        new = replace(old, parameters=MappingProxyType({**old.parameters, name: after}))
        change = EnsembleChange("policy", old.name, name, before, after)
        yield RelaxationCandidate(change, cost, partial(self._with_policy, old, new))

    def _higher_levels(self, rule: PolicyRule) -> Iterator[RelaxationCandidate]:
        if not isinstance(rule.policy, Proximity):
            return
        level, levels = rule.policy.level, self.topology.upwards(rule.policy.tree)
        above = levels[levels.index(level) + 1 :] if level in levels else ()
        for cost, higher in enumerate(above, start=1):
            yield from self._parameters(rule, cost, {"level": higher})

    def _grown(self, rule: PolicyRule, cost: int, grow: int) -> Iterator[RelaxationCandidate]:
        roles = {member.role for edge in rule.edges for member in edge}
        if grow <= 0 or len(roles) != 1:
            return
        (role,) = roles
        present = [member.index for member in self.request.members if member.role == role]
        count = self.disclosure.changed(len(present), len(present) + grow)
        if not isinstance(count, int):
            return
        grow = count - len(present)
        more = tuple(MemberName(role, max(present) + 1 + i) for i in range(grow))
        change = EnsembleChange("member", role, "count", len(present), len(present) + grow)
        members = (*self.request.members, *more)
        yield RelaxationCandidate(change, cost, partial(replace, self.request, members=members))

    def fewer_members(self, steps: Callable[[int], Iterator[int]]) -> Iterator[RelaxationCandidate]:
        """Leave out the last members of a role that are not placed yet.

        One must remain, and as many as must be up.

        `steps` gives how many, of at most so many that may be left out. A member that a policy
        names stays, and so do those before it: without it the description would be invalid.
        """
        named = {one.member for policy in self.request.policies for one in policy.members}
        for role in self.roles:
            mine = sorted(m for m in self.request.members if m.role == role.name)
            moving = [m for m in mine if m not in self.request.fixed]
            free = tuple(takewhile(lambda m: m not in named, reversed(moving)))
            free = free[: max(len(mine) - max(role.min_available, 1), 0)]
            if not self.disclosure.exact:
                for left in reversed(self.disclosure.sizes(len(mine))):
                    if left and len(mine) - left <= len(free):
                        yield self._without(role.name, len(mine), free, len(mine) - left)
                continue
            before = 0
            for step in steps(len(free)):
                deadline.check()
                yield replace(self._without(role.name, len(mine), free, step), failed_cost=before)
                before = step

    def _without(
        self, role: str, count: int, free: tuple[MemberName, ...], step: int
    ) -> RelaxationCandidate:
        def left_out() -> EnsembleRequest:
            gone = frozenset(free[:step])
            rest = tuple(m for m in self.request.members if m not in gone)
            return replace(self.request, members=rest)

        return RelaxationCandidate(
            EnsembleChange("member", role, "count", count, count - step),
            step,
            left_out,
            with_cost=(lambda other: self._without(role, count, free, other))
            if self.disclosure.exact
            else None,
        )

    def fewer_filters(self) -> Iterator[RelaxationCandidate]:
        """One required or forbidden trait, or one aggregate rule, less, of one choice of a role."""
        for role in self.roles:
            for number, choice in enumerate(role.choices):
                for fields, new in self._fewer_of(role.name, choice):
                    yield self._changed(role, number, new, *fields)

    def _fewer_of(self, name: str, role: Role) -> Iterator[tuple[_FieldChange, Role]]:
        """What a choice of a role may do without: the change of a field, and the changed choice."""
        if (TRAITS, name) in self.elements:
            for i in range(len(role.required)):
                rest = (*role.required[:i], *role.required[i + 1 :])
                yield _filtered(role, replace(role, required=rest), "required")
            for trait in sorted(role.forbidden):
                yield _filtered(
                    role, replace(role, forbidden=role.forbidden - {trait}), "forbidden"
                )
            for trait in sorted(role.root_required):
                new = replace(role, root_required=role.root_required - {trait})
                yield _filtered(role, new, "root_required")
        if (DEVICES, name) in self.elements:
            yield from _fewer_devices(role)
        if (AGGREGATES, name) in self.elements:
            for i in range(len(role.member_of)):
                rest = (*role.member_of[:i], *role.member_of[i + 1 :])
                yield _filtered(role, replace(role, member_of=rest), "member_of")

    def _changed(
        self, role: Role, number: int, new: Role, field: str, before: object, after: object
    ) -> RelaxationCandidate:
        others = list(role.alternatives)
        if number:
            others[number - 1] = new
            new = role
        changed = replace(new, alternatives=tuple(others))
        roles = tuple(changed if one is role else one for one in self.request.roles)
        which = number if role.alternatives else None
        change = EnsembleChange("member", role.name, field, before, after, which)
        return RelaxationCandidate(
            change, _FILTER_COST, partial(replace, self.request, roles=roles)
        )

    def preferred_policies(self) -> Iterator[RelaxationCandidate]:
        """Make a required policy preferred."""
        for rule in self.changeable_rules:
            old = rule.statement
            change = EnsembleChange("policy", old.name, "strength", "required", "preferred")
            preferred = replace(old, weight=1)
            yield RelaxationCandidate(change, SOFT_COST, partial(self._with_policy, old, preferred))

    def _with_policy(self, old: PolicyStatement, new: PolicyStatement) -> EnsembleRequest:
        policies = tuple(new if one is old else one for one in self.request.policies)
        restated = self.request.restated | {new.name}
        return replace(self.request, policies=policies, restated=restated)


def _fewer_devices(role: Role) -> Iterator[tuple[_FieldChange, Role]]:
    """A group that need not be in the subtree of the own resources, or one group less."""
    for group in role.groups:
        if group.beside:
            apart = tuple(
                replace(one, beside=False) if one is group else one for one in role.groups
            )
            yield (f"{group.name} same_subtree", True, False), replace(role, groups=apart)
        yield (f"{group.kind} {group.name}", 1, 0), without_group(role, group.name)


def _filtered(old: Role, new: Role, field: str) -> tuple[_FieldChange, Role]:
    before, after = (_filter_texts(getattr(one, field)) for one in (old, new))
    return (field, before, after), new


def _steps(most: int) -> Iterator[int]:
    """1, 2, 3, 4, then doubled, and finally `most`."""
    step = 1
    while step < most:
        yield step
        step = step + 1 if step < _SINGLE_STEPS else 2 * step
    if most > 0:
        yield most


def _filter_texts(value: Iterable[object]) -> list[str]:
    """A filter as written in a description: any-of sets joined by `|`."""
    return [
        "|".join(sorted(one)) if isinstance(one, frozenset) else str(one)
        for one in (sorted(value, key=str) if isinstance(value, frozenset) else value)
    ]
