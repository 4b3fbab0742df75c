"""The planner process: answers the requests that search, which HTTP workers forward (ADR-0021).

It has the whole application, and works on as many requests at once as all workers admit, each in a
thread: one project's searches, of which each worker admits only so many, do not delay the start of
others'. Planners share one socket; one with more requests than another pauses before it accepts.
"""

from __future__ import annotations

import io
import logging
import select
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage import logs
from moorage.domain import deadline
from moorage.http import child_main, planner_client, process_queue
from moorage.http.kernel import CALLER
from moorage.http.planner_client import PlannerAnswer
from moorage.http.process_status import Column, ProcessStatus
from moorage.http.response import GLOBAL_REQUEST_ID, REQUEST_ID
from moorage.http.wsgi import MOUNT
from moorage.logs import Lasting
from moorage.usecases.shared.pending_work import MOST, AfterAnswer, PendingWork, leaving_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextvars import Context
    from multiprocessing.connection import Connection

    from moorage.http.planner_client import PlannerRequest
    from moorage.http.process_status import Row
    from moorage.http.wsgi import Application, Environ, ExcInfo, Headers

_log = logging.getLogger(__name__)
_lasting: Final = Lasting()

_NEW: Final = 100_000
"""Objects more than before, until the collector looks for cycles among them."""
_ROUND_SECONDS: Final = 0.5
_TICK: Final = 0.02
_PAUSE_SECONDS: Final = 0.002
"""One pause before accepting, while another planner has fewer requests."""
_MOST_PAUSES: Final = 10
"""Pauses in a row, at most."""


def main(config: Mapping[str, Any]) -> None:
    """Serve until killed, or until SIGHUP: requests under way are finished and answered first.

    `config` has `application` (`module:function` that makes the applications by the name of their
    mount, from `settings` and the planner's `number`), `settings`, `number`, `listener` (descriptor
    of the queue's socket), `ready` (descriptor on which a byte says that it serves), `threads`
    (requests at a time), `stuck_seconds` (for so long none may be worked on), `status` (descriptor
    of `ProcessStatus`) and `log` (arguments of `logs.configure`).
    """
    child_main.lower_priority()
    logs.configure(**config["log"])
    module, _, name = config["application"].partition(":")
    make: Callable[[Mapping[str, Any]], Mapping[str, Application]]
    make = getattr(import_module(module), name)
    applications = make({**config["settings"], "worker": f"planner-{config['number']}"})
    # A joint decision makes hundreds of thousands of objects and few cycles: looking for those each
    # 700 new ones (as Python 3.11 does) takes a third of its time.
    child_main.collect_seldom(_NEW)
    status = ProcessStatus(config["status"])
    own = status.planner(config["number"])
    threads = _RequestThreads(applications, config["threads"], config["stuck_seconds"], own)
    with socket.socket(fileno=config["listener"]) as listener:
        sighup = process_queue.sighup_descriptor()
        child_main.report(config["ready"])
        _admit(listener, sighup, threads, own, status.planners)


def _admit(
    listener: socket.socket,
    sighup: int,
    threads: _RequestThreads,
    own: Row,
    planners: Sequence[Row],
) -> None:
    """Accept requests until SIGHUP, then wait until all are answered."""
    waits = select.poll()
    waits.register(sighup, select.POLLIN)
    waits.register(listener, select.POLLIN)
    own[Column.ACCEPTS] = 1
    pauses = 0
    while True:
        threads.beat()
        ready = dict(waits.poll(_ROUND_SECONDS * 1000))
        if sighup in ready:
            break
        if not ready:
            pauses = 0
        elif threads.is_full:
            time.sleep(_TICK)  # the queue keeps it
        elif pauses < _MOST_PAUSES and threads.busy > _fewest(planners, own):
            pauses += 1
            time.sleep(_PAUSE_SECONDS)
        else:
            pauses = 0
            _take(listener, threads)
    own[Column.ACCEPTS] = 0
    while threads.busy:
        threads.beat()
        time.sleep(_TICK)


def _fewest(planners: Sequence[Row], own: Row) -> int:
    """The number of requests of the least busy planner."""
    return min(
        (row[Column.CONNECTIONS] for row in planners if row[Column.ACCEPTS]),
        default=own[Column.CONNECTIONS],
    )


def _take(listener: socket.socket, threads: _RequestThreads) -> None:
    try:
        connection = process_queue.accept(listener)
    except process_queue.WrongUser as error:
        _log.warning("planner refused a connection: %s", error)
    except OSError as error:  # descriptors or memory are short; it goes on waiting meanwhile
        if _lasting.is_news(error.errno):
            _log.error("planner cannot accept requests: %s", error)
        time.sleep(_TICK)
    else:
        if connection is not None:
            threads.take(connection)


class _RequestThreads:
    """The threads that work on requests."""

    def __init__(
        self,
        applications: Mapping[str, Application],
        threads: int,
        stuck_seconds: float,
        own: Row,
    ) -> None:
        self._applications = applications
        self._threads = threads
        self._stuck_seconds = stuck_seconds
        self._own = own
        self._pool = ThreadPoolExecutor(threads + MOST, thread_name_prefix="request")
        self._running: dict[Connection, tuple[float, Context]] = {}
        """When each was begun, monotonic, and the context in which it is worked on."""
        self._answered: set[Connection] = set()
        """Those of `_running` that are answered and have work left."""
        self._pending_work = PendingWork(MOST)

    @property
    def busy(self) -> int:
        """How many requests are worked on, those included that are answered already."""
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """Whether all threads are busy that answer requests."""
        return self.busy - len(self._answered) >= self._threads

    def take(self, connection: Connection) -> None:
        """Work on a request."""
        context = copy_context()
        self._running[connection] = time.monotonic(), context
        self._pool.submit(context.run, self._work, connection)

    def beat(self) -> None:
        """Count a heartbeat, unless a request has run for too long, and say when one is due.

        None may be worked on for so long, nor past its own deadline: the planner is replaced, with
        all that it works on, and clients get 503 with Retry-After.
        """
        running = self._say_due()
        self._own[Column.CONNECTIONS] = len(running)
        begun = min((begun for begun, _ in running), default=None)
        if begun is None or time.monotonic() - begun < self._stuck_seconds:
            self._own.add(Column.BEATS)
        elif _lasting.is_news("stuck"):
            _log.error(
                "planner is stuck: a request has run for over %g s; the supervisor replaces it",
                self._stuck_seconds,
            )

    def _say_due(self) -> list[tuple[float, Context]]:
        """Tell the supervisor when the first of the running requests is due; return them."""
        running = list(self._running.values())
        due = filter(None, (_due(context) for _, context in running))
        self._own[Column.DUE] = min(due, default=0)
        return running

    def _work(self, connection: Connection) -> None:
        after = AfterAnswer(self._pending_work)
        try:
            with connection:
                self._converse(connection, after)
        except (EOFError, OSError):
            _log.info("an HTTP worker closed its connection before the answer")
        finally:
            if after.pending:
                self._finish(connection, after)
            after.close()
            logs.CURRENT.set(logs.NONE)
            self._answered.discard(connection)
            del self._running[connection]
            self._say_due()

    def _finish(self, connection: Connection, after: AfterAnswer) -> None:
        """Do what a request has left for after its answer, as bounded in time as a request is."""
        self._answered.add(connection)
        self._running[connection] = time.monotonic(), self._running[connection][1]
        try:
            after.run()
        except Exception:  # noqa: BLE001 - nobody waits for it, and the process goes on
            _log.exception("planner failed to finish a request that is answered")

    def _converse(self, connection: Connection, after: AfterAnswer) -> None:
        connection.send_bytes(process_queue.READY)
        if not connection.poll(process_queue.ASKING_SECONDS):
            return
        message = connection.recv_bytes(process_queue.LONGEST_MESSAGE)
        try:
            asked = planner_client.decode_request(message)
            with deadline.under(planner_client.deadline_of(asked)), leaving_work(after):
                self._say_due()
                answer = planner_client.encode_answer(_answer(self._applications, asked))
        except msgspec.MsgspecError as error:
            _log.warning("planner could not decode a request: %s", error)
            connection.send_bytes(process_queue.FAILED)
        except Exception:  # noqa: BLE001 - any error is reported to the worker, and the process goes on
            _log.exception("planner failed to answer a request")
            connection.send_bytes(process_queue.FAILED)
        else:
            connection.send_bytes(process_queue.OK)
            connection.send_bytes(answer)


def _due(context: Context) -> int:
    """When the answer must be there, in milliseconds of the monotonic clock; 0: at no time."""
    limit = deadline.of_context(context)
    if limit is None:
        return 0
    return int(1000 * (limit.promised + planner_client.MARGIN))


def _answer(applications: Mapping[str, Application], asked: PlannerRequest) -> PlannerAnswer:
    """The dialect's whole answer."""
    sent = asked.environ
    logs.CURRENT.set(logs.Ids(sent[REQUEST_ID], sent.get(GLOBAL_REQUEST_ID, "")))
    environ: Environ = {
        **sent,
        CALLER: asked.caller,
        "CONTENT_LENGTH": str(len(asked.body)),
        "wsgi.input": io.BytesIO(asked.body),
        "wsgi.errors": sys.stderr,
        "wsgi.version": (1, 0),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    begun: list[tuple[str, Headers]] = []

    def start(status: str, headers: Headers, _: ExcInfo | None = None, /) -> Callable[..., object]:
        begun[:] = [(status, headers)]
        return parts.append

    parts: list[bytes] = []
    chunks = applications[sent[MOUNT]](environ, start)
    try:
        parts.extend(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    [(status, headers)] = begun
    return PlannerAnswer(status, headers, b"".join(parts))
