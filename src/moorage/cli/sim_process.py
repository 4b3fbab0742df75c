"""A simulation's server process: start it detached, wait until it answers, stop it.

It is `moorage serve` over a new SQLite database, with a clock that stands still until it is set.
Everything it has is in one directory beside its registration.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.client import registry
from moorage.client.discovery import OPERATOR_TOKEN, Access
from moorage.client.errors import ApiError, NotMoorage, Unreachable
from moorage.client.moorage import connect
from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moorage.domain.period import Instant

START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 8.0
_POLL: Final = 0.02
_TOLD: Final = 12
"""Last lines of the log that are shown when it does not start."""


class DidNotStart(MoorageError):
    """The server ended, or does not answer; says what it logged last."""


@dataclass(frozen=True, slots=True)
class Started:
    """A server that answers."""

    process: subprocess.Popen[bytes]
    endpoint: str
    directory: Path

    @property
    def access(self) -> Access:
        """How its operator reaches it."""
        return Access(self.endpoint, OPERATOR_TOKEN)

    def registration(self, name: str, fleet: str) -> registry.Registration:
        """What others need to find it."""
        return registry.Registration(
            name=name,
            endpoint=self.endpoint,
            pid=self.process.pid,
            born=registry.born(self.process.pid) or "",
            token=OPERATOR_TOKEN,
            directory=str(self.directory),
            fleet=fleet,
        )


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(directory: Path, now: Instant, *, port: int | None) -> Started:
    """Start a server in an empty directory of its own; return when it answers.

    Raises:
        DidNotStart: it ended or stayed silent; nothing is left running.
    """
    from moorage.store.settable_clock import create

    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    create(clock_file(directory), now)
    chosen = port or free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            _command(directory, chosen),
            cwd=directory,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    started = Started(process, f"http://127.0.0.1:{chosen}", directory)
    try:
        _wait(started)
    except BaseException:
        end(process.pid)
        process.wait()
        raise
    return started


def clock_file(directory: Path) -> Path:
    """Where a simulation's clock is."""
    return directory / "clock"


def database_url(directory: Path) -> str:
    """Where a simulation's ledger is."""
    return f"sqlite:///{directory / 'ledger.db'}"


def _command(directory: Path, port: int) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "moorage.cli.main", "serve"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--database", database_url(directory)),
        *("--auth", "noauth2"),
        *("--clock", str(clock_file(directory))),
    ]


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without settings meant for another server: a simulation is the same everywhere."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("MOORAGE_") or name == "MOORAGE_TRANSCRIPT"
    }


def _wait(started: Started) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if started.process.poll() is not None:
            raise DidNotStart(f"the server ended: {_last_words(started.directory)}")
        if _answers(started.access):
            return
        time.sleep(_POLL)
    raise DidNotStart(
        f"the server does not answer after {START_SECONDS:.0f} s: {_last_words(started.directory)}"
    )


def _answers(access: Access) -> bool:
    host, _, port = access.endpoint.rpartition(":")
    try:
        # A refused connection is cheap; only then is a request worth its while.
        socket.create_connection((host.removeprefix("http://"), int(port)), timeout=1).close()
        with connect(access) as client:
            client.simulation.clock()
    except (OSError, Unreachable, NotMoorage):
        return False
    except ApiError as error:
        if error.status in {404, 401, 403}:
            raise DidNotStart(f"something else listens at {access.endpoint}: {error}") from error
        return False
    return True


def _last_words(directory: Path) -> str:
    try:
        lines = (directory / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "it left no log"
    return "\n".join(lines[-_TOLD:]) or "it said nothing"


def end(pid: int) -> None:
    """Stop a server and its children: ask, wait, then kill; return when it is gone."""
    birth = registry.born(pid)
    if birth is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            if number == signal.SIGTERM:
                os.kill(pid, number)
            else:
                os.killpg(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if registry.born(pid) != birth:
                return
            time.sleep(_POLL)


def directory_of(name: str, environment: Mapping[str, str]) -> Path:
    """The directory of the simulation of that name."""
    return registry.state_directory(environment) / name
