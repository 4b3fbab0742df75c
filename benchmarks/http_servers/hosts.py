"""Each server by its public interface, as a worker process of a supervisor would run it.

    python -m benchmarks.http_servers.hosts SERVER APPLICATION LISTENER [WORKERS]

LISTENER is the descriptor of a listening socket, or a port for a server that takes none. What can
be bounded by a setting is bounded: threads, connections, bodies, heads, seconds. Where a server
has no setting for a bound it goes without; the trial shows what follows from that.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any, Final

from benchmarks.http_servers import apps

THREADS: Final = 32
CONNECTIONS: Final = 8000
BODY: Final = apps.LONGEST
HEAD: Final = 256 << 10
IDLE: Final = 60
STALLED: Final = 64 << 20
"""Bytes that may be kept of bodies that arrive, and as many of answers that are not read."""
PER_ADDRESS: Final = 100
"""Connections of one address, where that is tried."""

NAMES: Final = ("moorage", "waitress", "cheroot", "gunicorn", "granian")
OWN_SOCKET: Final = frozenset({"granian"})
"""Those that cannot be given a listening socket."""
CERTIFICATE: Final = "HTTP_SERVERS_CERTIFICATE"
"""Names a file with certificate and key in the environment, where TLS is tried."""
BOUNDED: Final = "HTTP_SERVERS_PER_ADDRESS"


def guarded(application: Any) -> Any:
    """What a small adapter can make right from inside of WSGI: hosts, methods, HEAD."""
    from moorage.http.transport.wsgi_environ import is_host

    def checked(environ: dict[str, Any], start_response: Any) -> Any:
        host, protocol = environ.get("HTTP_HOST"), environ["SERVER_PROTOCOL"]
        good = protocol != "HTTP/1.1" if host is None else is_host(host)
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if not good or method == "CONNECT" or path[:1] not in {"/", "*"}:
            start_response("400 Bad Request", [("content-length", "0"), ("connection", "close")])
            return []
        answer = application(environ, start_response)
        if method != "HEAD":
            return answer
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        return []

    return checked


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit


def moorage(application: Any, listener: int, _workers: int) -> None:
    """Ours; SIGHUP tells a worker whose successor serves to leave."""
    from moorage.http.config import Tls
    from moorage.http.process_status import ProcessStatus, WorkerStatus
    from moorage.http.transport.limits import ConnectionLimits
    from moorage.http.worker_process import serve

    limits = ConnectionLimits(
        connections=CONNECTIONS,
        threads=THREADS,
        idle_seconds=IDLE,
        body_seconds=IDLE,
        body_limit=BODY,
        arriving=STALLED,
        unsent=STALLED,
        per_address=PER_ADDRESS if BOUNDED in os.environ else None,
    )
    file = os.environ.get(CERTIFICATE)
    shared = ProcessStatus(int(os.environ["HTTP_SERVERS_STATUS"]))
    own = shared.worker(int(os.environ["HTTP_SERVERS_NUMBER"]))
    serve(
        application,
        listener,
        limits=limits,
        tls=None if file is None else Tls(file, file),
        status=WorkerStatus(own, shared.workers),
    )


def waitress(application: Any, listener: int, _workers: int) -> None:
    """Its own TLS it has none."""
    from waitress import create_server

    signal.signal(signal.SIGTERM, _leave)
    create_server(
        application,
        sockets=[socket.socket(fileno=listener)],
        threads=THREADS,
        connection_limit=CONNECTIONS,
        channel_timeout=IDLE,
        cleanup_interval=1,
        max_request_body_size=BODY + 1,
        outbuf_high_watermark=1 << 20,
        max_request_header_size=HEAD,
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=False,
        ident="moorage",
    ).run()


def cheroot(application: Any, listener: int, _workers: int) -> None:
    """It takes a socket as systemd gives one: descriptor 3."""
    from cheroot.ssl.builtin import BuiltinSSLAdapter
    from cheroot.wsgi import Server

    signal.signal(signal.SIGTERM, _leave)
    os.dup2(listener, 3)
    os.environ["LISTEN_PID"] = str(os.getpid())
    server = Server(
        ("127.0.0.1", 0),
        application,
        numthreads=THREADS,
        max=THREADS,
        timeout=IDLE,
        shutdown_timeout=5,
        request_queue_size=1024,
        server_name="moorage",
    )
    server.keep_alive_conn_limit = CONNECTIONS
    server.max_request_body_size = BODY
    server.max_request_header_size = HEAD
    file = os.environ.get(CERTIFICATE)
    if file is not None:
        server.ssl_adapter = BuiltinSSLAdapter(file, file)
    server.safe_start()


def gunicorn(application: Any, listener: int, workers: int) -> None:
    """Its own supervisor with threaded workers; the socket is named by its descriptor."""
    from gunicorn.app.base import BaseApplication

    file = os.environ.get(CERTIFICATE)

    class Served(BaseApplication):  # type: ignore[misc]
        def load_config(self) -> None:
            given = {
                "bind": f"fd://{listener}",
                "workers": workers,
                "worker_class": "gthread",
                "threads": THREADS,
                "worker_connections": CONNECTIONS,
                "keepalive": IDLE,
                "timeout": 90,
                "graceful_timeout": 5,
                "limit_request_field_size": 64 << 10,
                "limit_request_line": 8190,
                "loglevel": "error",
                "control_socket_disable": True,
                **({} if file is None else {"certfile": file, "keyfile": file}),
            }
            for key, value in given.items():
                self.cfg.set(key, value)

        def load(self) -> Any:
            return application

    Served().run()


def granian(application: str, port: int, workers: int) -> None:
    """Its own supervisor, on a port that it opens itself."""
    from pathlib import Path

    from granian import Granian
    from granian.constants import Interfaces
    from granian.http import HTTP1Settings

    file = os.environ.get(CERTIFICATE)
    Granian(
        f"benchmarks.http_servers.hosts:{application}",
        address="127.0.0.1",
        port=port,
        interface=Interfaces.WSGI,
        factory=True,
        workers=workers,
        blocking_threads=THREADS,
        backpressure=CONNECTIONS,
        backlog=1024,
        http1_settings=HTTP1Settings(header_read_timeout=IDLE * 1000, max_buffer_size=HEAD),
        websockets=False,
        log_enabled=False,
        workers_kill_timeout=5,
        ssl_cert=None if file is None else Path(file),
        ssl_key=None if file is None else Path(file),
    ).serve()


def main(name: str, application: str, listener: str, workers: str = "1") -> None:
    """Serve until told to end."""
    serve = globals()[name]
    if name == "granian":  # it imports what it serves
        made: Any = f"{application}_guarded"
    else:
        made = getattr(apps, application)()
        made = made if name == "moorage" else guarded(made)
    serve(made, int(listener), int(workers))


def small_guarded() -> Any:
    """The small application behind the adapter."""
    return guarded(apps.small())


def moorage_guarded() -> Any:
    """The service behind the adapter."""
    return guarded(apps.moorage())


if __name__ == "__main__":
    main(*sys.argv[1:])
