"""A real MariaDB or MySQL for the tests, if there is one: named by a URL, or found as a program.

`MOORAGE_TEST_MARIADB` is the URL of any database on a server where databases may be created, for
example `mysql://root@127.0.0.1:3306/mysql`. Without it the programs of a server are looked for
where packages put them, and run without root on data of their own. Without either, what needs
the server is skipped, and the summary says so aloud.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT
from sqlalchemy import make_url
from tests.servers.guard import guard, released
from tests.servers.ports import free_port
from tests.servers.unprivileged import give, user

from moorage.store import open_store
from moorage.store.schema.tables import metadata

_numbers = count(1)

NONE_FOUND = (
    "MariaDB was NOT tested: MOORAGE_TEST_MARIADB names no server,"
    " and no program mariadbd or mysqld was found"
)
_PLACES = (
    *("/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin"),
    *("/usr/local/mysql/bin", "/opt/homebrew/bin"),
)
USER = "moorage_test"
NO_SYNC = "--loose-debug-no-sync"
"""Where each change of the schema waits for the disk, a new database takes seconds. MySQL has no
such option, and ignores it."""
FAST: tuple[str, ...] = (
    # What is killed in these tests is processes, never the machine: the page cache survives.
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=0",
    "--innodb-buffer-pool-size=64M",
    "--max-connections=300",
    "--performance-schema=OFF",
    NO_SYNC,
)


def find(*names: str) -> str | None:
    """A program of one of these names, on the PATH or where packages put servers."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_PLACES])
    return next((found for one in names if (found := shutil.which(one, path=path))), None)


@cache
def program() -> str | None:
    return find("mariadbd", "mysqld")


@cache
def is_mariadb(server: str) -> bool:
    told = subprocess.run([server, "--no-defaults", "--version"], capture_output=True, check=True)
    return b"MariaDB" in told.stdout


def connected(url: str, **more: Any) -> pymysql.Connection:
    """A plain connection to the database of a URL."""
    parsed = make_url(url)
    return pymysql.connect(
        host=parsed.host or "127.0.0.1",
        port=parsed.port or 3306,
        user=parsed.username or "root",
        password=parsed.password or "",
        database=parsed.database,
        connect_timeout=5,
        **more,
    )


def ask(url: str, statement: str, *arguments: object) -> tuple[Any, ...]:
    """The rows that a statement finds; what it writes is committed."""
    with connected(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement, arguments or None)
        return tuple(cursor.fetchall())


def _kill(connection: pymysql.Connection, database: str | None, most: int) -> None:
    listed = (
        "SELECT id FROM information_schema.processlist"
        " WHERE db = %s AND id <> CONNECTION_ID() LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(listed, (database, most))
        for (number,) in cursor.fetchall():
            with contextlib.suppress(pymysql.Error):  # it has gone already
                cursor.execute(f"KILL {number}")


class MariadbServer:
    """One server with its own data, which can be killed and started again."""

    def __init__(self, folder: Path, *, copied_from: "MariadbServer | None" = None) -> None:
        found = program()
        assert found is not None
        self._program, self._folder = found, folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        folder.chmod(0o755)
        self._data, self._log, self._first = folder / "data", folder / "log", folder / "first.sql"
        self._data.mkdir(mode=0o700)
        for one in (folder, self._data):
            give(one)
        self._first.write_text(
            f"CREATE USER IF NOT EXISTS '{USER}'@'%';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
        )
        if copied_from is None:
            self._make_data()
        else:
            subprocess.run(["cp", "-Rp", f"{copied_from._data}/.", self._data], check=True)

    def _make_data(self) -> None:
        words = [self._program, "--no-defaults", f"--datadir={self._data}", "--initialize-insecure"]
        if is_mariadb(self._program):
            install = find("mariadb-install-db", "mysql_install_db")
            assert install is not None, f"{self._program} without mariadb-install-db"
            words = [install, "--no-defaults", f"--datadir={self._data}", "--skip-test-db"]
        words.append(NO_SYNC)
        made = subprocess.run(
            words,
            user=user(),
            cwd="/",
            check=False,
            capture_output=True,
            timeout=120,
            # Whoever runs the tests may have a folder for temporary files that others cannot enter.
            env={**os.environ, "TMPDIR": str(self._folder)},
        )
        assert made.returncode == 0, (made.stdout + made.stderr).decode()[-2000:]

    @property
    def url(self) -> str:
        """Of the server's own database, by a user who may do everything."""
        return f"mysql://{USER}@127.0.0.1:{self.port}/mysql"

    def start(self) -> None:
        self._launch()
        self.wait()

    def _launch(self, *more: str) -> None:
        words = [self._program, "--no-defaults", f"--datadir={self._data}", *FAST]
        words += [f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-log-bin"]
        words += [f"--socket={self._folder}/socket", f"--pid-file={self._folder}/pid"]
        words += [f"--tmpdir={self._folder}", f"--init-file={self._first}"]
        if not is_mariadb(self._program):
            words += ["--mysqlx=OFF"]
        words += more
        with self._log.open("ab") as log:
            # In a session of its own: Ctrl-C is for the tests, which end it themselves.
            self._process = subprocess.Popen(
                words,
                user=user(),
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                env={**os.environ, "PATH": f"{self._folder}{os.pathsep}{os.environ['PATH']}"},
            )
        guard(self._process)

    def wait(self) -> None:
        """Until it lets somebody in."""
        deadline = time.monotonic() + 100
        while True:
            try:
                self._greet()
            except pymysql.Error:
                assert time.monotonic() < deadline, self._log.read_text()[-2000:]
                time.sleep(0.02)
            else:
                return

    def _greet(self) -> None:
        """Return if it serves."""
        connected(self.url).close()

    def restart(self) -> None:
        """As after a kill of the machine's power, but for what the kernel had still to write."""
        self.end()
        self.start()

    def kill_connections(self, database: str | None, most: int) -> None:
        """Break some of the connections to a database, in the middle of whatever they do."""
        with connected(self.url, autocommit=True) as connection:
            _kill(connection, database, most)

    def run(self, program: str, *words: str, **more: Any) -> None:
        """One of the server's own client programs, connected to it."""
        found = find(program)
        assert found is not None, f"no {program} beside the server"
        where = ("--host=127.0.0.1", f"--port={self.port}", f"--user={USER}")
        subprocess.run([found, "--no-defaults", *where, *words], check=True, timeout=60, **more)

    def stop(self) -> None:
        """Tell it to end in good order."""
        self._end(signal.SIGTERM)

    def end(self) -> None:
        """Kill it: the data is thrown away, or what is left is the point."""
        self._end(signal.SIGKILL)

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait(60)
            released(self._process)
            self._process = None


class Databases:
    """Makes databases on a server. Those that are up to date are emptied and used again."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        self.admin = self._url.render_as_string(hide_password=False)
        self._made: set[str] = set()
        self._idle: list[str] = []

    @cached_property
    def _connection(self) -> pymysql.Connection:
        """Kept: a new one takes longer than what is asked on it."""
        return connected(self.admin, autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS)

    def empty(self, settings: str = "") -> str:
        """The URL of a database without tables."""
        name = f"moorage_test_{os.getpid()}_{next(_numbers)}"
        ask(self.admin, f"CREATE DATABASE {name} {settings}")
        self._made.add(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def migrated(self) -> str:
        """The URL of a database that is up to date, without rows but the standard ones."""
        if self._idle:
            url = self._idle.pop()
            with self._connection.cursor() as cursor:
                cursor.execute(f"USE {make_url(url).database}; {_EMPTY}")
                while cursor.nextset():
                    pass
            return url
        url = self.empty()
        open_store(url).close()
        return url

    def release(self, url: str) -> None:
        """Give back what `migrated` made."""
        # What a test left open must not get in the way of the next.
        _kill(self._connection, make_url(url).database, 1_000)
        self._idle.append(url)

    def close(self) -> None:
        """End what is connected to them."""
        self._connection.close()

    def drop(self) -> None:
        """Drop them all: needed where the server lives on."""
        for name in self._made:
            ask(self.admin, f"DROP DATABASE IF EXISTS {name}")


_KEPT = {"ledger", "resource_classes", "traits"}
_EMPTY = "; ".join(
    (
        "SET foreign_key_checks = 0, innodb_lock_wait_timeout = 10",
        "START TRANSACTION",
        *(f"DELETE FROM {one.name}" for one in metadata.sorted_tables if one.name not in _KEPT),
        "DELETE FROM resource_classes WHERE place IS NULL",
        "DELETE FROM traits WHERE name LIKE 'CUSTOM%'",
        "UPDATE ledger SET revision = 0, topology_revision = 0, log_start = 0",
        "UPDATE ledger SET events_start = 0, events_start_at = 0",
        "COMMIT",
    )
)


@contextmanager
def running_server() -> Iterator[MariadbServer]:
    folder = Path(tempfile.mkdtemp(prefix="moorage-mariadb-"))
    server = MariadbServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb_databases() -> Iterator[Databases]:
    """The server that all tests share."""
    given = os.environ.get("MOORAGE_TEST_MARIADB")
    if given:
        with closing(Databases(given)) as databases:
            yield databases
        databases.drop()
        return
    if program() is None:
        pytest.skip(NONE_FOUND)
    with running_server() as server, closing(Databases(server.url)) as databases:
        yield databases


@pytest.fixture
def mariadb_url(mariadb_databases: Databases) -> Iterator[str]:
    """A database of the test's own, up to date."""
    url = mariadb_databases.migrated()
    yield url
    mariadb_databases.release(url)


@pytest.fixture
def mariadb_server() -> Iterator[MariadbServer]:
    """A server of the test's own, to be killed; never the one a URL names."""
    if program() is None:
        pytest.skip(NONE_FOUND)
    with running_server() as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say aloud what a line among hundreds would hide."""
    skipped = terminalreporter.stats.get("skipped", [])
    missed = sum(NONE_FOUND in str(report.longrepr) for report in skipped)
    if missed:
        terminalreporter.section("a database that was not there", yellow=True, bold=True)
        terminalreporter.write_line(f"{NONE_FOUND}: {missed} tests were skipped", yellow=True)
