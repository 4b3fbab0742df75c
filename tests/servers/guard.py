"""Ends servers whose tests were killed.

A run that a timeout or a `kill -9` ends takes down no fixture. So one small process waits until the
process of the tests is gone, by the end of a pipe, and then kills what that has started and not
ended. It is in a session of its own: what kills the tests' group does not kill it.
"""

import atexit
import subprocess
import sys
from functools import cache
from threading import Lock
from typing import IO, Final

_WAIT: Final = """
import os, signal, sys
left = set()
for line in sys.stdin:
    sign, pid = line[0], int(line[1:])
    (left.add if sign == "+" else left.discard)(pid)
for pid in left:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
"""


_ONE_AT_A_TIME: Final = Lock()


@cache
def _pipe() -> IO[str]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", _WAIT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None

    def end() -> None:
        process.communicate()

    atexit.register(end)
    return process.stdin


def guard(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill the process, which leads a group of its own, and the group if the tests are killed."""
    _tell(f"+{process.pid}")


def released(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """It has ended: its number may be somebody else's from now on."""
    _tell(f"-{process.pid}")


def _tell(line: str) -> None:
    with _ONE_AT_A_TIME:
        _pipe().write(f"{line}\n")
        _pipe().flush()
