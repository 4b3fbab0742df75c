"""The deadline of a request: one instant that bounds all of its work.

A request gets its deadline when it is admitted; its server enters `within`, and everything that is
called from there, in the same thread, can ask how much time is left. It is ambient, like a
trace id, because it is no input of any computation: it never changes an answer, only whether there
is one. Long loops call `check` once per step. Without a deadline (a background round, a script)
nothing ever expires.

The stopwatch is handed in, so nothing here reads a clock of its own.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy
from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from contextvars import Context

    from moorage.domain.period import Duration

RETRY_AFTER: Final = 5
"""The Retry-After, in seconds, of a request whose time ran out."""
COMMITTING: Final = 1.0
"""Least number of seconds to commit what was found, even past the time limit: for the write lock,
and for an attempt that is made while all other writers wait."""


class TimeExpired(Busy):
    """The time limit of the request passed before there was an answer, or a proof that none is."""

    def __init__(self) -> None:
        super().__init__(
            "time ran out before an answer, or a proof that there is none",
            retry_after=RETRY_AFTER,
        )


@dataclass(eq=False, slots=True)
class Overtime:
    """When the last step of a request ended that had a time limit of its own."""

    until: float = -inf


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the work began, when it has to be over, and by which clock; in seconds."""

    began: float
    at: float
    stopwatch: Callable[[], float]
    last: float = inf
    """No step may be given more time than until then."""
    reserved: float = 0.0
    """How much later the work around this has to be over, for which time is left."""
    overtime: Overtime = field(default_factory=Overtime)
    """Of the whole request: the work around a step cannot be over before that step."""

    @property
    def promised(self) -> float:
        """When the request has to be over, as far as is known now."""
        return max(self.at + self.reserved, self.overtime.until)

    def left(self) -> float:
        """Seconds until it passes; negative once it has."""
        return self.at - self.stopwatch()


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def admitted(stopwatch: Callable[[], float], seconds: float) -> Deadline:
    """The deadline of a request that is admitted now."""
    began = stopwatch()
    return Deadline(began, began + seconds, stopwatch, began + seconds)


def current() -> Deadline | None:
    """The deadline of the current context."""
    return _current.get()


def of_context(context: Context) -> Deadline | None:
    """The deadline in a context, which may be that of another thread's work."""
    return context.get(_current)


def under(deadline: Deadline) -> AbstractContextManager[None]:
    """Run work under a given deadline, such as that of a request another process admitted."""
    return _set(deadline)


def check() -> None:
    """Refuse work whose deadline has passed.

    Raises:
        TimeExpired: it has.
    """
    now = _current.get()
    if now is not None and now.stopwatch() >= now.at:
        raise TimeExpired


def passed() -> bool:
    """Whether the deadline of the current context has passed."""
    now = _current.get()
    return now is not None and now.left() <= 0


def left(seconds: float) -> float:
    """The smaller of these seconds and the time until the deadline."""
    now = _current.get()
    return seconds if now is None else min(seconds, now.left())


def bounded(limit: Duration) -> Duration:
    """The limit of one step, cut to the time until the deadline.

    Raises:
        TimeExpired: nothing is left.
    """
    now = _current.get()
    if now is None:
        return limit
    check()
    return max(min(limit, int(now.left() * SECOND)), 1)


@contextmanager
def within(stopwatch: Callable[[], float], seconds: float) -> Iterator[None]:
    """Run work with at most so many seconds from when the outer work began.

    A request that says its own time limit tightens the one it was admitted with: what was done
    before the limit was read counts.
    """
    outer = _current.get()
    if outer is None:
        began = stopwatch()
        with _set(Deadline(began, began + seconds, stopwatch)):
            yield
    else:
        with _set(replace(outer, at=min(outer.at, outer.began + seconds))):
            yield


@contextmanager
def leaving(seconds: float) -> Iterator[None]:
    """Run work that leaves so many seconds for later steps, or half of what is left."""
    outer = _current.get()
    if outer is None:
        yield
    else:
        kept = min(seconds, max(outer.left(), 0) / 2)
        with _set(replace(outer, at=outer.at - kept, reserved=outer.reserved + kept)):
            yield


@contextmanager
def allowing(seconds: float) -> Iterator[None]:
    """Run work with a time limit of its own, which counts from now, whatever was used before."""
    outer = _current.get()
    if outer is None:
        yield
    else:
        at = min(outer.last, outer.stopwatch() + seconds)
        with _set(replace(outer, at=at, reserved=0.0)), _beyond(outer):
            yield


@contextmanager
def anew() -> Iterator[None]:
    """Run one of several steps under a deadline: limits in it count from now."""
    outer = _current.get()
    if outer is None:
        yield
    else:
        with _set(replace(outer, began=outer.stopwatch(), last=outer.at)):
            yield


@contextmanager
def at_least(seconds: float) -> Iterator[None]:
    """Run work with the time that is left, and at least so many seconds.

    What follows an answer, such as the reasons of a refusal that took all the time to prove, is
    given this much and no more.
    """
    outer = _current.get()
    if outer is None:
        yield
    else:
        now = outer.stopwatch()
        with _set(replace(outer, at=max(outer.at, now + seconds))), _beyond(outer):
            yield


@dataclass(eq=False, slots=True)
class ClientWait:
    """Until when a client waits for the alternatives of a refusal; its reason is waited for."""

    at: float
    stopwatch: Callable[[], float]
    applied: bool = False
    """Whether a search was cut short for it, and goes on after the answer."""

    def passed(self) -> bool:
        """Whether the client waits no longer."""
        return self.stopwatch() >= self.at


_client_wait: ContextVar[ClientWait | None] = ContextVar("client wait", default=None)
_alternatives: ContextVar[ClientWait | None] = ContextVar("alternatives", default=None)


def client_wait() -> ClientWait | None:
    """How long the client prefers to wait; None: as long as it takes."""
    return _client_wait.get()


@contextmanager
def preferring(stopwatch: Callable[[], float], seconds: float) -> Iterator[ClientWait]:
    """Run a request whose client prefers to wait for so many seconds, from when it was admitted.

    That is a preference: it binds nobody who does not enter `searching_within`.
    """
    outer = _current.get()
    began = stopwatch() if outer is None else outer.began
    wait = ClientWait(began + seconds, stopwatch)
    token = _client_wait.set(wait)
    try:
        yield wait
    finally:
        _client_wait.reset(token)


@contextmanager
def searching_within(wait: ClientWait | None) -> Iterator[None]:
    """Run an explanation whose `alternatives` end when the client waits no longer; None: do not."""
    token = _alternatives.set(wait)
    try:
        yield
    finally:
        _alternatives.reset(token)


@contextmanager
def alternatives() -> Iterator[bool]:
    """Run a search for what would help instead; yields whether the client still waits for it."""
    wait, outer = _alternatives.get(), _current.get()
    if wait is None:
        yield True
        return
    if outer is None:
        outer = Deadline(wait.stopwatch(), wait.at, wait.stopwatch)
    with _set(replace(outer, at=min(outer.at, wait.at))):
        yield not wait.passed()


@contextmanager
def over() -> Iterator[None]:
    """Run what follows a commit without a deadline: the change is made, so it is answered."""
    outer = _current.get()
    with _set(None), nullcontext() if outer is None else _beyond(outer):
        yield


@contextmanager
def _beyond(outer: Deadline) -> Iterator[None]:
    """Note when a step is over that may have gone past the deadline of the work around it."""
    try:
        yield
    finally:
        outer.overtime.until = outer.stopwatch()


@contextmanager
def _set(deadline: Deadline | None) -> Iterator[None]:
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)
