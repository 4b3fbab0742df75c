"""The excess with one member on each host differs between hosts as the policies' meanings do."""

import random
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.placement import Placement
from moorage.engine.joint.host_violations import violations_by_host
from moorage.testing.problems import random_built


@given(seed=st.integers(0, 10**6))
def test_differences_between_hosts_are_those_of_the_meanings(seed: int) -> None:
    built = random_built(seed, policies=6)
    dice = random.Random(seed)
    hosts = range(len(built.problem.hosts))
    standing = {name: dice.choice(hosts) for name in built.problem.members}
    fixed = np.array([standing[name] for name in built.problem.members])
    built = replace(built, problem=replace(built.problem, fixed=fixed))
    moving = dice.choice(built.problem.members)
    found = violations_by_host(built, moving)
    for rule in built.rules:
        if not rule.statement.required:
            assert rule.statement.name not in found
            continue
        meant = [
            sum(
                violation.amount
                for edge in rule.edges
                for violation in rule.policy.violations(
                    edge, Placement(built.policy_view, {**standing, moving: host})
                )
            )
            for host in hosts
        ]
        judged = found.get(rule.statement.name, np.zeros(len(hosts), dtype=np.int64)).tolist()
        assert [one - meant[0] for one in meant] == [one - judged[0] for one in judged], rule
