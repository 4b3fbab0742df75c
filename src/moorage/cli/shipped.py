"""Files: the caller's own first, then those that Moorage ships, by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import moorage
from moorage.domain.errors import MoorageError

MAX_BYTES: Final = 64 * 1024 * 1024
"""A description larger than this is a mistake."""

_PACKAGE: Final = Path(moorage.__file__).parent
_SHELVES: Final = tuple(
    root / shelf
    for root in (_PACKAGE / "data", _PACKAGE.parents[1])
    for shelf in ("fleets", "examples")
)
"""Where shipped files are: in an installed package, or in a checkout."""


class Unreadable(MoorageError):
    """A file that cannot be read, and why."""


def find(name: str) -> Path:
    """The file of that name, or the shipped one.

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
    raise Unreadable(f"{name}: no such file")


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
