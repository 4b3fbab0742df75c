"""Saved instances, replayed: the cases that once went wrong, and the ones everybody talks about.

Add a file written by `engine.instance.dumps_built` (an explanation's instance is one) and a line
here saying what must come out.
"""

from pathlib import Path

import pytest

from moorage.domain.period import SECOND
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.instance import dumps_request, loads_request
from moorage.engine.joint.verify import verify
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio

HERE = Path(__file__).parent

EXPECTED: dict[str, int | str] = {
    "story-a": 0,
    "story-a-grown": "policy",
    "shapes-without-room": "static",
    # CP-SAT once forgot what preferred policies cost members that stand already.
    # Preferences go first: 11 of penalty at the scale of a fill up to 100 percent, and that fill.
    "host-in-no-rack": 1009,
    # Who stands on a banned host is accepted there, and nobody else may come.
    "fixed-on-a-banned-host": 2,
}
"""Name -> the best cost, or the stage at which it fails."""


def test_every_file_is_expected() -> None:
    assert {path.stem for path in HERE.glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_instance_comes_out_as_it_should(name: str) -> None:
    data = (HERE / f"{name}.json").read_bytes()
    built = loads_request(data)
    assert dumps_request(built) == data.strip()
    solver = Portfolio(CpSat())
    found = solver.solve(built.problem, time_limit=20 * SECOND, seed=0)
    assert found.proven
    expected = EXPECTED[name]
    if isinstance(expected, str):
        assert found.hosts is None
        why = explain(built, solver, remaining=lambda: 20.0)
        assert why.stage == expected
        assert why.conflicts
    else:
        assert found.hosts is not None
        verify(built, found.hosts)
        assert found.value == expected
