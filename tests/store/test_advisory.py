"""A commit's locks on PostgreSQL: the brief statement takes just those that the function takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import create_engine

from moorage.domain.changes import Changeset, DeleteAllocations, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.store import open_store
from moorage.store.changelog.footprint import Footprint, footprint
from moorage.store.postgresql import locks

if TYPE_CHECKING:
    from moorage.store.database.session import Question

HELD = "SELECT classid, objid, objsubid, mode FROM pg_locks WHERE locktype = 'advisory'"
BY_FUNCTION = "moorage_begin"


def put(consumer: str, providers: tuple[str, ...], generation: int | None) -> ReplaceAllocations:
    return ReplaceAllocations(
        Consumer(consumer), {one: {"VCPU": 1} for one in providers}, generation
    )


@pytest.mark.parametrize(
    ("changes", "brief"),
    [
        ((put("c", ("a",), None),), True),
        ((put("c", ("a", "b"), None),), False),
        ((put("c", ("a",), 3),), False),  # whoever stands somewhere may leave another provider
        ((put("c", ("a",), None), put("d", ("a",), None)), False),
        ((DeleteAllocations("d"), put("c", ("a",), None)), False),
    ],
)
def test_only_newcomers_are_locked_without_a_look_at_where_they_stand(
    changes: tuple[Any, ...], *, brief: bool
) -> None:
    statement, _ = locks.begin(footprint(Changeset(changes)))
    assert (BY_FUNCTION not in str(statement)) is brief


def test_what_is_relied_on_is_left_to_the_function() -> None:
    relying = Changeset((put("c", ("a",), None),), relies_on={"b": 1})
    assert BY_FUNCTION in str(locks.begin(footprint(relying))[0])


def test_both_ways_lock_the_same(postgres_url: str) -> None:
    open_store(postgres_url).close()
    engine = create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))

    def held(question: Question) -> set[Any]:
        statement: Any = question[0]
        with engine.connect() as connection:
            row = connection.execute(statement, dict(question[1])).one()
            assert row.number > 0
            assert row.instant > 0
            with psycopg.connect(postgres_url) as other:
                return set(other.execute(HELD).fetchall())

    for found in (
        Footprint(),
        Footprint(providers={"p"}),
        Footprint(newcomers={"c"}, providers={"p"}),
        Footprint(ids={"name it's"}, providers={"p"}),
        Footprint(ids={"i"}),
    ):
        brief = locks.begin(found)
        assert BY_FUNCTION not in str(brief[0])
        taken = held(brief)
        assert taken == held(locks.by_function(found))
        assert len(taken) == 1 + found.size
    engine.dispose()
