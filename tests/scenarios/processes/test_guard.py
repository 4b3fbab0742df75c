"""A run of the tests that is killed leaves no server behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.process

TESTS = """
import subprocess, sys, time
from tests.servers.guard import guard, released
programs = [subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(2)]
for one in programs:
    guard(one)
released(programs[1])
print(*(one.pid for one in programs), flush=True)
time.sleep(60)
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_was_started_ends_with_the_tests_unless_released() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TESTS], stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        guarded, free = map(int, tests.stdout.readline().split())
        assert is_running(guarded)
        tests.kill()
    try:
        deadline = time.monotonic() + 100
        while is_running(guarded):
            assert time.monotonic() < deadline, "it is left behind"
            time.sleep(0.02)
        assert is_running(free)
    finally:
        os.kill(free, signal.SIGKILL)
