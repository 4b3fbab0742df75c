"""Counting of sides that are apart, and of sizes together: never against the exhaustive solver."""

import random
from collections.abc import Mapping

import pytest
from tests.seeds import cases

from moorage.domain.period import SECOND
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Verdict
from moorage.solver.exhaustive import Exhaustive
from moorage.testing.problems import Host, request, statement, terrain

SEEDS = cases(100, 300)
Roles = dict[str, tuple[int, Mapping[str, int]]]


def tight(seed: int) -> BuiltProblem:
    """Two to four roles of a few sizes that are apart by racks, on hosts that just hold them."""
    dice = random.Random(seed)
    racks, hosts = dice.randint(1, 4), dice.randint(3, 5)
    # Now and then a host is in no rack.
    leaves = [
        Attachment(f"h{n}", f"r{dice.randrange(racks)}")
        for n in range(hosts)
        if dice.random() < 0.9
    ]
    topology = Topology.build(
        {"location": ("rack",)}, [Domain(f"r{n}", "rack") for n in range(racks)], leaves
    )
    roles: Roles = {
        f"side{n}": (
            dice.randint(1, 2),
            {"VCPU": dice.choice([1, 2, 3]), "MEMORY_MB": dice.choice([1, 2, 4])},
        )
        for n in range(dice.randint(2, 4))
    }
    names = sorted(roles)
    sides = [[name] for name in names]
    if dice.random() < 0.3:
        sides = [[names[0], names[-1]], *([name] for name in names[1:-1])]
    stated = [
        statement("apart", "separation", *names, level="rack", between=sides)
        if len(sides) > 1 and dice.random() < 0.8
        else statement("racks", "anti-affinity", *names, level="rack", max_per_domain=2)
    ]
    if dice.random() < 0.5:
        stated.append(
            statement("hosts", "anti-affinity", *names, max_per_domain=dice.randint(1, 2))
        )
    rows = [
        Host(f"h{n}", {"VCPU": dice.randint(2, 9), "MEMORY_MB": dice.randint(2, 9)})
        for n in range(hosts)
    ]
    fixed = {}
    asked = request(roles, stated)
    for member in asked.members:
        if dice.random() < 0.1:
            fixed[member] = f"h{dice.randrange(hosts)}"
    return build_on_terrain(request(roles, stated, fixed=fixed), terrain(rows, topology))


@pytest.mark.parametrize("chunk", range(4))
def test_only_what_is_impossible_is_refuted(chunk: int) -> None:
    impossible = known = 0
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        problem = tight(seed).problem
        truth = Exhaustive().solve(problem, time_limit=30 * SECOND, seed=0)
        assert truth.verdict is not Verdict.UNKNOWN, seed
        if truth.verdict is Verdict.INFEASIBLE:
            impossible += 1
            known += refuted(problem)
        else:
            assert not refuted(problem), seed
    assert impossible > SEEDS / 4
    assert known > 0.9 * impossible, (known, impossible)


def blocks(seed: int) -> BuiltProblem:
    """Pairs or triples that share a rack, in racks that just hold them."""
    dice = random.Random(seed)
    racks, hosts, count = dice.randint(1, 3), dice.randint(3, 5), dice.randint(2, 3)
    leaves = [
        Attachment(f"h{n}", f"r{dice.randrange(racks)}")
        for n in range(hosts)
        if dice.random() < 0.9
    ]
    topology = Topology.build(
        {"location": ("rack",)}, [Domain(f"r{n}", "rack") for n in range(racks)], leaves
    )
    size, other = ({"VCPU": dice.randint(1, 3), "MEMORY_MB": dice.randint(1, 3)} for _ in "ab")
    if dice.random() < 0.5:
        roles: Roles = {"app": (count, size), "db": (count, other)}
        stated = [statement("near", "proximity", "app", "db", level="rack", zip_=True)]
        members = ["db"]
    else:
        roles = {f"cell{n}": (2, size) for n in range(count)}
        stated = [statement(f"n{one}", "affinity", one, level="rack") for one in roles]
        stated += [statement(f"a{one}", "anti-affinity", one) for one in roles]
        members = list(roles)
    if dice.random() < 0.4:
        limit = dice.randint(1, 3)
        stated.append(
            statement("few", "anti-affinity", *members, level="rack", max_per_domain=limit)
        )
    rows = [
        Host(f"h{n}", {"VCPU": dice.randint(1, 5), "MEMORY_MB": dice.randint(1, 5)})
        for n in range(hosts)
    ]
    asked = request(roles, stated)
    fixed = {m: f"h{dice.randrange(hosts)}" for m in asked.members if dice.random() < 0.05}
    return build_on_terrain(request(roles, stated, fixed=fixed), terrain(rows, topology))


@pytest.mark.parametrize("chunk", range(4))
def test_only_blocks_that_cannot_be_placed_are_refuted(chunk: int) -> None:
    impossible = known = 0
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        problem = blocks(seed).problem
        truth = Exhaustive().solve(problem, time_limit=30 * SECOND, seed=0)
        assert truth.verdict is not Verdict.UNKNOWN, seed
        if truth.verdict is Verdict.INFEASIBLE:
            impossible += 1
            known += refuted(problem)
        else:
            assert not refuted(problem), seed
    assert impossible > SEEDS / 4
    assert known > 0.9 * impossible, (known, impossible)
