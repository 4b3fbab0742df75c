"""A system that has no room for a process just now costs nobody the service."""

import subprocess
import sys

SCRIPT = """
import logging, os, resource, signal, sys, threading, time
from moorage.http.child_process import Program
from moorage.http.supervisor import Supervisor

class Heard(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())

def wait_for(words, since):
    while not any(words in one for one in said[since:]):
        time.sleep(0.01)

def squeeze():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no pipe to a child
    wait_for("cannot be started: ", 0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for("restarting it", len(said))
    os.kill(os.getpid(), signal.SIGTERM)

said = []
logging.getLogger().addHandler(Heard())
quick = Program("short", "builtins:len", {}, vital=False)  # ends at once, and is started again
supervisor = Supervisor(
    [quick],
    probe=lambda: None,
    on_ready=threading.Thread(target=squeeze).start,
    on_end=lambda: None,
)
print(supervisor.run())
print(*said, sep="\\n", file=sys.stderr)
"""


def test_a_child_that_cannot_be_started_is_started_later() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=200, check=False
    )
    assert (run.returncode, run.stdout) == (0, "0\n"), run.stderr
    refused = next(line for line in run.stderr.splitlines() if "cannot be started: " in line)
    assert "Too many open files" in refused
