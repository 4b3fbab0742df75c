"""What a call can end in, as types. The API's error body decides which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Mapping


_TOLD: Final = 5
"""Of how many matches a message tells."""


class NoEndpoint(MoorageError):
    """Nothing says where the service is."""


class Unreachable(MoorageError):
    """Nobody answers at the endpoint, or the answer broke off."""

    def __init__(self, endpoint: str, why: str, *, what: str = "Moorage") -> None:
        super().__init__(f"cannot reach {what} at {endpoint}: {why}")
        self.endpoint = endpoint


class NoAnswer(Unreachable):
    """The request was sent and its answer did not come in time: it may be carried out yet."""


class LoginRefused(MoorageError):
    """Keystone gives no token."""


class NotMoorage(MoorageError):
    """Somebody answers at the endpoint, but not in Moorage's words."""


class Ambiguous(MoorageError):
    """An abbreviated id or a name fits several things.

    `matches` are their ids, `told` what a person needs to choose between them.
    """

    def __init__(
        self, kind: str, text: str, matches: tuple[str, ...], told: tuple[str, ...] = ()
    ) -> None:
        some = told or matches
        shown = ", ".join(some[:_TOLD]) + (", …" if len(some) > _TOLD else "")
        super().__init__(f"{kind} {text} could be any of {len(matches)}: {shown}")
        self.kind = kind
        self.matches = matches


class Missing(MoorageError):
    """Nothing of that id, abbreviation or name is to be seen."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"no {kind} {text}")
        self.kind = kind


class ApiError(MoorageError):
    """The service refused. `body` is the whole error document, `error` its first entry."""

    def __init__(self, status: int, error: Mapping[str, Any], body: object) -> None:
        self.status = status
        self.code: str = str(error.get("code", ""))
        self.title: str = str(error.get("title", ""))
        self.detail: str = str(error.get("detail", "") or self.title)
        self.request_id: str = str(error.get("request_id", ""))
        self.error = error
        self.body = body
        super().__init__(f"{status} {self.code}: {self.detail}".replace(" :", ":"))


class Invalid(ApiError):
    """The request cannot be understood (400)."""


class Contradiction(Invalid):
    """The policies cannot be met together on any fleet."""


class Forbidden(ApiError):
    """The token may not do this (401, 403)."""


class LimitReached(Forbidden):
    """A quota or a configured bound was passed."""


class QuotaExceeded(LimitReached):
    """What the project may lease or hold was passed."""


class NotFound(ApiError):
    """Not there, or not this project's (404)."""


class Conflict(ApiError):
    """The present state does not allow it (409, 410, 412, 428)."""


class Infeasible(Conflict):
    """No placement meets the request; `explanation` says why."""

    @property
    def explanation(self) -> Mapping[str, Any]:
        """The explanation as the API gave it; empty when there is none."""
        found = self.error.get("explanation")
        return found if isinstance(found, dict) else {}


class SeriesInfeasible(Infeasible):
    """Not all occurrences of a series fit; `explanation` says why the first of those does not."""

    @property
    def occurrences(self) -> list[Mapping[str, Any]]:
        """Those that do not fit: `index`, `start`, `end`, `why`, `explanation_id`."""
        return list(self.error.get("occurrences") or ())

    @property
    def instead(self) -> list[Mapping[str, Any]]:
        """Changes that were solved: `fits` occurrences, `without` some or from a `start`."""
        return list(self.error.get("instead") or ())


class DescriptionMismatch(Conflict):
    """The second description differs from the first."""

    @property
    def diff(self) -> list[Mapping[str, Any]]:
        """The differing fields: `path`, `described`, `requested`, `effect`."""
        return list(self.error.get("diff") or ())

    @property
    def remedies(self) -> list[str]:
        """What the caller may do about it."""
        return list(self.error.get("remedies") or ())


class Busy(ApiError):
    """Try again later (503)."""


class ServerFault(ApiError):
    """The service failed on its own account (500)."""


_BY_CODE: Final[Mapping[str, type[ApiError]]] = {
    "ensemble.infeasible": Infeasible,
    "ensemble.series_infeasible": SeriesInfeasible,
    "ensemble.contradiction": Contradiction,
    "ensemble.description_mismatch": DescriptionMismatch,
    "ensemble.quota_exceeded": LimitReached,
    "ensemble.limit_exceeded": LimitReached,
}

_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Conflict,
    412: Conflict,
    428: Conflict,
    500: ServerFault,
    503: Busy,
}


def error_for(status: int, body: object) -> ApiError:
    """The typed error of an error document, known by code first, then by status."""
    error: Mapping[str, Any] = {}
    if isinstance(body, dict):
        errors = body.get("errors")
        error = errors[0] if isinstance(errors, list) and errors else body
    if not isinstance(error, dict):
        error = {}
    kind = _BY_CODE.get(str(error.get("code")), _BY_STATUS.get(status, ApiError))
    if kind is LimitReached and error.get("quota"):
        kind = QuotaExceeded
    return kind(status, error, body)
