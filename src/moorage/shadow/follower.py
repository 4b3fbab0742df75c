"""The background of a shadow: the ledger follows, requests are answered once more and compared.

One thread does all of it, in the order in which the followed service answered, so that no request
waits for it and nothing that goes wrong here is seen by a client.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import MoorageError
from moorage.shadow.boot_offers import BootOffers
from moorage.shadow.boot_servers import CreatedServers
from moorage.shadow.comparison import CANDIDATES, Answered, compared
from moorage.shadow.exchange import READ
from moorage.shadow.replay import OPERATOR
from moorage.shadow.report import timestamp
from moorage.usecases.ledger.placement_takeover import TakeoverPermission, plan, take_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.content import Content
    from moorage.shadow.exchange import Exchange
    from moorage.shadow.replay import Replay
    from moorage.shadow.report import JointCase, ReportFile, ShadowReport
    from moorage.usecases.ports import Store

_log = logging.getLogger(__name__)

WAITING: Final = 10_000
"""Exchanges that may wait to be compared; more are counted and dropped."""
WAITING_BYTES: Final = 256 * 1024 * 1024
"""The same for the bytes of their bodies."""
SAVING: Final = 1.0
"""Seconds between two writes of the report."""
PAUSE: Final = 10.0
"""Least seconds between two refreshes, also after one that failed."""
_GOOD: Final = range(200, 300)
_FAILED: Final = 500
_REFUSED: Final = frozenset({401, 403})


class Traffic:
    """Counts writes under way, to know which exchanges overlapped one. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._ended = self._completed = 0

    def begin(self, *, writes: bool) -> int:
        """Note a request, and return what `end` needs."""
        with self._lock:
            ended = self._ended
            self._begun += writes
            return ended

    def end(
        self, begun: int, *, writes: bool, tell: Callable[[bool, int], None] = lambda *_: None
    ) -> None:
        """Tell whether another write was under way meanwhile, and the number of this completion.

        It is told in the order of these numbers.
        """
        with self._lock:
            overlapped = self._begun - begun - writes > 0
            self._ended += writes
            self._completed += 1
            tell(overlapped, self._completed)

    @property
    def completed(self) -> int:
        """The number of the last completion."""
        with self._lock:
            return self._completed


@dataclass
class Follower:
    """Follows one service. Any thread may call `note`, `miss` and `judged`; the rest is its own."""

    store: Store
    replay: Replay
    source: Callable[[], Content] | None
    """Reads all that the followed service holds; None: it is taken over by other means."""
    refresh_seconds: float
    file: ReportFile
    report: ShadowReport
    traffic: Traffic = field(default_factory=Traffic)
    created: CreatedServers = field(default_factory=CreatedServers)
    _waiting: queue.Queue[Exchange] = field(default_factory=lambda: queue.Queue(WAITING))
    _missed: dict[str, int] = field(default_factory=dict)
    _joint: list[JointCase] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bytes: int = 0
    """Of the bodies that wait."""
    _lost_write: bool = False
    """Whether a write was missed, so that the ledger has to be refreshed."""
    _offers: BootOffers = field(default_factory=BootOffers)
    _known: int = 0
    """Exchanges up to this number are in the content that was taken over."""
    _due: float = 0.0
    """When the content is to be taken over next, by the monotonic clock."""
    _saved: float = 0.0
    _taken: bool = False

    def start(self) -> None:
        """Begin, in a thread that ends with the process."""
        threading.Thread(target=self._run, name="shadow", daemon=True).start()

    def note(self, exchange: Exchange) -> None:
        """Have an exchange compared later; never waits."""
        with self._lock:
            fits = self._bytes + exchange.size <= WAITING_BYTES
            if fits and not self._waiting.full():  # nobody else puts anything in
                self._bytes += exchange.size
                self._waiting.put_nowait(exchange)
                return
        self.miss("too many waited to be compared", wrote=exchange.writes)

    def miss(self, reason: str, *, wrote: bool) -> None:
        """Count a forwarded request that cannot be compared; after a write, refresh soon."""
        with self._lock:
            self._lost_write = self._lost_write or wrote
            self._missed[reason] = self._missed.get(reason, 0) + 1

    def judged(self, case: JointCase) -> None:
        """Have a case put into the report."""
        with self._lock:
            self._joint.append(case)

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                self._round()
            except Exception:  # noqa: BLE001 - requests are forwarded whatever happens here
                _log.exception("shadow: unexpected error; it goes on")
                time.sleep(SAVING)

    def _round(self) -> None:
        self._refresh_if_due()
        self._take_one()
        self._heed_lost_write()
        self._save_if_due()

    def _take_one(self) -> None:
        try:
            exchange = self._waiting.get(timeout=SAVING)
        except queue.Empty:
            return
        with self._lock:
            self._bytes -= exchange.size
        self.report.requests += 1
        if exchange.writes and exchange.reply.status >= _FAILED:  # it may be written or not
            self._refresh_soon()
        reason = self._why_not(exchange)
        if reason is not None:
            self.report.leave(reason)
            return
        try:
            self._compare(exchange)
        except Exception as error:  # noqa: BLE001 - counted, and logged
            _log.exception("shadow: %s %s cannot be compared", exchange.method, exchange.path)
            self.report.leave(f"failed here: {type(error).__name__}")

    def _why_not(self, exchange: Exchange) -> str | None:
        """Why an exchange is not compared; None if it is."""
        if not self._taken:
            return "the content is not taken over yet"
        if exchange.number <= self._known:
            return "it came before the last refresh"
        if exchange.method != READ and not exchange.writes:
            return "neither a read nor a write"
        if exchange.reply.status in _REFUSED:
            return "access was refused there"
        if exchange.writes and exchange.reply.status not in _GOOD:
            return "a write that was refused there"
        return None

    def _compare(self, exchange: Exchange) -> None:
        route, ours = self.replay(exchange)
        theirs = Answered(exchange.reply.status, exchange.reply.body)
        unlike = compared(
            exchange.path,
            exchange.query,
            theirs,
            ours,
            lambda query: self.replay(replace(exchange, query=query))[1],
        )
        if exchange.path == CANDIDATES:
            self._offers.remember(exchange, ours)
        elif exchange.writes:
            servers = self._offers.count(exchange, self.report.boots)
            if servers:
                self.created.note(exchange.request_id, servers, time.monotonic())
        if unlike is None:
            self.report.equal += 1
            return
        if exchange.writes:  # the ledger is no longer equal
            self._refresh_soon()
        if exchange.overlapped:
            self.report.leave("a write was under way at the same time")
            return
        kind = f"{exchange.method} {route}: {unlike.what}"
        self.report.differ(kind, exchange.example(unlike.detail))

    # --- the content ----------------------------------------------------------------------------

    def _heed_lost_write(self) -> None:
        """Refresh soon after a write that was missed, also when nothing waits."""
        with self._lock:
            lost, self._lost_write = self._lost_write, False
        if lost:
            self._refresh_soon()

    def _refresh_soon(self) -> None:
        self._due = min(self._due, time.monotonic() + PAUSE)

    def _refresh_if_due(self) -> None:
        now = time.monotonic()
        if self.source is None:
            self._taken = True
        elif now >= self._due:
            self._due = now + PAUSE
            try:
                self._refresh(self.source)
            except MoorageError as error:
                _log.warning("shadow: the content cannot be taken over: %s", error.message)
                return
            self._due = time.monotonic() + self.refresh_seconds

    def _refresh(self, source: Callable[[], Content]) -> None:
        """Make the ledger equal to the followed service; requests meanwhile overlap a write."""
        begun = self.traffic.begin(writes=True)
        try:
            content = source()
            known = self.traffic.completed
            planned = plan(self.store, OPERATOR, content, topology=None)
            if planned.differences:
                take_over(self.store, planned, TakeoverPermission.MIRROR)
        finally:
            self.traffic.end(begun, writes=True)
        if self._taken:
            self.report.corrections += len(planned.differences)
        self.report.refreshes += 1
        self._known, self._taken = known, True

    def _save_if_due(self) -> None:
        now = time.monotonic()
        if now < self._saved + SAVING:
            return
        with self._lock:
            missed, self._missed = self._missed, {}
            joint, self._joint = self._joint, []
        for case in joint:
            self.report.joint.add(case)
        for reason, count in missed.items():
            self.report.requests += count
            self.report.not_compared[reason] = self.report.not_compared.get(reason, 0) + count
        self.report.until = timestamp()
        self._saved = now
        try:
            self.file.save(self.report)
        except OSError as error:
            _log.warning("shadow: the report cannot be written: %s", error)
