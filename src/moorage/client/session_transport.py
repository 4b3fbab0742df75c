"""Calls of the service through a session of keystoneauth."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from keystoneauth1 import exceptions

from moorage.client.errors import NoAnswer, Unreachable
from moorage.client.service_types import NATIVE, PLACEMENT
from moorage.client.transport import RawAnswer, Request, Transport, plain_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.client.session import SessionServices

_V1: Final = "/v1"
_PLACEMENT: Final = "/placement"


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
        self._services.token()  # it is kept: errors of the login are not those of the call
        service, url = self._found(request.path)
        with self._services.login_errors(), _call_errors(service):
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


@contextmanager
def _call_errors(url: str) -> Iterator[None]:
    """Why there is no answer of a service, as the client's errors."""
    try:
        yield
    except (exceptions.ConnectTimeout, exceptions.UnknownConnectionError) as error:
        raise NoAnswer(url, "no answer in time") from error
    except exceptions.ConnectionError as error:
        raise Unreachable(url, plain_reason(error)) from error
