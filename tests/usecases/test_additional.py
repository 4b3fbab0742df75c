"""`max_additional` is exact: compared with placing more, one count after the other."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Contradiction, Infeasible
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.decide.request import RefusalDetail, RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.extend import Extension, extend
from moorage.usecases.ensembles.size_changes import RoleCounts
from moorage.usecases.ports import Solver

POLICIES: dict[str, dict[str, Any]] = {
    "apart": {"type": "anti-affinity", "members": ["a"], "level": "host", "max_per_domain": 2},
    "even": {"type": "spread", "members": ["a"], "level": "rack", "max_skew": 1},
    "ha": {"type": "survive", "members": ["a"], "level": "rack", "keep": 1},
    "near": {"type": "affinity", "members": ["a"], "level": "rack"},
    "off": {"type": "ban", "members": ["a"], "domains": ["r2"]},
    "pairs": {"type": "proximity", "zip": ["a", "b"], "level": "rack"},
}


def test_it_is_the_largest_number_that_fits(service: Service) -> None:
    @settings(max_examples=12, deadline=None)
    @given(
        st.integers(2, 3),
        st.integers(3, 8),  # r3 has no room for 9, and `even` needs every rack
        st.sets(st.sampled_from(sorted(POLICIES)), max_size=3),
    )
    def check(count: int, size: int, chosen: set[str]) -> None:
        if chosen & {"near", "off"} and chosen & {"ha", "even"}:
            # These exclude one another on three racks.
            chosen = chosen - {"near", "off"}
        description = {
            "name": "e",
            "members": [
                {"name": "a", "count": count, "resources": {"VCPU": size}},
                {"name": "b", "count": 1, "resources": {"VCPU": 2}},
            ],
            "policies": [{"name": name, **POLICIES[name]} for name in sorted(chosen)],
        }
        made = create_ensemble(
            service.env,
            OPERATOR,
            read_ensemble(description),
            DecisionOptions(additional=("a",)),
            RequestIdentity(service.env.ids.uuid()),
        )
        assert made.decision is not None
        assert made.decision.at_least == frozenset()
        told = made.decision.max_additional["a"]
        path = f"/ensembles/{made.ensemble.id}"
        for more in range(1, told + 2):
            answer = service.call(
                "PATCH",
                path,
                {"ensemble": {"members": [{"name": "a", "count": count + more}]}},
                caller=OPERATOR,
                headers={"If-Match": "*"},
                query={"dry_run": "true"},
            )
            assert (answer.status_code == 200) == (more <= told), (description, told, more)
        service.call("DELETE", path, caller=OPERATOR, headers={"If-Match": "*"})

    check()


MORE: dict[str, dict[str, Any]] = {
    **POLICIES,
    "level": {"type": "spread", "members": ["a"], "level": "rack", "max_skew": 0},
    "both": {"type": "spread", "members": ["a", "b"], "level": "rack", "max_skew": 1},
    "least": {"type": "spread", "members": ["a"], "level": "rack", "min_domains": 2},
    "spare": {"type": "survive", "members": ["a", "b"], "level": "rack", "keep": 2},
    "far": {"type": "separation", "zip": ["a", "b"], "level": "rack"},
    "beside": {"type": "proximity", "between": [["a"], ["b"]], "level": "rack"},
    "three": {"type": "spread", "members": ["a"], "level": "rack", "min_domains": 3},
    "hosts": {"type": "spread", "members": ["a"], "level": "host", "max_skew": 0},
    "one": {"type": "anti-affinity", "members": ["a", "b"], "level": "host"},
}


class Grown:
    """An ensemble of two roles under some policies, with what is told of its growth."""

    def __init__(self, service: Service, counts: dict[str, int], chosen: list[str]) -> None:
        self._service = service
        roles = {"a": 5, "b": 2}
        description = {
            "name": "e",
            "members": [
                {"name": role, "count": counts[role], "resources": {"VCPU": size}}
                for role, size in roles.items()
            ],
            "policies": [{"name": name, **MORE[name]} for name in chosen],
            "decide": {"max_additional": ["a", "b", "a+b"]},
        }
        made = service.call("POST", "/ensembles", {"ensemble": description}, caller=OPERATOR)
        self.made = made.status_code == 201
        if self.made:
            self.path = f"/ensembles/{made.json['ensemble']['id']}"
            self.told = made.json["decision"]["max_additional"]

    def extends(self, name: str, count: int, *, dry_run: bool = False) -> bool:
        """Whether so many more of each of these roles are granted, as without an explanation."""
        env = self._service.env.in_dry_run() if dry_run else self._service.env
        counts = RoleCounts(dict.fromkeys(name.split("+"), count))
        asked = Extension(counts, refusal=RefusalDetail.NONE)
        ensemble, identity = self.path.removeprefix("/ensembles/"), RequestIdentity(env.ids.uuid())
        try:
            extend(env, OPERATOR, ensemble, asked, identity)
        except (Contradiction, Infeasible):
            return False
        return True

    def fit(self, role: str) -> dict[str, Any]:
        body = {"fit": {"ensemble_id": self.path.removeprefix("/ensembles/"), "role": role}}
        told = self._service.call("POST", "/capacity/fit", body, caller=OPERATOR).json["fit"]
        return {"count": told["additional"], "exact": told["exact"], "step": told["step"]}

    def delete(self) -> None:
        self._service.call("DELETE", self.path, caller=OPERATOR, headers={"If-Match": "*"})


def test_a_number_is_reached_at_once_and_by_its_step(service: Service) -> None:
    """Every number that is told, by extensions that are carried out one after the other."""
    seen = Counter[int]()

    @settings(max_examples=15, deadline=None)
    @given(
        st.integers(0, 3),
        st.integers(1, 2),
        st.lists(st.sampled_from(sorted(MORE)), max_size=3, unique=True),
        st.sampled_from(["a", "b", "a+b"]),
    )
    def check(a: int, b: int, chosen: list[str], name: str) -> None:
        grown = Grown(service, {"a": a, "b": b}, chosen)
        if not grown.made:
            return
        told = grown.told[name]
        if "+" not in name and told["exact"]:  # what time cut short differs from call to call
            assert grown.fit(name) == told
        count, step = told["count"], told["step"]
        if count:
            assert grown.extends(name, count, dry_run=True), told
        if told["exact"]:
            for more in range(1, 4):
                assert not grown.extends(name, count + more, dry_run=True), told
        assert count % step == 0
        for _ in range(count // step):
            assert grown.extends(name, step), told
        seen[min(step, 2)] += count > 0
        grown.delete()

    check()
    assert len(seen) > 1, seen


def test_a_skew_of_nothing_is_grown_in_rounds(service: Service) -> None:
    grown = Grown(service, {"a": 3, "b": 1}, ["level"])
    assert grown.told["a"] == {"count": 6, "exact": True, "step": 3}
    assert grown.fit("a") == grown.told["a"]
    granted = [more for more in range(1, 8) if grown.extends("a", more, dry_run=True)]
    assert granted == [3, 6]


EVEN_RACKS = """\
fleet: even
topology:
  location: {levels: [rack], domains: [{name: r1, level: rack}, {name: r2, level: rack}]}
hosts:
  - {name: "h{n}", count: 4, inventories: {VCPU: 16}, place: {location: [r1, r2]}}
"""


@pytest.mark.parametrize(
    ("present", "chosen", "count", "step"),
    [
        (0, ["three"], 20, 4),  # once there are three, one by one; 20 is no multiple of 3
        (0, ["ha"], 20, 2),
        (0, ["apart", "ha", "three"], 14, 7),
        (0, ["level", "three"], 6, 3),
        (0, ["near"], 9, 9),  # in the rack of the first there may be less room
        (0, ["hosts", "level"], 8, 4),
        (4, ["hosts", "level"], 4, 4),
    ],
)
def test_steps_are_no_coarser_than_true(
    three_racks: str, present: int, chosen: list[str], count: int, step: int
) -> None:
    service = Service(EVEN_RACKS if "hosts" in chosen else three_racks)
    grown = Grown(service, {"a": present, "b": 1}, chosen)
    assert grown.told["a"] == {"count": count, "exact": True, "step": step}
    assert grown.fit("a") == grown.told["a"]
    for _ in range(count // step):
        assert grown.extends("a", step)
    service.close()


class KnowsOneAnswer:
    """Solves once; whatever is asked afterwards takes its whole limit and stays unknown."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._asked = False
        self.limits: list[int] = []

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        if not self._asked:
            self._asked = True
            return self._solver.solve(problem, time_limit=time_limit, seed=seed)
        self.limits.append(time_limit)
        return Outcome(Verdict.UNKNOWN, "slow", wall_ms=time_limit / 1000)


def test_counting_for_all_roles_takes_less_time_than_one_decision_may(service: Service) -> None:
    solver = KnowsOneAnswer(service.env.solver)
    names = ("a", "b", "c")
    made = create_ensemble(
        replace(service.env, solver=solver),
        OPERATOR,
        read_ensemble(
            {"name": "e", "members": [{"name": n, "resources": {"VCPU": 1}} for n in names]}
        ),
        DecisionOptions(additional=names),
        RequestIdentity(service.env.ids.uuid()),
    )
    assert made.decision is not None
    assert made.decision.max_additional == dict.fromkeys(names, 0)
    assert made.decision.at_least == frozenset(names)
    assert solver.limits
    assert sum(solver.limits) < service.env.limits.time_limit
