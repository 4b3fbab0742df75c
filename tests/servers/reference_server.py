"""The reference Placement on loopback, in a process of its own; not imported by pytest.

Usage: reference_server.py FOLDER (with placement.conf). Prints its port when it listens. Ends with
its standard input.
"""

import os
import socketserver
import sys
import threading
import warnings
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nobody reads it."""


class Threaded(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    warnings.simplefilter("ignore")
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = sys.argv[1]
    sys.argv = sys.argv[:1]
    from placement import wsgi

    server = make_server("127.0.0.1", 0, wsgi.init_application(), Threaded, Quiet)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    threading.Thread(target=end_with_input, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
