"""What policies break without a member: the same for all at one go as asked of each."""

import random
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import PolicyStatement, edges
from moorage.domain.member_names import MemberName
from moorage.domain.placement import Placement
from moorage.engine.joint.build import BuiltProblem
from moorage.engine.joint.removal_impact import RemovalCandidates, violations_without
from moorage.policies.rules import PolicyRule
from moorage.testing.problems import random_built


def asked_of_each(
    built: BuiltProblem, rule: PolicyRule, hosts: Mapping[MemberName, int], one: MemberName
) -> int:
    """The meaning itself, of a placement without one member."""
    left = {name: row for name, row in hosts.items() if name != one}
    placement = Placement(built.policy_view, left)
    return sum(
        violation.amount
        for edge in edges(rule.statement, built.request.roles, list(left))
        for violation in rule.policy.violations(edge, placement)
    )


@given(seed=st.integers(0, 10**6), paired=st.booleans())
def test_all_at_one_go_is_the_same_as_each_by_itself(seed: int, *, paired: bool) -> None:
    built = random_built(seed, policies=6)
    dice = random.Random(seed)
    for _ in range(4):
        hosts = {name: dice.randrange(len(built.problem.hosts)) for name in built.problem.members}
        role = dice.choice(built.problem.members).role
        leaving = [name for name in hosts if name.role == role and dice.random() < 0.8]
        if not leaving:
            continue
        for rule in built.rules:
            some = replace(rule, statement=_paired(rule.statement)) if paired else rule
            found = violations_without(
                some, RemovalCandidates(built.request.roles, built.policy_view, hosts, leaving)
            )
            expected = [asked_of_each(built, some, hosts, one) for one in leaving]
            assert found.tolist() == expected, (some, hosts, leaving)


def _paired(statement: PolicyStatement) -> PolicyStatement:
    return replace(statement, zip=True)
