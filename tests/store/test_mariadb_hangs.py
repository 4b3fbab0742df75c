"""MariaDB: a server that does not answer."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Thread

import pytest
from sqlalchemy import make_url
from tests.servers.mariadb import USER
from tests.servers.proxy import ON_MARIADB, Proxy

from moorage.domain.errors import Busy
from moorage.store import open_store
from moorage.store.database import retry
from moorage.store.mariadb import backend


class Mute:
    """Lets clients in and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._open.append(self._listener.accept()[0])

    def close(self) -> None:
        for one in (self._listener, *self._open):
            one.close()


def test_a_server_that_says_nothing_is_away_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "AWAY", 0.3)
    began = time.monotonic()
    with closing(Mute()) as mute, pytest.raises(Busy, match="the database is away"):
        open_store(f"mysql://{USER}@127.0.0.1:{mute.port}/moorage?connect_timeout=1")
    assert time.monotonic() - began < 30


def test_who_waited_for_a_connection_in_vain_does_not_wait_again(
    monkeypatch: pytest.MonkeyPatch, mariadb_url: str
) -> None:
    """Nobody answers any more: six that ask together do not try one after the other."""
    monkeypatch.setattr(backend, "_PROMPT", 1)
    monkeypatch.setattr(retry, "AWAY", 0.3)
    url = make_url(mariadb_url)
    with Proxy(url.port or 3306, ON_MARIADB) as proxy, ThreadPoolExecutor(6) as pool:
        one = url.set(host="127.0.0.1", port=proxy.port, query={"connect_timeout": "1"})
        with closing(open_store(one.render_as_string(hide_password=False))) as store:
            proxy.mute = True
            began = time.monotonic()
            told = [pool.submit(store.snapshot) for _ in range(6)]
            for each in told:
                with pytest.raises(Busy, match="the database is away"):
                    each.result(60)
            assert time.monotonic() - began < 30
