"""The checks that every policy passes, Moorage's own and those of plug-ins.

A plug-in's test calls `check_policy` with the type and a function that makes random parameters:

    from moorage.testing.policy_checks import check_policy

    def test_the_policy_keeps_the_contract() -> None:
        check_policy("quorum", lambda dice: {"lose": dice.randint(1, 2)})

A failed check raises `AssertionError` with the seed of the random problem.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import jsonschema

from moorage.domain.ensembles import PolicyStatement
from moorage.domain.member_names import MemberName
from moorage.domain.placement import Occupant, Placement
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.cost import excess
from moorage.engine.joint.policy_view import TerrainView
from moorage.policies import discover, parse
from moorage.policies.contract import OUTSIDE
from moorage.policies.parameters import schema
from moorage.solver.cpsat import CpSat
from moorage.solver.greedy import Greedy
from moorage.testing.problems import (
    OTHER_PROJECT,
    PARAMETERS,
    PROJECT,
    Host,
    random_built,
    terrain,
)
from moorage.testing.solver_checks import check_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.engine.joint.build import BuiltProblem
    from moorage.policies.contract import Edge, Example, Policy
    from moorage.policies.rules import PolicyRule
    from moorage.testing.problems import RandomParameters

MOST_STEPS = 12
"""Weaker forms of one policy on one edge."""


def check_policy(type_: str, parameters: RandomParameters, *, problems: int = 200) -> None:
    """Check a policy: examples, schema, meaning, slack, weaker forms, and every solver with it.

    `parameters` makes parameters for random problems, in which the policy meets the others too.
    """
    policy = discover()[type_]
    check_examples(policy)
    check_schema(policy)
    for seed in range(problems):
        alone = {type_: parameters}
        known = alone if seed % 2 else {**PARAMETERS, **alone}
        built = random_built(seed, parameters=known)
        check_meaning(built, seed)
        check_slack(built, seed)
        check_weaker_forms(built)
        check_answer(Greedy(), built, seed, exact=False)
        check_answer(CpSat(), built, seed, exact=True)


def check_examples(policy: type[Policy]) -> None:
    """Check that there are good and bad examples, and that each is as good as it says."""
    assert {one.good for one in policy.examples} == {True, False}, "both kinds of examples"
    for one in policy.examples:
        check_example(policy.type, one)


def check_example(type_: str, example: Example) -> None:
    """Check that an example is as good as it says.

    A violation that says its text has no names (`named`) must have none.
    """
    fleet = example_fleet(example.foreign)
    policy = parse(PolicyStatement("p", type_, (), parameters=example.parameters))
    policy.check(fleet.topology)
    edge = tuple(MemberName("m", i) for i in range(len(example.hosts)))
    rows = [fleet.terrain.row_of[name] for name in example.hosts]
    placement = Placement(fleet, dict(zip(edge, rows, strict=True)))
    every = policy.violations(edge, placement)
    found = [violation.text for violation in every]
    assert (not found) == example.good, f"{type_}, {example.title}: {found}"
    names = {*fleet.terrain.row_of, *(name for _, name in fleet.topology.domains)}
    for one in every:
        said = names & set(one.text.replace(",", " ").replace(":", " ").split())
        assert one.named or not said, f"{type_}, {example.title}: {one.text}"


def example_fleet(foreign: tuple[str, ...]) -> TerrainView:
    """The fleet of `contract.Example`.

    Racks r1..r3 of h1..h3, zones z1 (r1, r2) and z2 (r3), and a host in no domain.
    """
    racks = {"r1": "z1", "r2": "z1", "r3": "z2"}
    names = [f"{rack}/h{i}" for rack in racks for i in (1, 2, 3)]
    topology = Topology.build(
        {"location": ("zone", "rack")},
        [
            Domain("z1", "zone"),
            Domain("z2", "zone"),
            *(Domain(rack, "rack", parent=zone) for rack, zone in racks.items()),
        ],
        [Attachment(name, name.split("/")[0]) for name in names],
    )
    names.append(OUTSIDE)
    occupant = Occupant("somebody", OTHER_PROJECT)
    hosts = [
        Host(name, {"VCPU": 8}, occupants=(occupant,) if name in foreign else ()) for name in names
    ]
    fleet = terrain(hosts, topology)
    everywhere = fleet.capacity[:, 0] > 0
    return TerrainView(fleet, PROJECT, frozenset(), lambda: {"m": everywhere})


def check_schema(policy: type[Policy]) -> None:
    """Check that the schema describes every parameter and accepts what the examples write."""
    found = schema(policy)
    jsonschema.Draft202012Validator.check_schema(found)
    properties = found["properties"]
    assert isinstance(properties, dict)
    for name, one in properties.items():
        assert one["description"], f"{policy.type}: parameter {name} needs a description"
    for example in policy.examples:
        jsonschema.Draft202012Validator(found).validate(dict(example.parameters))


def check_meaning(built: BuiltProblem, seed: int) -> None:
    """Check that on random placements the violations amount to the excess of the primitives."""
    problem = built.problem
    for placement, rows in _placements(built, seed, 20):
        for rule in built.rules:
            meant = sum(
                violation.amount
                for edge in rule.edges
                for violation in rule.policy.violations(edge, placement)
            )
            posted = sum(
                int(excess(problem, one, problem.fixed[None, :] * 0 + rows)[0])
                for one in rule.post(built.policy_view)
            )
            assert meant == posted, f"seed {seed}: {rule.statement} at {rows}: {meant} != {posted}"


def check_slack(built: BuiltProblem, seed: int) -> None:
    """Check that slack is below zero exactly where the measure is violated."""
    for placement, rows in _placements(built, seed, 1):
        for rule, edge in _edges(built):
            slack = rule.policy.slack(edge, placement)
            if slack is None:
                continue
            told = rule.policy.violations(edge, placement)
            if slack < 0:
                assert told, f"seed {seed}: {rule.statement} at {rows}: slack {slack}"
            else:
                # What is violated all the same are members that stand in no domain.
                assert all("stands in no" in one.text for one in told), (
                    f"seed {seed}: {rule.statement} at {rows}: slack {slack}, {told}"
                )


def check_weaker_forms(built: BuiltProblem) -> None:
    """Check that weaker forms are few, can be read, and are granted where the policy is."""
    for rule, edge in _edges(built):
        assert rule.policy.requirement(edge, built.policy_view)
        steps = list(rule.policy.weaker(edge))
        assert len(steps) <= MOST_STEPS, rule.statement
        for step in steps:
            assert step.cost >= 1, step
            assert bool(step.parameters) != bool(step.grow), step
            changed = dict(rule.statement.parameters) | dict(step.parameters)
            weaker = parse(replace(rule.statement, parameters=changed))
            for placement, rows in _placements(built, 0, 3):
                if not rule.policy.violations(edge, placement):
                    told = weaker.violations(edge, placement)
                    assert not told, f"{rule.statement} -> {changed} at {rows}: {told}"


def _edges(built: BuiltProblem) -> Iterator[tuple[PolicyRule, Edge]]:
    for rule in built.rules:
        for edge in rule.edges:
            yield rule, edge


def _placements(
    built: BuiltProblem, seed: int, count: int
) -> Iterator[tuple[Placement, list[int]]]:
    """Random placements, each with its host rows."""
    problem = built.problem
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    for _ in range(count):
        rows = [dice.randrange(len(problem.hosts)) for _ in problem.members]
        hosts = dict(zip(problem.members, rows, strict=True))
        yield Placement(built.policy_view, hosts), rows
