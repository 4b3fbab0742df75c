"""Reads the newest revision of a SQLite file, without a pool and a transaction.

A statement that stands alone sees every commit that ended before it began. To take a connection
out of a pool for it, to begin and to roll back would cost many times what the statement does.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

_WAIT: Final = 5.0
"""Seconds to wait while another program keeps the file locked."""


class Peek:
    """Reads the only value of one statement. May be called from any thread."""

    def __init__(self, path: Path, text: str) -> None:
        # The file is there already: one that is lost meanwhile must not be made anew, and empty.
        self._uri = f"file:{quote(str(path.absolute()))}?mode=rw"
        self._text = text
        self._idle: deque[sqlite3.Connection] = deque()
        """The one used last is taken first: what it knows of the file is the newest."""
        self._closed = False

    def __call__(self) -> Any:  # noqa: ANN401 - a value of any column
        """The value, as of now.

        Raises:
            sqlite3.Error: the file cannot be read; the next call begins anew.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connected()
        try:
            ((value,),) = connection.execute(self._text).fetchall()
        except sqlite3.Error:
            connection.close()
            raise
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)
        return value

    def close(self) -> None:
        """Let go of the file; a connection in use is closed by whoever uses it."""
        self._closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._uri, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
