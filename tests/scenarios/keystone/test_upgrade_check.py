"""`moorage admin upgrade check` with a real Keystone, and with a password that it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scenarios.keystone.conftest import Identity, section
from tests.scenarios.processes.conftest import environment

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]


def check(folder: Path, text: str) -> tuple[int, str]:
    """Result and details of the check of Keystone."""
    (folder / "moorage.conf").write_text("[DEFAULT]\nauth = keystone\n" + text)
    done = subprocess.run(
        [sys.executable, "-m", "moorage.cli.main", *["admin", "upgrade", "check", "-f", "json"]],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = {one["check"]: one for one in json.loads(done.stdout)["checks"]}["Keystone"]
    return found["result"], found["details"]


def test_the_services_own_credentials_are_tried(people: Identity, tmp_path: Path) -> None:
    assert check(tmp_path, section(people.url)) == (
        0,
        "it answers, and accepts the service's credentials",
    )
    result, details = check(tmp_path, section(people.url, password="wrong"))
    assert result == 2
    assert "refuses the credentials of [keystone_authtoken]" in details
