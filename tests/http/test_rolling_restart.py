"""A pass over all children ends, whatever a new process does."""

import os
import time
from pathlib import Path

import pytest

from moorage.http.child_process import ChildProcess, Program
from moorage.http.rolling_restart import DrainingProcesses, RollingRestart

SILENT = """
import signal

def main(config):
    signal.pause()
"""


def test_a_solver_that_never_becomes_ready_does_not_stop_a_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silent_child.py").write_text(SILENT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    program = Program("solver 1", "silent_child:main", {}, serves_others=True)
    children: list[ChildProcess] = []
    leaving = DrainingProcesses(lambda child: None)
    rollover = RollingRestart(children, [program], leaving, starting_seconds=0.5)
    deadline = time.monotonic() + 100
    try:
        while not rollover.step():
            for child in children:
                if child.process is None and time.monotonic() >= child.due_at:
                    child.start()
            leaving.reap()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert [child.program for child in children] == [program]
    finally:
        for child in children:
            child.finish(0)
