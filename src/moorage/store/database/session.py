"""A transaction as the store sees it: statements on the driver's own connection.

What SQLAlchemy's `Connection` offers and the store needs, under the same names, without what it
costs per statement. Errors are SQLAlchemy's, so that a backend judges them in one place.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import partial
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ClauseElement, Connection, Dialect

    from moorage.store.database.statements import Parameters, StatementCompiler

    ParameterSets: TypeAlias = Parameters | Sequence[Parameters]
    Question: TypeAlias = tuple[ClauseElement, Parameters]

_ROW: Final = re.compile(r"(INSERT .* VALUES )(\([?, ]+\))(.*)", re.DOTALL)
_AT_ONCE: Final = (256, 16)
"""Rows of one insertion: few texts to prepare, and few enough placeholders for SQLite."""

EMPTY: Final[Mapping[str, Any]] = {}


class Rows(list[Any]):
    """What a statement found: rows with named columns, or the values of one column."""

    rowcount = 0
    """How many rows the statement changed, if it changes any and finds none."""

    @classmethod
    def changed(cls, rowcount: int) -> Rows:
        """Nothing was found, and so many rows were changed."""
        rows = cls()
        rows.rowcount = rowcount
        return rows

    def all(self) -> Self:
        """Everything."""
        return self

    def first(self) -> Any:  # noqa: ANN401 - a row of any table
        """The first one, or None."""
        return self[0] if self else None

    def one_or_none(self) -> Any:  # noqa: ANN401 - a row of any table
        """The only one, or None.

        Raises:
            LookupError: there are several.
        """
        return self.one() if self else None

    def one(self) -> Any:  # noqa: ANN401 - a row of any table
        """The only one.

        Raises:
            LookupError: there are none, or several.
        """
        if len(self) != 1:
            raise LookupError(f"one row was expected, {len(self)} were found")
        return self[0]

    def scalars(self) -> Rows:
        """The first column."""
        return Rows(row[0] for row in self)

    def scalar_one(self) -> Any:  # noqa: ANN401 - a value of any column
        """The first column of the only row.

        Raises:
            LookupError: there are none, or several.
        """
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:  # noqa: ANN401 - a value of any column
        """The first column of the only row, or None.

        Raises:
            LookupError: there are several.
        """
        return self.one()[0] if self else None


class Queryable(Protocol):
    """Who answers: a transaction, or a database that makes one for it."""

    def ask(self, *questions: Question) -> Sequence[Rows]:
        """Run several statements that see one state, in one round trip where the database can."""


class Session(ABC):
    """A transaction of one database."""

    __slots__ = ("_compiler", "info")

    def __init__(self, speech: StatementCompiler) -> None:
        self._compiler = speech
        self.info: dict[Any, Any] = {}
        """Notes about the transaction."""

    @property
    def dialect(self) -> Dialect:
        """What the database can do."""
        return self._compiler.dialect

    @abstractmethod
    def execute(self, statement: ClauseElement, parameters: ParameterSets = EMPTY) -> Rows:
        """Run a statement; with a list of parameters once for each, and finding nothing."""

    @abstractmethod
    def scalars(self, statement: ClauseElement, parameters: Parameters = EMPTY) -> Rows:
        """The first column of what a statement finds."""

    @abstractmethod
    def scalar(self, statement: ClauseElement, parameters: Parameters = EMPTY) -> Any:  # noqa: ANN401
        """The first column of the first row, or None."""

    @abstractmethod
    def ask(self, *questions: Question) -> Sequence[Rows]:
        """Run several statements that see one state, in one round trip where the database can."""

    @abstractmethod
    def do(self, statement: ClauseElement, parameters: ParameterSets = EMPTY) -> object:
        """Run a statement whose outcome does not matter: at the latest with the next that does."""

    @abstractmethod
    def exec_driver_sql(self, text: str, arguments: Sequence[Any] = ()) -> Rows:
        """Run a statement in the words of this very database and its driver."""


class DeferringSession(Session):
    """A session in which `do` waits for the next statement that finds something, or the end."""

    __slots__ = ()

    def execute(self, statement: ClauseElement, parameters: ParameterSets = EMPTY) -> Rows:
        if not isinstance(parameters, dict) and parameters:
            self.do(statement, parameters)
            self._run()
            return Rows()
        return self.ask((statement, parameters))[0]  # type: ignore[arg-type]  # one set

    def scalars(self, statement: ClauseElement, parameters: Parameters = EMPTY) -> Rows:
        return self.execute(statement, parameters).scalars()

    def scalar(self, statement: ClauseElement, parameters: Parameters = EMPTY) -> Any:  # noqa: ANN401
        return self.scalars(statement, parameters).first()

    @abstractmethod
    def _run(self) -> object:
        """Run what waits, in one round trip."""


class CursorSession(Session):
    """A session over a connection of PEP 249, in a transaction that somebody else ends."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any, speech: StatementCompiler) -> None:  # noqa: ANN401 - the driver's own
        super().__init__(speech)
        self._connection = connection

    @classmethod
    def within(cls, connection: Connection, speech: StatementCompiler) -> CursorSession:
        """A session on SQLAlchemy's connection, which begins and ends the transaction."""
        return cls(connection.connection.driver_connection, speech)

    def execute(
        self,
        statement: ClauseElement,
        parameters: ParameterSets = EMPTY,
    ) -> Rows:
        if not isinstance(parameters, dict) and parameters:
            return Rows.changed(self.do(statement, parameters).rowcount)
        given: Parameters = parameters  # type: ignore[assignment]  # one set
        worded, cursor = self._compiler.compiled(statement, given), self._connection.cursor()
        try:  # as `do`, without a call more for each statement
            cursor.execute(worded.text, worded.arguments(given))
        except Exception as error:
            raise self._as_sqlalchemy_error(error, worded.text, worded.arguments(given)) from error
        described = cursor.description
        if described is None:
            return Rows.changed(cursor.rowcount)
        row = worded.row or worded.rows([column[0] for column in described])
        return Rows(map(row, cursor.fetchall()))

    def scalars(self, statement: ClauseElement, parameters: Parameters = EMPTY) -> Rows:
        return Rows(row[0] for row in self.do(statement, parameters).fetchall())

    def scalar(self, statement: ClauseElement, parameters: Parameters = EMPTY) -> Any:  # noqa: ANN401
        found = self.do(statement, parameters).fetchone()
        return None if found is None else found[0]

    def ask(self, *questions: Question) -> Sequence[Rows]:
        return list(starmap(self.execute, questions))

    def do(
        self,
        statement: ClauseElement,
        parameters: ParameterSets = EMPTY,
    ) -> Any:  # noqa: ANN401 - the driver's own
        """See `Session`. At once, here; by the cursor it can be told what it did."""
        cursor = self._connection.cursor()
        arguments: Sequence[Any]
        if not isinstance(parameters, dict) and parameters:
            every: Sequence[Parameters] = parameters  # type: ignore[assignment]  # several sets
            worded = self._compiler.compiled(statement, every[0])
            run, arguments = partial(_run_each, cursor), list(map(worded.arguments, every))
        else:
            given: Parameters = parameters  # type: ignore[assignment]  # one set
            worded = self._compiler.compiled(statement, given)
            run, arguments = cursor.execute, worded.arguments(given)
        try:
            run(worded.text, arguments)
        except Exception as error:
            raise self._as_sqlalchemy_error(error, worded.text, arguments) from error
        return cursor

    def exec_driver_sql(self, text: str, arguments: Sequence[Any] = ()) -> Rows:
        return Rows(self.execute_text(text, arguments).fetchall())

    def execute_text(self, text: str, arguments: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - the driver's own
        """Run a statement in words; the cursor that did."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(text, arguments)
        except Exception as error:
            raise self._as_sqlalchemy_error(error, text, arguments) from error
        return cursor

    def rollback(self) -> None:
        """Take back what was done, if a transaction is open still."""
        self._connection.rollback()

    def _as_sqlalchemy_error(self, error: Exception, text: str, arguments: object) -> Exception:
        dialect = self._compiler.dialect
        broken = dialect.is_disconnect(error, self._connection, None)  # type: ignore[arg-type]  # any error may be asked about
        return as_sqlalchemy_error(dialect, error, text, arguments, broken=broken)


def _run_each(cursor: Any, text: str, every: Sequence[Sequence[Any]]) -> None:  # noqa: ANN401
    """Run a statement once for each set of arguments; rows of an insertion many at once.

    The driver gives the interpreter's lock away at every run, and where other threads search, it
    comes back late: a commit of 400 rows kept other writers out for a second.
    """
    done = 0
    if found := _ROW.match(text):
        head, row, tail = found.groups()
        for size in _AT_ONCE:
            many = f"{head}{', '.join([row] * size)}{tail}"
            while len(every) - done >= size:
                cursor.execute(many, [*chain.from_iterable(every[done : done + size])])
                done += size
    if done < len(every):
        cursor.executemany(text, every[done:])


def as_sqlalchemy_error(
    dialect: Dialect,
    error: Exception,
    text: str,
    arguments: Any = (),  # noqa: ANN401 - only shown
    *,
    broken: bool = False,
) -> Exception:
    """A driver's error as SQLAlchemy's, which tells if the connection broke; others as they are."""
    driver: Any = dialect.loaded_dbapi
    if not isinstance(error, driver.Error):
        return error
    found: Exception = DBAPIError.instance(
        text,
        arguments,
        error,
        driver.Error,
        connection_invalidated=broken,
        dialect=dialect,
    )
    return found
