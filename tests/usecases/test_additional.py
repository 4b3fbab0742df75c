"""`max_additional` is exact: compared with placing more, one count after the other."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.domain.describe import read_ensemble
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
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
