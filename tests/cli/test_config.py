"""`moorage config show`: values, sources and defaults, without secrets."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

from moorage.options import SETTINGS


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    for setting in SETTINGS:
        monkeypatch.delenv(f"MOORAGE_{setting.name.upper()}", raising=False)
    return Cli({"MOORAGE_THREADS": "31"})


def test_every_setting_is_shown_with_its_source_and_its_default(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text(
        "[DEFAULT]\nport = 1234\ndatabase = postgresql://u:hunter2@db/x\n"
        "[keystone_authtoken]\npassword = hunter3\nauth_type = password\n"
    )
    shown: list[dict[str, Any]] = cli.body("config", "show", "--config-file", str(file))["settings"]
    found = {one["name"]: one for one in shown}
    assert {setting.name for setting in SETTINGS} <= set(found)
    assert found["port"] == {
        "name": "port",
        "value": "1234",
        "source": f"file {file}",
        "default": "8778",
    }
    assert found["threads"]["source"] == "environment, MOORAGE_THREADS"
    assert found["workers"]["source"] == "default"
    assert found["metrics_from"]["value"] == "127.0.0.0/8,::1/128"
    assert found["keystone_authtoken.auth_type"]["value"] == "password"
    assert "hunter" not in str(shown)


def test_what_serve_would_refuse_is_refused(cli: Cli) -> None:
    told = cli("config", "show", "nonsense")
    assert told.status == 2
    assert "there is no setting nonsense" in told.err
    cli.environment["MOORAGE_AUTH"] = "token-file"
    told = cli("config", "show")
    assert told.status == 2
    assert "token-file needs a token_file" in told.err
