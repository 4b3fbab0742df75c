"""The command line, run in this process against real server processes."""

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.program import Program
from moorage.cli.sim_process import end
from moorage.client import registry

NOW = "2026-11-21T09:00:00Z"


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    status: int
    out: str
    err: str

    @property
    def body(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Runs command lines with an environment of its own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)

    def __call__(self, *words: str) -> Result:
        out, err = io.StringIO(), io.StringIO()
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            with contextlib.redirect_stderr(err):
                status = Program(stdout=out, stderr=err).run(words)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return Result(status, out.getvalue(), err.getvalue())

    def body(self, *words: str) -> Any:
        result = self(*words, "--format", "json")
        assert result.status == 0, result
        return result.body

    def as_tenant(self, project: str, role: str = "member") -> "Cli":
        return Cli(self.environment | {"MOORAGE_PROJECT": project, "MOORAGE_ROLE": role})


def clean(state: Path) -> dict[str, str]:
    """An environment that knows no other service."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "MOORAGE_"))}
    return kept | {
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(state / "config"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }


@pytest.fixture(autouse=True)
def nobody_elses_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OS_", "MOORAGE_")) and name != "MOORAGE_HYPOTHESIS":
            monkeypatch.delenv(name)


@pytest.fixture
def offline(tmp_path: Path) -> Cli:
    return Cli(clean(tmp_path))


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory; what is registered there is stopped in the end."""
    home = tmp_path_factory.mktemp("state")
    yield home
    for one in list(registry.running(registry.state_directory({"XDG_STATE_HOME": str(home)}))):
        end(one.pid)


def started(state: Path, name: str) -> Cli:
    """The command line of the operator of a new simulation with three racks."""
    cli = Cli(clean(state) | {"OS_CLOUD": name})
    made = cli("sim", "start", "--fleet", "three-racks.yaml", "--now", NOW, "--name", name)
    assert made.status == 0, made
    return cli


@pytest.fixture(scope="session")
def sim(state: Path) -> Cli:
    """The three racks of the first story, shared by all; its operator's command line."""
    return started(state, "shared")
