"""Credentials for another service: a given token, or tokens from Keystone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.client.discovery import login_from
from moorage.client.errors import NoEndpoint
from moorage.client.keystone import PLACEMENT, Identity, missing, trust

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


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


class Keystone:
    """Tokens from Keystone, for the user of the variables `OS_*` or of their cloud."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read the variables; connects later.

        Raises:
            NoEndpoint: the library is missing, or a variable.
        """
        login = login_from(environment)
        if login is None:
            raise NoEndpoint("no OS_AUTH_URL, and no cloud in OS_CLOUD, says where Keystone is")
        self._login, self._identity = login, Identity(login)
        self.trust = trust(login)

    def endpoint(self, service: str = PLACEMENT) -> str:
        """The URL of Placement, or of another service, by its type.

        Raises:
            NoEndpoint: neither the variables nor the catalog say.
            LoginRefused, Unreachable: Keystone refuses, or does not answer.
        """
        found = self._identity.endpoint(service)
        if found is None:
            variable = f"OS_{service.upper()}_ENDPOINT_OVERRIDE"
            raise missing(service, self._login, f"{variable} names it")
        return found

    def token(self) -> str:
        """See `Credentials`.

        Raises:
            NoEndpoint, LoginRefused, Unreachable: there is none to be had.
        """
        return self._identity.token()

    def renew(self) -> bool:
        """See `Credentials`."""
        return self._identity.renew()
