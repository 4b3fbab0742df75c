"""Ends the process of a test that does not end, even one that no Python code could interrupt.

`pytest-timeout` needs the interpreter's lock to say that a test took too long. A test that waits
in compiled code with the lock held never gives it back; so a little later the interpreter's own
watchdog, which needs no lock, tells where every thread stands and leaves. With xdist's
`--max-worker-restart=0` the run then fails, and names the test.
"""

import faulthandler
import os
import sys
from collections.abc import Generator

import pytest

LATER = 30.0
"""Seconds that `pytest-timeout`, which also tells what the test printed, goes before."""

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error, which is captured while tests run."""
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)


def pytest_unconfigure(config: pytest.Config) -> None:
    faulthandler.cancel_dump_traceback_later()
    os.close(config.stash[_stderr])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    seconds = _limit(item)
    if not seconds:
        return (yield)
    told = item.config.stash[_stderr]
    faulthandler.dump_traceback_later(seconds + LATER, exit=True, file=told)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit(item: pytest.Item) -> float:
    """What `pytest-timeout` allows this test, in seconds; 0 is for ever."""
    marked = item.get_closest_marker("timeout")
    given = item.config.getoption("timeout", default=None)
    if marked:
        return float(marked.args[0])
    return float(item.config.getini("timeout") if given is None else given)
