"""Calls through a session of keystoneauth, such as other OpenStack clients have.

The session has logged in, or does so at the first call; it renews its token, knows the catalog,
and trusts the certificates that its owner chose.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from keystoneauth1 import exceptions

from moorage.client.errors import LoginRefused, NoAnswer, NoEndpoint, Unreachable
from moorage.client.keystone import NATIVE, PLACEMENT, trusted
from moorage.client.transport import RawAnswer, Request, Transport, plain_reason

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

_V1: Final = "/v1"
_PLACEMENT: Final = "/placement"


@dataclass(frozen=True, slots=True)
class SessionServices:
    """A session, and which of the catalog's endpoints to use."""

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
            with keystone_errors(), suppress(exceptions.EndpointNotFound):
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


class SessionTransport(Transport):
    """Calls of the service by a session, which stays its owner's to close."""

    def __init__(self, services: SessionServices, adapter: object = None) -> None:
        """An `adapter` of the session sends the requests instead, if there is one."""
        self._services = services
        self._adapter: Any = adapter or services.session

    def send(self, request: Request) -> RawAnswer:
        """See `Transport`.

        Raises:
            Unreachable: there was no answer; `NoAnswer`: not in time.
            NoEndpoint, LoginRefused: see `SessionServices.endpoint`.
        """
        with keystone_errors():
            self._services.session.get_token()  # kept; a login's errors are not those of a call
        service, url = self._found(request.path)
        with keystone_errors(service):
            answer = self._adapter.request(
                url,
                request.method,
                data=request.content,
                params=request.params,
                headers=dict(request.headers),
                raise_exc=False,
            )
        return RawAnswer(
            service, answer.status_code, answer.reason or "", answer.content, answer.headers
        )

    def _found(self, path: str) -> tuple[str, str]:
        """The URL of the service, and that of a path.

        The endpoints of the two APIs end with `/v1` and wherever Placement is. One URL for both
        (without a catalog, or as an override) is that of the service, with or without either end.
        """
        service = _without_api(self._services.endpoint(NATIVE))
        if not path.startswith(f"{_PLACEMENT}/"):
            return service, service + path
        placement = self._services.endpoint(PLACEMENT)
        if _without_api(placement) == service:
            return service, service + path
        return placement, placement + path.removeprefix(_PLACEMENT)


def _without_api(url: str) -> str:
    return url.removesuffix(_V1).removesuffix(_PLACEMENT)


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """The tokens of a session; see `credentials.Credentials`."""

    services: SessionServices

    @property
    def trust(self) -> ssl.SSLContext | bool:
        """The certificate authorities that the session trusts."""
        session = self.services.session
        certificate = (session.cert, None) if isinstance(session.cert, str) else session.cert
        return trusted(session.verify, certificate)

    def token(self) -> str:
        """The token to send.

        Raises:
            LoginRefused, Unreachable: there is none to be had.
        """
        with keystone_errors():
            return str(self.services.session.get_token())

    def renew(self) -> bool:
        """Discard a refused token; False if there is no other."""
        return bool(self.services.session.invalidate())


@contextmanager
def keystone_errors(url: str = "") -> Iterator[None]:
    """Errors of a session as the client's; without a URL they are of the login."""
    what = "Moorage" if url else "Keystone"
    try:
        yield
    except (exceptions.ConnectTimeout, exceptions.UnknownConnectionError) as error:
        raise NoAnswer(url or what, "no answer in time", what=what) from error
    except (exceptions.ConnectionError, exceptions.DiscoveryFailure) as error:
        raise Unreachable(url or what, plain_reason(error), what=what) from error
    except exceptions.CatalogException as error:
        raise NoEndpoint(
            f"no catalog of services comes with the token (is a project named?): {error}"
        ) from error
    except exceptions.ClientException as error:
        raise LoginRefused(f"Keystone refuses the login: {error}") from error
