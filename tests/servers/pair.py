"""Two PostgreSQL servers: a primary, and a standby that takes its place."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.servers.postgres import PostgresServer

SYNCHRONOUS = "ANY 1 (*)"
"""Any standby will do, but one must have it."""


class Pair:
    """Which of the two is the primary changes; the URL names both."""

    def __init__(self, folder: Path) -> None:
        homes = [folder / name for name in ("one", "two")]
        for home in homes:
            home.mkdir()
        folder.chmod(0o755)
        self.primary = PostgresServer(homes[0])
        self.primary.start()
        self.standby = PostgresServer(homes[1], copied_from=self.primary)
        self.standby.start()

    def url(self, database: str) -> str:
        """Of a database, wherever it can be written to."""
        ports = sorted((self.primary.port, self.standby.port))
        hosts = "&".join(f"host=127.0.0.1:{port}" for port in ports)
        return f"postgresql://postgres@/{database}?{hosts}&target_session_attrs=read-write"

    def wait_for_each_other(self, names: str) -> None:
        """Set `synchronous_standby_names` of both; with none, a commit waits for nobody."""
        for server in (self.primary, self.standby):
            _tell(server, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            _tell(server, "SELECT pg_reload_conf()")
            deadline = time.monotonic() + 100
            while _tell(server, "SHOW synchronous_standby_names") != names:
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def make(self, database: str) -> str:
        """A new, empty database; its URL."""
        _tell(self.primary, f"CREATE DATABASE {database}")
        return self.url(database)

    def fail_over(self) -> None:
        """The primary's machine is gone; the standby takes its place."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def fail_over_and_replace(self) -> None:
        """And the lost one comes back as the standby; until then commits wait for it."""
        self.fail_over()
        self.standby.follow(self.primary)

    def end(self) -> None:
        """Throw both away."""
        self.primary.kill()
        self.standby.kill()


def _tell(server: PostgresServer, statement: str) -> object:
    """Run a statement; the first value that it finds."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        # Not even this may wait for a standby that is being made.
        connection.execute("SET synchronous_commit = local")
        found = connection.execute(statement)
        row = found.fetchone() if found.description else None
    return row[0] if row else None


@contextmanager
def running_pair() -> Iterator[Pair]:
    """For a while, and thrown away after."""
    folder = Path(tempfile.mkdtemp(prefix="moorage-postgres-pair-"))
    pair = Pair(folder)
    try:
        yield pair
    finally:
        pair.end()
        shutil.rmtree(folder, ignore_errors=True)
