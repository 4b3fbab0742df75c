"""Does what the operator's guide says, in its words, and then kills a replica under load."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.docs.test_transcripts import matches
from tests.scenarios.operate.conftest import GUIDE, ROOT, Cloud, guide

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]


def put_in_place(cloud: Cloud) -> None:
    for name, content in guide().files.items():
        (cloud.folder / name).write_text(cloud.here(content))


@pytest.mark.nightly
def test_the_guide_leads_to_three_replicas_that_lose_nothing(cloud: Cloud, packaging: Path) -> None:
    put_in_place(cloud)
    steps = guide().steps
    assert len(steps) >= 19, "the guide has lost its commands"
    for step in steps:
        where = f"{GUIDE.name}:{step.line}: $ {step.command}"
        try:
            status, actual = cloud.shell.run(cloud.here(step.command))
        except AssertionError as error:
            raise AssertionError(f"{where}\n{error}\n--- logs\n{cloud.logs()}") from error
        shown = [cloud.here(line) for line in step.expected]
        said = "\n".join([where, "--- the page shows", *shown, "--- it printed", *actual])
        assert matches(shown, actual), f"{said}\n--- logs\n{cloud.logs()}"
        assert status == 0, f"{said}\n--- logs\n{cloud.logs()}"
    nothing_acknowledged_is_lost(cloud)


STRANGER, SERVICE = 65533, 65534
"""Two users that are not root, of groups with the same numbers."""


def test_the_service_can_read_what_the_guide_installs_and_nobody_else_can() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can install files for a user and read them as another")
    unit = (ROOT / "packaging" / "systemd" / "moorage.service").read_text()
    assert {"User=moorage", "Group=moorage"} <= set(unit.splitlines())
    commands = [one.command for one in guide().steps if "/etc/moorage" in one.command]
    installing = [one for one in commands if one.startswith("install ")]
    assert len(installing) == 2, "the guide makes the folder and puts the file there"
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "etc").mkdir(mode=0o755)
        (Path(name) / "moorage.conf").write_text(guide().files["moorage.conf"])
        for command in installing:
            here = command.replace("/etc/", f"{name}/etc/").replace("-g moorage", f"-g {SERVICE}")
            subprocess.run(here, shell=True, cwd=name, check=True)
        assert "ledger-password" in read_as(SERVICE, Path(name) / "etc/moorage/moorage.conf")
        assert read_as(STRANGER, Path(name) / "etc/moorage/moorage.conf") == ""


def read_as(user: int, file: Path) -> str:
    """What a user, of the group of that number alone, reads in a file."""
    done = subprocess.run(
        ["cat", file], user=user, group=user, extra_groups=[], capture_output=True, check=False
    )
    return done.stdout.decode()


class Writer:
    """Makes providers through haproxy, and remembers which were acknowledged."""

    def __init__(self, cloud: Cloud, token: str) -> None:
        self._url = f"http://127.0.0.1:{cloud.ports['moorage']}/placement/resource_providers"
        self._token = token
        self.acknowledged: list[str] = []
        self.unanswered = 0
        self.refused: list[str] = []
        self.stop = threading.Event()

    def ask(self, body: object = None) -> Any:
        headers = {"X-Auth-Token": self._token, "OpenStack-API-Version": "placement 1.39"}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(self._url, data, headers)
        with urllib.request.urlopen(request, timeout=100) as answer:
            return json.load(answer)

    def run(self) -> None:
        while not self.stop.is_set():
            name = str(uuid.uuid4())
            try:
                self.ask({"name": name})
            except urllib.error.HTTPError as error:
                with error:
                    if error.code in {502, 503, 504}:
                        self.unanswered += 1
                    else:
                        self.refused.append(f"{error.code} {error.read()!r}")
            except OSError:
                self.unanswered += 1
            else:
                self.acknowledged.append(name)


def nothing_acknowledged_is_lost(cloud: Cloud) -> None:
    status, lines = cloud.shell.run("openstack token issue --format value --column id")
    assert status == 0, lines
    writers = [Writer(cloud, lines[-1]) for _ in range(8)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()

    def done() -> int:
        return sum(len(writer.acknowledged) for writer in writers)

    try:
        reach(lambda: done() >= 200, cloud)
        os.killpg(os.getpgid(cloud.pid("moorage2")), signal.SIGKILL)
        before = done()
        reach(lambda: done() >= before + 200, cloud)
    finally:
        for writer in writers:
            writer.stop.set()
        for thread in threads:
            thread.join(60)
    assert [one for writer in writers for one in writer.refused] == []
    acknowledged = {name for writer in writers for name in writer.acknowledged}
    found = {one["name"] for one in writers[0].ask()["resource_providers"]}
    assert not acknowledged - found, "acknowledged and lost"
    # At most what each writer had under way, once, and what haproxy had not yet noticed.
    assert sum(writer.unanswered for writer in writers) < done() / 2


def reach(condition: Any, cloud: Cloud) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, cloud.logs()
        time.sleep(0.05)
