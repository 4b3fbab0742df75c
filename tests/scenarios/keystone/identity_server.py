"""A real Keystone on loopback; run by the interpreter of its own environment, not by pytest.

Usage: identity_server.py CONFIG. Prints its port when it listens. Ends with its standard input.
"""

import os
import socketserver
import sys
import threading
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
    from keystone.server.wsgi import initialize_public_application  # type: ignore[import-not-found]

    os.environ["OS_KEYSTONE_CONFIG_FILES"] = sys.argv[1]
    sys.argv = sys.argv[:1]
    application = initialize_public_application()
    server = make_server("127.0.0.1", 0, application, Threaded, Quiet)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    threading.Thread(target=end_with_input, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
