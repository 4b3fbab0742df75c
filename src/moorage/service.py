"""The service as processes: the supervisor of `moorage serve` and the programs of its children.

The children's work is named, not imported: the supervisor starts at once and stays small.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import sqlite3
import ssl
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from moorage import logs
from moorage.domain.errors import BadConfiguration, InvalidDescription, MoorageError
from moorage.http import health_probe, process_queue, process_status, supervisor, systemd
from moorage.http.child_process import Program
from moorage.http.process_status import ProcessStatus
from moorage.http.transport.limits import OWN_FILES
from moorage.policies import discover
from moorage.settings import BadSetting, configure, masked
from moorage.solver.solver_plugins import check_strategies
from moorage.telemetry import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.http.config import ServerConfig, Tls
    from moorage.settings import Effective, Settings


_log = logging.getLogger(__name__)

_HTTP_WORKER: Final = "HTTP worker"
_PLANNER: Final = "planner"
_PLANNER_SECONDS: Final = 120.0
"""How long a service that answers waits for its first planner: then it says that it is ready, and
starts what waits for that, such as the other planners."""
_TICK: Final = 0.05
_PLANNER_QUEUE: Final = 1024
"""Requests that may wait for a planner while one starts; HTTP workers admit only so many."""
_RESTART: Final = "it can only be changed by a restart"
_SETTLING: Final = 2.0
"""Seconds an SQLite file has to take up its log at the end."""


class CannotServe(MoorageError):
    """The service cannot start now; says why."""


class TooFewFiles(BadConfiguration):
    """The limit on open files is below what the threads of a worker need; says what to set."""


class BadCertificate(BadConfiguration):
    """The certificate or its key cannot be used; says why."""


def serve(
    effective: Effective, announce: Callable[[str], None], reread: Callable[[], Effective]
) -> int:
    """Run the service until it is told to stop; return the exit status.

    `reread` reads the settings anew, for a reload (SIGHUP).

    Raises:
        BadSetting: the settings do not go together.
        BadCertificate: as it says.
        BadPlugin: an installed plug-in cannot be used.
        TooFewFiles: as it says.
        CannotServe: the port or the pid file cannot be had.
    """
    tell_systemd = systemd.notifier(os.environ)
    settings = configure(effective)
    config = settings.server
    logs.configure(**asdict(config.log))
    _require_files(config.bounds.running)
    _require_plugins(settings)
    if config.tls is not None:
        _check_certificate(config.tls)
    try:
        listener = supervisor.listen(config.host, config.port, supervisor.BACKLOG)
    except OSError as error:
        raise CannotServe(
            f"cannot listen on {config.host} port {config.port}: {error.strerror or error}"
        ) from error
    port: int = listener.getsockname()[1]
    host = f"[{config.host}]" if ":" in config.host else config.host
    database = masked(settings.database)
    scheme = "http" if config.tls is None else "https"
    line = (
        f"moorage: serving on {scheme}://{host}:{port}"
        f" (database {database}, auth {config.auth}, {_mounted(config.mounts)}"
        f"{_followed(settings)})"
    )
    address, planners_address = (
        process_queue.new_address("solver"),
        process_queue.new_address("planner"),
    )
    if (page := config.mounts.get("web")) is not None:
        line += f"\nmoorage: the page is at {scheme}://{host}:{port}{page or '/'}"
    said: list[str] = [line]

    def ready() -> None:
        while said:  # not again after a reload
            announce(said.pop())
        tell_systemd(systemd.READY)

    def end() -> None:
        tell_systemd(systemd.STOPPING)
        listener.close()  # whoever comes now is refused, not left waiting for nobody

    with (
        listener,
        process_queue.listen(address, settings.pool.queue) as queue,
        process_queue.listen(planners_address, _PLANNER_QUEUE) as planner_queue,
        files.folder() as counts,
        _pid_file(config.pid_file),
        _shared_status() as status,
    ):

        def programs(effective: Effective, settings: Settings) -> list[Program]:
            given = {
                "effective": asdict(effective),
                "solver": address,
                "planner": planners_address,
                "counts": str(counts),
                "status": status,
            }
            return [  # a reload replaces them in this order: a planner is there when it is asked
                *_planners(settings, given, planner_queue.fileno(), status),
                *_http_workers(settings, given, listener.fileno(), status),
                *_solver_workers(settings, queue.fileno(), status),
            ]

        def renew() -> list[Program] | None:
            found = _settings_anew(reread, config)
            if found is not None:
                tell_systemd(systemd.reloading())
            return None if found is None else programs(*found)

        ended = supervisor.Supervisor(
            programs(effective, settings),
            probe=partial(_wait, settings, port, ProcessStatus(status)),
            on_ready=ready,
            on_end=end,
            renew=renew,
            on_exit=partial(_forget, counts),
        ).run()
    _settle(settings.database)
    return ended


def _require_plugins(settings: Settings) -> None:
    """Refuse plug-ins that no process could use, before any is started.

    Raises:
        BadPlugin: as it says.
    """
    discover.cache_clear()  # before a reload, others may have been installed
    discover()
    check_strategies(settings.pool.strategies)


def _require_files(threads: int) -> None:
    """Refuse a limit on open files with which a worker could not work on its requests.

    Raises:
        TooFewFiles: as it says.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # workers raise the soft one
    least = OWN_FILES + threads
    if hard not in {resource.RLIM_INFINITY, -1} and hard < least:
        raise TooFewFiles(
            f"the limit on open files is {hard}, but a worker with {threads} threads needs {least},"
            " and one more for each connection: set `ulimit -n 65536` (systemd: LimitNOFILE=65536),"
            " or fewer threads"
        )


def _wait(settings: Settings, port: int, status: ProcessStatus) -> None:
    """Return when the service answers, and a planner is up; without one after a while, too."""
    config = settings.server
    health_probe.wait_for_answer(config.host, port, encrypted=config.tls is not None)
    until = time.monotonic() + _PLANNER_SECONDS
    while settings.planners.processes and not status.up(status.planners):
        if time.monotonic() > until:
            _log.error("no planner is ready after %g s; searches wait", _PLANNER_SECONDS)
            return
        time.sleep(_TICK)


def _settings_anew(
    reread: Callable[[], Effective], running: ServerConfig
) -> tuple[Effective, Settings] | None:
    """The settings of a reload; None, and a line in the log, if they cannot be used."""
    try:
        effective = reread()
        settings = configure(effective)
        config = settings.server
        _require_plugins(settings)
        if config.tls is not None:
            _check_certificate(config.tls)
        if (config.tls is None) != (running.tls is None):
            raise BadSetting("tls_cert", effective.sources["tls_cert"], _RESTART)
        for name in ("host", "port", "pid_file"):
            if getattr(config, name) != getattr(running, name):
                raise BadSetting(name, effective.sources[name], _RESTART)
        logs.configure(**asdict(config.log))
    except InvalidDescription as error:
        _log.error("reload refused, the running configuration stays in force: %s", error.message)
        return None
    _log.warning("reload started: replacing all processes")
    return effective, settings


def _forget(counts: Path, program: str, number: int) -> None:
    """Drop what a process that has left said of itself: others must not show it any more."""
    if program == _HTTP_WORKER:
        files.forget(counts, str(number))
    elif program == _PLANNER:
        files.forget(counts, f"planner-{number}")


def _settle(database: str) -> None:
    """Write what SQLite's log holds back into its file: all of ours who had it open have ended.

    Children end by a signal and close nothing; whoever copies only the file of a stopped service
    would copy an old one. What goes wrong, is not done in time, or is kept from it by another
    process that has the file open, loses nothing: the log stays.
    """
    kind, _, rest = database.partition(":///")
    file = Path(rest.partition("?")[0])
    if kind.partition("+")[0] != "sqlite" or not file.name:  # a server's, or a private one
        return
    if not file.with_name(f"{file.name}-wal").exists():
        return
    writing = Thread(target=_write_back, args=(file,), daemon=True)
    writing.start()
    writing.join(_SETTLING)


def _write_back(file: Path) -> None:
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(file, timeout=0.1)) as last,
    ):
        last.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _mounted(mounts: Mapping[str, str]) -> str:
    """`native at /v1, placement at /placement`."""
    return ", ".join(f"{name} at {prefix or '/'}" for name, prefix in sorted(mounts.items()))


def _followed(settings: Settings) -> str:
    return "" if settings.shadow is None else f", shadow of {settings.shadow.followed}"


def _check_certificate(tls: Tls) -> None:
    """Refuse a certificate that no worker could serve, before any is started."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.cert, tls.key)
    except OSError as error:  # ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror
        raise BadCertificate(
            f"cannot use certificate {tls.cert} with key {tls.key}: {reason}"
        ) from error


@contextlib.contextmanager
def _shared_status() -> Iterator[int]:
    """A descriptor of the memory in which all children show their signs of life."""
    descriptor = process_status.make()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _http_workers(
    settings: Settings, given: Mapping[str, object], listener: int, status: int
) -> Iterator[Program]:
    """The first opens the database, and migrates it if need be, before the others start."""
    config = {
        "application": "moorage.app:application",
        "listener": listener,
        "tls": None if settings.server.tls is None else asdict(settings.server.tls),
        "limits": asdict(settings.server.limits),
        "log": asdict(settings.server.log),
        "status": status,
    }
    rows = ProcessStatus(status)
    for number in range(settings.server.workers):
        yield Program(
            _HTTP_WORKER,
            "moorage.http.worker_process:main",
            config | {"settings": given},
            (listener, status),
            vital=number == 0,
            waits=number > 0,
            status=rows.worker,
            silence=settings.server.silence,
        )


def _planners(
    settings: Settings, given: Mapping[str, object], queue: int, status: int
) -> Iterator[Program]:
    """The first opens the database after the first HTTP worker has.

    The others start once the service answers and the first is up.
    """
    config = {
        "application": "moorage.app:planner",
        "settings": given,
        "listener": queue,
        "threads": settings.planners.threads,
        "stuck_seconds": settings.server.limits.stuck_seconds,
        "log": asdict(settings.server.log),
        "status": status,
    }
    rows = ProcessStatus(status)
    for number in range(settings.planners.processes):
        yield Program(
            _PLANNER,
            "moorage.http.planner_process:main",
            config,
            (queue, status),
            waits=number > 0,
            serves_others=True,
            status=rows.planner,
            silence=settings.server.silence,
        )


def _solver_workers(settings: Settings, queue: int, status: int) -> Iterator[Program]:
    config = {
        "solver": "moorage.solver.strategies:in_order",
        "arguments": (settings.pool.strategies,),
        "listener": queue,
        "memory": settings.pool.memory,
        "log": asdict(settings.server.log),
        "status": status,
    }
    rows = ProcessStatus(status)
    for _ in range(settings.pool.processes):
        yield Program(
            "solver",
            "moorage.solver.solver_process:main",
            config,
            (queue, status),
            serves_others=True,
            ends_before_successor=True,
            status=rows.solver,
            silence=settings.server.silence,
        )


@contextlib.contextmanager
def _pid_file(path: str | None) -> Iterator[None]:
    """Keep this process's id in the file while it runs."""
    if path is None:
        yield
        return
    file = Path(path)
    try:
        file.write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as error:
        raise CannotServe(f"cannot write the pid file {path}: {error.strerror}") from error
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
