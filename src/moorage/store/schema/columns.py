"""The types of columns that all tables share, and indexes of some rows only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, Column, Index, Integer, String, Text, text
from sqlalchemy.dialects.mysql import LONGTEXT

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.sql.operators import OperatorType

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A running number; SQLite counts by itself only in a column of exactly this type."""


def text_column(length: int) -> String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


class StateText(String):
    """The type of columns with the ledger's own words for states, of which there are few.

    A word that such a column is compared with is part of the statement's text. With a parameter in
    its place, SQLite prepares the statement anew at each use if the column is in the condition of
    an index, and PostgreSQL does not use that index in plans that it keeps.
    """

    class Comparator(String.Comparator[str]):
        """What `==` and `!=` make of a word."""

        def operate(self, op: OperatorType, *other: Any, **more: Any) -> ColumnElement[Any]:  # noqa: ANN401 - any operand
            """See `ColumnOperators`."""
            return super().operate(op, *map(_word_itself, other), **more)

    comparator_factory = Comparator


def _word_itself(operand: object) -> object:
    """A word as it is written in SQL; other operands as they are."""
    if isinstance(operand, str) and _WORD.fullmatch(operand):
        # Not `literal_column`: a join takes that for a column of a table that it cannot find.
        return text(f"'{operand}'")
    return operand


_WORD: Final = re.compile("[a-z_]+")
STATE = StateText(16).with_variant(String(16, collation="C"), "postgresql")
LONG = Text().with_variant(LONGTEXT(), "mysql")  # MariaDB's plain TEXT ends at 64 KB
UUID = text_column(36)
NAME = text_column(255)


ONCE: Final = "once"
"""In a column's `info`: written with a new row, and never again."""


def numbered_with_id() -> tuple[Column[int], Column[str]]:
    """The columns of a thing with an id; the number is the order of creation."""
    number = Column("number", NUMBER, primary_key=True)
    return number, Column("id", UUID, nullable=False, unique=True)


def partial_index(column: str, where: str, name: str | None = None, *more: str) -> Index:
    """An index of some rows only, where the database knows such; None: named as others are.

    `more` columns come after the first.
    """
    condition = text(where)
    return Index(name, column, *more, sqlite_where=condition, postgresql_where=condition)
