"""The types of columns that all tables share, and indexes of some rows only."""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, Integer, String, Text, text
from sqlalchemy.dialects.mysql import LONGTEXT

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A running number; SQLite counts by itself only in a column of exactly this type."""


def text_column(length: int) -> String:
    """Compared byte by byte everywhere, whatever language the database speaks."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


LONG = Text().with_variant(LONGTEXT(), "mysql")  # MariaDB's plain TEXT ends at 64 KB
UUID = text_column(36)
NAME = text_column(255)


def partial_index(column: str, where: str) -> Index:
    """An index of some rows only, where the database knows such."""
    condition = text(where)
    return Index(None, column, sqlite_where=condition, postgresql_where=condition)
