"""Ask the operator's check of leases: a service over HTTP, or a program.

A service answers as those do that Blazar asks: 204 lets it be, 403 with `{"message": ...}` does
not. A program lets it be with status 0, and does not with status 3 and what it writes. Anything
else is no answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.outward.program import ended_with
from moorage.outward.webhook import posted, where
from moorage.usecases.effects import OutwardFailure
from moorage.usecases.leases.checked import END, CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effects import Message

_ALLOWED: Final = 204
_REFUSED: Final = 403
REFUSES: Final = 3
"""The exit status of a program that refuses."""
_LONGEST: Final = 64 * 1024
"""Bytes of an answer that are read."""
_TOLD: Final = 500
"""Characters of what a check says that are passed on."""


@dataclass(frozen=True, slots=True)
class WebCheck:
    """A service; each question has its path below the URL."""

    url: str
    secret: str
    timeout: float
    """Seconds for all of it: name, connection, request and answer."""

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """See `Asks`."""
        try:
            status, answer = self._post(what, body, {})
        except OutwardFailure as error:
            raise CheckFailed(error.message) from error
        if status == _ALLOWED:
            return None
        if status == _REFUSED:
            return _message(answer)
        raise CheckFailed(f"{where(self.url)} answered {status}")

    def told(self, message: Message) -> str:
        """Say that a lease has ended; tried again until it is heard.

        Raises:
            OutwardFailure: it was not.
        """
        body = {"context": {}, "lease": message.body["details"]}
        status, _ = self._post(END, body, {"Idempotency-Key": message.id})
        if not 200 <= status < 300:  # noqa: PLR2004 - what counts as heard
            raise OutwardFailure(f"{where(self.url)} answered {status}")
        return f"{where(self.url)} answered {status}"

    def _post(
        self, what: str, body: Mapping[str, object], more: Mapping[str, str]
    ) -> tuple[int, bytes]:
        url = f"{self.url.rstrip('/')}/{what}"
        return posted(url, body, more, self.secret, self.timeout, keep=_LONGEST)


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """A program, which gets `{"kind": "check-create", ...}` on its standard input."""

    path: str
    timeout: float

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """See `Asks`."""
        try:
            status, words = ended_with(self.path, {"kind": what, **body}, {}, self.timeout)
        except OutwardFailure as error:
            raise CheckFailed(error.message) from error
        if status == 0:
            return None
        if status == REFUSES:
            return words
        raise CheckFailed(f"the check ended with status {status}: {words}")

    def told(self, message: Message) -> str:
        """Say that a lease has ended; tried again until it is heard.

        Raises:
            OutwardFailure: it was not.
        """
        body = {"kind": END, "lease": message.body["details"]}
        status, words = ended_with(self.path, body, {}, self.timeout)
        if status:
            raise OutwardFailure(f"the check ended with status {status}: {words}")
        return "the check has heard it"


def _message(answer: bytes) -> str:
    """What a refusal says; nothing where it says nothing that can be understood."""
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    message = said.get("message") if isinstance(said, dict) else None
    return message[:_TOLD] if isinstance(message, str) else ""
