"""Simulations as processes: started, found, stopped, killed, interrupted."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.cli import sim_process
from moorage.client import registry

pytestmark = pytest.mark.process

NOW = "2026-11-21T09:00:00Z"
START = ("sim", "start", "--fleet", "three-racks.yaml", "--now", NOW)


def marked(mark: str) -> list[int]:
    """Live processes that inherited the mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"MOORAGE_TRANSCRIPT={mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def mark(offline: Any) -> Iterator[str]:
    """What is started is marked, and ended; another run of the tests on this machine has others."""
    name = uuid.uuid4().hex
    offline.environment["MOORAGE_TRANSCRIPT"] = name
    yield name
    for process in marked(name):
        os.kill(process, signal.SIGKILL)


def sims(environment: Mapping[str, str]) -> Path:
    return registry.state_directory(environment)


def test_a_life(offline: Any, mark: str) -> None:
    started = offline(*START)
    assert re.fullmatch(
        r"three-racks: 9 hosts, 4 domains, 4 flavors, load of 3 consumers\n"
        r"simulation moorage-sim at http://127\.0\.0\.1:\d+, its clock shows 2026-11-21T09:00:00Z\n"
        r"its page: http://127\.0\.0\.1:\d+/ui\n"
        r"to use it: export OS_CLOUD=moorage-sim\n",
        started.out,
    ), started
    again = offline(*START)
    assert (again.status, again.out) == (4, "")
    assert "runs already" in again.err
    assert "three-racks" in offline("sim", "list").out
    assert offline("sim", "clock").out == f"{NOW}\n"
    holds_lapse_when_time_is_set(offline)
    assert offline("sim", "clock", NOW).status == 4
    assert offline("sim", "clock", "tomorrow").status == 2
    assert offline("sim", "clock").out == "2026-11-21T09:10:00Z\n"
    assert offline("sim", "stop").out == "stopped moorage-sim\n"
    assert (
        offline("sim", "stop").err
        == "no simulation called moorage-sim; to see those there are: moorage sim list\n"
    )
    assert offline.body("sim", "list") == {"simulations": []}
    assert marked(mark) == []
    assert list(sims(offline.environment).iterdir()) == []


def test_its_page_is_opened_in_a_browser(offline: Any, mark: str, tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\ncurl --silent --fail "$1" > "{seen}"\n')
    browser.chmod(0o700)
    command = [sys.executable, "-m", "moorage.cli.main", *START, "--open", "-f", "json"]
    environment = {**os.environ, **offline.environment, "BROWSER": str(browser)}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    started = json.loads(ran.stdout)["simulation"]
    assert started["page"] == f"{started['endpoint']}/ui"
    assert "<title>Moorage</title>" in seen.read_text()
    assert offline("sim", "stop").status == 0


def holds_lapse_when_time_is_set(offline: Any) -> None:
    offline.environment["OS_CLOUD"] = "moorage-sim"
    made = offline.body("ensemble", "create", "--server", "m1.small", "--hold", "10m")
    shown = offline("decision", "show", made["decision"]["id"]).out
    assert re.search(r"status +held", shown)
    assert offline("sim", "clock", "2026-11-21T09:10:00Z").out == "2026-11-21T09:10:00Z\n"
    members = offline.body("member", "list", made["ensemble"]["id"])["members"]
    assert [one["status"] for one in members] == ["unplaced"]
    assert offline.body("decision", "list")["decisions"][0]["status"] == "expired"


def killed(offline: Any, mark: str) -> registry.Registration:
    """A simulation that was killed with its children."""
    assert offline(*START).status == 0
    offline.environment["OS_CLOUD"] = "moorage-sim"
    registration = registry.read(sims(offline.environment), "moorage-sim")
    assert registration is not None
    os.killpg(registration.pid, signal.SIGKILL)
    os.waitpid(registration.pid, 0)
    deadline = time.monotonic() + 100
    while marked(mark):
        assert time.monotonic() < deadline, "its children outlived it"
        time.sleep(0.05)
    return registration


def test_a_killed_simulation_is_taken_up_again(offline: Any, mark: str) -> None:
    offline(*START)
    offline.environment["OS_CLOUD"] = "moorage-sim"
    made = offline.body("ensemble", "create", "--server", "m1.small", "--hold", "10m")
    offline("sim", "clock", "2026-11-21T09:05:00Z")
    found = registry.read(sims(offline.environment), "moorage-sim")
    assert found is not None
    os.killpg(found.pid, signal.SIGKILL)
    os.waitpid(found.pid, 0)
    (listed,) = offline.body("sim", "list")["simulations"]
    assert (listed["status"], listed["endpoint"], listed["pid"]) == ("killed", None, None)
    again = offline(*START)
    assert (again.status, "moorage sim resume --name moorage-sim" in again.err) == (4, True)
    resumed = offline("sim", "resume")
    assert re.fullmatch(
        r"simulation moorage-sim at http://\S+, its clock shows 2026-11-21T09:05:00Z\n"
        r"its page: http://\S+/ui\n",
        resumed.out,
    ), resumed
    assert offline.body("sim", "list")["simulations"][0]["status"] == "running"
    held = offline.body("decision", "show", made["decision"]["id"])["decision"]
    assert held["status"] == "held"
    assert offline("sim", "resume", "moorage-sim").status == 4
    two = offline("sim", "stop", "moorage-sim", "--name", "other")
    assert (two.status, "name one simulation" in two.err) == (2, True)
    assert offline("sim", "stop", "moorage-sim").status == 0
    assert (
        offline("sim", "resume").err
        == "no simulation called moorage-sim; to see those there are: moorage sim list\n"
    )


def test_a_killed_simulation_is_said_to_be_gone(offline: Any, mark: str) -> None:
    registration = killed(offline, mark)
    told = offline("ensemble", "list")
    assert told.status == 1
    assert told.err.startswith("OS_CLOUD=moorage-sim names a simulation that was killed")
    assert "was killed" in offline("sim", "clock").err
    offline.environment["MOORAGE_ENDPOINT"] = registration.endpoint
    told = offline("ensemble", "list")
    assert "connection refused (is it running?)" in told.err
    del offline.environment["MOORAGE_ENDPOINT"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "cannot listen" in offline("sim", "resume", "--port", port).err
    assert offline.body("sim", "list")["simulations"], "what it has left is there still"
    assert offline("sim", "stop").out == "stopped moorage-sim\n"
    assert list(sims(offline.environment).iterdir()) == []


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--fleet", "no.yaml"), 1, "no.yaml: no such file"),
        (("--fleet", "shop.yaml"), 1, "line"),
        (("--fleet", "three-racks.yaml", "--now", "soon"), 2, "not a time"),
        (("--fleet", "three-racks.yaml", "--name", "../x"), 1, "not a name"),
        ((), 2, "--fleet"),
    ],
)
def test_what_cannot_start_leaves_nothing(
    words: tuple[str, ...], status: int, said: str, offline: Any, mark: str
) -> None:
    told = offline("sim", "start", *words)
    assert told.status == status
    assert said in told.err
    assert marked(mark) == []


def test_a_taken_port_is_told(offline: Any, mark: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = offline(*START, "--port", str(taken.getsockname()[1]))
    assert told.status == 1
    assert "cannot listen on 127.0.0.1" in told.err
    deadline = time.monotonic() + 100  # a child sees within a moment that its parent has gone
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(mark) == []


def test_one_that_takes_long_is_waited_for_as_long_as_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "import time; time.sleep(1); print('serving on http://127.0.0.1:9', flush=True)"
    dead = "import sys; sys.exit('no room for it')"
    silent = "import time; time.sleep(60)"

    def start(script: str, seconds: float) -> sim_process.Started:
        monkeypatch.setattr(sim_process, "START_SECONDS", seconds)
        monkeypatch.setattr(sim_process, "_command", lambda *_: [sys.executable, "-c", script])
        return sim_process.start(tmp_path / "sim", 0, port=None)

    try:
        assert start(slow, 60).endpoint == "http://127.0.0.1:9"
        with pytest.raises(sim_process.DidNotStart, match="the server ended: no room for it"):
            start(dead, 60)
        with pytest.raises(sim_process.DidNotStart, match="does not answer after 0 s: its log"):
            start(silent, 0.1)
    finally:
        sim_process.discard(tmp_path / "sim")


def program(*words: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "moorage.cli.main", *words],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("sent", "begun"),
    [
        (signal.SIGINT, "clock"),
        (signal.SIGINT, "log"),
        (signal.SIGINT, "ledger.db"),
        (signal.SIGTERM, "log"),
    ],
)
def test_an_interrupted_start_leaves_nothing(
    sent: signal.Signals, begun: str, offline: Any, mark: str
) -> None:
    fleet = ("sim", "start", "--fleet", "thousand-hosts.yaml")
    sign = sims(offline.environment) / "moorage-sim" / begun
    with program(*fleet, environment=offline.environment) as starting:
        while not sign.exists() and starting.poll() is None:
            time.sleep(0.01)
        starting.send_signal(sent)
        _, said = starting.communicate(timeout=60)
    assert starting.returncode == 130
    assert "Traceback" not in said
    assert marked(mark) == []
    assert offline.body("sim", "list") == {"simulations": []}


def test_a_resume_that_is_ended_leaves_no_server(offline: Any, mark: str) -> None:
    assert offline(*START).status == 0
    found = registry.read(sims(offline.environment), "moorage-sim")
    assert found is not None
    os.killpg(found.pid, signal.SIGKILL)
    os.waitpid(found.pid, 0)
    log = Path(found.directory) / "log"
    log.unlink()
    with program("sim", "resume", environment=offline.environment) as resuming:
        while not log.exists() and resuming.poll() is None:
            time.sleep(0.01)
        resuming.send_signal(signal.SIGTERM)
        _, said = resuming.communicate(timeout=60)
    assert resuming.returncode == 130
    assert "Traceback" not in said
    assert marked(mark) == []
    assert offline("sim", "resume").status == 0, "its database is as it was"
    assert offline("sim", "stop").status == 0


def test_ctrl_c_during_a_call_is_quiet(offline: Any) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        offline.environment["MOORAGE_ENDPOINT"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with program("ensemble", "list", environment=offline.environment) as asking:
            silent.settimeout(100)
            connection, _ = silent.accept()
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate(timeout=100)
            connection.close()
    assert (asking.returncode, out, err) == (130, "", "")
