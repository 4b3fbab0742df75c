"""Can these policies be met at all, and by how many domains at least?

Judged on an ideal fleet (see `ideal`), by a search of its own that any caller can afford: members
go one after the other, equal domains are tried once, and a primitive prunes as soon as the members
still to come cannot mend it. A placement found is checked by the policies' meanings. What
depends on a real fleet (`fence`, `ban`, `exclusive`, traits, sizes) is left to the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Phase, edges
from moorage.domain.errors import Contradiction, UnknownName
from moorage.domain.placement import Placement
from moorage.domain.topology import HOST, Level
from moorage.policies.ideal import IdealGround, ordered
from moorage.policies.ideal_search import GaveUp, search
from moorage.policies.registry import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.ensembles import MemberName, PolicyStatement, Role
    from moorage.policies.contract import Edge, Policy
    from moorage.policies.primitives import Primitive

FAN_OUT: Final = 16
"""Most domains tried under one domain of a higher level; alone, a level gets one per member."""


@dataclass(frozen=True, slots=True)
class Satisfiable:
    """The verdict. `least` counts domains per level; `proved` is False where search gave up."""

    least: Mapping[Level, int]
    proved: bool = True


@dataclass(frozen=True, slots=True)
class _Rule:
    statement: PolicyStatement
    policy: Policy
    edges: tuple[Edge, ...]


def judge(
    roles: Sequence[Role], members: Sequence[MemberName], statements: Sequence[PolicyStatement]
) -> Satisfiable:
    """Judge the required policies of a description.

    Raises:
        Contradiction: no placement on any fleet meets them; names a minimal set of policies.
        UnknownPolicy, InvalidDescription: a policy cannot be understood.
        UnknownName: a policy selects no member.
    """
    rules = [_rule(one, roles, members) for one in statements]
    rules = [rule for rule in rules if rule.statement.required and _at_creation(rule)]
    try:
        if not _holds(rules, members, _generous(rules, len(members))):
            raise _contradiction(rules, members)
        return Satisfiable(_least(rules, members))
    except GaveUp:
        return Satisfiable({}, proved=False)


def _at_creation(rule: _Rule) -> bool:
    return Phase.CREATE in rule.statement.phases


def _rule(
    statement: PolicyStatement, roles: Sequence[Role], members: Sequence[MemberName]
) -> _Rule:
    policy = parse(statement)
    names = {member.role for member in members} | {role.name for role in roles}
    for selector in statement.members:
        role = selector.role or (selector.member.role if selector.member else None)
        missing = selector.member is not None and selector.member not in members
        if (role is not None and role not in names) or missing:
            raise UnknownName("member", str(selector), path=f"policies.{statement.name}")
    return _Rule(statement, policy, edges(statement, roles, members))


def _levels(rules: Sequence[_Rule]) -> set[Level]:
    """Every level that some policy speaks of."""
    named = set()
    for rule in rules:
        level, tree = getattr(rule.policy, "level", None), getattr(rule.policy, "tree", None)
        if isinstance(level, str) and isinstance(tree, str):
            named.add(Level(tree, level))
    return named


def _generous(rules: Sequence[_Rule], members: int) -> dict[Level, int]:
    """So many domains that more cannot help (or as many as can be searched)."""
    counts: dict[Level, int] = {}
    for tree, names in ordered(_levels(rules)).items():
        each = members if len(names) == 1 else min(members, FAN_OUT)
        total = 1
        for name in names:
            total *= max(each, 1)
            counts[Level(tree, name)] = total
    return counts


def _holds(
    rules: Sequence[_Rule], members: Sequence[MemberName], counts: Mapping[Level, int]
) -> bool:
    """Whether some placement on so many domains meets the rules. GaveUp if undecided."""
    ground = IdealGround(ordered(_levels(rules) | set(counts)), counts, max(len(members), 1))
    posted: list[Primitive] = [
        primitive
        for rule in rules
        for edge in rule.edges
        for primitive in rule.policy.post(edge, ground, name=rule.statement.name, weight=None)
    ]
    found = search(ground, members, posted)
    if found is None:
        return False
    placement = Placement(ground, found)
    broken = [
        violation
        for rule in rules
        for edge in rule.edges
        for violation in rule.policy.violations(edge, placement)
        if _judged_offline(rule)
    ]
    assert not broken, f"the compilation says less than the meaning: {broken}"
    return True


def _judged_offline(rule: _Rule) -> bool:
    return isinstance(getattr(rule.policy, "level", None), str)


def _least(rules: Sequence[_Rule], members: Sequence[MemberName]) -> dict[Level, int]:
    """The least number of domains of each level, others being plenty; then of all together."""
    generous = _generous(rules, len(members))
    least = _nested({level: _least_of(rules, members, generous, level) for level in generous})
    # Each alone is not always enough: add domains, lowest level first, until all together are.
    for level in reversed(list(generous)):
        while least[level] < generous[level] and not _holds(rules, members, least):
            least = _nested({**least, level: least[level] + 1})
    hosts = _least_hosts(rules)
    widest = max(least.values(), default=1)
    if hosts > widest:
        least[Level("location", HOST)] = hosts
    return least


def _least_of(
    rules: Sequence[_Rule],
    members: Sequence[MemberName],
    generous: Mapping[Level, int],
    level: Level,
) -> int:
    """The least number of domains of one level; where search gives up, one more is tried."""
    for count in range(1, generous[level]):
        trial = _nested({**generous, level: count})
        try:
            if _holds(rules, members, trial):
                return count
        except GaveUp:
            continue
    return generous[level]


def _nested(counts: Mapping[Level, int]) -> dict[Level, int]:
    """No fewer lower domains than higher ones: each higher one needs one to exist."""
    found: dict[Level, int] = {}
    for tree, names in ordered(counts).items():
        most = 1
        for name in names:
            most = max(most, counts[Level(tree, name)])
            found[Level(tree, name)] = most
    return found


def _least_hosts(rules: Sequence[_Rule]) -> int:
    """Hosts that policies at host level take at least, counted one by one."""
    least = 1
    for rule in rules:
        if getattr(rule.policy, "level", None) != HOST:
            continue
        for edge in rule.edges:
            only = [_Rule(rule.statement, rule.policy, (edge,))]
            for hosts in range(1, len(edge) + 1):
                if _holds_on(only, edge, hosts):
                    least = max(least, hosts)
                    break
    return least


def _holds_on(rules: Sequence[_Rule], members: Sequence[MemberName], hosts: int) -> bool:
    ground = IdealGround({"location": ()}, {}, hosts)
    posted = [
        primitive
        for rule in rules
        for edge in rule.edges
        for primitive in rule.policy.post(edge, ground, name=rule.statement.name, weight=None)
    ]
    return search(ground, members, posted) is not None


def _contradiction(rules: Sequence[_Rule], members: Sequence[MemberName]) -> Contradiction:
    """A minimal set of rules that cannot hold together, by leaving out one after the other."""
    kept = list(rules)
    for rule in rules:
        others = [one for one in kept if one is not rule]
        if not _holds(others, members, _generous(others, len(members))):
            kept = others
    names = tuple(rule.statement.name for rule in kept)
    ground = IdealGround(
        ordered(_levels(kept)), _generous(kept, len(members)), max(len(members), 1)
    )
    needs = "  <->  ".join(
        f"{rule.statement.name} needs {rule.policy.needs(edge, ground)}"
        for rule in kept
        for edge in rule.edges[:1]
    )
    return Contradiction(f"conflict (minimal): {needs}", policies=names)
