"""One cluster for all tests here; each leaves it whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.servers.galera import Cluster, running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes."""
    with running_cluster() as found:
        yield found
