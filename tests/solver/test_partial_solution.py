"""What is kept of hosts and domains is the same as if it were computed anew."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.topology import (
    DEFAULT_TREE,
    EMPTY,
    HOST,
    Attachment,
    Domain,
    Level,
    Topology,
)
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.domain_counters import closed_domains, closed_to_others
from moorage.engine.joint.problem_index import ProblemIndex, index_problem
from moorage.policies.primitives import Apart, SameDomain
from moorage.solver import candidate_costs, domain_costs
from moorage.solver.partial_solution import Partial
from moorage.testing.problems import Host, random_built, request, statement, terrain

HOSTS = 90
"""More than the domains of a coarse level."""


@pytest.fixture(scope="module", autouse=True, params=["as it is", "all levels are fine"])
def levels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways of keeping sums, on fleets that have few racks."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(domain_costs, "_FEW", 0)
            patch.setattr(candidate_costs, "_MOST", 1)
        yield


def wander(partial: Partial, noise: np.random.Generator, steps: int) -> None:
    """Place members where they may be, and undo some, looking all the time."""
    for _ in range(steps):
        m = int(noise.choice(partial.index.to_place))
        if partial.row_of[m] >= 0:
            partial.undo(m)
            continue
        found = partial.candidates(m)
        open_rows = found.rows[np.isfinite(found.costs)]
        if len(open_rows):
            partial.place(m, int(noise.choice(open_rows)))


def anew(partial: Partial) -> Partial:
    """The same members on the same hosts, with nothing kept."""
    other = Partial(partial.index)
    for m in partial.index.to_place:
        if partial.row_of[m] >= 0:
            other.place(m, int(partial.row_of[m]))
    return other


def openings(partial: Partial, m: int) -> set[int]:
    found = partial.candidates(m)
    return set(found.rows[np.isfinite(found.costs)].tolist())


def permitted(index: ProblemIndex, partial: Partial, m: int) -> set[int]:
    """The hosts that the rules permit, each rule on all hosts, without room for others."""
    problem, need = index.problem, index.problem.demand[index.problem.role_of[m]]
    mask = index.allowed[index.group_of[m]] & ((need <= partial.free.T) | (need == 0)).all(axis=1)
    for c in index.constraints_of[m]:
        one = index.constraints[c]
        closed = closed_domains(one, partial.counts[c], partial.others[c], partial.left[c])
        if one.required and closed is not None:
            mask &= ~np.append(closed, False)[one.domain_of]
    for c in index.other_side_of[m]:
        one = index.constraints[c]
        if one.required:
            closed = closed_to_others(one, partial.counts[c], partial.others[c], partial.left[c])
            mask &= ~np.append(closed, False)[one.domain_of]
    assert len(mask) == len(problem.hosts)
    return set(np.flatnonzero(mask).tolist())


@given(seed=st.integers(0, 10**6), hosts=st.sampled_from([6, HOSTS]))
def test_costs_renewed_by_difference_are_those_computed_anew(seed: int, hosts: int) -> None:
    index = index_problem(random_built(seed, hosts=hosts, members=6).problem)
    if not index.to_place:
        return
    partial, noise = Partial(index), np.random.default_rng(seed)
    for _ in range(4):
        wander(partial, noise, 5)
        fresh = anew(partial)
        for m in index.to_place:
            if partial.row_of[m] < 0:
                kept, found = partial.candidates(m), fresh.candidates(m)
                assert kept.rows.tolist() == found.rows.tolist()
                np.testing.assert_allclose(kept.costs, found.costs, atol=1e-9)


@given(seed=st.integers(0, 10**6), hosts=st.sampled_from([6, HOSTS]))
def test_what_the_rules_permit_is_open_unless_others_lack_room(seed: int, hosts: int) -> None:
    index = index_problem(random_built(seed, hosts=hosts, members=6).problem)
    if not index.to_place:
        return
    partial, noise = Partial(index), np.random.default_rng(seed)
    wander(partial, noise, 8)
    for m in index.to_place:
        if partial.row_of[m] >= 0:
            continue
        found, expected = openings(partial, m), permitted(index, partial, m)
        shared = [
            c
            for c in index.constraints_of[m]
            if index.constraints[c].required
            and isinstance(index.constraints[c].primitive, SameDomain)
            and not partial.counts[c].any()
        ]
        assert found == expected if not shared else found <= expected


@given(seed=st.integers(0, 10**6))
def test_members_that_look_alike_have_the_same_openings(seed: int) -> None:
    index = index_problem(random_built(seed, hosts=8, members=6).problem)
    partial = Partial(index)
    seen: dict[object, set[int]] = {}
    for m in index.to_place:
        mine = openings(partial, m)
        assert seen.setdefault(partial.look_of(m), mine) == mine


def test_a_host_without_a_domain_stays_open_where_others_share_one() -> None:
    """No policy leaves it so, but a primitive does: it counts hosts with a domain only."""
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain("r0", "rack"), Domain("r1", "rack")],
        [Attachment("h0", "r0"), Attachment("h1", "r1")],
    )
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}) for n in range(3)], topology)
    asked = request({"a": (2, {"VCPU": 1})}, [statement("near", "affinity", "a", level="rack")])
    problem = build_on_terrain(asked, fleet).problem
    alone = tuple(one for one in problem.primitives if isinstance(one, SameDomain))
    partial = Partial(index_problem(replace(problem, primitives=alone)))
    partial.place(0, 0)
    assert openings(partial, 1) == {0, 2}


def test_members_that_are_apart_from_nobody_may_share_a_host() -> None:
    rows = [Host(f"h{n}", {"VCPU": 4}) for n in range(HOSTS)]
    problem = build_on_terrain(request({"a": (2, {"VCPU": 1})}), terrain(rows, EMPTY)).problem
    level = Level(DEFAULT_TREE, HOST)
    nobody = Apart(policy="none", members=problem.members, others=(), level=level)
    problem = replace(problem, domains={level: np.arange(HOSTS)}, primitives=(nobody,))
    partial = Partial(index_problem(problem))
    partial.place(0, 0)
    assert openings(partial, 1) == set(range(HOSTS))
