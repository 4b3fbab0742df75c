"""Which tests run on the same worker, and in which order they begin.

A file's tests stay together, because they share what its fixtures make. Two kinds of files are
told apart from that: those whose tests wait long and share nothing are dealt out one by one, and
folders that share a costly fixture go to one worker.
"""

from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

APART = (
    "tests/cli/test_demo.py",
    "tests/docs/test_transcripts.py",
    "tests/scenarios/crash/",
    "tests/scenarios/failover/",
    "tests/scenarios/hostile/",
    "tests/scenarios/lease_crash/",
    "tests/scenarios/soak/",
)
"""Each of their tests starts programs of its own."""
TOGETHER = {
    "tests/scenarios/keystone/": "keystone",
    "tests/scenarios/operate/test_guide.py": "keystone",
}
"""Keystone is set up once for all of them: five programs of several seconds each."""


def unit_of(nodeid: str) -> str:
    """The unit of work that a test belongs to."""
    for start, unit in TOGETHER.items():
        if nodeid.startswith(start):
            return unit
    return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]


@pytest.hookimpl(trylast=True)  # after pytest-randomly
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, which begun last would keep a single worker busy alone.

    Units with a test marked `slow` come first, then those that start processes, of equal ones
    those with more tests. Within a unit the random order stays.
    """
    units = {item: unit_of(item.nodeid) for item in items}
    tests = Counter(units.values())
    slow, starting = (
        {units[item] for item in items if item.get_closest_marker(name)}
        for name in ("slow", "process")
    )

    def turn(item: pytest.Item) -> tuple[bool, bool, int, str]:
        unit = units[item]
        return unit not in slow, unit not in starting, -tests[unit], unit

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)  # without xdist nobody asks
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Deal out units instead of files."""
    from xdist.scheduler import LoadFileScheduling

    class Units(LoadFileScheduling):  # type: ignore[misc]
        """Units of work, each in one piece."""

        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    return Units(config, log) if config.getoption("dist") == "loadfile" else None
