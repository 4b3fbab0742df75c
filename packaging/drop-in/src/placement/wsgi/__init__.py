"""The WSGI application of openstack-placement; `placement.wsgi.api:application` is one."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING

from moorage import logs
from moorage.app import create_app
from placement.configuration import configuration
from placement.ledger_import import require_import

if TYPE_CHECKING:
    from moorage.http.wsgi import Application

_log = logging.getLogger(__name__)


def init_application() -> Application:
    """The Placement API over Moorage's database.

    Raises:
        MoorageError: the configuration or the database cannot be used, or nothing was imported yet.
    """
    found = configuration()
    logs.configure(**asdict(found.settings.server.log))
    for one in found.left_out:
        _log.warning("placement.conf: %s", one)
    require_import(found)
    return create_app(found.settings)
