"""System routes: API discovery, liveness and readiness."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.http.proxy_headers import PREFIX
from moorage.http.response import REQUEST_ID, error_answer
from moorage.http.wsgi import ROUTE, json_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.http.wsgi import Answer, Environ

Page: TypeAlias = "Callable[[Environ], Answer]"

_log = logging.getLogger(__name__)

READING: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """One version of an API, and where it is."""

    id: str
    path: str
    minimum: str
    """The oldest microversion."""
    maximum: str


@dataclass(frozen=True)
class SystemRoutes:
    """Routes outside every dialect. They disclose no secret; only extra `pages` may authenticate.

    `checks` are called for `/readyz`: name -> function that raises when the part is not usable.
    """

    version: str
    places: Mapping[str, str]
    """Name of a mount -> its path."""
    checks: Mapping[str, Callable[[], object]]
    versions: Sequence[ApiVersion] = ()
    """APIs whose path is their version, such as `/v1`."""
    pages: Mapping[str, Page] = field(default_factory=dict)
    """Further pages by path."""
    _failing: set[str] = field(default_factory=set)
    """Checks that failed at the last probe: changes are logged, not every probe."""

    def answer(self, environ: Environ, path: str) -> Answer:
        """The answer for a path that no mount has."""
        method, request_id = environ["REQUEST_METHOD"], environ[REQUEST_ID]
        page = self.system_page(path)
        if path in {"", "/"}:
            page = self._discovery
        if page is None:
            return error_answer(
                HTTPStatus.NOT_FOUND,
                "http.not_found",
                "Nothing is here. GET / says what is served where.",
                request_id,
            )
        environ[ROUTE] = path or "/"
        if method not in READING:
            return error_answer(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "http.method_not_allowed",
                f"{method} is not possible here.",
                request_id,
                ("allow", "GET, HEAD"),
            )
        return page(environ)

    def system_page(self, path: str) -> Page | None:
        """The page of a system path; these stay reachable when a dialect is mounted at `/`."""
        own = {"/healthz": self._health, "/readyz": self._readiness}
        return own.get(path) or self.pages.get(path)

    def _discovery(self, environ: Environ) -> Answer:
        """Mounts and API versions, as clients discover them.

        OpenStack's clients come here from `/v1` when they look for all versions of that API. They
        take a member `version` for a version document: the program's is called `release`.
        """
        before = environ.get(PREFIX, "")  # what a proxy takes off the path
        services = [
            {"name": name, "links": [{"rel": "self", "href": before + path}]}
            for name, path in sorted(self.places.items())
        ]
        return json_answer(
            HTTPStatus.OK,
            {
                "name": "moorage",
                "release": self.version,
                "versions": [
                    {
                        "id": one.id,
                        "status": "CURRENT",
                        "min_version": one.minimum,
                        "max_version": one.maximum,
                        "links": [{"rel": "self", "href": f"{before}{one.path}/"}],
                    }
                    for one in self.versions
                ],
                "services": services,
            },
        )

    def _health(self, _environ: Environ) -> Answer:
        return json_answer(HTTPStatus.OK, {"status": "alive"})

    def _readiness(self, _environ: Environ) -> Answer:
        states = {name: self._state(name, check) for name, check in self.checks.items()}
        ready = all(state == "ready" for state in states.values())
        return json_answer(
            HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
            {"status": "ready" if ready else "not ready", "checks": states},
        )

    def _state(self, name: str, check: Callable[[], object]) -> str:
        try:
            check()
        except Exception as error:  # noqa: BLE001 - the failure is the finding; details are for the log
            if name not in self._failing:
                self._failing.add(name)
                _log.warning("not ready: %s: %s", name, error)
            return "not ready"
        if name in self._failing:
            self._failing.discard(name)
            _log.warning("ready again: %s", name)
        return "ready"
