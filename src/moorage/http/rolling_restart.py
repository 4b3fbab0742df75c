"""Rolling restart of the children, with a serving process at every moment.

A child that takes connections is replaced by starting its successor first: once that serves, the
old one is asked to leave, takes no more connections, and ends when it has answered those it has. A
child with a queue and much memory (a solver) leaves first: its requests wait meanwhile.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from moorage.http.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.http.child_process import Program

_log = logging.getLogger(__name__)

STARTING_SECONDS: Final = 300.0
"""How long a successor may take until it serves; the ledger of a large cloud is read first."""
LEAVING_SECONDS: Final = 120.0
"""How long a process that was asked to leave may take; longer than the longest search."""


class DrainingProcesses:
    """Processes that were asked to leave and have not exited yet."""

    def __init__(self, on_exit: Callable[[ChildProcess], None]) -> None:
        """`on_left` is called with each once it has exited."""
        self._on_exit = on_exit
        self._until: list[tuple[ChildProcess, float]] = []

    def __iter__(self) -> Iterator[ChildProcess]:
        return iter([child for child, _ in self._until])

    def __len__(self) -> int:
        return len(self._until)

    def add(self, child: ChildProcess) -> None:
        """Ask a child to leave."""
        child.drain()
        self._until.append((child, time.monotonic() + LEAVING_SECONDS))

    def reap(self) -> None:
        """Remove those that have exited; kill those past their deadline."""
        for entry in list(self._until):
            child, until = entry
            if child.process is None or child.ended() is not None:
                self._until.remove(entry)
                self._on_exit(child)
            elif time.monotonic() > until:
                _log.warning("%s did not exit after SIGHUP: killed", child.name)
                child.finish(0)


class RollingRestart:
    """One rolling restart of all children. `step` is called until it returns True."""

    def __init__(
        self,
        children: list[ChildProcess],
        programs: Sequence[Program],
        draining: DrainingProcesses,
        starting_seconds: float = STARTING_SECONDS,
    ) -> None:
        """`children` is changed in place: one for each of `programs`, in their order."""
        self._starting = starting_seconds
        self._children = children
        self._draining = draining
        self._programs = deque(programs)
        self._size = len(programs)
        self._place = 0
        """The index in `children` of the next program."""
        self._successor: ChildProcess | None = None
        self._predecessor: ChildProcess | None = None
        """The predecessor whose exit the successor waits for."""

    def step(self) -> bool:
        """Do what can be done now; return whether the restart is finished."""
        if self._successor is not None:
            return self._follow(self._successor)
        if self._programs:
            return self._begin(self._programs.popleft())
        for child in self._children[self._size :]:
            self._draining.add(child)
        del self._children[self._size :]
        _log.warning("reload finished: all processes were replaced")
        return True

    def abandon(self) -> ChildProcess | None:
        """Stop the restart; return the successor that has no place yet, if there is one."""
        self._programs.clear()
        waits = self._successor
        self._successor = None
        return None if waits is None or waits in self._children else waits

    def _begin(self, program: Program) -> bool:
        at = next(
            (
                place
                for place in range(self._place, len(self._children))
                if self._children[place].program.name == program.name
            ),
            None,
        )
        old = None if at is None else self._children.pop(at)
        if old is not None:
            self._children.insert(self._place, old)
        successor = ChildProcess(program, number=self._free_number(program, old))
        self._successor = successor
        if program.ends_before_successor or old is None:
            if old is None:
                self._children.insert(self._place, successor)
            else:
                self._children[self._place] = successor
                successor.due_at = math.inf  # until its predecessor has left
                self._predecessor = old
                self._draining.add(old)
            return False
        try:
            successor.start()
        except OSError as error:
            return self._failed(f"cannot be started: {error}")
        return False

    def _follow(self, successor: ChildProcess) -> bool:
        """Continue with the program whose successor was begun; return whether all is finished."""
        if self._predecessor is not None:
            if self._predecessor in list(self._draining):
                return False
            self._predecessor, successor.due_at = None, 0.0
        placed = successor in self._children
        if not placed and (status := successor.ended()) is not None:
            return self._failed(f"ended with status {status} before it served")
        if not placed and time.monotonic() - successor.started_at > self._starting:
            successor.finish(0)
            return self._failed(f"did not serve within {self._starting:g} s")
        if placed and (successor.failures or self._is_late(successor)):
            self._next()  # the supervisor goes on starting it
        elif successor.is_ready():
            if not placed:
                old = self._children[self._place]
                self._children[self._place] = successor
                self._draining.add(old)
            self._next()
        return False

    def _is_late(self, successor: ChildProcess) -> bool:
        """Whether a successor in its place has missed its deadline to become ready; kills it."""
        if successor.process is None or successor.is_ready():
            return False
        if time.monotonic() - successor.started_at <= self._starting:
            return False
        _log.error("%s did not become ready within %g s: killed", successor.name, self._starting)
        successor.finish(0)
        return True

    def _next(self) -> None:
        self._successor = None
        self._place += 1

    def _failed(self, why: str) -> bool:
        assert self._successor is not None
        _log.error(
            "reload stopped: new %s %s; the remaining old processes keep serving",
            self._successor.name,
            why,
        )
        self.abandon()
        return True

    def _free_number(self, program: Program, old: ChildProcess | None) -> int:
        """The lowest free number of the kind; one that leaves first hands on its own."""
        if program.ends_before_successor and old is not None:
            return old.number
        taken = {
            child.number
            for child in (*self._children, *self._draining)
            if child.program.name == program.name
        }
        return next(number for number in range(1, len(taken) + 2) if number not in taken)
