"""The HTTP worker process: builds the application and serves it on the inherited socket."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from moorage import logs
from moorage.http import server
from moorage.http.config import Tls, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.http.wsgi import Application

_NEW: Final = 10_000
"""Objects more than before, until the collector looks for cycles among them."""


def main(config: Mapping[str, Any]) -> None:
    """Serve until told to stop.

    `config` has `application` (`module:function` that makes the WSGI application from
    `settings`), `settings`, `listener` (descriptor of a listening socket), `wire` (fields of
    `Wire`), `tls` (`cert` and `key`, or None), `log` (arguments of `logs.configure`).
    """
    logs.configure(**config["log"])
    module, _, name = config["application"].partition(":")
    make: Callable[[Mapping[str, Any]], Application] = getattr(import_module(module), name)
    application = make(config["settings"])
    gc.collect()
    # Requests make few cycles, but thousands of objects: looking for those each 700 new ones (as
    # Python 3.11 does) takes a fiftieth of a small request's time.
    gc.set_threshold(_NEW, 10, 10)
    gc.freeze()  # what stands now stays: the collector need not look at it again
    tls = Tls(**config["tls"]) if config["tls"] else None
    server.serve(application, config["listener"], wire=Wire(**config["wire"]), tls=tls)
