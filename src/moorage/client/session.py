"""A session of keystoneauth, such as other OpenStack clients have: its tokens and its catalog.

The session has logged in, or does so at the first call; it renews its token, and trusts the
certificates that its owner chose.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from keystoneauth1 import exceptions

from moorage.client.certificates import trusted
from moorage.client.errors import LoginRefused, NoEndpoint, Unreachable

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class SessionServices:
    """A session's tokens (see `credentials.Credentials`), and the catalog's endpoints to use."""

    session: Any = field(repr=False)
    """A `keystoneauth1.session.Session`."""
    interface: str | list[str] | None = None
    """The first of several that there is."""
    region: str | None = None
    overrides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Service type -> URL that counts instead of the catalog's."""

    @classmethod
    def configured(
        cls,
        session: object,
        interface: str | list[str] | None,
        region: str | None,
        configuration: Mapping[str, Any],
    ) -> Self:
        """As openstacksdk's configuration says: it has overrides by `compute_endpoint_override`."""
        end = "_endpoint_override"
        overrides = {
            name.removesuffix(end).replace("_", "-"): str(url)
            for name, url in configuration.items()
            if name.endswith(end) and url
        }
        return cls(session, interface, region, overrides)

    def endpoint(self, service: str) -> str:
        """The URL of an API by its service type.

        Raises:
            NoEndpoint: the catalog has none.
            LoginRefused, Unreachable: from the login.
        """
        url = self.overrides.get(service)
        if url is None:
            with self.login_errors(), suppress(exceptions.EndpointNotFound):
                url = self.session.get_endpoint(
                    service_type=service, interface=self.interface, region_name=self.region
                )
        if not url:
            kinds = self.interface or "public"
            kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
            where = f" in region {self.region}" if self.region else ""
            raise NoEndpoint(
                f"the catalog has no {kind} endpoint of type {service}{where};"
                " an operator adds one, or"
                f" OS_{service.upper()}_ENDPOINT_OVERRIDE names it"
            )
        return str(url).rstrip("/")

    @property
    def trust(self) -> ssl.SSLContext | bool:
        """The certificate authorities that the session trusts."""
        certificate = self.session.cert
        both = (certificate, None) if isinstance(certificate, str) else certificate
        return trusted(self.session.verify, both)

    def token(self) -> str:
        """The token to send.

        Raises:
            NoEndpoint, LoginRefused, Unreachable: there is none to be had.
        """
        with self.login_errors():
            return str(self.session.get_token())

    def renew(self) -> bool:
        """Discard a refused token; False if there is no other."""
        return bool(self.session.invalidate())

    @contextmanager
    def login_errors(self) -> Iterator[None]:
        """Errors of the session's login, as the client's."""
        url = getattr(self.session.auth, "auth_url", None) or "its URL"
        try:
            yield
        except exceptions.CatalogException as error:
            raise NoEndpoint(
                f"no catalog of services comes with the token (is a project named?): {error}"
            ) from error
        except exceptions.AuthPluginException as error:
            raise NoEndpoint(f"the options do not make a login: {error}") from error
        except (exceptions.ConnectionError, exceptions.DiscoveryFailure) as error:
            raise Unreachable(url, "Keystone does not answer there", what="Keystone") from error
        except exceptions.ClientException as error:
            raise LoginRefused(f"Keystone at {url} refuses the login: {error}") from error
