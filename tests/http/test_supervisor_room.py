"""A system that has no room for a process just now costs nobody the service."""

import subprocess
import sys

SCRIPT = """
import os, resource, signal, threading, time
from moorage.http.offspring import Program
from moorage.http.supervisor import Supervisor

def squeeze():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no pipe to a child
    time.sleep(1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    time.sleep(1.5)
    os.kill(os.getpid(), signal.SIGTERM)

quick = Program("short", "builtins:len", {}, vital=False)  # ends at once, and is started again
supervisor = Supervisor(
    [quick],
    probe=lambda: None,
    on_ready=threading.Thread(target=squeeze).start,
    on_end=lambda: None,
)
print(supervisor.run())
"""


def test_a_child_that_cannot_be_started_is_started_later() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=False
    )
    lines = run.stderr.splitlines()
    refused = [number for number, line in enumerate(lines) if "cannot be started now" in line]
    ended = [number for number, line in enumerate(lines) if "it is started again" in line]
    assert refused, run.stderr
    assert "Too many open files" in lines[refused[0]]
    assert ended[-1] > refused[-1], run.stderr
    assert (run.returncode, run.stdout) == (0, "0\n")
