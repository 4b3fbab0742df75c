"""Members on hosts and on servers that offer slices: every solver against the exhaustive one."""

from collections import Counter

import pytest

from moorage.domain.period import SECOND
from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.engine.joint.build import BuiltProblem
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.instance import dumps, dumps_request, loads_request
from moorage.engine.joint.problem_index import index_problem
from moorage.solver.bounds import lower_bound
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.policy_checks import check_meaning, check_slack
from moorage.testing.problems import random_built
from moorage.testing.solver_checks import check_answer

LIMIT = 30 * SECOND


def built_of(seed: int) -> BuiltProblem:
    return random_built(
        seed, hosts=3, members=4, policies=3, servers=1 + seed % 4, partial=seed % 3 == 0
    )


NIGHTLY = [
    pytest.param(range(first, first + 500), marks=pytest.mark.nightly)
    for first in range(0, 5_000, 500)
]


@pytest.mark.parametrize("seeds", [range(120), *NIGHTLY], ids=str)
def test_slices_are_placed_as_well_as_servers(seeds: range) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        built = built_of(seed)
        problem, terrain = built.problem, built.terrain
        check_meaning(built, seed)
        check_slack(built, seed)
        truth = Exhaustive().solve(problem, time_limit=LIMIT, seed=0)
        check_answer(Greedy(), built, seed, exact=False, truth=truth)
        for solver in (CpSat(), Portfolio(CpSat())):
            check_answer(solver, built, seed, exact=True, truth=truth)
        slices = {role.name for role in built.request.roles if role.is_slice}
        if truth.hosts is None:
            counts["infeasible"] += 1
            continue
        assert not refuted(problem), seed
        assert lower_bound(index_problem(problem)) <= truth.value, seed
        on_servers = terrain.offering[truth.hosts]
        kinds = [member.role in slices for member in problem.members]
        assert on_servers.tolist() == kinds, seed
        counts["slices placed"] += any(kinds)
        counts["slices and servers"] += 0 < sum(kinds) < len(kinds)
        hosts = terrain.domains(Level(DEFAULT_TREE, HOST))[truth.hosts[on_servers]]
        counts["several on one host"] += len(set(hosts.tolist())) < len(hosts)
    assert counts["infeasible"] > len(seeds) / 20
    assert counts["slices placed"] > len(seeds) / 4
    assert counts["slices and servers"] > len(seeds) / 20
    assert counts["several on one host"] > len(seeds) / 20


def test_a_saved_request_keeps_what_stands_where() -> None:
    for seed in range(50):
        built = built_of(seed)
        assert dumps(loads_request(dumps_request(built)).problem) == dumps(built.problem), seed
