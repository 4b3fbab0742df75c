"""The few WSGI types used everywhere, and an answer as a value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from http import HTTPStatus

Environ: TypeAlias = dict[str, Any]
Headers: TypeAlias = list[tuple[str, str]]
ExcInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
)


class StartResponse(Protocol):
    """PEP 3333's callable that takes status and headers."""

    def __call__(
        self, status: str, headers: Headers, exc_info: ExcInfo | None = None, /
    ) -> Callable[[bytes], object]:
        """Begin the response."""


Application: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]

JSON: Final = "application/json"
MOUNT: Final = "moorage.mount"
"""The environ's key for the name of the dialect that answers; absent outside of every one."""
ROUTE: Final = "moorage.route"
"""The environ's key for the template of the path that answers, set by the router."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response, small enough to keep in memory."""

    status: HTTPStatus
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


def status_line(status: HTTPStatus) -> str:
    """The status as WSGI wants it: `404 Not Found`."""
    return f"{status.value} {status.phrase}"


def json_answer(status: HTTPStatus, document: object, *headers: tuple[str, str]) -> Answer:
    """An answer with a JSON body."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Answer(status, body, (("content-type", JSON), *headers))
