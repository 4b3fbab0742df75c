"""A parsed file in memory, read again when the file changes.

For rules and tokens: an operator edits or replaces the file, and within a second every worker
acts by it. A file that cannot be understood is refused at the start; later it is an error in the
log, and what was read last stays in force.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from moorage.domain.errors import InvalidDescription, MoorageError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS: Final = 1.0
"""How long the file is believed unchanged without looking."""


class WatchedFile(Generic[T]):
    """The parsed content of a file.

    `parse` makes it from the path; it raises a `MoorageError` for what it cannot understand.

    Raises:
        MoorageError: the file cannot be read or understood, when the object is made.
    """

    def __init__(
        self, path: str, parse: Callable[[Path], T], *, look: float = LOOK_SECONDS
    ) -> None:
        self._path = Path(path)
        self._parse = parse
        self._pause = look
        self._due = time.monotonic() + look
        self._state: object = self._look()
        self._value = self._read()

    def current(self) -> T:
        """The parsed content, at most a second old."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._pause
            self._refresh()
        return self._value

    def _refresh(self) -> None:
        state = self._look()
        if state == self._state:
            return
        self._state = state
        try:
            self._value = self._read()
        except MoorageError as error:
            _log.error("%s; the previous content stays in force", error)
        else:
            _log.info("file %s changed and was read again", self._path)

    def _look(self) -> object:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read(self) -> T:
        try:
            return self._parse(self._path)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InvalidDescription(f"cannot read {self._path}: {reason}") from error
