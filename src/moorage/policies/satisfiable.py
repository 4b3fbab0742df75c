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
from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.ideal import IdealGround, ordered, usual_rank
from moorage.policies.ideal_search import GaveUp, search
from moorage.policies.registry import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.ensembles import MemberName, PolicyStatement, Role
    from moorage.policies.contract import Edge, Policy

FAN_OUT: Final = 16
"""Most domains tried under one domain of a higher level; alone, a level gets one per member."""
MOST_LEAVES: Final = 4_000
"""Largest ideal fleet, in combinations of lowest domains."""
ATTEMPTS: Final = 12
"""Domains added one by one before plenty is tried."""


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
    least = _nested(_alone(rules))
    for counts in _growing(least, _generous(rules, len(members))):
        try:
            if _holds(rules, members, counts):
                return Satisfiable(_with_hosts(counts, rules))
        except GaveUp:
            continue
    return _at_last(rules, members)


def _at_last(rules: Sequence[_Rule], members: Sequence[MemberName]) -> Satisfiable:
    """With plenty of everything: a contradiction, or nothing that can be settled here."""
    try:
        if not _holds(rules, members, _generous(rules, len(members))):
            raise _contradiction(rules, members)
    except GaveUp:
        pass
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
    return {level for rule in rules if (level := _level(rule)) is not None}


def _generous(rules: Sequence[_Rule], members: int) -> dict[Level, int]:
    """So many domains that more cannot help (or as many as can be searched)."""
    levels = _levels(rules)
    above_hosts = [level for level in levels if level.name != HOST]
    each = max(1, members if len(above_hosts) < 2 else min(members, FAN_OUT))  # noqa: PLR2004
    while each > 2 and each ** len(above_hosts) > MOST_LEAVES:  # noqa: PLR2004
        each -= 1
    counts: dict[Level, int] = {}
    for tree, names in ordered(levels).items():
        total = 1
        for name in names:
            total *= each
            counts[Level(tree, name)] = total
    return counts


def _growing(
    least: Mapping[Level, int], generous: Mapping[Level, int]
) -> Iterator[Mapping[Level, int]]:
    """What each policy needs by itself; then more of one level, the lowest first; then of all."""
    yield least
    for level in sorted(generous, key=_place):
        for more in range(1, min(ATTEMPTS, generous[level] - least[level]) + 1):
            yield _nested({**least, level: least[level] + more})
    for more in range(1, ATTEMPTS + 1):
        yield _nested({level: min(count + more, generous[level]) for level, count in least.items()})


def _place(level: Level) -> tuple[bool, str, tuple[int, str]]:
    """The default tree before others, lower levels before higher ones."""
    rank, name = usual_rank(level.name)
    return (level.tree != DEFAULT_TREE, level.tree, (-rank, name))


def _alone(rules: Sequence[_Rule]) -> dict[Level, int]:
    """Level -> the most domains that a policy of that level needs by itself.

    Raises:
        Contradiction: a policy cannot be met at all.
    """
    least = {
        Level(tree, name): 1 for tree, names in ordered(_levels(rules)).items() for name in names
    }
    for rule in rules:
        level = _level(rule)
        if level is None or level.name == HOST:
            continue
        for edge in rule.edges:
            least[level] = max(least[level], _domains_for(rule, edge, level))
    return least


def _domains_for(rule: _Rule, edge: Edge, level: Level) -> int:
    only = [_Rule(rule.statement, rule.policy, (edge,))]
    for count in range(1, len(edge) + 1):
        try:
            if _holds(only, edge, {level: count}):
                return count
        except GaveUp:
            continue
    raise _contradiction(only, edge)


def _holds(
    rules: Sequence[_Rule], members: Sequence[MemberName], counts: Mapping[Level, int]
) -> bool:
    """Whether some placement on so many domains meets the rules. GaveUp if undecided."""
    ground = _ground(rules, counts)
    found = _found_on(ground, rules, members)
    if found is None:
        return False
    placement = Placement(ground, found)
    broken = [
        violation
        for rule in rules
        for edge in rule.edges
        for violation in rule.policy.violations(edge, placement)
        if _level(rule) is not None
    ]
    assert not broken, f"the compilation says less than the meaning: {broken}"
    return True


def _found_on(
    ground: IdealGround, rules: Sequence[_Rule], members: Sequence[MemberName]
) -> Mapping[MemberName, int] | None:
    posted = [
        primitive
        for rule in rules
        for edge in rule.edges
        for primitive in rule.policy.post(edge, ground, name=rule.statement.name, weight=None)
    ]
    return search(ground, members, posted)


def _with_hosts(counts: Mapping[Level, int], rules: Sequence[_Rule]) -> dict[Level, int]:
    """The least numbers, with hosts where policies take more of them than of any domain."""
    hosts = _least_hosts(rules)
    if hosts <= max(counts.values(), default=1):
        return dict(counts)
    return {**counts, Level(DEFAULT_TREE, HOST): hosts}


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
    """Hosts that a policy at host level takes by itself, at most over all of them."""
    least = 1
    for rule in rules:
        level = _level(rule)
        if level is None or level.name != HOST:
            continue
        for edge in rule.edges:
            only = [_Rule(rule.statement, rule.policy, (edge,))]
            grounds = (IdealGround({level.tree: ()}, {}, n) for n in range(1, len(edge) + 1))
            needed = (
                ground.per_leaf for ground in grounds if _found_on(ground, only, edge) is not None
            )
            least = max(least, next(needed, least))
    return least


def _ground(rules: Sequence[_Rule], counts: Mapping[Level, int]) -> IdealGround:
    """So many domains, with as many hosts in each as some policy could tell apart."""
    apart = [
        len(edge)
        for rule in rules
        for edge in rule.edges
        if getattr(_level(rule), "name", None) == HOST
    ]
    return IdealGround(ordered(_levels(rules) | set(counts)), counts, max(apart, default=1))


def _level(rule: _Rule) -> Level | None:
    """The level that the policy speaks of, if it is a policy about one."""
    level, tree = getattr(rule.policy, "level", None), getattr(rule.policy, "tree", None)
    return Level(tree, level) if isinstance(level, str) and isinstance(tree, str) else None


def _contradiction(rules: Sequence[_Rule], members: Sequence[MemberName]) -> Contradiction:
    """A minimal set of rules that cannot hold together, by leaving out one after the other."""
    kept = list(rules)
    for rule in rules:
        others = [one for one in kept if one is not rule]
        if not _holds(others, members, _generous(others, len(members))):
            kept = others
    names = tuple(rule.statement.name for rule in kept)
    ground = _ground(kept, _generous(kept, len(members)))
    needs = "  <->  ".join(
        f"{rule.statement.name} needs {rule.policy.needs(edge, ground)}"
        for rule in kept
        for edge in rule.edges[:1]
    )
    return Contradiction(f"conflict (minimal): {needs}", policies=names)
