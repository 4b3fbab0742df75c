"""The greedy search on shapes where one-at-a-time fails, and on a fleet of a thousand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain import search_progress
from moorage.domain.period import SECOND
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.terrain import Terrain
from moorage.engine.joint.verify import verify
from moorage.solver.greedy import Greedy
from moorage.testing.problems import Host, request, statement, story_a, terrain

LIMIT = 20 * SECOND


def racks(free: dict[str, tuple[int, ...]]) -> Terrain:
    """Rack -> free VCPU of its hosts."""
    names = {f"{rack}-{i}": (rack, n) for rack, row in free.items() for i, n in enumerate(row)}
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(rack, "rack") for rack in free],
        [Attachment(name, rack) for name, (rack, _) in names.items()],
    )
    return terrain([Host(name, {"VCPU": n}) for name, (_, n) in names.items()], topology)


def placed(asked: EnsembleRequest, fleet: Terrain) -> BuiltProblem:
    built = build_on_terrain(asked, fleet)
    found = Greedy().solve(built.problem, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.FEASIBLE
    assert found.hosts is not None
    verify(built, found.hosts)
    return built


def test_plain_members_leave_scarce_hosts_to_those_who_need_them() -> None:
    asked = request({"small": (6, {"VCPU": 1}), "big": (2, {"VCPU": 8})})
    placed(asked, racks({"r1": (8, 8), "r2": (2, 2, 2)}))


def test_a_domain_to_share_is_chosen_by_joint_room() -> None:
    """r1 has the emptiest host, but only r2 has room for all three together."""
    near = statement("near", "proximity", "a", level="rack")
    placed(request({"a": (3, {"VCPU": 4})}, [near]), racks({"r1": (10, 3), "r2": (4, 4, 4)}))


def test_a_block_that_does_not_fit_is_undone_and_tried_elsewhere() -> None:
    """Slots and sums say r1 fits; its shapes do not."""
    near = statement("near", "proximity", "*", level="rack")
    apart = statement("apart", "anti-affinity", "b")
    asked = request({"a": (1, {"VCPU": 6}), "b": (3, {"VCPU": 3})}, [near, apart])
    placed(asked, racks({"r1": (12, 8, 2), "r2": (6, 3, 3, 3)}))


def test_searches_beside_each_other_prefer_different_hosts() -> None:
    fleet = racks({f"r{i}": (16,) * 20 for i in range(20)})
    apart = statement("apart", "anti-affinity", "a")
    built = build_on_terrain(request({"a": (20, {"VCPU": 8})}, [apart]), fleet)
    found = {
        scatter: Greedy(scatter=scatter).solve(built.problem, time_limit=LIMIT, seed=0)
        for scatter in (None, 0, 1)
    }
    assert all(one.proven for one in found.values())
    hosts = [set(one.hosts.tolist()) for one in found.values() if one.hosts is not None]
    assert sum(map(len, hosts)) == 60
    assert len(set.union(*hosts)) > 50
    again = Greedy(scatter=1).solve(built.problem, time_limit=LIMIT, seed=0)
    assert again.hosts is not None
    assert set(again.hosts.tolist()) == hosts[2]


def test_story_a_on_every_seed() -> None:
    built = story_a()
    for seed in range(30):
        found = Greedy().solve(built.problem, time_limit=LIMIT, seed=seed)
        assert found.proven


@pytest.mark.parametrize("members", [12, 60])
def test_a_mixed_ensemble_on_a_thousand_hosts(members: int) -> None:
    third = members // 3
    asked = request(
        {
            "web": (third, {"VCPU": 2}),
            "app": (third, {"VCPU": 4}),
            "db": (members - 2 * third, {"VCPU": 8}),
        },
        [
            statement("web", "spread", "web", level="rack", min_domains=3, max_skew=1),
            statement("apart", "anti-affinity", "*"),
            statement("pair", "proximity", "app", "db", zip_=True, level="rack"),
            statement("ha", "survive", "db", level="rack", keep=third // 2),
        ],
    )
    noise = np.random.default_rng(0)
    fleet = racks({f"r{i:02}": tuple(noise.integers(0, 33, 25).tolist()) for i in range(40)})
    built = placed(asked, fleet)
    again = Greedy().solve(replace(built.problem), time_limit=LIMIT, seed=1)
    assert again.verdict is Verdict.FEASIBLE


@given(
    pieces=st.lists(
        st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4), min_size=1, max_size=4
    )
)
def test_hosts_that_sizes_fill_exactly_are_filled_at_the_second_attempt(
    pieces: list[list[int]],
) -> None:
    """Largest first packs sizes that divide each other whenever anything does."""
    counts = Counter(size for mine in pieces for size in mine)
    asked = request({f"size{size}": (count, {"VCPU": size}) for size, count in counts.items()})
    hosts = [Host(f"h{number}", {"VCPU": sum(mine)}) for number, mine in enumerate(pieces)]
    built = build_on_terrain(asked, terrain(hosts, Topology.build({}, [], [])))
    found = Greedy(attempts=2).solve(built.problem, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.FEASIBLE


def test_the_first_attempt_places_the_scarce_first_though_they_be_small() -> None:
    """Two of size 1 want a half of the slots each, one of size 2 only one of two."""
    asked = request({"one": (2, {"VCPU": 1}), "two": (1, {"VCPU": 2})})
    built = build_on_terrain(asked, racks({"r1": (2, 2)}))
    verdicts = [
        Greedy(attempts=attempts).solve(built.problem, time_limit=LIMIT, seed=0).verdict
        for attempts in (1, 2)
    ]
    assert verdicts == [Verdict.UNKNOWN, Verdict.FEASIBLE]


def test_members_that_prefer_one_domain_start_where_all_of_them_fit() -> None:
    """r1 has the emptiest host, and room for two; r2 has room for all three."""
    near = statement("near", "proximity", "a", level="rack", weight=1)
    asked = request({"a": (3, {"VCPU": 4})}, [near], objective=Objective.PACK)
    fleet = racks({"r1": (10, 3), "r2": (4, 4, 4)})
    built = build_on_terrain(asked, fleet)
    found = Greedy(polishing=0).solve(built.problem, time_limit=LIMIT, seed=0)
    assert found.hosts is not None
    assert found.hosts.tolist() == [2, 3, 4]


def test_a_restart_improves_an_answer_that_is_not_proved_the_best() -> None:
    # The roomiest rack comes first, and there two of the three share a host.
    fleet = racks({"few": (16, 8), "many": (8, 8, 8)})
    near = statement("near", "affinity", "a", level="rack")
    built = build_on_terrain(request({"a": (3, {"VCPU": 8})}, [near]), fleet)
    first = Greedy(improving=0).solve(built.problem, time_limit=LIMIT, seed=0)
    assert (first.value, first.proven) == (1, False)
    found = Greedy().solve(built.problem, time_limit=LIMIT, seed=0)
    assert (found.value, found.proven) == (0, True)


def test_an_answer_is_improved_for_a_part_of_the_time_limit_only() -> None:
    """An attempt that would take longer is not begun: it cannot be ended, and time may run out."""
    fleet = racks({f"r{rack}": (40,) * 20 for rack in range(20)})
    near = statement("near", "affinity", "a", level="rack", weight=1)
    built = build_on_terrain(request({"a": (200, {"VCPU": 7})}, [near]), fleet)
    first = [Greedy(improving=0).solve(built.problem, time_limit=LIMIT, seed=0) for _ in range(5)]
    assert not first[0].proven
    twice = int(2 * min(one.wall_ms for one in first) / 1000 * SECOND)
    for time_limit, attempts in ((twice, 1), (10 * LIMIT, 5)):
        seen: list[search_progress.SearchProgress] = []
        with search_progress.listening(seen.append):
            Greedy().solve(built.problem, time_limit=time_limit, seed=0)
        assert sum(one.value is None for one in seen) == attempts


def test_counting_proves_what_the_first_attempt_cannot_place() -> None:
    apart = statement("apart", "anti-affinity", "a", level="rack")
    built = build_on_terrain(
        request({"a": (3, {"VCPU": 8})}, [apart]), racks({"r1": (8, 8), "r2": (8, 8)})
    )
    found = Greedy().solve(built.problem, time_limit=LIMIT, seed=0)
    assert (found.verdict, found.solver) == (Verdict.INFEASIBLE, "counting")
