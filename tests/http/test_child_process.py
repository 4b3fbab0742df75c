"""A child that keeps failing is started again after ever longer pauses."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moorage.http.child_main import ORPHANED
from moorage.http.child_process import ChildProcess, Program


def end_of(child: ChildProcess) -> int:
    deadline = time.monotonic() + 100
    while (status := child.ended()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return status


def test_pauses_double_with_each_failure() -> None:
    child = ChildProcess(Program("nothing", "os:no_such_function", {}))
    for pause in (0.1, 0.2, 0.4, 0.8):
        child.start()
        before = time.monotonic()
        assert end_of(child) == 1
        assert before + pause <= child.due_at <= time.monotonic() + pause


def test_threads_of_a_child_take_short_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit gives way at each statement, and keeps other writers out until it goes on."""
    (tmp_path / "turns.py").write_text(
        "import pathlib, sys\n"
        "def tell(config):\n"
        "    pathlib.Path(config['told']).write_text(str(sys.getswitchinterval()))\n"
    )
    told = tmp_path / "told"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = ChildProcess(Program("turns", "turns:tell", {"told": str(told)}))
    child.start()
    assert end_of(child) == 0
    assert float(told.read_text()) < 0.001


def test_a_child_that_is_nobodys_does_not_begin() -> None:
    for said in (json.dumps({"parent": 1}) + "\n", '{"parent":', ""):
        run = subprocess.run(
            [sys.executable, "-m", "moorage.http.child_main", "os:no_such_function"],
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stdout, run.stderr) == (ORPHANED, "", "")
