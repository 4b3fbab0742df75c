"""One cloud for all of these tests: the one that runs (`make minicloud`), or one of their own.

They are collected where `MOORAGE_MINICLOUD` is set, as `make minicloud-test` does.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.minicloud.cloud import Cloud, say, start
from tests.minicloud.layout import Layout
from tests.minicloud.tenant import Operator, Tenant

collect_ignore_glob = [] if os.environ.get("MOORAGE_MINICLOUD") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Openstacksdk warns of its next release whatever one does."""
    ours = pytest.mark.filterwarnings("ignore:::openstack")
    for one in items:
        if one.path.is_relative_to(Path(__file__).parent):
            one.add_marker(ours)


@pytest.fixture(scope="session")
def cloud() -> Iterator[Cloud]:
    running = Layout.found()
    if running is not None:
        yield Cloud(running)
        return
    layout = Layout.made()
    try:
        yield start(layout, say)
    finally:
        Cloud(layout).stop()


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


@pytest.fixture
def demo(cloud: Cloud) -> Iterator[Tenant]:
    with Tenant(cloud) as tenant:
        yield tenant


@pytest.fixture
def neighbour(cloud: Cloud) -> Iterator[Tenant]:
    with Tenant(cloud, "neighbour", "other") as tenant:
        yield tenant
