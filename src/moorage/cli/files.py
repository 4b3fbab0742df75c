"""Files by name: a path, or the name of a file that is shipped with Moorage."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import moorage
from moorage.client.description import line_of
from moorage.client.errors import Invalid
from moorage.domain.errors import Contradiction, InvalidDescription, MoorageError
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES: Final = 64 * 1024 * 1024
"""A description larger than this is a mistake."""

_PACKAGE: Final = Path(moorage.__file__).parent
_SHELVES: Final = tuple(
    root / shelf
    for root in (_PACKAGE / "data", _PACKAGE.parents[1])
    for shelf in ("fleets", "examples")
)
"""Where shipped files are: in an installed package, or in a checkout."""


_OPTIONS: Final = frozenset({"until", "hold", "time_limit", "priority", "objective", "seed"})
"""Paths of errors about options, which stand beside a description."""


class Unreadable(MoorageError):
    """A file cannot be read; the message says why."""


class Unwritable(MoorageError):
    """A file cannot be written; the message says why."""


class Misread(InvalidDescription):
    """A mistake in a file; the message names file, line and path."""

    def __init__(self, file: str, error: InvalidDescription) -> None:
        super().__init__(error.message, path=error.path, line=error.line)
        self.file = file


@contextmanager
def reading(name: str, description: str | None = None) -> Iterator[None]:
    """Add the file's name to errors about it, except contradictions.

    With the `description` that is its text, errors that say where get their line: those raised
    here, and those of the service about a body that was read from it.

    Raises:
        Misread: the file's text cannot be understood.
        ApiError: the service refused; with the file and the line where the error has a path.
    """
    file = "standard input" if name == "-" else name
    try:
        yield
    except (Contradiction, Misread):
        raise
    except InvalidDescription as error:
        if description is not None and error.line is None:
            error.line = line_of(description, error.path)
        raise Misread(file, error) from error
    except Invalid as error:
        path = str(error.error.get("path") or "")
        # What options of the command say is not in the file.
        line = None if description is None or path in _OPTIONS else line_of(description, path)
        if path in _OPTIONS:
            error.error = {**error.error, "path": "", "file": f"--{path.replace('_', '-')}"}
        elif line is not None and not error.error.get("line"):
            error.error = {**error.error, "file": file, "line": line}
        raise


def find(name: str) -> Path:
    """The path of a file with that name, or of the shipped one.

    Raises:
        Unreadable: there is none.
    """
    own = Path(name)
    if own.exists():
        return own
    if own.name == name:
        for shelf in _SHELVES:
            if (shelf / name).is_file():
                return shelf / name
    near = {one.name for one in _files(own.parent)}
    if own.name == name:
        near |= {one.name for shelf in _SHELVES for one in _files(shelf)}
    raise Unreadable(f"{name}: no such file{did_you_mean(own.name, near)}")


def _files(directory: Path) -> list[Path]:
    """The files in a directory; none if it cannot be read."""
    try:
        return [one for one in directory.iterdir() if one.is_file()]
    except OSError:
        return []


def read_text(name: str) -> str:
    """The text of a file, of a shipped one, or with `-` of standard input.

    Raises:
        Unreadable: it is not there, too large or not UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1) if name == "-" else _bytes(find(name))
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"{name}: larger than {MAX_BYTES // 2**20} MiB")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise Unreadable(f"{name}: line {line} is not UTF-8") from error


def _bytes(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)
