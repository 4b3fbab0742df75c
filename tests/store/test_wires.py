"""Connections to PostgreSQL: how many there are, which is lent, what a break does to the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy.exc import TimeoutError as NoConnection

from moorage.store.answers import Connections
from moorage.store.wire import Wire
from moorage.store.wires import Permits, Wires

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def wires(postgres_url: str) -> Iterator[Wires]:
    made = Wires(lambda: Wire(psycopg.connect(postgres_url)), most=3, kept=2, patience=0.05)
    yield made
    made.close()


def backend(wire: Wire) -> int:
    return int(wire.one("SELECT pg_backend_pid()")[0])


def test_no_more_are_lent_than_there_may_be(wires: Wires) -> None:
    lent = [wires.lend() for _ in range(3)]
    assert wires.count() == Connections(in_use=3, idle=0, limit=3)
    with pytest.raises(NoConnection):
        wires.lend()
    wires.give_back(lent[1])
    assert wires.lend() is lent[1]
    for one in lent:
        wires.give_back(one)
    assert wires.count() == Connections(in_use=0, idle=2, limit=3)
    assert [one.broken for one in lent] == [False, False, True]  # one more than are kept


def test_the_one_used_last_is_lent_first(wires: Wires) -> None:
    first, second = wires.lend(), wires.lend()
    wires.give_back(first)
    wires.give_back(second)
    assert wires.lend() is second
    wires.give_back(second)


def test_where_one_has_broken_the_others_are_made_anew(wires: Wires, postgres_url: str) -> None:
    kept, cut = wires.lend(), wires.lend()
    wires.give_back(kept)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (backend(cut),))
    with pytest.raises(psycopg.Error):
        backend(cut)
    wires.give_back(cut)
    assert kept.broken  # hung up
    fresh = wires.lend()
    assert fresh is not kept
    assert backend(fresh)
    wires.give_back(fresh)


def test_a_server_that_is_not_there_takes_no_place() -> None:
    def dial() -> Wire:
        raise psycopg.OperationalError("nobody there")

    wires = Wires(dial, most=1, kept=1, patience=0.05)
    for _ in range(3):
        with pytest.raises(psycopg.OperationalError):
            wires.lend()
    assert wires.count() == Connections(in_use=0, idle=0, limit=1)


def test_after_the_end_what_comes_back_is_closed(wires: Wires) -> None:
    idle, lent = wires.lend(), wires.lend()
    wires.give_back(idle)
    wires.close()
    assert idle.broken
    assert not lent.broken
    wires.give_back(lent)
    assert lent.broken


def test_permits_come_back_whatever_became_of_the_work() -> None:
    permits = Permits(1, patience=0.01)
    with pytest.raises(LookupError), permits:
        raise LookupError
    with permits:
        assert permits.taken() == 1
        with pytest.raises(NoConnection), permits:
            raise AssertionError("there was only one")
    assert permits.taken() == 0
