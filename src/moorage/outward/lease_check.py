"""The operator's own check of leases: a service over HTTP, or a program.

A service answers as those do that Blazar asks: 204 lets it be, 403 with `{"message": ...}` does
not. A program lets it be with status 0, and does not with status 3 and what it writes. Anything
else is no answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.outward.program import run_program
from moorage.outward.webhook import post_json, url_origin
from moorage.usecases.effect_dispatch import OutwardFailure
from moorage.usecases.shared.lease_check import END, CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effect_dispatch import Message

_ALLOWED: Final = 204
_REFUSED: Final = 403
REFUSES: Final = 3
"""The exit status of a program that refuses."""
_LONGEST: Final = 64 * 1024
"""Bytes of an answer that are read."""
_TOLD: Final = 500
"""Characters of a check's message that are passed on."""


@dataclass(frozen=True, slots=True)
class WebCheck:
    """A check over HTTP; each question has its path below the URL."""

    url: str
    secret: str
    timeout: float
    """Seconds for all of it: name, connection, request and answer."""

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """Ask the service: None allows the lease, a text is the reason of a refusal."""
        try:
            status, answer = self._post(what, body, {})
        except OutwardFailure as error:
            raise CheckFailed(error.message) from error
        if status == _ALLOWED:
            return None
        if status == _REFUSED:
            return _message(answer)
        raise CheckFailed(f"{url_origin(self.url)} answered {status}")

    def report_end(self, message: Message) -> str:
        """Report the end of a lease; retried until it succeeds.

        Raises:
            OutwardFailure: it was not.
        """
        body = {"context": {}, "lease": message.body["details"]}
        status, _ = self._post(END, body, {"Idempotency-Key": message.id})
        if not 200 <= status < 300:  # noqa: PLR2004 - a successful status
            raise OutwardFailure(f"{url_origin(self.url)} answered {status}")
        return f"{url_origin(self.url)} answered {status}"

    def _post(
        self, what: str, body: Mapping[str, object], more: Mapping[str, str]
    ) -> tuple[int, bytes]:
        url = f"{self.url.rstrip('/')}/{what}"
        return post_json(url, body, more, self.secret, self.timeout, keep=_LONGEST)


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """A check by a program, which reads `{"kind": "check-create", ...}` on its standard input."""

    path: str
    timeout: float

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """Run the program: None allows the lease, a text is the reason of a refusal."""
        try:
            status, words = run_program(self.path, {"kind": what, **body}, {}, self.timeout)
        except OutwardFailure as error:
            raise CheckFailed(error.message) from error
        if status == 0:
            return None
        if status == REFUSES:
            return words
        raise CheckFailed(f"the check ended with status {status}: {words}")

    def report_end(self, message: Message) -> str:
        """Report the end of a lease; retried until it succeeds.

        Raises:
            OutwardFailure: it was not.
        """
        body = {"kind": END, "lease": message.body["details"]}
        status, words = run_program(self.path, body, {}, self.timeout)
        if status:
            raise OutwardFailure(f"the check ended with status {status}: {words}")
        return "the check has heard it"


def _message(answer: bytes) -> str:
    """The message of a refusal; empty if it cannot be parsed."""
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    message = said.get("message") if isinstance(said, dict) else None
    return message[:_TOLD] if isinstance(message, str) else ""
