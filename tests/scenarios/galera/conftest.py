"""One cluster for all tests here; each leaves it whole."""

from collections.abc import Iterator

import pytest
from tests.servers.galera import Cluster, running_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes."""
    with running_cluster() as found:
        yield found
