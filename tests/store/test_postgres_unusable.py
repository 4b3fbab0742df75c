"""A PostgreSQL that cannot keep a ledger is refused with a sentence: encoding, a pooler."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.servers.guard import guard, released
from tests.servers.ports import free_port
from tests.servers.unprivileged import give, user

from moorage.domain.errors import InvalidDescription
from moorage.store import open_store

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_an_encoding_that_does_not_keep_every_text(postgres_url: str, encoding: str) -> None:
    name = f"moorage_{encoding.lower()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        )
        try:
            url = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
            with pytest.raises(InvalidDescription, match=f"encoding is {encoding}"):
                open_store(url)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def pooled(url: str, folder: Path, mode: str, **more: str) -> Iterator[str]:
    """The URL of the database behind a pgbouncer."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    server, port = make_url(url), free_port()
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "auth_type": "any",
        "pool_mode": mode,
        "unix_socket_dir": "",
        "logfile": str(folder / "log"),
        **more,
    }
    file = folder / "pgbouncer.ini"
    where = f"host={server.host} port={server.port or 5432} dbname={server.database}"
    file.write_text(
        f"[databases]\n{server.database} = {where} user={server.username}\n[pgbouncer]\n"
        + "".join(f"{name} = {value}\n" for name, value in settings.items())
    )
    file.chmod(0o644)
    folder.chmod(0o755)
    give(folder)
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen([PGBOUNCER, file], user=user(), stdout=output, stderr=output)
    guard(process)
    through = server.set(port=port, host="127.0.0.1").render_as_string(hide_password=False)
    try:
        deadline = time.monotonic() + 100
        while True:
            try:
                psycopg.connect(through, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (folder / "output").read_text()
                time.sleep(0.05)
        yield through
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        released(process)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the user of the server may enter."""
    made = Path(tempfile.mkdtemp(prefix="moorage-pgbouncer-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize(
    "more", [{}, {"default_pool_size": "1"}, {"server_round_robin": "1", "min_pool_size": "5"}]
)
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_lends_sessions_for_a_transaction(
    postgres_url: str, folder: Path, mode: str, more: dict[str, str]
) -> None:
    with (
        pooled(postgres_url, folder, mode, **more) as through,
        pytest.raises(InvalidDescription, match="pool"),
    ):
        open_store(through)


def test_a_pooler_of_whole_sessions_will_do(postgres_url: str, folder: Path) -> None:
    with pooled(postgres_url, folder, "session") as through, closing(open_store(through)) as store:
        assert store.snapshot().row_of == {}
