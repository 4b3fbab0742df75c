"""What every test shares: hypothesis profiles, and no surprise from the environment."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# `push` for every run of the tests, `nightly` for the long one. No deadlines: machines are shared,
# and speed is measured in benchmarks/, never asserted here.
for name, examples in (("push", 50), ("nightly", 2_000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("MOORAGE_HYPOTHESIS") or "push")

pytest_plugins = [
    "tests.servers.postgres",
    "tests.servers.mariadb",
    "tests.servers.kinds",
    "tests.watchdog",
    "tests.distribution",
]
"""Servers that tests in several places share, started when first asked for; who ends a test;
and which worker runs what."""

# A job that a shell starts in the background ignores Ctrl-C, and so does all that it starts; the
# tests that send one to a program need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the long run ask for what every push leaves out."""
    told = "also run the tests marked nightly, as `make nightly` does"
    parser.addoption("--nightly", action="store_true", help=told)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave nightly tests out."""
    if not config.getoption("--nightly"):
        left_out = [one for one in items if one.get_closest_marker("nightly")]
        items[:] = [one for one in items if not one.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over modules and tests: they stay until the end."""
    gc.collect()
    gc.freeze()
