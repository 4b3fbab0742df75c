"""The solver process: takes problems from the queue one by one, within time and memory.

It is warm before its first problem: OR-Tools is imported and a toy problem solved. A solve that
does not come back from its limit ends the process, and so does one that needs more memory than
allowed; the supervisor starts another.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import select
import socket
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from moorage import logs
from moorage.domain.period import SECOND
from moorage.engine.joint import instance
from moorage.http import child_main, process_queue
from moorage.http.process_status import Column, ProcessStatus
from moorage.solver.progress_stream import progress_sent
from moorage.solver.warmup_problem import toy_problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection

    from moorage.domain.period import Duration
    from moorage.http.process_status import Row
    from moorage.usecases.ports import Solver

_log = logging.getLogger(__name__)

OVERRUN: Final = 75
"""Exit status after a solve that ignored its limit."""
_OVERRUN_SECONDS: Final = 3.0
"""Past the limit; the client has stopped waiting by then."""
_BEAT_SECONDS: Final = 0.5
_NEW: Final = 100_000
"""Objects more than before, until the collector looks for cycles among them."""


def main(config: Mapping[str, Any]) -> None:
    """Serve until killed, or until SIGHUP: requests under way are finished and answered first.

    `config` has `solver` (`module:name` of something callable that makes a `Solver` of the
    `arguments`, if there are any), `listener` (descriptor of the queue's socket), `number`, `ready`
    (descriptor on which a byte says that it serves), `memory` (bytes), `status` (descriptor of
    `ProcessStatus`) and `log` (arguments of `logs.configure`).
    """
    child_main.lower_priority()
    logs.configure(**config["log"])
    module, _, name = config["solver"].partition(":")
    solver: Solver = getattr(import_module(module), name)(*config.get("arguments", ()))
    solver.solve(toy_problem(), time_limit=5 * SECOND, seed=0)
    child_main.collect_seldom(_NEW)
    resource.setrlimit(resource.RLIMIT_DATA, (config["memory"], config["memory"]))
    listener = socket.socket(fileno=config["listener"])
    waits, leaves = select.poll(), process_queue.sighup_descriptor()
    waits.register(leaves, select.POLLIN)
    waits.register(listener, select.POLLIN)
    status = ProcessStatus(config["status"]).solver(config["number"])
    threading.Thread(target=_beat, args=(status,), name="signs of life", daemon=True).start()
    _log.debug("ready for problems")
    child_main.report(config["ready"])
    while leaves not in dict(waits.poll()):
        _serve(listener, solver)


def _beat(status: Row) -> None:
    """Count a heartbeat, which shows that the interpreter runs."""
    while True:
        status.add(Column.BEATS)
        time.sleep(_BEAT_SECONDS)


def _serve(listener: socket.socket, solver: Solver) -> None:
    """Take the next request and answer it."""
    try:
        connection = process_queue.accept(listener)
    except process_queue.WrongUser as stranger:
        _log.warning("refused: %s", stranger)
        return
    if connection is None:
        return
    with connection:
        _converse(connection, solver)


def _converse(connection: Connection, solver: Solver) -> None:
    """Answer one client; a client that leaves is ignored."""
    try:
        connection.send_bytes(process_queue.READY)
        if not connection.poll(process_queue.ASKING_SECONDS):
            return
        terms = _terms(connection.recv_bytes(process_queue.LONGEST_MESSAGE))
        message = connection.recv_bytes(process_queue.LONGEST_MESSAGE)
        answer = None
        if terms is not None:
            logs.CURRENT.set(terms.work_for)
            with progress_sent(connection) if terms.progress else nullcontext():
                answer = _solve(solver, message, terms)
        if answer is None:
            connection.send_bytes(process_queue.FAILED)
        else:
            connection.send_bytes(process_queue.OK)
            connection.send_bytes(answer)
    except (EOFError, OSError):
        _log.info("a client left before its answer was there")
    finally:
        logs.CURRENT.set(logs.NONE)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The limits and the seed of a solve, and the request it is for."""

    time_limit: Duration
    seed: int
    work_for: logs.Ids
    progress: bool
    """Whether the client wants to hear of the progress."""


def _terms(message: bytes) -> _Terms | None:
    """The terms of a client's message; None, with a log line, if it is malformed."""
    try:
        told = json.loads(message)
        own, called_by = told["for"]
        return _Terms(
            int(told["time_limit"]),
            int(told["seed"]),
            logs.Ids(str(own), str(called_by)),
            progress=bool(told.get("progress")),
        )
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("a client asked for nonsense: %r", error)
        return None


def _solve(solver: Solver, message: bytes, terms: _Terms) -> bytes | None:
    """The encoded outcome, or None after an error, which is logged with its traceback."""
    seconds = terms.time_limit / SECOND
    watchdog = threading.Timer(seconds + _OVERRUN_SECONDS, _give_up)
    watchdog.daemon = True
    watchdog.start()
    started = time.monotonic()
    try:
        outcome = solver.solve(
            instance.loads(message), time_limit=terms.time_limit, seed=terms.seed
        )
        _log.debug("%s after %.3f s", outcome.verdict, time.monotonic() - started)
        return instance.dumps_outcome(outcome)
    except MemoryError:
        _log.critical("out of memory: raise solver_memory or ask for less")
        os._exit(OVERRUN)
    except Exception:  # noqa: BLE001 - any error is reported to the client, and the process goes on
        _log.exception("the solver failed")
        return None
    finally:
        watchdog.cancel()


def _give_up() -> None:
    _log.critical("a solve did not end at its time limit")
    os._exit(OVERRUN)
