"""The service as processes: the supervisor of `moorage serve` and the programs of its children.

The children's work is named, not imported: the supervisor starts at once and stays small.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import ssl
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from moorage import logs
from moorage.domain.errors import InvalidDescription, MoorageError
from moorage.http import probe, supervisor, systemd
from moorage.http.offspring import Program
from moorage.settings import configure, masked
from moorage.solver import channel
from moorage.telemetry import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.http.config import Tls
    from moorage.settings import Effective, Settings


_SETTLING: Final = 2.0
"""Seconds an SQLite file has to take up its log at the end."""


class CannotServe(MoorageError):
    """The service cannot start now; says why."""


class BadCertificate(InvalidDescription):
    """The certificate or its key cannot be used; says why."""


def serve(effective: Effective, announce: Callable[[str], None]) -> int:
    """Run the service until it is told to stop; return the exit status.

    Raises:
        BadSetting: the settings do not go together.
        BadCertificate: as it says.
        CannotServe: the port or the pid file cannot be had.
    """
    tell_systemd = systemd.teller(os.environ)
    settings = configure(effective)
    config = settings.server
    logs.configure(config.log.level, config.log.form)
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
        f" (database {database}, auth {config.auth}, {_mounted(config.mounts)})"
    )
    address = channel.new_address()

    def ready() -> None:
        announce(line)
        tell_systemd(systemd.READY)

    def end() -> None:
        tell_systemd(systemd.STOPPING)
        listener.close()  # whoever comes now is refused, not left waiting for nobody

    with (
        listener,
        channel.listen(address, settings.pool.queue) as queue,
        files.folder() as counts,
        _pid_file(config.pid_file),
    ):
        programs = [
            *_http_workers(settings, effective, listener.fileno(), address, counts),
            *_solver_workers(settings, queue.fileno(), address),
        ]
        ended = supervisor.Supervisor(
            programs,
            probe=partial(
                probe.wait_for_answer, config.host, port, encrypted=config.tls is not None
            ),
            on_ready=ready,
            on_end=end,
        ).run()
    _settle(settings.database)
    return ended


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


def _check_certificate(tls: Tls) -> None:
    """Refuse a certificate that no worker could serve, before any is started."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.cert, tls.key)
    except OSError as error:  # ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror
        raise BadCertificate(
            f"cannot use certificate {tls.cert} with key {tls.key}: {reason}"
        ) from error


def _http_workers(
    settings: Settings, effective: Effective, listener: int, address: str, counts: Path
) -> Iterator[Program]:
    """The first opens the database, and migrates it if need be, before the others start."""
    config = {
        "application": "moorage.app:application",
        "listener": listener,
        "tls": None if settings.server.tls is None else asdict(settings.server.tls),
        "wire": asdict(settings.server.wire),
        "log": asdict(settings.server.log),
    }
    given = {"effective": asdict(effective), "solver": address, "counts": str(counts)}
    for number in range(settings.server.workers):
        yield Program(
            f"HTTP worker {number + 1}",
            "moorage.http.worker:main",
            config | {"settings": given | {"worker": str(number + 1)}},
            (listener,),
            vital=number == 0,
            waits=number > 0,
        )


def _solver_workers(settings: Settings, queue: int, address: str) -> Iterator[Program]:
    config = {
        "solver": "moorage.solver.cpsat:CpSat",
        "listener": queue,
        "address": address,
        "memory": settings.pool.memory,
        "log": asdict(settings.server.log),
    }
    for number in range(settings.pool.processes):
        yield Program(
            f"solver {number + 1}",
            "moorage.solver.worker:main",
            config | {"number": number + 1},
            (queue,),
            serves_others=True,
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
