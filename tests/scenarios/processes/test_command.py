"""The options of `moorage serve`, before anything is started."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process


def test_a_bad_setting_ends_with_2_and_names_its_place(run: Any, tmp_path: Path) -> None:
    (tmp_path / "moorage.conf").write_text("[DEFAULT]\nworkers = many\n")
    from_file = run()
    assert from_file.returncode == 2
    assert from_file.stderr == (
        f"moorage: setting workers (file {tmp_path / 'moorage.conf'}):"
        " must be a whole number from 1 to 256: 'many'\n"
    )
    from_environment = run("--workers", "1", MOORAGE_THREADS="none")
    assert from_environment.returncode == 2
    assert "setting threads (environment, MOORAGE_THREADS)" in from_environment.stderr
    unknown = run("--no-such-option")
    assert unknown.returncode == 2
    assert "--no-such-option" in unknown.stderr


def test_noauth_stays_on_this_machine_unless_told_otherwise(run: Any) -> None:
    ended = run("--host", "0.0.0.0")
    assert ended.returncode == 2
    assert "--insecure" in ended.stderr
    assert run("--host", "0.0.0.0", "--insecure", "--show-config").returncode == 0


def test_the_configuration_in_force_is_shown_with_its_sources(run: Any, tmp_path: Path) -> None:
    named = tmp_path / "named.conf"
    named.write_text("[DEFAULT]\nthreads = 40\n")
    ended = run(
        "--config-file",
        str(named),
        "--mount",
        "placement=/",
        "--show-config",
        MOORAGE_DATABASE="postgresql://u:hunter2@db/m",
        MOORAGE_PROT="1",
    )
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    for source, value in (
        (f"file {named}", "threads = 40"),
        ("command line, --mount", "mount = placement=/"),
        ("environment, MOORAGE_DATABASE", "database = postgresql://u:***@db/m"),
        ("default", "port = 8778"),
    ):
        assert lines[lines.index(value) - 1] == f"# {source}"
    assert ended.stderr == "moorage: ignored MOORAGE_PROT: there is no such setting\n"


def test_help_names_every_setting(run: Any) -> None:
    from moorage.options import SETTINGS

    text = run("--help").stdout
    for setting in SETTINGS:
        assert f"--{setting.name.replace('_', '-')}" in text
