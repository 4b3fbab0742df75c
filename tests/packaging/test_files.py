"""The files of `packaging/`, judged by the programs they are for, where these are installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from moorage.cli.output import USAGE
from moorage.telemetry import table
from moorage.web.static_files import StaticFiles

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
MOST_EXPOSED = 2.0
"""Of ten, as systemd judges a unit; most services have nine."""


def run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    program = shutil.which(words[0], path=f"/usr/sbin:/usr/local/sbin:{os.environ['PATH']}")
    if program is None:
        pytest.skip(f"{words[0]} is not installed")
    return subprocess.run(
        [program, *words[1:]], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", ["moorage", "moorage-agent"])
def test_systemd_understands_the_unit(name: str, tmp_path: Path) -> None:
    program = tmp_path / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (PACKAGING / "systemd" / f"{name}.service").read_text()
    unit = tmp_path / f"{name}.service"
    unit.write_text(text.replace(f"/opt/moorage/bin/{name}", str(program)))
    judged = run("systemd-analyze", "verify", unit)
    ours = [line for line in judged.stderr.splitlines() if "moorage" in line]
    assert ours == []
    assert judged.returncode == 0


@pytest.mark.parametrize("name", ["moorage", "moorage-agent"])
def test_the_unit_leaves_little_open(name: str) -> None:
    unit = PACKAGING / "systemd" / f"{name}.service"
    judged = run("systemd-analyze", "security", "--offline=yes", unit)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", judged.stdout)
    assert found is not None, judged.stdout + judged.stderr
    assert float(found[1]) <= MOST_EXPOSED


def test_the_unit_starts_until_the_database_is_there_and_not_with_a_bad_setting() -> None:
    text = (PACKAGING / "systemd" / "moorage.service").read_text()
    told = dict(re.findall(r"^(\w*(?:Start|Restart)\w*)=(.*)$", text, re.MULTILINE))
    del told["ExecStart"]
    assert told == {
        "StartLimitIntervalSec": "0",
        "TimeoutStartSec": "infinity",
        "Restart": "on-failure",
        "RestartSec": "1",
        "RestartPreventExitStatus": str(USAGE),
    }


def test_the_units_memory_is_bounded() -> None:
    text = (PACKAGING / "systemd" / "moorage.service").read_text()
    assert re.search(r"^MemoryMax=\d+%$", text, re.MULTILINE)


def test_haproxy_understands_its_file(tmp_path: Path) -> None:
    own = tmp_path / "haproxy.cfg"
    text = (PACKAGING / "haproxy" / "moorage.cfg").read_text()
    own.write_text(re.sub(r"moorage\d\.example", "127.0.0.1", text))
    judged = run("haproxy", "-c", "-f", own)
    assert judged.returncode == 0, judged.stderr
    # A name that nobody knows is said before it is started, not served without a word.
    own.write_text(text.replace(".example", ".invalid"))
    judged = run("haproxy", "-c", "-f", own)
    assert judged.returncode != 0
    for number in (1, 2, 3):
        assert f"could not resolve address 'moorage{number}.invalid'" in judged.stderr


def test_the_wheel_is_made_as_the_guide_says(tmp_path: Path) -> None:
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", "wheel"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    first, drop_in = told.stdout.splitlines()[-2:]
    build = first.split()
    assert build[1:] == ["build", "--target", "wheel", "--directory", "dist"]
    hatchling = Path(sys.executable).parent / "hatchling"
    subprocess.run(
        [hatchling, *build[1:-1], tmp_path], cwd=ROOT, check=True, capture_output=True, timeout=60
    )
    [made] = tmp_path.iterdir()
    guide = (ROOT / "docs" / "guide" / "operate.md").read_text()
    assert f"dist/{made.name}" in guide
    with zipfile.ZipFile(made) as wheel:
        packed = set(wheel.namelist())
    home = ROOT / "src" / "moorage" / "web"
    page = {f"moorage/web/{one}" for one in ("index.html", *StaticFiles.read(home).files)}
    assert {"moorage/cli/main.py", "moorage/web/main.js"} | page <= packed
    assert drop_in.startswith("cd packaging/drop-in && ")
    built = [str(hatchling), *build[1:-1], str(tmp_path / "drop-in")]
    subprocess.run(built, cwd=PACKAGING / "drop-in", check=True, capture_output=True, timeout=60)
    [made] = (tmp_path / "drop-in").iterdir()
    with zipfile.ZipFile(made) as wheel:
        names = wheel.namelist()
        (points,) = (one for one in names if one.endswith("entry_points.txt"))
        assert "placement/wsgi/api.py" in names
        assert "placement-manage = placement.cmd.manage:main" in wheel.read(points).decode()


def test_nginx_understands_its_file(tmp_path: Path) -> None:
    text = (PACKAGING / "nginx" / "moorage.conf").read_text()
    own = tmp_path / "own.conf"
    own.write_text(re.sub(r"moorage\d\.example", "127.0.0.1", text))
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"events {{}}\npid {tmp_path}/pid;\nhttp {{ access_log off; include {own}; }}\n"
    )
    judged = run("nginx", "-t", "-e", "stderr", "-c", whole)
    assert judged.returncode == 0, judged.stderr


def test_alerts_name_metrics_that_exist() -> None:
    rules = yaml.safe_load((PACKAGING / "prometheus" / "moorage.yaml").read_text())
    told = {row.name for row in table.TABLE}
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    guide = (ROOT / "docs" / "guide" / "operate.md").read_text()
    for alert in alerts:
        names = set(re.findall(r"moorage_\w+", alert["expr"]))
        assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in names} <= told
        assert f"`{alert['alert']}`" in guide, "the guide says what each alert means"
        assert alert["labels"]["severity"] in {"critical", "warning"}
        assert set(alert["annotations"]) == {"summary", "description"}
    assert len(alerts) >= 10


def test_grafana_can_load_the_dashboard() -> None:
    """Its own schema reads it, nothing is lost on the way, and every metric in it exists."""
    source = json.loads((PACKAGING / "grafana" / "moorage.json").read_text())
    loaded = dashboard.Dashboard.from_json(source)
    assert json.loads(JSONEncoder(sort_keys=True).encode(loaded)).keys() >= source.keys()
    assert (loaded.uid, loaded.title) == ("moorage", "Moorage")
    panels = [one for one in loaded.panels or [] if isinstance(one, dashboard.Panel)]
    assert len(panels) >= 15
    assert len({one.id_val for one in panels}) == len(panels)
    known = {row.name for row in table.TABLE}
    for panel, kept in zip(
        panels, (p for p in source["panels"] if p["type"] != "row"), strict=True
    ):
        assert panel.grid_pos is not None
        assert kept["targets"], panel.title
        for one in kept["targets"]:
            names = set(re.findall(r"moorage_\w+", one["expr"]))
            assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in names} <= known, (
                panel.title
            )


def test_the_container_is_built_from_locks_and_runs_without_root() -> None:
    lines = (
        (PACKAGING / "container" / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    )
    steps = [line.split(maxsplit=1) for line in lines if line and line[0].isupper()]
    assert [what for word, what in steps if word == "FROM"] == ["${BASE} AS build", "${BASE}"]
    [base] = [what for word, what in steps if word == "ARG"]
    assert re.fullmatch(r"BASE=python:3\.\d+-slim", base), "a plain name, without a registry"
    [user] = [what for word, what in steps if word == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "numbers, which Kubernetes can tell from root"
    let_through = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in let_through if line and line[0] != "#") == "*"
    for word, what in steps:
        if word == "COPY" and not what.startswith("--from"):
            names = what.split()[:-1]
            assert [name for name in names if not (ROOT / name).exists()] == []
            assert [name for name in names if f"!{name.rstrip('/')}" not in let_through] == []
        for install in re.findall(r"pip \S*.*?install ([^&]*)", what) if word == "RUN" else ():
            assert "--require-hashes" in install or "--no-index --no-deps" in install
