"""How statements are worded: once if they are kept, and forgotten if they are not."""

import gc
import weakref

from sqlalchemy import BindParameter, bindparam, select
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
    assert two.text.count("?") == 3
    assert speech.compiled(statement, {"ids": ["x", "y"]}) is two
    every = [f"{number}" for number in range(500)]
    texts = {speech.compiled(statement, {"ids": every[:some]}).text for some in range(501)}
    assert len(texts) == 11
    for some in (0, 1, 2, 3, 5, 500):
        worded = speech.compiled(statement, {"ids": every[:some]})
        *ids, state = worded.arguments({"ids": every[:some]})
        assert set(ids) == set(every[:some])
        assert len(ids) + 1 == worded.text.count("?")
        assert state == "active"


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
