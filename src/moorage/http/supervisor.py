"""`moorage serve`'s own process: it opens the port, starts children, replaces those that die.

It does no work of the service, so nothing of the service can take it down. Children hold the
lifeline of `moorage.http.child`: when this process ends, in whatever way, they end too.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Final

from moorage.http.child import CANNOT_START, NOT_NOW
from moorage.http.offspring import Offspring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from moorage.http.offspring import Program

_log = logging.getLogger(__name__)

BACKLOG: Final = 1024
"""Connections the kernel keeps waiting for a worker to take them."""
GRACE: Final = 5.0
"""Seconds children have to finish what they are doing."""
_FAILED: Final = 1
_UNUSABLE: Final = 2
"""Exit status where a setting, or a file that one names, cannot be used; as of the command line."""
_INTERRUPTED: Final = 130
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


class Supervisor:
    """Runs programs until told to stop.

    `probe` blocks until the service answers (in a thread of its own); then
    `on_ready` is called once. `on_end` is called before the children are told to end.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        probe: Callable[[], None],
        on_ready: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._children = [Offspring(program) for program in programs]
        self._probe = probe
        self._on_ready = on_ready
        self._on_end = on_end
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
                told = self._told()
                if told is not None:
                    return told
                if self._answers.is_set() and not self._ready:
                    self._ready = True
                    self._on_ready()
                failed = self._reap()
                if failed is not None:
                    return failed
                self._start_due()
                selector.select(self._until_next_start())
                _drain(woken)

    def _told(self) -> int | None:
        for number in self._received:
            if number == signal.SIGTERM:
                return 0
            if number == signal.SIGINT:
                return _INTERRUPTED
        return None

    def _reap(self) -> int | None:
        """See which children ended; the status to end with if that cannot be mended."""
        for child in self._children:
            status = child.ended()
            if status is None:
                continue
            name = child.program.name
            if child.program.vital and not self._ready:
                if status == CANNOT_START:
                    return _UNUSABLE
                if status != NOT_NOW:
                    _log.error("%s ended with status %d before it answered", name, status)
                return _FAILED
            _log.warning("%s ended with status %d; it is started again", name, status)
        return None

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._waiting():
            if child.due_at <= now:
                self._start(child)

    def _start(self, child: Offspring) -> None:
        """Start one; once they answer, the others do without it until there is room for it.

        Raises:
            OSError: there was none from the beginning.
        """
        try:
            child.start()
        except OSError as error:
            if not self._ready:
                raise
            _log.error("%s cannot be started now: %s", child.program.name, error)
            child.put_off()

    def _until_next_start(self) -> float | None:
        due = [child.due_at for child in self._waiting()]
        return max(min(due) - time.monotonic(), 0) if due else None

    def _waiting(self) -> list[Offspring]:
        return [
            child
            for child in self._children
            if child.process is None and (self._ready or not child.program.waits)
        ]

    def _stop(self) -> None:
        deadline = time.monotonic() + GRACE
        self._on_end()
        for serves_others in (False, True):
            ending = [c for c in self._children if c.program.serves_others is serves_others]
            for child in ending:
                child.stop()
            for child in ending:
                child.finish(deadline)


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
