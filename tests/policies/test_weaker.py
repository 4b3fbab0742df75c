"""A weaker parameter never refuses what a stricter one grants.

On small fleets with gaps in their trees, for every policy: what it proposes as `weaker`, and every
parameter that has an order.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import PolicyStatement
from moorage.domain.placement import Placement
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import excess, satisfies
from moorage.policies import discover, parse
from moorage.policies.contract import Violation
from moorage.policies.parameters import schema
from moorage.policies.rules import PolicyRule
from moorage.solver.exhaustive import every_placement
from moorage.testing.problems import PARAMETERS, Host, random_built, request, statement, terrain

LARGER = {"max_per_domain", "max_skew", "max_distance"}
SMALLER = {"min_domains": 1, "min_distance": 1, "keep": 1, "lose": 1}


def relaxed(rule: PolicyRule) -> Iterator[PolicyStatement]:
    """The rule's statement with each of its parameters one step weaker."""
    for step in _steps(rule):
        parameters = {**rule.statement.parameters, **step}
        yield replace(rule.statement, parameters=parameters)


def _steps(rule: PolicyRule) -> Iterator[Mapping[str, object]]:
    for edge in rule.edges[:1]:
        yield from (step.parameters for step in rule.policy.weaker(edge) if step.parameters)
    given: Mapping[str, Any] = rule.statement.parameters
    yield from ({name: given[name] + 1} for name in LARGER & given.keys())
    for name in SMALLER.keys() & given.keys():
        if given[name] > SMALLER[name]:
            yield {name: given[name] - 1}
    if given.get("against") == "others":
        yield {"against": "tag:noisy"}
    if rule.statement.type == "fence" and given.get("domains"):
        yield {"domains": [*given["domains"], "r2", "h1"]}


def _told(rule: PolicyRule, placement: Placement) -> list[Violation]:
    return [one for edge in rule.edges for one in rule.policy.violations(edge, placement)]


def _posted(built: BuiltProblem, rule: PolicyRule, rows: list[int]) -> int:
    problem = built.problem
    return sum(
        int(excess(problem, one, np.array([rows]))[0]) for one in rule.post(built.policy_view)
    )


@given(seed=st.integers(0, 10**6))
def test_what_satisfies_a_policy_satisfies_its_weaker_forms(seed: int) -> None:
    built = random_built(seed, policies=6, partial=True)
    dice = random.Random(seed)
    members = built.problem.members
    placements = [[dice.randrange(built.terrain.host_count) for _ in members] for _ in range(12)]
    for rule in built.rules:
        strict = [rows for rows in placements if not _told(rule, _at(built, rows))]
        if not strict:
            continue
        for weaker in relaxed(rule):
            changed = _with(built, weaker)
            (loose,) = [one for one in changed.rules if one.statement == weaker]
            for rows in strict:
                told = _told(loose, _at(changed, rows))
                assert not told, (rule.statement, weaker.parameters, rows)
                assert not _posted(changed, loose, rows), (rule.statement, weaker.parameters, rows)


@given(seed=st.integers(0, 10**6))
def test_a_request_granted_is_granted_with_a_weaker_parameter(seed: int) -> None:
    built = random_built(seed, policies=3, members=4, fixed=0.0, partial=True)
    good = _granted(built)
    for rule in built.rules:
        if not rule.statement.required or _widens_evenness(built, rule):
            continue
        for weaker in relaxed(rule):
            also = _granted(_with(built, weaker))
            assert good <= also, (rule.statement, weaker.parameters, min(good - also))


def _widens_evenness(built: BuiltProblem, rule: PolicyRule) -> bool:
    """Whether a fence less adds domains over which another policy wants members to be even."""
    fence = rule.statement.type in {"fence", "ban"}
    return fence and any("max_skew" in one.statement.parameters for one in built.rules)


def _granted(built: BuiltProblem) -> set[tuple[int, ...]]:
    rows = every_placement(built.problem)
    return {tuple(one) for one in rows[satisfies(built.problem, rows)].tolist()}


def _at(built: BuiltProblem, rows: list[int]) -> Placement:
    return Placement(built.policy_view, dict(zip(built.problem.members, rows, strict=True)))


def _with(built: BuiltProblem, changed: PolicyStatement) -> BuiltProblem:
    policies = tuple(changed if one.name == changed.name else one for one in built.request.policies)
    return build_on_terrain(replace(built.request, policies=policies), built.terrain)


def _names(policy: type) -> set[str]:
    found: Any = schema(policy)["properties"]
    return set(found)


def test_every_ordered_parameter_is_among_them() -> None:
    """A new policy says here which of its parameters have an order."""
    unordered = {"at", "level", "tree", "traits", "domains", "against", "between", "fenced_domains"}
    every = {name for policy in discover().values() for name in _names(policy)}
    assert every == unordered | LARGER | SMALLER.keys()
    assert set(PARAMETERS) == set(discover())


def _fleet() -> Topology:
    """h0 and h1 in rack r0 without a zone, h2 in zone z0 without a rack, h3 nowhere."""
    return Topology.build(
        {"location": ("zone", "rack")},
        [Domain("z0", "zone"), Domain("r0", "rack")],
        [Attachment("h0", "r0"), Attachment("h1", "r0"), Attachment("h2", "z0")],
    )


@pytest.mark.parametrize(
    ("policy", "parameters", "hosts", "good"),
    [
        ("separation", {"min_distance": 3}, "h2 h3", True),
        ("separation", {"min_distance": 3}, "h0 h3", True),
        ("separation", {"min_distance": 3}, "h0 h2", True),
        ("separation", {"min_distance": 2}, "h0 h1", False),
        ("separation", {"min_distance": 3}, "h0 h1", False),
        ("separation", {"min_distance": 1}, "h3 h3", False),
        ("separation", {"min_distance": 3}, "h3 h3", False),
        ("proximity", {"max_distance": 1}, "h0 h1", True),
        ("proximity", {"max_distance": 2}, "h0 h1", True),
        ("proximity", {"max_distance": 2}, "h0 h2", False),
        ("proximity", {"max_distance": 2}, "h3 h3", True),
        ("proximity", {"max_distance": 2}, "h0 h3", False),
        ("proximity", {"max_distance": 3}, "h0 h3", True),
    ],
)
def test_a_distance_counts_the_levels_that_two_hosts_share(
    policy: str, parameters: Mapping[str, Any], hosts: str, *, good: bool
) -> None:
    stated = statement("p", policy, "a", **parameters)
    fleet = terrain([Host(f"h{i}", {"VCPU": 9}) for i in range(4)], _fleet())
    built = build_on_terrain(request({"a": (2, {"VCPU": 1})}, [stated]), fleet)
    rows = [fleet.row_of[name] for name in hosts.split()]
    assert (not parse(stated).violations(built.problem.members, _at(built, rows))) == good
    assert bool(satisfies(built.problem, np.array([rows]))[0]) == good
