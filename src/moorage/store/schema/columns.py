"""The types of columns that all tables share, and indexes of some rows only."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, String, Text, text
from sqlalchemy.dialects.mysql import LONGTEXT

from moorage.store.database.statements import StateText

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A running number; SQLite counts by itself only in a column of exactly this type."""


def text_column(length: int) -> String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


STATE = StateText()
LONG = Text().with_variant(LONGTEXT(), "mysql")  # MariaDB's plain TEXT ends at 64 KB
UUID = text_column(36)
NAME = text_column(255)


def numbered_with_id() -> tuple[Column[int], Column[str]]:
    """The columns of a thing with an id; the number is the order of creation."""
    number = Column("number", NUMBER, primary_key=True)
    return number, Column("id", UUID, nullable=False, unique=True)


def partial_index(column: str, where: str, name: str | None = None) -> Index:
    """An index of some rows only, where the database knows such; None: named as others are."""
    condition = text(where)
    return Index(name, column, sqlite_where=condition, postgresql_where=condition)
