"""What the server says of itself: where the dialects are, whether it lives, whether it is ready."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from moorage.http.refusals import refusal
from moorage.http.wsgi import json_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.http.wsgi import Answer

_log = logging.getLogger(__name__)

_READING: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class House:
    """The routes outside every dialect. None needs a token, none tells a secret.

    `checks` are called for `/readyz`: name -> function that raises when the part is not usable.
    """

    version: str
    places: Mapping[str, str]
    """Name of a mount -> its path."""
    checks: Mapping[str, Callable[[], object]]

    def answer(self, method: str, path: str, request_id: str, before: str = "") -> Answer:
        """The answer for a path that no mount has; `before` is what a proxy puts before paths."""
        page = self.early(path)
        if path in {"", "/"}:
            page = partial(self._discovery, before)
        if page is None:
            return refusal(
                HTTPStatus.NOT_FOUND,
                "http.not_found",
                "Nothing is here. GET / says what is served where.",
                request_id,
            )
        if method not in _READING:
            return refusal(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "http.method_not_allowed",
                f"{method} is not possible here.",
                request_id,
                ("allow", "GET, HEAD"),
            )
        return page()

    def early(self, path: str) -> Callable[[], Answer] | None:
        """The pages that stay reachable even when a dialect is mounted at `/`."""
        return {"/healthz": self._health, "/readyz": self._readiness}.get(path)

    def _discovery(self, before: str) -> Answer:
        services = [
            {"name": name, "links": [{"rel": "self", "href": before + path}]}
            for name, path in sorted(self.places.items())
        ]
        return json_answer(
            HTTPStatus.OK, {"name": "moorage", "version": self.version, "services": services}
        )

    def _health(self) -> Answer:
        return json_answer(HTTPStatus.OK, {"status": "alive"})

    def _readiness(self) -> Answer:
        states = {name: _state(name, check) for name, check in self.checks.items()}
        ready = all(state == "ready" for state in states.values())
        return json_answer(
            HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
            {"status": "ready" if ready else "not ready", "checks": states},
        )


def _state(name: str, check: Callable[[], object]) -> str:
    try:
        check()
    except Exception:  # noqa: BLE001 - the failure is the finding; its details are for the log
        _log.warning("not ready: %s", name, exc_info=True)
        return "not ready"
    return "ready"
