"""The least number of domains with which policies can be satisfied, for `moorage ensemble check`.

Decided on an ideal fleet (`ideal_fleet`) by a bounded search (`ideal_search`): members are placed
one after the other, equal domains are tried once, and a primitive prunes as soon as the remaining
members cannot satisfy it. A placement found is checked by the policies' meanings. What depends on a
real fleet (`fence`, `ban`, `exclusive`, traits, sizes, servers that offer slices) is not checked
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Phase
from moorage.domain.errors import UnknownName
from moorage.domain.placement import Placement
from moorage.domain.role_paths import is_known
from moorage.domain.topology import DEFAULT_TREE, HOST, SERVER, Level
from moorage.policies.ideal_fleet import IdealFleet, levels_by_tree, usual_rank
from moorage.policies.ideal_search import BudgetExceeded, search
from moorage.policies.rules import PolicyRule, rules_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.member_names import MemberName
    from moorage.policies.contract import Edge

FAN_OUT: Final = 16
"""Most domains tried under one domain of a higher level; alone, a level gets one per member."""
MAX_LEAVES: Final = 4_000
"""Size limit of the ideal fleet, in combinations of lowest domains."""
ATTEMPTS: Final = 12
"""Domains that are added one by one to each level before the search gives up."""


@dataclass(frozen=True, slots=True)
class LeastDomains:
    """The domains per level (`counts`); `proved` is False if none were found within the budget."""

    counts: Mapping[Level, int]
    proved: bool = True


def least_domains(
    roles: Sequence[Role], members: Sequence[MemberName], statements: Sequence[PolicyStatement]
) -> LeastDomains:
    """Find the least number of domains that the required policies of a description need.

    The policies must not contradict each other; `contradiction` checks that first.

    Raises:
        UnknownPolicy, InvalidDescription: a policy is of an unknown type or invalid.
        UnknownName: a policy selects no member.
    """
    rules = _judged(roles, members, rules_of(roles, members, statements))
    try:
        least = _nested(_least_counts(rules))
    except BudgetExceeded:
        return LeastDomains({}, proved=False)
    for counts in _counts_to_try(least, _max_counts(rules, len(members))):
        try:
            if _is_satisfiable(rules, members, counts):
                return LeastDomains(_with_hosts(counts, rules))
        except BudgetExceeded:
            continue
    return LeastDomains({}, proved=False)


def _judged(
    roles: Sequence[Role], members: Sequence[MemberName], rules: Sequence[PolicyRule]
) -> list[PolicyRule]:
    """The required rules that apply at creation, without those at the level of servers.

    How many servers a host offers as providers is not known here.

    Raises:
        UnknownName: a policy selects no member.
    """
    names = {member.role for member in members} | {role.name for role in roles}
    for rule in rules:
        _check_selectors(rule.statement, names, members)
    return [rule for rule in rules if rule.statement.required and _is_judged(rule)]


def _is_judged(rule: PolicyRule) -> bool:
    level = _level(rule)
    return Phase.CREATE in rule.statement.phases and (level is None or level.name != SERVER)


def _check_selectors(
    statement: PolicyStatement, names: Collection[str], members: Sequence[MemberName]
) -> None:
    for selector in statement.members:
        group = selector.group
        if group is not None and selector.member not in members and not is_known(group, names):
            path = statement.path or f"policies.{statement.name}"
            raise UnknownName("member", str(selector), path=path)


def _levels(rules: Sequence[PolicyRule]) -> set[Level]:
    """Every level that a policy refers to."""
    return {level for rule in rules if (level := _level(rule)) is not None}


def _max_counts(rules: Sequence[PolicyRule], members: int) -> dict[Level, int]:
    """Domain counts beyond which more domains cannot help, within the limits of the search."""
    levels = _levels(rules)
    above_hosts = [level for level in levels if level.name != HOST]
    each = max(1, members if len(above_hosts) < 2 else min(members, FAN_OUT))  # noqa: PLR2004
    while each > 2 and each ** len(above_hosts) > MAX_LEAVES:  # noqa: PLR2004
        each -= 1
    return _each(levels, each)


def _each(levels: Collection[Level], each: int) -> dict[Level, int]:
    """`each` domains of every level under each domain of the next higher one."""
    counts: dict[Level, int] = {}
    for tree, names in levels_by_tree(levels).items():
        total = 1
        for name in names:
            total *= each
            counts[Level(tree, name)] = total
    return counts


def _counts_to_try(
    least: Mapping[Level, int], generous: Mapping[Level, int]
) -> Iterator[Mapping[Level, int]]:
    """Domain counts to try: the least, then more of one level (lowest first), then more of all."""
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


def _least_counts(rules: Sequence[PolicyRule]) -> dict[Level, int]:
    """Level -> the most domains that a policy of that level needs by itself.

    Raises:
        BudgetExceeded: the number for one policy was not found.
    """
    least = {
        Level(tree, name): 1
        for tree, names in levels_by_tree(_levels(rules)).items()
        for name in names
    }
    for rule in rules:
        level = _level(rule)
        if level is None or level.name == HOST:
            continue
        for edge in rule.edges:
            least[level] = max(least[level], _domains_for(rule, edge, level))
    return least


def _domains_for(rule: PolicyRule, edge: Edge, level: Level) -> int:
    only = [PolicyRule(rule.statement, rule.policy, (edge,))]
    for count in range(1, len(edge) + 1):
        try:
            if _is_satisfiable(only, edge, {level: count}):
                return count
        except BudgetExceeded:
            continue
    raise BudgetExceeded


def _is_satisfiable(
    rules: Sequence[PolicyRule], members: Sequence[MemberName], counts: Mapping[Level, int]
) -> bool:
    """Whether some placement on these domains satisfies the rules.

    Raises:
        BudgetExceeded: undecided.
    """
    fleet = _ideal_fleet(rules, counts)
    found = _search_placement(fleet, rules, members)
    if found is None:
        return False
    placement = Placement(fleet, found)
    broken = [
        violation
        for rule in rules
        for edge in rule.edges
        for violation in rule.policy.violations(edge, placement)
        if _level(rule) is not None
    ]
    assert not broken, f"the compilation says less than the meaning: {broken}"
    return True


def _search_placement(
    fleet: IdealFleet, rules: Sequence[PolicyRule], members: Sequence[MemberName]
) -> Mapping[MemberName, int] | None:
    return search(fleet, members, [one for rule in rules for one in rule.post(fleet)])


def _with_hosts(counts: Mapping[Level, int], rules: Sequence[PolicyRule]) -> dict[Level, int]:
    """The counts, with hosts where policies need more of them than of any domain."""
    hosts = _least_hosts(rules)
    if hosts <= max(counts.values(), default=1):
        return dict(counts)
    return {**counts, Level(DEFAULT_TREE, HOST): hosts}


def _nested(counts: Mapping[Level, int]) -> dict[Level, int]:
    """Raise lower levels' counts to those of higher ones: each domain needs one below it."""
    found: dict[Level, int] = {}
    for tree, names in levels_by_tree(counts).items():
        most = 1
        for name in names:
            most = max(most, counts[Level(tree, name)])
            found[Level(tree, name)] = most
    return found


def _least_hosts(rules: Sequence[PolicyRule]) -> int:
    """The largest number of hosts that a policy at host level needs by itself."""
    least = 1
    for rule in rules:
        level = _level(rule)
        if level is None or level.name != HOST:
            continue
        for edge in rule.edges:
            only = [PolicyRule(rule.statement, rule.policy, (edge,))]
            fleets = (IdealFleet({level.tree: ()}, {}, n) for n in range(1, len(edge) + 1))
            needed = (
                fleet.per_leaf
                for fleet in fleets
                if _search_placement(fleet, only, edge) is not None
            )
            least = max(least, next(needed, least))
    return least


def _ideal_fleet(rules: Sequence[PolicyRule], counts: Mapping[Level, int]) -> IdealFleet:
    """An ideal fleet with these domains, and enough hosts in each for the rules at host level."""
    return IdealFleet(levels_by_tree(_levels(rules) | set(counts)), counts, _separate_hosts(rules))


def _separate_hosts(rules: Sequence[PolicyRule]) -> int:
    """The number of members in rules at host level; at least one."""
    apart = {
        member
        for rule in rules
        for edge in rule.edges
        for member in edge
        if getattr(_level(rule), "name", None) == HOST
    }
    return max(1, len(apart))


def _level(rule: PolicyRule) -> Level | None:
    """The level that the policy refers to, if any."""
    level, tree = getattr(rule.policy, "level", None), getattr(rule.policy, "tree", None)
    return Level(tree, level) if isinstance(level, str) and isinstance(tree, str) else None
