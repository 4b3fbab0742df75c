"""The smallest number of domains with which policies can be met, if any.

Judged on an ideal fleet (see `ideal`), by a search of its own that any caller can afford: members
go one after the other, equal domains are tried once, and a primitive prunes as soon as the members
still to come cannot mend it. A placement found is checked by the policies' meanings. What
depends on a real fleet (`fence`, `ban`, `exclusive`, traits, sizes) is left to the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Phase, edges
from moorage.domain.errors import UnknownName
from moorage.domain.placement import Placement
from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.ideal_fleet import ORDER, IdealGround, ordered, usual_rank
from moorage.policies.ideal_search import GaveUp, search
from moorage.policies.registry import parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.ensembles import MemberName, PolicyStatement, Role
    from moorage.policies.contract import Edge, Policy

FAN_OUT: Final = 16
"""Most domains tried under one domain of a higher level; alone, a level gets one per member."""
MOST_LEAVES: Final = 4_000
"""Largest ideal fleet, in combinations of lowest domains."""
MOST_HOSTS: Final = 16_000
"""Largest ideal fleet on which contradictions are searched for, in hosts."""
MOST_STEPS: Final = 100_000
"""Lowest domains for all members together that such a search may look at: about 0.2 s."""
SETTLED: Final = 100
"""Members of the largest ensemble that is searched for contradictions."""
ATTEMPTS: Final = 12
"""Domains added one by one before plenty is tried."""


@dataclass(frozen=True, slots=True)
class Satisfiable:
    """The result. `least` counts domains per level; `proved` is False if the search gave up."""

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
    """Count the domains that the required policies of a description need.

    They are taken not to contradict each other: `contradiction` says so first.

    Raises:
        UnknownPolicy, InvalidDescription: a policy cannot be understood.
        UnknownName: a policy selects no member.
    """
    rules = _rules(roles, members, statements)
    try:
        least = _nested(_alone(rules))
    except GaveUp:
        return Satisfiable({}, proved=False)
    for counts in _growing(least, _generous(rules, len(members))):
        try:
            if _holds(rules, members, counts):
                return Satisfiable(_with_hosts(counts, rules))
        except GaveUp:
            continue
    return Satisfiable({}, proved=False)


def impossible(
    roles: Sequence[Role],
    members: Sequence[MemberName],
    statements: Sequence[PolicyStatement],
    levels: Mapping[str, tuple[str, ...]] | None,
) -> bool:
    """Whether it is proved that no fleet can meet the required policies.

    Judged are those that name a level, where the order of levels is known. More domains can only
    help, so plenty of each are tried: every member may have its own, under whatever domain it
    stands. A skew is bounded over all domains there are; how many, and where, matters then: it is
    settled for one level above hosts and members that ask alike, with every number of domains.
    What is too large to be settled, is not.
    """
    if len(members) > SETTLED:
        return False
    rules = _comparable(_rules(roles, members, statements), levels)
    above_hosts = [level for level in _levels(rules) if level.name != HOST]
    plenty = _each(_levels(rules), max(1, len(members)))
    leaves = len(members) ** len(above_hosts)
    if leaves * len(members) > MOST_STEPS or leaves * _hosts_apart(rules) > MOST_HOSTS:
        return False
    tried: Iterable[Mapping[Level, int]] = (plenty,)
    if any("max_skew" in rule.statement.parameters for rule in rules):
        if len(_levels(rules)) > 1 or not above_hosts or not _ask_alike(roles, rules):
            return False
        tried = ({level: count} for level in above_hosts for count in range(1, plenty[level] + 1))
    try:
        return not any(_holds(rules, members, counts) for counts in tried)
    except GaveUp:
        return False


def _ask_alike(roles: Sequence[Role], rules: Sequence[_Rule]) -> bool:
    """Whether the members in the rules have equal requirements of hosts."""
    named = {member.role for rule in rules for edge in rule.edges for member in edge}
    asked = [
        (role.flavor, role.resources, role.required, role.forbidden, role.member_of)
        for role in roles
        if role.name in named
    ]
    return all(one == asked[0] for one in asked)


def _comparable(
    rules: Sequence[_Rule], levels: Mapping[str, tuple[str, ...]] | None
) -> list[_Rule]:
    """Rules on trees whose order of levels is known."""
    known = {
        tree: len(names) < 2  # noqa: PLR2004 - one level needs no order
        or (
            set(names) <= set(ORDER)
            if levels is None
            else names == tuple(one for one in levels.get(tree, ()) if one in names)
        )
        for tree, names in ordered(_levels(rules)).items()
    }
    return [rule for rule in rules if (level := _level(rule)) is not None and known[level.tree]]


def _rules(
    roles: Sequence[Role], members: Sequence[MemberName], statements: Sequence[PolicyStatement]
) -> list[_Rule]:
    rules = [_rule(one, roles, members) for one in statements]
    return [rule for rule in rules if rule.statement.required and _at_creation(rule)]


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
    """Every level that a policy refers to."""
    return {level for rule in rules if (level := _level(rule)) is not None}


def _generous(rules: Sequence[_Rule], members: int) -> dict[Level, int]:
    """Domain counts so large that more cannot help, within the limits of the search."""
    levels = _levels(rules)
    above_hosts = [level for level in levels if level.name != HOST]
    each = max(1, members if len(above_hosts) < 2 else min(members, FAN_OUT))  # noqa: PLR2004
    while each > 2 and each ** len(above_hosts) > MOST_LEAVES:  # noqa: PLR2004
        each -= 1
    return _each(levels, each)


def _each(levels: Collection[Level], each: int) -> dict[Level, int]:
    """`each` domains of every level under each domain of the next higher one."""
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
    """Counts to try: the policies' own needs, then more of one level, lowest first, then of all."""
    yield least
    for level in sorted(generous, key=_place):
        for more in range(1, min(ATTEMPTS, generous[level] - least[level]) + 1):
            yield _nested({**least, level: least[level] + more})
    for more in range(1, ATTEMPTS + 1):
        yield _nested({level: min(count + more, generous[level]) for level, count in least.items()})


def _place(level: Level) -> tuple[bool, str, tuple[int, str]]:
    """The sort key of a level: the default tree first, lower levels before higher ones."""
    rank, name = usual_rank(level.name)
    return (level.tree != DEFAULT_TREE, level.tree, (-rank, name))


def _alone(rules: Sequence[_Rule]) -> dict[Level, int]:
    """Level -> the most domains that a policy of that level needs by itself.

    Raises:
        GaveUp: how many one needs was not found.
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
    raise GaveUp


def _holds(
    rules: Sequence[_Rule], members: Sequence[MemberName], counts: Mapping[Level, int]
) -> bool:
    """Whether some placement on these domains meets the rules. GaveUp if undecided."""
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
    """The counts, with hosts where policies need more of them than of any domain."""
    hosts = _least_hosts(rules)
    if hosts <= max(counts.values(), default=1):
        return dict(counts)
    return {**counts, Level(DEFAULT_TREE, HOST): hosts}


def _nested(counts: Mapping[Level, int]) -> dict[Level, int]:
    """Raise lower levels' counts to those of higher ones: each domain needs one below it."""
    found: dict[Level, int] = {}
    for tree, names in ordered(counts).items():
        most = 1
        for name in names:
            most = max(most, counts[Level(tree, name)])
            found[Level(tree, name)] = most
    return found


def _least_hosts(rules: Sequence[_Rule]) -> int:
    """The largest number of hosts that a policy at host level needs by itself."""
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
    """An ideal fleet with these domains, and as many hosts in each as policies can distinguish."""
    return IdealGround(ordered(_levels(rules) | set(counts)), counts, _hosts_apart(rules))


def _hosts_apart(rules: Sequence[_Rule]) -> int:
    """How many members policies at host level distinguish; at least one."""
    apart = {
        member
        for rule in rules
        for edge in rule.edges
        for member in edge
        if getattr(_level(rule), "name", None) == HOST
    }
    return max(1, len(apart))


def _level(rule: _Rule) -> Level | None:
    """The level that the policy refers to, if any."""
    level, tree = getattr(rule.policy, "level", None), getattr(rule.policy, "tree", None)
    return Level(tree, level) if isinstance(level, str) and isinstance(tree, str) else None
