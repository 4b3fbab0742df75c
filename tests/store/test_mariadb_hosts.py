"""MariaDB: several servers in one URL."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url
from tests.servers.mariadb import USER, MariadbServer, ask

from moorage.domain.changes import Changeset, CreateProvider
from moorage.domain.errors import Busy, InvalidDescription
from moorage.store import mariadb_hosts, open_store, patience

if TYPE_CHECKING:
    from moorage.store import Ledger


def first_of(*ports: int, database: str) -> str:
    hosts = "&".join(f"host=127.0.0.1:{port}" for port in ports)
    return f"mysql://{USER}@/{database}?{hosts}"


def names(store: Ledger) -> set[str]:
    return set(store.snapshot().row_of)


def test_the_first_that_answers_is_used(mariadb_url: str) -> None:
    url = make_url(mariadb_url)
    assert url.database is not None
    hosts = ["127.0.0.1:1", f"{url.host}:{url.port or 3306}"]
    several = url._replace(host=None, port=None).update_query_dict({"host": hosts})
    with closing(open_store(several.render_as_string(hide_password=False))) as store:
        store.commit(Changeset((CreateProvider("a", "a"),)))
        assert names(store) == {"a"}


def test_one_that_only_reads_is_left_for_the_next(
    mariadb_server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was the primary is told to read only; when it may write again it is the first again."""
    ask(mariadb_server.url, "CREATE DATABASE moorage")
    port = mariadb_server.port
    with closing(open_store(first_of(port, 1, database="moorage"))) as store:
        store.commit(Changeset((CreateProvider("a", "a"),)))
    ask(mariadb_server.url, "SET GLOBAL read_only = 1")
    monkeypatch.setattr(patience, "AWAY", 0.3)
    with pytest.raises(Busy, match="the database is away"):
        open_store(first_of(port, 1, database="moorage"))
    with pytest.raises(Busy, match="the database is away"):
        open_store(first_of(1, port, database="moorage"))
    ask(mariadb_server.url, "SET GLOBAL read_only = 0")
    with closing(open_store(first_of(1, port, database="moorage"))) as store:
        assert names(store) == {"a"}


def test_all_of_them_gone_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AWAY", 0.3)
    with pytest.raises(Busy, match="the database is away"):
        open_store(first_of(1, 2, database="moorage"))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("db1.example", "db1.example", 3306),
        ("db1.example:3307", "db1.example", 3307),
        ("[::1]:3307", "::1", 3307),
        ("[::1]", "::1", 3306),
    ],
)
def test_how_a_server_is_written(text: str, host: str, port: int) -> None:
    url = make_url(f"mysql://moorage@/moorage?host={text}&connect_timeout=1")
    left, found = mariadb_hosts.without_hosts(url)
    assert found == [(host, port)]
    assert dict(left.query) == {"connect_timeout": "1"}


@pytest.mark.parametrize(
    "query", ["host=a:", "host=a:x", "host=::1", "host=a:1:2", "host=a&host=:1", "host=[a"]
)
def test_what_is_no_server_is_refused(query: str) -> None:
    with pytest.raises(InvalidDescription, match="is not name, name:port"):
        open_store(f"mysql://moorage@/moorage?{query}")


def test_one_way_to_name_a_server(mariadb_url: str) -> None:
    with pytest.raises(InvalidDescription, match="both before the database and by host="):
        open_store(f"{mariadb_url}?host=127.0.0.1")
