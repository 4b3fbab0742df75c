"""The operator's hook as a real program."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.outward.conftest import MESSAGE

from moorage.outward.program import HookProgram
from moorage.usecases.effect_dispatch import OutwardFailure

Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str) -> str:
        path = tmp_path / "hook"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_it_gets_the_message_and_its_id_and_none_of_our_settings(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_DATABASE", "postgresql://moorage:secret@db/moorage")
    hook = script(f"cat > {tmp_path}/heard; env > {tmp_path}/env; echo ended it")
    assert HookProgram(hook, 20.0)(MESSAGE) == "the hook has run: ended it"
    assert json.loads((tmp_path / "heard").read_text()) == MESSAGE.body
    environment = (tmp_path / "env").read_text().splitlines()
    assert "MOORAGE_EFFECT_ID=effect-1" in environment
    assert "MOORAGE_EFFECT_KIND=delete" in environment
    assert not any("secret" in line for line in environment)


def test_another_status_is_a_failure_with_what_it_wrote(script: Script) -> None:
    hook = script("echo no such server >&2; exit 3")
    with pytest.raises(OutwardFailure, match="status 3: no such server"):
        HookProgram(hook, 20.0)(MESSAGE)


def test_one_that_hangs_is_killed_with_all_it_started(script: Script, tmp_path: Path) -> None:
    hook = script(f"sleep 600 & echo $! > {tmp_path}/child; sleep 600")
    with pytest.raises(OutwardFailure, match=r"more than 2 s"):
        HookProgram(hook, 2.0)(MESSAGE)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 100
    while alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_it_leaves_behind_keeps_nobody_waiting(script: Script, tmp_path: Path) -> None:
    hook = script(f"(sleep 60; echo late) & echo $! > {tmp_path}/child; echo done")
    assert HookProgram(hook, 20.0)(MESSAGE) == "the hook has run: done"
    os.kill(int((tmp_path / "child").read_text()), 9)


def test_one_that_reads_nothing_or_writes_without_end_is_borne(script: Script) -> None:
    assert HookProgram(script("exec true"), 20.0)(MESSAGE) == "the hook has run"
    outcome = HookProgram(script("head -c 3000000 /dev/zero | tr '\\0' x"), 20.0)(MESSAGE)
    assert len(outcome) < 600


def test_one_that_cannot_be_run_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(OutwardFailure, match="cannot run"):
        HookProgram(str(tmp_path / "nothing"), 20.0)(MESSAGE)
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    with pytest.raises(OutwardFailure, match="cannot run"):
        HookProgram(str(text), 20.0)(MESSAGE)
