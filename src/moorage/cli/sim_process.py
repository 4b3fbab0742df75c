"""A simulation's server process: starts it detached, waits until it answers, stops it.

It is `moorage serve` over a new SQLite database, with a clock that stands still until it is set.
Everything it has is in one directory beside its registration.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from moorage.cli.progress import waiting
from moorage.client import registry
from moorage.client.discovery import OPERATOR_TOKEN, Access
from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from moorage.domain.period import Instant

START_SECONDS: Final = 120.0
"""How long a server may take that is alive: on a busy machine its imports alone take a while."""
STOP_SECONDS: Final = 8.0
_POLL: Final = 0.02
_SERVING: Final = re.compile(
    r"serving on (?P<endpoint>http://[0-9.:]+).*\n(moorage: the page is at (?P<page>\S+)\n)?"
)
_TOLD: Final = 12
"""Last lines of the log that are shown when it does not start."""


def settings_text(*, end_servers: bool) -> str:
    """The settings of a simulation, which moves servers itself, and may end them."""
    ending = "end_servers = simulated\n" if end_servers else ""
    return f"[DEFAULT]\nmove_servers = simulated\n{ending}"


class DidNotStart(MoorageError):
    """The server ended, or does not answer; the message has its last log lines."""


@dataclass(frozen=True, slots=True)
class Started:
    """A server that answers."""

    pid: int
    endpoint: str
    page: str | None
    """The address of the page for browsers; None: it is turned off."""
    directory: Path

    @property
    def access(self) -> Access:
        """The operator's access to it."""
        return Access(self.endpoint, OPERATOR_TOKEN)

    def registration(self, name: str, fleet: str) -> registry.Registration:
        """Its registration."""
        return registry.Registration(
            name=name,
            endpoint=self.endpoint,
            pid=self.pid,
            born=registry.start_time(self.pid) or "",
            token=OPERATOR_TOKEN,
            directory=str(self.directory),
            fleet=fleet,
        )


def start(
    directory: Path,
    now: Instant,
    *,
    port: int | None,
    settings: str = "",
    terminal: TextIO | None = None,
) -> Started:
    """Start a server in a new directory; return when it answers.

    Args:
        directory: its content is removed.
        now: what its clock shows.
        port: None: any free one.
        settings: a file for the service, such as `settings_text`; a resumed one has it too.
        terminal: where the wait is shown; None: stderr.

    Raises:
        DidNotStart: it ended, or does not answer. The caller removes its directory with
            `discard`.
    """
    from moorage.store.settable_clock import create

    discard(directory)  # a start that was killed may have left a server in it
    directory.mkdir(parents=True, mode=0o700)
    create(clock_file(directory), now)
    if settings:
        (directory / "moorage.conf").write_text(settings, encoding="utf-8")
    return _serving(directory, port, terminal)


def resume(directory: Path, *, port: int | None, terminal: TextIO | None = None) -> Started:
    """Restart a killed server on its directory; its clock continues where it was.

    Raises:
        DidNotStart: as of `start`. The caller ends what was started with `halt`; the directory
            stays as it is.
    """
    return _serving(directory, port, terminal)


def _serving(directory: Path, port: int | None, terminal: TextIO | None) -> Started:
    """A server over a directory with a clock, started and answering."""
    with (directory / "log").open("wb") as log, undisturbed():
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            _command(directory, port or 0),
            cwd=directory,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        known = f"{process.pid} {registry.start_time(process.pid) or ''}"
        (directory / "pid").write_text(known, encoding="ascii")
    try:
        with waiting("starting the server", terminal):
            endpoint, page = _addresses_once_ready(process, directory)
    finally:
        # It may outlive this process: without a status of its own, `subprocess` would complain of
        # a child that was never waited for.
        process.returncode = 0
    return Started(process.pid, endpoint, page, directory)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block ends, so that every child's id is known."""
    noted: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, lambda number, _: noted.append(number)) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for one in noted:
        signal.raise_signal(one)


def halt(directory: Path) -> None:
    """Stop the server of the directory, if it runs."""
    with contextlib.suppress(OSError, ValueError):
        pid, _, birth = (directory / "pid").read_text(encoding="ascii").partition(" ")
        if registry.start_time(int(pid)) == birth:
            end(int(pid))


def discard(directory: Path) -> None:
    """Stop the server of the directory, if it runs, and remove the directory."""
    halt(directory)
    shutil.rmtree(directory, ignore_errors=True)


def clock_file(directory: Path) -> Path:
    """The path of a simulation's clock file."""
    return directory / "clock"


def database_url(directory: Path) -> str:
    """The URL of a simulation's database."""
    return f"sqlite:///{directory / 'ledger.db'}"


def _command(directory: Path, port: int) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "moorage.cli.main", "serve"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--database", database_url(directory)),
        *("--auth", "noauth2", "--log-level", "warning"),
        # One user at a time: a process of its own for searches would only make the start longer.
        *("--planners", "0"),
        *("--clock-file", str(clock_file(directory))),
    ]


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without Moorage's settings, so that simulations are alike everywhere."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("MOORAGE_") or name == "MOORAGE_TRANSCRIPT"
    }


def _addresses_once_ready(
    process: subprocess.Popen[bytes], directory: Path
) -> tuple[str, str | None]:
    """The endpoint and the page, which the server prints at once as soon as it answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        said = _SERVING.search(_log(directory))
        if said is not None:
            return said["endpoint"], said["page"]
        if process.poll() is not None:
            raise DidNotStart(f"the server ended: {_last_words(directory)}")
        time.sleep(_POLL)
    raise DidNotStart(
        f"the server does not answer after {START_SECONDS:.0f} s: {_last_words(directory)}"
    )


def _log(directory: Path) -> str:
    return (directory / "log").read_text(encoding="utf-8", errors="replace")


def _last_words(directory: Path) -> str:
    return "\n".join(_log(directory).splitlines()[-_TOLD:]) or "its log is empty"


def end(pid: int) -> None:
    """Stop a server and its children: ask, wait, then kill; return when it is gone."""
    birth = registry.start_time(pid)
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
            with contextlib.suppress(ChildProcessError):  # another process started it
                os.waitpid(pid, os.WNOHANG)
            if registry.start_time(pid) != birth:
                return
            time.sleep(_POLL)


def directory_of(name: str, environment: Mapping[str, str]) -> Path:
    """The directory of the simulation of that name."""
    return registry.state_directory(environment) / name
