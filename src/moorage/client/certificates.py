"""The certificates that calls of services trust."""

from __future__ import annotations

import ssl


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
