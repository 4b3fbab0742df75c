"""The main process of `moorage serve`: opens the port, starts children, replaces those that die.

It does no work of the service, so nothing of the service can take it down. Children hold the
lifeline of `moorage.http.child_main`: when this process ends, in whatever way, they end too. It
kills children without a heartbeat: SIGKILL also ends a stopped process, and one that lets no signal
handler run. SIGHUP replaces all of them, one after the other (see `rolling_restart`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from moorage.http.child_main import CANNOT_START, NOT_NOW
from moorage.http.child_process import LOOK_SECONDS, ChildProcess
from moorage.http.rolling_restart import DrainingProcesses, RollingRestart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from moorage.http.child_process import Program

_log = logging.getLogger(__name__)

BACKLOG: Final = 1024
"""Connections the kernel keeps waiting for a worker to take them."""
GRACE: Final = 5.0
"""Seconds children have to finish what they are doing."""
_FAILED: Final = 1
_UNUSABLE: Final = 2
"""Exit status where a setting, or a file that one names, cannot be used; as of the command line."""
_INTERRUPTED: Final = 130
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP)
_STANDARD: Final = (0, 1, 2)
"""Descriptors of standard input, output and error."""
_TICK: Final = 0.1
"""Seconds between two looks at what is being replaced."""


class Supervisor:
    """Starts, watches and replaces child processes until SIGTERM or SIGINT.

    `probe` blocks until the service answers (in a thread of its own); then
    `on_ready` is called once. `on_end` is called before the children are stopped. `renew` says
    by which programs all are replaced at SIGHUP, or None if they are not; `on_ready` is called
    again after that, and `on_left` with the program's name and number of each that has left.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        probe: Callable[[], None],
        on_ready: Callable[[], None],
        on_end: Callable[[], None],
        renew: Callable[[], Sequence[Program] | None] = lambda: None,
        on_exit: Callable[[str, int], None] = lambda _name, _number: None,
    ) -> None:
        self._children = _numbered(programs)
        self._probe = probe
        self._on_ready = on_ready
        self._on_end = on_end
        self._renew = renew
        self._draining = DrainingProcesses(lambda child: on_exit(child.program.name, child.number))
        self._rollover: RollingRestart | None = None
        self._has_terminal = _is_at_terminal()
        self._answers = threading.Event()
        self._ready = False
        self._received: list[int] = []

    def run(self) -> int:
        """Supervise; return the exit status. Must be called in the main thread."""
        with _signals(self._note) as (woken, waker):
            threading.Thread(target=self._wait_for_answer, args=(waker,), daemon=True).start()
            try:
                return self._loop(woken)
            finally:
                self._stop()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._received.append(number)

    def _wait_for_answer(self, waker: socket.socket) -> None:
        self._probe()
        self._answers.set()
        with contextlib.suppress(OSError):  # closed: the supervisor has stopped meanwhile
            waker.send(b"\0")

    def _loop(self, woken: socket.socket) -> int:
        with selectors.DefaultSelector() as selector:
            selector.register(woken.fileno(), selectors.EVENT_READ)
            while True:
                exit_status = self._exit_requested()
                if exit_status is not None:
                    return exit_status
                if self._answers.is_set() and not self._ready:
                    self._ready = True
                    self._on_ready()
                failed = self._reap()
                if failed is not None:
                    return failed
                self._replace()
                self._start_due()
                self._kill_silent_ones()
                selector.select(self._until_next_look())
                _drain(woken)

    def _exit_requested(self) -> int | None:
        for number in self._received:
            if number == signal.SIGTERM:
                return 0
            if number == signal.SIGINT:
                return _INTERRUPTED
            if number == signal.SIGHUP and self._has_terminal and not _is_at_terminal():
                return 0  # the terminal it was started in is closed
        return None

    def _replace(self) -> None:
        """Begin a rolling restart if SIGHUP asked for one, or continue it."""
        if self._rollover is not None and self._rollover.step():
            self._rollover = None
            self._on_ready()
        self._draining.reap()
        if signal.SIGHUP in self._received and self._ready and self._rollover is None:
            while signal.SIGHUP in self._received:  # in place: another may come meanwhile
                self._received.remove(signal.SIGHUP)
            programs = self._renew()
            if programs is not None:
                self._rollover = RollingRestart(self._children, programs, self._draining)

    def _reap(self) -> int | None:
        """Handle children that have exited; the exit status to end with if restarts cannot help."""
        for child in self._children:
            status = child.ended()
            if status is None:
                continue
            name = child.name
            if child.program.vital and not self._ready:
                if status == CANNOT_START:
                    return _UNUSABLE
                if status != NOT_NOW:
                    _log.error("%s exited with status %d before the service answered", name, status)
                return _FAILED
            _log.warning("%s exited with status %d; restarting it", name, status)
        return None

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._waiting():
            if child.due_at <= now:
                self._start(child)

    def _start(self, child: ChildProcess) -> None:
        """Start a child; after the first answer, a child that cannot start is tried again later.

        Raises:
            OSError: there was none from the beginning.
        """
        try:
            child.start()
        except OSError as error:
            if not self._ready:
                raise
            _log.error("%s cannot be started: %s; retrying later", child.name, error)
            child.delay_restart()

    def _kill_silent_ones(self) -> None:
        now = time.monotonic()
        for child in (*self._children, *self._draining):
            child.kill_if_silent(now)

    def _until_next_look(self) -> float:
        if self._rollover is not None or len(self._draining):
            return _TICK
        due = [child.due_at - time.monotonic() for child in self._waiting()]
        return max(min([*due, LOOK_SECONDS]), 0)

    def _waiting(self) -> list[ChildProcess]:
        return [
            child
            for child in self._children
            if child.process is None and (self._ready or not child.program.waits)
        ]

    def _stop(self) -> None:
        deadline = time.monotonic() + GRACE
        self._on_end()
        every = [*self._children, *self._draining]
        if self._rollover is not None and (successor := self._rollover.abandon()) is not None:
            every.append(successor)
        for serves_others in (False, True):
            ending = [child for child in every if child.program.serves_others is serves_others]
            for child in ending:
                child.stop()
            for child in ending:
                child.finish(deadline)


def _numbered(programs: Sequence[Program]) -> list[ChildProcess]:
    """A child for each program; those of one name are numbered from 1."""
    count: Counter[str] = Counter()
    children = []
    for program in programs:
        count[program.name] += 1
        children.append(ChildProcess(program, number=count[program.name]))
    return children


def _is_at_terminal() -> bool:
    """Whether standard input, output or error is an open terminal."""
    return any(os.isatty(descriptor) for descriptor in _STANDARD)


@contextlib.contextmanager
def _signals(
    note: Callable[[int, FrameType | None], None],
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Call `note` for each signal of `_SIGNALS`; the first socket is readable after each.

    It is also when something is sent on the second.
    """
    woken, waker = socket.socketpair()
    woken.setblocking(False)  # noqa: FBT003 - the standard library's signature
    waker.setblocking(False)  # noqa: FBT003 - the standard library's signature
    before = {number: signal.signal(number, note) for number in _SIGNALS}
    old_wakeup = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    try:
        yield woken, waker
    finally:
        signal.set_wakeup_fd(old_wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        woken.close()
        waker.close()


def _drain(woken: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while woken.recv(4096):
            pass


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Open the port the children will serve.

    Vanished peers are noticed within about two minutes by keep-alive probes.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A body sent in parts would wait for the peer's acknowledgment before its last one.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, name):
                listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        listener.bind((host, port))
        listener.listen(backlog)
        listener.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError:
        listener.close()
        raise
    return listener
