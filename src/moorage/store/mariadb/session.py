"""MariaDB's and MySQL's statements, several in one packet.

A round trip for each statement costs client and server as much as the statement, and here a
writer keeps all others out for as long as it takes. So what finds nothing waits, and goes out with
the next statement that finds something, or with the end. Values are written into the text by the
driver, as it always does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import CLIENT

from moorage.store.database.session import EMPTY, DeferringSession, Rows, as_sqlalchemy_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ClauseElement

    from moorage.store.database.session import ParameterSets, Question
    from moorage.store.database.statements import StatementCompiler

FLAGS: Final = CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS
"""What the connection must be made with; rows that an update leaves as they were count as found."""

_LONGEST: Final = 500_000
"""Characters of a packet beyond which it is sent; every server takes four times as many bytes."""
_VALUES: Final = " VALUES "


class BundleSession(DeferringSession):
    """A transaction whose waiting statements go out in one packet."""

    __slots__ = ("_cursor", "_driver", "_waiting")

    def __init__(self, driver: Any, speech: StatementCompiler) -> None:  # noqa: ANN401 - the driver's own
        super().__init__(speech)
        self._driver = driver
        self._cursor = driver.cursor()
        self._waiting: list[str] = []

    def ask(self, *questions: Question) -> Sequence[Rows]:
        if not questions:
            return []
        asked = []
        for statement, given in questions:
            worded = self._compiler.compiled(statement, given)
            self._waiting.append(self._written(worded.text, worded.arguments(given)))
            asked.append(worded)
        found = []
        for worded, (columns, rows, count) in zip(asked, self._run()[-len(asked) :], strict=True):
            row = columns and (worded.row or worded.rows(columns))
            found.append(Rows(map(row, rows)) if row else Rows.changed(count))
        return found

    def do(self, statement: ClauseElement, parameters: ParameterSets = EMPTY) -> None:
        every: Any = [parameters] if isinstance(parameters, dict) or not parameters else parameters
        worded = self._compiler.compiled(statement, every[0])
        self._waiting += self._joined(worded.text, [worded.arguments(given) for given in every])
        if sum(map(len, self._waiting)) > _LONGEST:
            self._run()

    def exec_driver_sql(self, text: str, arguments: Sequence[Any] = ()) -> Rows:
        """See `Session`. Placeholders are `%s`."""
        self._waiting.append(self._written(text, arguments) if arguments else text)
        _, rows, count = self._run()[-1]
        return Rows(rows) if rows else Rows.changed(count)

    def commit(self) -> None:
        """Run what waits, and end the transaction."""
        self.exec_driver_sql("COMMIT")

    def take_back(self) -> None:
        """End the transaction as if it had never begun; what waits is not run."""
        self._waiting = []
        if self._driver.open:
            self.exec_driver_sql("ROLLBACK")

    # --- text ---------------------------------------------------------------------------------

    def _written(self, text: str, arguments: Sequence[Any]) -> str:
        written: str = self._cursor.mogrify(text, arguments)
        return written

    def _joined(self, text: str, every: Sequence[Sequence[Any]]) -> Iterator[str]:
        """One statement for each set of values; for insertions, one for many of them."""
        before, values, row = text.partition(_VALUES)
        if not values or len(every) == 1:
            yield from (self._written(text, one) for one in every)
            return
        rows: list[str] = []
        length = 0
        for one in every:
            rows.append(self._written(row, one))
            length += len(rows[-1])
            if length > _LONGEST:
                yield before + values + ",".join(rows)
                rows, length = [], 0
        if rows:
            yield before + values + ",".join(rows)

    # --- one round trip -----------------------------------------------------------------------

    def _run(self) -> list[tuple[list[str], Sequence[Any], int]]:
        """Column names, rows and row count of each statement that waited.

        Raises:
            DBAPIError: of the first that failed; those after it are not run.
        """
        statements, self._waiting = self._waiting, []
        cursor = self._cursor
        try:
            cursor.execute(";".join(statements))
            found = [_answer(cursor)]
            while cursor.nextset():
                found.append(_answer(cursor))
        except pymysql.Error as error:
            broken = not self._driver.open or self.dialect.is_disconnect(
                error, self._driver, cursor
            )
            raise as_sqlalchemy_error(self.dialect, error, statements[-1], broken=broken) from error
        assert len(found) == len(statements), "one answer to each"
        return found


def _answer(cursor: Any) -> tuple[list[str], Sequence[Any], int]:  # noqa: ANN401 - the driver's own
    columns = [column[0] for column in cursor.description or ()]
    return columns, cursor.fetchall(), cursor.rowcount
