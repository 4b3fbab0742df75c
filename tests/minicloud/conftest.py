"""One cloud for all of these tests: the one that runs (`make minicloud`), or one of their own.

They are collected where `MOORAGE_MINICLOUD` is set, as `make minicloud-test` does.
"""

import os
import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from tests.minicloud.cloud import Cloud, say, start
from tests.minicloud.layout import ROOT, Layout
from tests.minicloud.tenant import Operator, Tenant

SECONDS = 900
"""The most that a scenario takes on a busy machine, with the start of the cloud."""
FAILED = ROOT / ".cache" / "minicloud-failed"

collect_ignore_glob = [] if os.environ.get("MOORAGE_MINICLOUD") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Openstacksdk warns of its next release whatever one does; the first test starts the cloud."""
    ours = pytest.mark.filterwarnings("ignore:::openstack"), pytest.mark.timeout(SECONDS)
    for one in items:
        if one.path.is_relative_to(Path(__file__).parent):
            for mark in ours:
                one.add_marker(mark)


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what the cloud's programs have logged until a scenario failed."""
    report = yield
    running = Layout.found()
    if report.failed and running is not None and item.path.parent == Path(__file__).parent:
        kept = FAILED / re.sub(r"[^A-Za-z0-9_.-]+", "-", item.name) / call.when
        kept.mkdir(parents=True, exist_ok=True)
        for log in (*running.home.glob("*/log"), *running.home.glob("*/*.log")):
            shutil.copyfile(log, kept / f"{log.parent.name}-{log.stem}")
        report.sections.append(("the logs of the cloud", str(kept)))
    return report


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
