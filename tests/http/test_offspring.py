"""A child that keeps failing is started again after ever longer pauses."""

import json
import subprocess
import sys
import time

from moorage.http.child import ORPHANED
from moorage.http.offspring import Offspring, Program


def end_of(child: Offspring) -> int:
    deadline = time.monotonic() + 20
    while (status := child.ended()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return status


def test_pauses_double_with_each_failure() -> None:
    child = Offspring(Program("nothing", "os:no_such_function", {}))
    pauses = []
    for _ in range(4):
        child.start()
        assert end_of(child) == 1
        pauses.append(round(child.due_at - time.monotonic(), 1))
    assert pauses == [0.1, 0.2, 0.4, 0.8]


def test_a_child_that_is_nobodys_does_not_begin() -> None:
    for said in (json.dumps({"parent": 1}) + "\n", '{"parent":', ""):
        run = subprocess.run(
            [sys.executable, "-m", "moorage.http.child", "os:no_such_function"],
            input=said,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert (run.returncode, run.stdout, run.stderr) == (ORPHANED, "", "")
