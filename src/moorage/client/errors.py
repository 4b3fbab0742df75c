"""The client's errors, chosen by the API's error body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import MoorageError
from moorage.domain.words import first_of

if TYPE_CHECKING:
    from collections.abc import Mapping


_TOLD: Final = 5
"""How many matches a message lists."""


class NoEndpoint(MoorageError):
    """No option, variable or file names the endpoint."""


class Unreachable(MoorageError):
    """There is no service at the endpoint, or the connection broke during the answer."""

    def __init__(self, endpoint: str, why: str, *, what: str = "Moorage") -> None:
        super().__init__(f"cannot reach {what} at {endpoint}: {why}")
        self.endpoint = endpoint


class NoAnswer(Unreachable):
    """The request was sent and no answer came in time; it may still be carried out."""


class LoginRefused(MoorageError):
    """Keystone issues no token."""


class NotMoorage(MoorageError):
    """The service at the endpoint is not Moorage."""


class UnknownAnswer(MoorageError):
    """The service's answer has a form that this client does not know."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"cannot read the service's answer: {why}; use a client of the service's version"
        )


class Ambiguous(MoorageError):
    """An abbreviated id or a name matches several things.

    `matches` are their ids, `told` descriptions for choosing between them.
    """

    def __init__(
        self, kind: str, text: str, matches: tuple[str, ...], told: tuple[str, ...] = ()
    ) -> None:
        some = told or matches
        shown = ", ".join(first_of(some, _TOLD))
        super().__init__(f"{len(matches)} {kind}s match {text!r}; use an id: {shown}")
        self.kind = kind
        self.matches = matches


class Missing(MoorageError):
    """No visible thing has that id, abbreviation or name; `hint` is the one that may be meant."""

    def __init__(self, kind: str, text: str, hint: str = "") -> None:
        super().__init__(f"no {kind} {text}{hint}")
        self.kind, self.text = kind, text


class ApiError(MoorageError):
    """The service answered with an error. `body` is the whole document, `error` its first entry."""

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
    """The request is invalid (400)."""


class Contradiction(Invalid):
    """The policies cannot be met together on any fleet."""


class Forbidden(ApiError):
    """The token may not do this (401, 403)."""


class LimitReached(Forbidden):
    """A quota or a configured limit is exceeded."""


class QuotaExceeded(LimitReached):
    """A quota of the project is exceeded."""


class NotFound(ApiError):
    """The thing does not exist, or is another project's (404)."""


class Conflict(ApiError):
    """The present state does not allow it (409, 410, 412, 428)."""


class Stale(Conflict):
    """It was changed after the generation that was sent with the request."""


class NameTaken(Conflict):
    """Another thing of the project has the name."""

    @property
    def existing(self) -> str:
        """The id of that thing."""
        return str(self.error.get("existing") or "")


class Infeasible(Conflict):
    """No placement meets the request; `explanation` says why."""

    @property
    def explanation(self) -> Mapping[str, Any]:
        """The explanation as the API gave it; empty without one."""
        found = self.error.get("explanation")
        return found if isinstance(found, dict) else {}


class SeriesInfeasible(Infeasible):
    """Not all occurrences of a series fit; `explanation` says why the first of those does not."""

    @property
    def occurrences(self) -> list[Mapping[str, Any]]:
        """The occurrences that do not fit: `index`, `start`, `end`, `why`, `explanation_id`."""
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
        """The caller's remedies."""
        return list(self.error.get("remedies") or ())


class Busy(ApiError):
    """Try again later (503), or with fewer requests at once (429)."""


class Undecided(Busy):
    """Time ran out before a placement was found, or a proof that there is none (409)."""

    @property
    def explanation(self) -> Mapping[str, Any]:
        """The explanation as the API gave it: its verdict is `undecided`."""
        found = self.error.get("explanation")
        return found if isinstance(found, dict) else {}


class ServerFault(ApiError):
    """The service has failed (500)."""


_BY_CODE: Final[Mapping[str, type[ApiError]]] = {
    "ensemble.infeasible": Infeasible,
    "ensemble.undecided": Undecided,
    "ensemble.name_taken": NameTaken,
    "ensemble.concurrent_update": Stale,
    "ensemble.precondition_failed": Stale,
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
    429: Busy,
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
