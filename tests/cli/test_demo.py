"""The demonstration, whole, interrupted and disappointed."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.demo import Run, Unexpected
from moorage.cli.demo_script import EDGE, SHOP, SIXTY, Step

pytestmark = pytest.mark.process


@pytest.fixture
def demo(offline: Any, tmp_path: Path) -> Iterator[Any]:
    """Starts the demonstration with all it leaves behind marked."""
    mark = f"demo-{uuid.uuid4().hex}"
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "moorage.cli.main", "demo", *words],
            env=offline.environment | {"MOORAGE_TRANSCRIPT": mark, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.communicate()
    left = [
        entry.name
        for entry in Path("/proc").glob("[0-9]*")
        if f"MOORAGE_TRANSCRIPT={mark}".encode() in environ(entry)
    ]
    for name in left:
        os.kill(int(name), signal.SIGKILL)
    assert not left, "it left processes running"
    assert not list(tmp_path.glob("moorage-demo-*")), "it left files"


def environ(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "story"),
    [
        pytest.param((), (*SHOP, *SIXTY), id="places"),
        pytest.param(("--leases",), EDGE, id="leases", marks=pytest.mark.nightly),
    ],
)
def test_it_keeps_every_promise(words: tuple[str, ...], story: tuple[Step, ...], demo: Any) -> None:
    process = demo(*words)
    out, err = process.communicate(timeout=110)
    assert (process.returncode, err) == (0, ""), out
    commands = re.findall(r"^\$ moorage (.*)$", out, re.MULTILINE)
    assert len(commands) == len(story)
    assert f"# {len(commands)} commands, all as expected, in " in out
    assert "\x1b" not in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_leaves_nothing(number: int, demo: Any) -> None:
    process = demo("--brief")
    seen = ""
    while "ensemble create" not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step("policy list", (r"^gravity",)), "in its output"),
        (Step("policy list", status=3), "exit status 0, expected 3"),
        (Step("policy show gravity"), "exit status 1, expected 0"),
    ],
)
def test_a_broken_promise_fails_loudly(step: Step, said: str, offline: Any, tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("w", encoding="utf-8") as out,
        pytest.raises(Unexpected, match=said),
    ):
        Run(out).step(step)
