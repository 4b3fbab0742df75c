"""Whoever waits for a decision at a terminal sees how far its search is."""

import os
import pty
import random
import subprocess
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.cli.conftest import NOW, Cli, clean

BINS = """
fleet: bins
hosts:
  - {name: "h{n}", count: 40, inventories: {VCPU: 100}}
"""
MOORAGE = Path(sys.executable).with_name("moorage")


@pytest.fixture(scope="module")
def bins(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Forty equal hosts, and a request whose members may be packed tighter than greedily."""
    home = tmp_path_factory.mktemp("bins")
    (home / "bins.yaml").write_text(BINS)
    chance = random.Random(2)
    roles = "".join(
        f"  - {{name: r{n}, count: 1, resources: {{VCPU: {chance.randint(15, 60)}}}}}\n"
        for n in range(60)
    )
    (home / "loose.yaml").write_text(f"name: loose\nmembers:\n{roles}")
    cli = Cli(clean(state) | {"OS_CLOUD": "bins", "HOME": str(home)})
    started = cli(
        "sim", "start", "--fleet", str(home / "bins.yaml"), "--now", NOW, "--name", "bins"
    )
    assert started.status == 0, started
    return cli


def at_terminal(cli: Cli, *words: str) -> tuple[int, str]:
    """The status of a command line, and what a terminal as its stderr shows."""
    ours, theirs = pty.openpty()
    command = [str(MOORAGE), *words]
    process = subprocess.Popen(
        command, env=cli.environment, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    with closing(os.fdopen(ours, "rb", buffering=0)) as terminal:
        while True:
            try:
                part = terminal.read(4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    return process.wait(60), shown.decode()


def test_the_waiting_line_has_cost_and_bound(bins: Cli) -> None:
    description = str(Path(bins.environment["HOME"]) / "loose.yaml")
    search = ("--objective", "pack", "--time-limit", "25s", "--additional", "r1")
    status, shown = at_terminal(bins, "ensemble", "create", "-f", description, *search)
    assert status == 0, shown
    lines = [line for line in shown.split("\r") if line.startswith("deciding")]
    assert any(
        " of 25s, cost " in line and ", bound " in line and " %)" in line for line in lines
    ), shown
    assert shown.endswith("\r\x1b[K")

    listed = bins("event", "list", "--type", "decision.progress")
    assert "cost " in listed.out, listed
    progress = bins.body("event", "list", "--type", "decision.progress")["events"]
    ensemble = bins.body("ensemble", "show", "loose")["ensemble"]["id"]
    assert {one["subject"] for one in progress} == {ensemble}


class Reticent(BaseHTTPRequestHandler):
    """A service that decides slowly, and lets nobody read events."""

    def do_POST(self) -> None:
        time.sleep(2.5)
        self._refuse(503)

    def do_GET(self) -> None:
        self._refuse(403)

    def _refuse(self, status: int) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b'{"errors": [{"status": 503, "code": "ensemble.busy", "title": "too busy"}]}'
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


def test_without_events_the_line_has_the_time_alone(offline: Cli) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Reticent) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        words = ("--endpoint", url, "ensemble", "create", "--server", "m1.small")
        status, shown = at_terminal(offline, *words)
        server.shutdown()
    assert status not in {0, 130}, shown
    assert "\rdeciding  1s\x1b[K" in shown
    assert "Traceback" not in shown
    assert "too busy" in shown.rpartition("\r\x1b[K")[2]
