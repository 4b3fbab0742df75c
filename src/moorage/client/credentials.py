"""Credentials for another service: a given token, or tokens from Keystone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.client.discovery import login_from
from moorage.client.errors import NoEndpoint
from moorage.client.keystone import log_in

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from moorage.client.session import SessionServices


class Credentials(Protocol):
    """A source of tokens for a service, and the certificates to trust."""

    @property
    def trust(self) -> ssl.SSLContext | bool:
        """The certificate authorities trusted for calls of the service."""

    def token(self) -> str:
        """The token to send."""

    def renew(self) -> bool:
        """Discard a refused token; False if there is no other."""


@dataclass(frozen=True, slots=True)
class GivenToken:
    """One fixed token."""

    value: str
    trust: ssl.SSLContext | bool = True

    def token(self) -> str:
        """See `Credentials`."""
        return self.value

    def renew(self) -> bool:
        """See `Credentials`."""
        return False


def keystone(environment: Mapping[str, str]) -> SessionServices:
    """Tokens from Keystone, for the user of the variables `OS_*` or of their cloud.

    It connects at the first call, and has the endpoints of the catalog.

    Raises:
        NoEndpoint: the library is missing, or a variable.
    """
    login = login_from(environment)
    if login is None:
        raise NoEndpoint("no OS_AUTH_URL, and no cloud in OS_CLOUD, says where Keystone is")
    return log_in(login)
