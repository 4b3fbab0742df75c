"""The certificates that calls of services trust."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit


def trusted(
    verify: bool | str,  # noqa: FBT001 - the very setting
    certificate: tuple[str, str | None] | None,
) -> ssl.SSLContext | bool:
    """The certificate authorities, as `Login` has them; a certificate may contain its key."""
    if verify is False:
        return False
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


def trusted_at(endpoint: str, *, trust: ssl.SSLContext | bool = True) -> ssl.SSLContext | bool:
    """The certificate authorities for calls of an endpoint: none, if it is one of plain HTTP.

    Reading those of the machine takes a tenth of a command's time.
    """
    if trust is True and urlsplit(endpoint).scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return trust
