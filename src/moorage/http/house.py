"""What the server says of itself: where the dialects are, whether it lives, whether it is ready."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.http import request_id as ids
from moorage.http.forwarded import PREFIX
from moorage.http.refusals import refusal
from moorage.http.wsgi import ROUTE, json_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.http.wsgi import Answer, Environ

Page: TypeAlias = "Callable[[Environ], Answer]"

_log = logging.getLogger(__name__)

READING: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class House:
    """The routes outside every dialect. None tells a secret; only further `pages` may ask who asks.

    `checks` are called for `/readyz`: name -> function that raises when the part is not usable.
    """

    version: str
    places: Mapping[str, str]
    """Name of a mount -> its path."""
    checks: Mapping[str, Callable[[], object]]
    pages: Mapping[str, Page] = field(default_factory=dict)
    """Further pages by path."""
    _failing: set[str] = field(default_factory=set)
    """Checks that failed when last asked: the log is told of changes, not of every probe."""

    def answer(self, environ: Environ, path: str) -> Answer:
        """The answer for a path that no mount has."""
        method, request_id = environ["REQUEST_METHOD"], environ[ids.ENVIRON]
        page = self.early(path)
        if path in {"", "/"}:
            page = self._discovery
        if page is None:
            return refusal(
                HTTPStatus.NOT_FOUND,
                "http.not_found",
                "Nothing is here. GET / says what is served where.",
                request_id,
            )
        environ[ROUTE] = path or "/"
        if method not in READING:
            return refusal(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "http.method_not_allowed",
                f"{method} is not possible here.",
                request_id,
                ("allow", "GET, HEAD"),
            )
        return page(environ)

    def early(self, path: str) -> Page | None:
        """The pages that stay reachable even when a dialect is mounted at `/`."""
        own = {"/healthz": self._health, "/readyz": self._readiness}
        return own.get(path) or self.pages.get(path)

    def _discovery(self, environ: Environ) -> Answer:
        before = environ.get(PREFIX, "")  # what a proxy takes off the path
        services = [
            {"name": name, "links": [{"rel": "self", "href": before + path}]}
            for name, path in sorted(self.places.items())
        ]
        return json_answer(
            HTTPStatus.OK, {"name": "moorage", "version": self.version, "services": services}
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
