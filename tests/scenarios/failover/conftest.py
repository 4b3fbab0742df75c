"""Servers that can fail over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.servers.pair import Pair, running_pair

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def postgres_pair() -> Iterator[Pair]:
    """Two servers of the test's own."""
    with running_pair() as pair:
        yield pair
