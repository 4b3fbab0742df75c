"""The order of the tests: what takes long begins first."""

from itertools import groupby

import pytest


def test_files_that_take_long_come_first(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    files = [(path, list(of_file)) for path, of_file in groupby(items, lambda item: item.path)]
    assert len({path for path, _ in files}) == len(files), "the tests of a file stay together"

    def marked(tests: list[pytest.Item], name: str) -> bool:
        return any(test.get_closest_marker(name) for test in tests)

    ranks = [(not marked(tests, "slow"), not marked(tests, "process")) for _, tests in files]
    assert ranks == sorted(ranks)
