"""Request ids: the service's own for every request, and the caller's global one.

OpenStack services send `X-Openstack-Request-Id: req-<uuid>` on to the services they call, so that
one id links the logs of all. The answer's header of the same name is always our own.
"""

from __future__ import annotations

import re
from random import getrandbits
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ

HEADER: Final = "x-openstack-request-id"
ENVIRON: Final = "moorage.request_id"
GLOBAL_ENVIRON: Final = "moorage.global_request_id"

_INBOUND: Final = ("HTTP_X_OPENSTACK_REQUEST_ID", "HTTP_X_OPENSTACK_GLOBAL_REQUEST_ID")
_FORM: Final = re.compile(
    r"req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)


def new_request_id() -> str:
    """A fresh id: `req-` and a random UUID (RFC 9562, version 4).

    It is no secret; each process, forked ones too, has a seed of its own.
    """
    text = f"{getrandbits(128):032x}"
    return f"req-{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def global_request_id(environ: Environ) -> str | None:
    """The id the caller sent, if it has the form; anything else is ignored, as OpenStack does."""
    for key in _INBOUND:
        sent = environ.get(key)
        if isinstance(sent, str) and _FORM.fullmatch(sent):
            return sent
    return None
