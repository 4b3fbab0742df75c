"""A PostgreSQL transaction that sends statements without results together with the next query.

What finds nothing waits for the next statement that does, so a commit takes few round trips.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import psycopg
from sqlalchemy import text as sql

from moorage.store.database.session import EMPTY, DeferringSession, Rows, as_sqlalchemy_error
from moorage.store.postgresql.connection import Call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ClauseElement, Dialect

    from moorage.store.database.session import ParameterSets, Question
    from moorage.store.database.statements import StatementCompiler
    from moorage.store.postgresql.connection import RawConnection

_END: Final = sql("COMMIT")
_VALUES: Final = " VALUES "
_PLACEHOLDER: Final = re.compile(r"\$(\d+)")
_ROWS: Final = 16
"""The most rows of one insertion; for each number of them a statement is prepared."""


class PipelineSession(DeferringSession):
    """A transaction whose waiting statements go out in one pipeline."""

    __slots__ = ("_begun", "_connection", "_waiting")

    def __init__(self, raw: RawConnection, speech: StatementCompiler, begin: str) -> None:
        super().__init__(speech)
        self._connection = raw
        self._waiting = [Call(begin)]
        self._begun = False

    def ask(self, *questions: Question) -> Sequence[Rows]:
        if not questions:
            return []
        asked = []
        for statement, given in questions:
            worded = self._compiler.compiled(statement, given)
            asked.append((worded, Call(worded.text, worded.arguments(given))))
        self._waiting += [call for _, call in asked]
        self._run()
        found = []
        for worded, call in asked:
            row = worded.row or worded.rows(_columns(call.answer))
            rows = Rows(self._connection.rows(call, row))
            found.append(rows or Rows.changed(call.answer.command_tuples or 0))
        return found

    def do(self, statement: ClauseElement, parameters: ParameterSets = EMPTY) -> None:
        every: Any = [parameters] if isinstance(parameters, dict) or not parameters else parameters
        worded = self._compiler.compiled(statement, every[0])
        self._waiting += _joined(worded.text, [worded.arguments(given) for given in every])

    def only(self, *questions: Question) -> Sequence[Rows]:
        """Begin, ask and end the transaction in one round trip; nothing more can be asked."""
        if len(questions) == 1:
            return self.together(*questions)  # a statement by itself is a transaction
        return self.ask(*questions, (_END, EMPTY))[:-1]

    def together(self, *questions: Question) -> Sequence[Rows]:
        """Ask in a round trip that is a transaction by itself; nothing more can be asked.

        Each question sees what is there after the ones before it have been answered.
        """
        self._waiting.clear()
        try:
            return self.ask(*questions)
        finally:
            self._begun = False  # however it ended, there is nothing to take back

    def exec_driver_sql(self, text: str, arguments: Sequence[Any] = ()) -> Rows:
        """See `Session`. Placeholders are `$1`, `$2`, ..."""
        call = Call(text, arguments)
        self._waiting.append(call)
        self._run()
        return Rows(self._connection.rows(call))

    def commit(self) -> None:
        """Run what waits, and end the transaction."""
        self._waiting.append(Call("COMMIT"))
        self._run()

    def take_back(self) -> None:
        """End the transaction as if it had never begun; what waits is not run."""
        self._waiting = [Call("ROLLBACK")]
        if self._begun and not self._connection.broken:
            self._run()

    def _run(self) -> None:
        calls, self._waiting, self._begun = self._waiting, [], True
        try:
            self._connection.run(calls)
        except psycopg.Error as error:
            raise pipeline_error(
                error, calls[-1].text, self._compiler.dialect, self._connection
            ) from error


def pipeline_error(
    error: psycopg.Error, text: str, dialect: Dialect, raw: RawConnection | None
) -> Exception:
    """In SQLAlchemy's terms, as every other error of the database."""
    return as_sqlalchemy_error(dialect, error, text, broken=raw is None or raw.broken)


def _joined(text: str, every: Sequence[Sequence[Any]]) -> Iterator[Call]:
    """A call for each set of arguments; for insertions, one for several of them."""
    if len(every) == 1 or _VALUES not in text:
        yield from (Call(text, one) for one in every)
        return
    for start in range(0, len(every), _ROWS):
        some = every[start : start + _ROWS]
        yield Call(_of_rows(text, len(some), len(some[0])), [*chain.from_iterable(some)])


@lru_cache(maxsize=1_000)
def _of_rows(text: str, rows: int, width: int) -> str:
    """An insertion of one row of `width` placeholders as one of several."""
    before, values, row = text.partition(_VALUES)
    return f"{before}{values}{', '.join(_shifted(row, at * width) for at in range(rows))}"


def _shifted(row: str, by: int) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + by}", row)


def _columns(answer: Any) -> list[str]:  # noqa: ANN401 - the library's result
    return [(answer.fname(at) or b"").decode() for at in range(answer.nfields)]
