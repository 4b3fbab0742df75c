"""Servers that can fail over."""

from collections.abc import Iterator

import pytest
from tests.servers.pair import Pair, running_pair


@pytest.fixture
def postgres_pair() -> Iterator[Pair]:
    """Two servers of the test's own."""
    with running_pair() as pair:
        yield pair
