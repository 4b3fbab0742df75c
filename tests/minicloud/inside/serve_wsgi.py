"""Serves one service's WSGI module; run by the cloud's interpreter.

Usage: serve_wsgi.py MODULE PORT [OPTION ...]
"""

import sys
from importlib import import_module


def main() -> None:
    module, port, *options = sys.argv[1:]
    sys.argv = [sys.argv[0], *options]  # the services read options from it
    application = import_module(module).application
    from waitress import serve

    serve(application, host="127.0.0.1", port=int(port), threads=16, ident=None)


if __name__ == "__main__":
    main()
