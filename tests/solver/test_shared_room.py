"""A domain that is refused for lack of room really has none."""

import itertools
import random
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.topology import DEFAULT_TREE, HOST, Attachment, Domain, Level, Topology
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.problem_index import index_problem
from moorage.policies.primitives import AtMost, SameDomain
from moorage.solver.partial_solution import Partial
from moorage.testing.problems import Host, request, statement, terrain

HOSTS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=2, max_size=4)


@given(
    hosts=HOSTS,
    count=st.integers(1, 3),
    apart=st.sampled_from([None, "a", "*"]),
    most=st.integers(1, 2),
)
def test_an_anchor_is_kept_out_only_where_the_others_do_not_fit(
    hosts: list[tuple[int, int]], count: int, apart: str | None, most: int
) -> None:
    names = {f"h{number}": (f"r{rack}", free) for number, (rack, free) in enumerate(hosts)}
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(rack, "rack") for rack in ("r0", "r1")],
        [Attachment(name, rack) for name, (rack, _) in names.items()],
    )
    policies = [statement("near", "affinity", "a", "b", level="rack")]
    if apart:
        policies.append(statement("apart", "anti-affinity", apart, max_per_domain=most))
    asked = request({"a": (count, {"VCPU": 2}), "b": (1, {"VCPU": 1})}, policies)
    fleet = terrain([Host(name, {"VCPU": free}) for name, (_, free) in names.items()], topology)
    problem = build_on_terrain(asked, fleet).problem
    every = np.array(list(itertools.product(range(len(hosts)), repeat=count + 1)))
    valid = every[satisfies(problem, every)]
    partial = Partial(index_problem(problem))
    for m in range(count + 1):
        found = partial.candidates(m)
        open_rows = set(found.rows[np.isfinite(found.costs)].tolist())
        assert set(valid[:, m].tolist()) <= open_rows


def test_members_on_hosts_of_their_own_need_as_many_hosts() -> None:
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain("r0", "rack"), Domain("r1", "rack")],
        [Attachment("h0", "r0"), Attachment("h1", "r1"), Attachment("h2", "r1")],
    )
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}) for n in range(3)], topology)
    policies = [
        statement("near", "affinity", "a", level="rack"),
        statement("apart", "anti-affinity", "a"),
    ]
    problem = build_on_terrain(request({"a": (2, {"VCPU": 1})}, policies), fleet).problem
    found = Partial(index_problem(problem)).candidates(0)
    assert found.rows[np.isfinite(found.costs)].tolist() == [1, 2]


def test_a_host_that_others_fill_to_its_limit_is_none_for_the_members() -> None:
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain("r0", "rack"), Domain("r1", "rack")],
        [Attachment(f"h{n}", f"r{n // 2}") for n in range(4)],
    )
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}) for n in range(4)], topology)
    policies = [
        statement("near", "affinity", "a", level="rack"),
        statement("apart", "anti-affinity", "*"),
    ]
    asked = request({"a": (2, {"VCPU": 1}), "z": (1, {"VCPU": 1})}, policies)
    partial = Partial(index_problem(build_on_terrain(asked, fleet).problem))
    partial.place(2, 1)
    found = partial.candidates(0)
    assert found.rows[np.isfinite(found.costs)].tolist() == [2, 3]


@given(
    hosts=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), min_size=2, max_size=6),
    steps=st.lists(st.integers(0, 5), max_size=6),
    apart=st.sampled_from(["a", "*"]),
)
def test_room_is_the_same_as_if_it_were_computed_anew(
    hosts: list[tuple[int, int]], steps: list[int], apart: str
) -> None:
    """While others come and go, who share hosts and perhaps the limit of a host with the pair."""
    names = {f"h{number}": (f"r{rack}", free) for number, (rack, free) in enumerate(hosts)}
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(f"r{rack}", "rack") for rack in range(3)],
        [Attachment(name, rack) for name, (rack, _) in names.items()],
    )
    policies = [
        statement("near", "affinity", "a", level="rack"),
        statement("apart", "anti-affinity", apart, max_per_domain=2),
    ]
    asked = request({"a": (3, {"VCPU": 2}), "z": (3, {"VCPU": 1})}, policies)
    fleet = terrain([Host(name, {"VCPU": free}) for name, (_, free) in names.items()], topology)
    index = index_problem(build_on_terrain(asked, fleet).problem)
    kept = Partial(index)
    for step in steps:
        kept.candidates(0)
        m, row = 3 + step % 3, step % len(hosts)
        if kept.row_of[m] >= 0:
            kept.undo(m)
        elif kept.free[0, row] > 0:
            kept.place(m, row)
    anew = Partial(index)
    for m in (3, 4, 5):
        if kept.row_of[m] >= 0:
            anew.place(m, int(kept.row_of[m]))
    assert kept.candidates(0).costs.tolist() == anew.candidates(0).costs.tolist()


@given(dice=st.randoms(use_true_random=False))
def test_room_is_renewed_for_all_rows_of_a_host(dice: random.Random) -> None:
    """Servers that offer slices are rows of their own, and a limit counts for the host of them."""
    racks = [Domain("r0", "rack"), Domain("r1", "rack")]
    places = [Attachment(f"h{n}", f"r{n % 2}") for n in range(3)]
    servers = [Host(f"s{n}", {"VCPU": 4}, standing_on=f"h{dice.randrange(3)}") for n in range(3)]
    fleet = terrain(
        [*(Host(f"h{n}", {"VCPU": 4}) for n in range(3)), *servers],
        Topology.build({"location": ("rack",)}, racks, places),
    )
    asked = request({"a": (2, {"VCPU": 1}), "z": (3, {"VCPU": 1})})
    problem = build_on_terrain(asked, fleet).problem
    host, rack = Level(DEFAULT_TREE, HOST), Level(DEFAULT_TREE, "rack")
    limit = dice.randint(1, 3)
    problem = replace(
        problem,
        allowed=np.ones_like(problem.allowed),
        domains={level: fleet.domains(level) for level in (host, rack)},
        primitives=(
            SameDomain(policy="near", members=problem.members[:2], level=rack),
            AtMost(policy="apart", members=problem.members, level=host, limit=limit),
        ),
    )
    kept = Partial(index_problem(problem))
    for _ in range(10):
        kept.candidates(0)
        m = 2 + dice.randrange(3)
        if kept.row_of[m] >= 0:
            kept.undo(m)
        elif found := openings(kept, m):
            kept.place(m, dice.choice(sorted(found)))
        fresh = Partial(kept.index)
        for other in range(2, 5):
            if kept.row_of[other] >= 0:
                fresh.place(other, int(kept.row_of[other]))
        assert openings(kept, 0) == openings(fresh, 0)


def openings(partial: Partial, m: int) -> set[int]:
    """The hosts that are open to a member now."""
    found = partial.candidates(m)
    return set(found.rows[np.isfinite(found.costs)].tolist())
