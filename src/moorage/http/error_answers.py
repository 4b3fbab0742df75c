"""Error answers of the kernel itself, in the form of the mount.

Errors are `{"errors": [...]}` with a code. The reference Placement server answers a
missing token from in front of its application, in another form; clients see that form here too.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.http.wsgi import json_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.errors import Busy, TooManyRequests
    from moorage.http.wsgi import Answer

Challenge: TypeAlias = tuple[tuple[str, str], ...]
"""Headers of a 401, by name and value."""

_STOCK_401: Final = (
    "This server could not verify that you are authorized to access the document you requested. "
    "Either you supplied the wrong credentials (e.g., bad password), or your browser does not "
    "understand how to supply the credentials required.<br /><br />\n\n\n"
)


def error_answer(
    status: HTTPStatus,
    code: str,
    detail: str,
    request_id: str,
    *headers: tuple[str, str],
) -> Answer:
    """An error in the API-SIG form; `code` is stable and documented."""
    error: Mapping[str, object] = {
        "status": status.value,
        "code": code,
        "title": status.phrase,
        "detail": detail,
        "request_id": request_id,
    }
    return json_answer(status, {"errors": [error]}, *headers)


def busy(error: Busy, request_id: str) -> Answer:
    """503 with Retry-After."""
    return error_answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "http.busy",
        error.message,
        request_id,
        ("retry-after", str(error.retry_after)),
    )


def too_many_requests(error: TooManyRequests, request_id: str) -> Answer:
    """429 with Retry-After."""
    return error_answer(
        HTTPStatus.TOO_MANY_REQUESTS,
        "http.too_many_requests",
        error.message,
        request_id,
        ("retry-after", str(error.retry_after)),
    )


def unauthorized(request_id: str, *, challenge: Challenge = ()) -> Answer:
    """401 in the API-SIG form; `challenge` names the identity service."""
    return error_answer(
        HTTPStatus.UNAUTHORIZED,
        "http.unauthorized",
        "A valid token in X-Auth-Token is needed.",
        request_id,
        *challenge,
    )


def unauthorized_bare(request_id: str) -> Answer:  # noqa: ARG001 - the signature all mounts share
    """401 as a middleware in front of an OpenStack service words it (Placement under noauth2)."""
    return json_answer(
        HTTPStatus.UNAUTHORIZED,
        {"message": _STOCK_401, "code": "401 Unauthorized", "title": "Unauthorized"},
    )


def unauthorized_by_keystone(request_id: str, *, challenge: Challenge) -> Answer:  # noqa: ARG001 - the signature all mounts share
    """401 as keystonemiddleware in front of an OpenStack service words it."""
    error = {
        "code": HTTPStatus.UNAUTHORIZED.value,
        "title": HTTPStatus.UNAUTHORIZED.phrase,
        "message": "The request you have made requires authentication.",
    }
    return json_answer(HTTPStatus.UNAUTHORIZED, {"error": error}, *challenge)
