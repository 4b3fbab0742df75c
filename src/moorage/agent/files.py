"""Reads a node's files below a root directory: bounded, and never outside of it.

What is read is a value, so that making sense of it is a pure function. Garbage costs a caution
and nothing else: a file that cannot be read, a loop of links, a pipe, a directory of a million.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EINVAL, ENODATA, ENODEV, ENOENT, EOPNOTSUPP
from pathlib import Path, PurePosixPath
from string import whitespace
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_BYTES: Final = 4_000_000
"""Of one file: /proc/cpuinfo of a thousand processors has about half."""
MAX_NAMES: Final = 20_000
"""Of one directory."""
MAX_TEXTS: Final = 200_000
"""Of one reading."""
MAX_DIGITS: Final = 20
ANY: Final = "*"
_BLANKS: Final = f"{whitespace}\0"
_NOT_HERE: Final = frozenset({EINVAL, ENODATA, ENODEV, ENOENT, EOPNOTSUPP})
"""Errors by which a file of sysfs says that the device has no such property, or has just gone."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The files that were found: path below the root -> content.

    A directory has the content "", a symbolic link at the end of a path its target.
    """

    content: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def text(self, path: str) -> str:
        """The content without blanks around it; "" where there is none.

        Some kernels end lists with a NUL.
        """
        return self.content.get(path, "").strip(_BLANKS)

    def names(self, directory: str) -> list[str]:
        """What was found in a directory, sorted."""
        start = f"{directory}/"
        found = {
            path[len(start) :].split("/", 1)[0] for path in self.content if path.startswith(start)
        }
        return sorted(found)

    def by_entry(self, directory: str) -> Mapping[str, Texts]:
        """The content below each entry of a directory, by relative path; sorted by entry."""
        start = f"{directory}/"
        found: dict[str, dict[str, str]] = {}
        for path, content in self.content.items():
            if path.startswith(start):
                entry, _, rest = path[len(start) :].partition("/")
                found.setdefault(entry, {})[rest] = content
        return {entry: Texts(found[entry]) for entry in sorted(found)}


PCI_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]", re.ASCII)


def pci_address(target: str) -> str:
    """The address of the last PCI function on the way to a symbolic link's target, or ""."""
    for name in reversed(target.split("/")):
        if PCI_ADDRESS.fullmatch(name):
            return name
    return ""


def link_name(target: str) -> str:
    """The last name of a symbolic link's target."""
    return target.rpartition("/")[2]


def numbers(text: str, most: int) -> frozenset[int] | None:
    """The kernel's list of numbers, such as `0-3,8`; None if it is none."""
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, dash, last = part.partition("-")
        low = whole_number(first, most)
        high = whole_number(last, most) if dash else low
        if low is None or high is None or low > high:
            return None
        found |= set(range(low, high + 1))
    return frozenset(found)


def whole_number(text: str, most: int, base: int = 10) -> int | None:
    """The number from 0 to `most` that a text is, or None."""
    word = text.strip()
    if base == 16:  # noqa: PLR2004 - the base of hexadecimal digits
        word = word.removeprefix("0x")
    # `int` would take blanks, signs, underscores and digits of every script.
    if not word.isascii() or not word.isalnum() or len(word) > MAX_DIGITS:
        return None
    try:
        value = int(word, base)
    except ValueError:
        return None
    return value if value <= most else None


class Files:
    """A root directory to read from: `/`, or a fixture. What went wrong is in `cautions`."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        self._cautions: dict[Caution, None] = {}

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Everything that went wrong so far, each thing once."""
        return tuple(self._cautions)

    def read(self, patterns: Iterable[str]) -> Texts:
        """Read every file that a pattern fits; `*` is any one name, nothing else is special."""
        found: dict[str, str] = {}
        for pattern in patterns:
            for path in self._matches(PurePosixPath(), pattern.split("/")):
                if len(found) >= MAX_TEXTS:
                    self._warn("too-many", pattern, f"only {MAX_TEXTS} files are read")
                    break
                content = self._content(path)
                if content is not None:
                    found[str(path)] = content
        return Texts(found)

    def size_gb(self, directory: str, timeout: float = 5.0) -> int | None:
        """The size of the filesystem on a directory, in GiB; None if it cannot be known in time.

        Filesystems of servers that do not answer let one wait for ever, in a thread of its own.
        """
        found: list[int] = []

        def measure() -> None:
            with suppress(OSError, ValueError):
                size = os.statvfs(self._root / directory.lstrip("/"))
                found.append(size.f_blocks * size.f_frsize // 2**30)

        thread = Thread(target=measure, daemon=True)
        thread.start()
        thread.join(timeout)
        if not found:
            self._warn("unreadable", directory, f"no size within {timeout:g} seconds")
        return found[0] if found else None

    def names(self, directory: str) -> list[str]:
        """The names in a directory, sorted; none where it cannot be read."""
        return self._names(PurePosixPath(directory))

    def _matches(self, at: PurePosixPath, left: list[str]) -> Iterator[PurePosixPath]:
        if not left:
            yield at
            return
        name, rest = left[0], left[1:]
        if name != ANY:
            if os.path.lexists(self._root / at / name):
                yield from self._matches(at / name, rest)
            return
        for one in self._names(at):
            yield from self._matches(at / one, rest)

    def _names(self, directory: PurePosixPath) -> list[str]:
        if not self._inside(directory):
            return []
        found: list[str] = []
        try:
            with os.scandir(self._root / directory) as entries:
                for entry in entries:
                    if len(found) == MAX_NAMES:
                        self._warn("too-many", str(directory), f"only {MAX_NAMES} names are read")
                        break
                    found.append(entry.name)
        except NotADirectoryError:
            return []
        except OSError as error:
            self._unreadable(directory, error)
        return sorted(found)

    def _content(self, path: PurePosixPath) -> str | None:
        whole = self._root / path
        try:
            if whole.is_symlink():
                return os.readlink(whole)  # noqa: PTH115 - as it is written
            if not self._inside(path):
                return None
            kind = whole.stat().st_mode
            if stat.S_ISDIR(kind):
                return ""
            if not stat.S_ISREG(kind):  # a pipe would wait for its writer
                self._warn("not-a-file", str(path), "left out")
                return None
            with whole.open("rb") as file:
                return file.read(MAX_BYTES).decode("utf-8", errors="replace")
        except (OSError, ValueError) as error:
            self._unreadable(path, error)
            return None

    def _inside(self, path: PurePosixPath) -> bool:
        """Whether the path stays below the root when links are followed."""
        if os.path.realpath(self._root / path).startswith(os.path.join(self._root, "")):  # noqa: PTH118 - with its end
            return True
        if not path.parts:
            return True
        self._warn("leads-outside", str(path), "the link is not followed")
        return False

    def _unreadable(self, path: PurePosixPath, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in _NOT_HERE:
            return
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self._warn("unreadable", str(path), why)

    def _warn(self, code: str, subject: str, message: str) -> None:
        self._cautions[Caution(code, subject, message)] = None
