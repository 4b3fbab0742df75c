"""How statements are worded: once if they are kept, and forgotten if they are not."""

import gc
import sqlite3
import weakref
from contextlib import closing

from sqlalchemy import BindParameter, StaticPool, bindparam, create_engine, select, update
from sqlalchemy.dialects import postgresql, sqlite

from moorage.store.database.statements import StatementCompiler
from moorage.store.schema import tables

ROWS = tables.leases.c


def test_a_statement_that_nobody_keeps_is_forgotten() -> None:
    """A service that words one for a request must not hold it until it ends."""
    for dialect in (sqlite.dialect(paramstyle="qmark"), postgresql.dialect()):  # type: ignore[no-untyped-call]  # SQLAlchemy types its own loosely
        speech = StatementCompiler(dialect)
        statement = select(ROWS.body).where(ROWS.id == "one")
        speech.compiled(statement, {})
        gone = weakref.ref(statement)
        del statement
        gc.collect()
        assert gone() is None


def test_a_statement_that_is_kept_is_worded_once_for_few_lengths_of_its_lists() -> None:
    """Lists are filled up with what stands at their end: that many texts are enough for all."""
    speech = StatementCompiler(sqlite.dialect(paramstyle="qmark"))
    statement = select(ROWS.body).where(
        ROWS.id.in_(bindparam("ids", expanding=True)), ROWS.state == "active"
    )
    two = speech.compiled(statement, {"ids": ["a", "b"]})
    assert two.text.count("?") == 2
    assert speech.compiled(statement, {"ids": ["x", "y"]}) is two
    every = [f"{number}" for number in range(500)]
    texts = {speech.compiled(statement, {"ids": every[:some]}).text for some in range(501)}
    assert len(texts) == 11
    for some in (0, 1, 2, 3, 5, 500):
        worded = speech.compiled(statement, {"ids": every[:some]})
        ids = worded.arguments({"ids": every[:some]})
        assert set(ids) == set(every[:some])
        assert len(ids) == worded.text.count("?")


def test_questions_that_differ_in_values_alone_share_their_words() -> None:
    """Each has its own values, at the places of its own text, also where one is needed twice."""
    speech = StatementCompiler(sqlite.dialect(paramstyle="qmark"))
    named: BindParameter[int] = bindparam("now")
    found = [
        speech.compiled(
            select(ROWS.body)
            .where(ROWS.id == f"id-{n}", ROWS.number > named, ROWS.name != f"id-{n}")
            .limit(n),
            {"now": 5},
        )
        for n in (1, 2)
    ]
    assert found[0].text is found[1].text
    assert [list(one.arguments({"now": 5})) for one in found] == [
        ["id-1", 5, "id-1", 1, 0][: found[0].text.count("?")],
        ["id-2", 5, "id-2", 2, 0][: found[0].text.count("?")],
    ]


def test_lists_within_a_question_keep_their_own_length() -> None:
    """A list that is no parameter is part of the text."""
    speech = StatementCompiler(sqlite.dialect(paramstyle="qmark"))
    for some in (["a"], ["a", "b", "c"]):
        found = speech.compiled(select(ROWS.body).where(ROWS.id.in_(some)), {})
        assert found.text.count("?") == len(some)
        assert list(found.arguments({})) == some


def test_states_are_part_of_the_text() -> None:
    """As parameters they would keep SQLite from preparing once, and from its partial indexes."""
    for dialect in (
        sqlite.dialect(paramstyle="qmark"),
        postgresql.dialect(paramstyle="numeric_dollar"),  # type: ignore[no-untyped-call]  # as above
    ):
        speech = StatementCompiler(dialect)
        for state in ("active", "closed", "active"):
            statement = select(ROWS.body).where(ROWS.id == "one", ROWS.state != state)
            found = speech.compiled(statement, {})
            assert f"!= '{state}'" in found.text
            assert list(found.arguments({})) == ["one"]
        odd = select(ROWS.body).where(ROWS.state == "it's")
        assert list(speech.compiled(odd, {}).arguments({})) == ["it's"]
        given = update(tables.leases).where(ROWS.state == bindparam("was"))
        worded = speech.compiled(given.values(state=bindparam("is")), {"is": "a", "was": "b"})
        assert list(worded.arguments({"is": "a", "was": "b"})) == ["a", "b"]


def test_each_place_of_a_statement_has_its_own_state() -> None:
    """Also where only one of two is a word, and whichever was worded first."""
    speech = StatementCompiler(sqlite.dialect(paramstyle="qmark"))
    for first, second in (("active", "it's"), ("it's", "active"), ("closed", "active")):
        statement = select(ROWS.body).where(ROWS.state != first, ROWS.state != second)
        found = speech.compiled(statement, {})
        where = found.text.partition("WHERE ")[2]
        for value in found.arguments({}):
            where = where.replace("?", repr(value), 1)
        assert where == f"leases.state != {first!r} AND leases.state != {second!r}"


def test_an_engine_of_sqlalchemy_reads_and_writes_the_states_that_it_is_given() -> None:
    """It keeps the text of a statement for all values that it may be run with."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    tables.claims.create(engine)
    with engine.connect() as connection:
        for state in ("building", "active"):
            row = {"id": state, "decision_id": "", "lapses_at": 1, "body": ""}
            connection.execute(tables.claims.insert().values(state=state, **row))
        for state in ("building", "active"):
            found = select(tables.claims.c.id).where(tables.claims.c.state == state)
            assert connection.scalars(found).all() == [state]
    engine.dispose()


def test_sqlite_finds_rows_by_an_index_of_some_states() -> None:
    backend_text = str(
        StatementCompiler(sqlite.dialect(paramstyle="qmark"))
        .compiled(
            select(tables.bookings.c.number).where(
                tables.bookings.c.state != "allocated",
                tables.bookings.c.lapses_at <= bindparam("now"),
            ),
            {"now": 1},
        )
        .text
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        tables.bookings.create(engine)
        plan = " ".join(
            row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {backend_text}", [1])
        )
    assert "ix_bookings_lapses_at" in plan
