"""The order of the tests: what takes long begins first, and what belongs together stays so."""

from itertools import groupby

import pytest
from tests.distribution import APART, TOGETHER, unit_of


def test_what_takes_long_comes_first(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    units = [(unit, list(tests)) for unit, tests in groupby(items, lambda one: unit_of(one.nodeid))]
    assert len({unit for unit, _ in units}) == len(units), "a unit stays together"

    def marked(tests: list[pytest.Item], name: str) -> bool:
        return any(test.get_closest_marker(name) for test in tests)

    ranks = [(not marked(tests, "slow"), not marked(tests, "process")) for _, tests in units]
    assert ranks == sorted(ranks)


def test_the_files_that_are_dealt_out_otherwise_exist(pytestconfig: pytest.Config) -> None:
    assert all((pytestconfig.rootpath / path).exists() for path in (*APART, *TOGETHER))
