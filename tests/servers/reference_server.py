"""The reference Placement on loopback, in a process of its own; not imported by pytest.

Usage: reference_server.py FOLDER [PORT MOUNT], with placement.conf in the folder. Prints its port
when it listens. Ends with its standard input.
"""

import os
import socketserver
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nobody reads it."""


class Threaded(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def below(mount: str, application: Callable[..., Any]) -> Callable[..., Any]:
    """The application at this path, as a catalogue may name it."""

    def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith(mount):
            environ["SCRIPT_NAME"], environ["PATH_INFO"] = mount, path[len(mount) :]
        answer: Iterable[bytes] = application(environ, start_response)
        return answer

    return served


def main() -> None:
    warnings.simplefilter("ignore")
    _, folder, port, mount = [*sys.argv, "0", ""][:4]
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = folder
    sys.argv = sys.argv[:1]
    from placement import wsgi

    application = below(mount, wsgi.init_application())
    server = make_server("127.0.0.1", int(port), application, Threaded, Quiet)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    threading.Thread(target=end_with_input, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
