"""Shared memory of all processes of one service: heartbeats and counts per process.

The supervisor makes it and its children inherit the descriptor. Each child has a row of numbers and
writes no other; the supervisor counts there how often it replaced one. A number is written in one
step of the processor, so no lock is needed.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTES: Final = 8
"""Of a number."""
_MOST: Final = 512
"""Processes of a kind at a time: twice what the settings allow, for reloads."""


class Column(IntEnum):
    """Columns of a row, by position."""

    BEATS = 0
    """Signs of life since the process started; 0 until it serves."""
    ACCEPTS = 1
    """1 if it takes connections."""
    CONNECTIONS = 2
    """Open now; a planner has one for each request."""
    UNSENT = 3
    """Bytes of answers that clients have not taken yet."""
    ARRIVING = 4
    """Bytes of request bodies that are not complete yet."""
    READERS_ENDED = 5
    """Connections ended because too many bytes were unsent, since the service started."""
    BODIES_REFUSED = 6
    """Bodies refused because too many bytes were arriving, since the service started."""
    REPLACED = 7
    """Processes killed because they showed no sign of life, since the service started."""
    OPENED = 8
    """1 if it has opened the database, and migrated it where needed; HTTP workers only."""
    DUE = 9
    """When it must have answered one of its requests, in milliseconds of the monotonic clock;
    0: none waits. Planners only."""


_OF_THE_PROCESS: Final = (
    *(Column.BEATS, Column.ACCEPTS, Column.CONNECTIONS),
    *(Column.UNSENT, Column.ARRIVING, Column.OPENED, Column.DUE),
)
"""What a new process in the place of an old one begins with 0."""

_KINDS: Final = 3
_SIZE: Final = _KINDS * _MOST * len(Column) * _BYTES


class Row:
    """The numbers of one process."""

    __slots__ = ("_first", "_numbers")

    def __init__(self, numbers: memoryview, row: int) -> None:
        self._numbers = numbers
        self._first = row * len(Column)

    def __getitem__(self, column: Column) -> int:
        """Read one number."""
        return int(self._numbers[self._first + column])

    def __setitem__(self, column: Column, value: int) -> None:
        """Write one number."""
        self._numbers[self._first + column] = value

    def add(self, column: Column) -> None:
        """Add one; only for a number that one thread alone writes."""
        self._numbers[self._first + column] += 1

    def begin(self) -> None:
        """Reset the row for a new process."""
        for column in _OF_THE_PROCESS:
            self[column] = 0


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The part of a row that an HTTP worker writes and reads."""

    own: Row
    workers: Sequence[Row] = ()
    """Of all workers."""


class ProcessStatus:
    """The rows of all processes, by kind and number."""

    def __init__(self, descriptor: int) -> None:
        """The memory of a descriptor that `make` gave."""
        numbers = memoryview(mmap.mmap(descriptor, _SIZE)).cast("Q")
        self.workers = [Row(numbers, row) for row in range(_MOST)]
        self.solvers = [Row(numbers, row) for row in range(_MOST, 2 * _MOST)]
        self.planners = [Row(numbers, row) for row in range(2 * _MOST, 3 * _MOST)]

    def worker(self, number: int) -> Row:
        """The row of an HTTP worker; they are numbered from 1."""
        return self.workers[(number - 1) % _MOST]

    def solver(self, number: int) -> Row:
        """The row of a solver process; they are numbered from 1."""
        return self.solvers[(number - 1) % _MOST]

    def planner(self, number: int) -> Row:
        """The row of a planner process; they are numbered from 1."""
        return self.planners[(number - 1) % _MOST]

    @staticmethod
    def up(rows: Sequence[Row]) -> int:
        """How many processes of a kind serve."""
        return sum(row[Column.BEATS] > 0 for row in rows)


def make() -> int:
    """Make a descriptor of zeroed memory for all rows. The caller owns it.

    Raises:
        OSError: the system has no room for it.
    """
    descriptor = os.memfd_create("moorage-status", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, _SIZE)
    return descriptor


def alone() -> Row:
    """A private row that no other process sees."""
    return Row(memoryview(bytearray(len(Column) * _BYTES)).cast("Q"), 0)
