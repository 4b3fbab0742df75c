"""The operator's own check of leases: asked before one is written, told when one has ended.

It is asked outside of any transaction, once an answer was found and before it is committed, so a
slow check delays its caller and locks nothing. The commit may still find the answer overtaken:
that a lease may be is not that it is, which is why its end is told of leases that were written.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from moorage.domain.effects import EffectKind
from moorage.domain.errors import Busy, CheckRefused, MoorageError
from moorage.domain.period import to_datetime
from moorage.usecases.leases.facts import fact, of_lease

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller

CREATE: Final = "check-create"
UPDATE: Final = "check-update"
END: Final = "on-end"

_log = logging.getLogger(__name__)


class CheckFailed(MoorageError):
    """The check was not reached, took too long, or answered what is no answer."""


class Asks(Protocol):
    """Whoever asks outside, within a bounded time."""

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """Why not; None: it may be.

        Raises:
            CheckFailed: there is no answer.
        """


@dataclass(frozen=True, slots=True)
class Check:
    """Who is asked, and what holds where there is no answer."""

    ask: Asks
    else_allow: bool = False


@dataclass
class Question:
    """One request's question, asked once however often its answer is overtaken."""

    parts: Parts
    caller: Caller
    what: str
    before: Mapping[str, object] | None = None
    """The lease as it is, of one that changes."""
    _asked: bool = False

    def put(self, lease: Lease, ensemble: Ensemble) -> Lease:
        """The lease, which may be; its end will be told.

        Raises:
            CheckRefused: it may not.
            Busy: there is no answer, and that refuses.
        """
        check = self.parts.check
        if check is None:
            return lease
        if not self._asked:
            _ask(check, self.what, self._body(lease, ensemble))
            self._asked = True
        return replace(lease, checked=True)

    def _body(self, lease: Lease, ensemble: Ensemble) -> dict[str, object]:
        body: dict[str, object] = {
            "context": {
                "user_id": self.caller.user_id,
                "project_id": self.caller.project_id,
                "roles": sorted(self.caller.roles),
                "request_id": self.caller.request_id,
            },
            "lease": described(lease, ensemble),
        }
        if self.before is not None:
            body["current_lease"] = self.before
        return body


def _ask(check: Check, what: str, body: Mapping[str, object]) -> None:
    try:
        why = check.ask(what, body)
    except CheckFailed as error:
        if check.else_allow:
            _log.warning("%s went unanswered, which allows: %s", what, error.message)
            return
        raise Busy(f"the check of leases gives no answer: {error.message}") from error
    if why is not None:
        raise CheckRefused(why or "the check of leases refuses it")


def described(lease: Lease, ensemble: Ensemble) -> dict[str, Any]:
    """A lease as the check sees it: its own words, and dates in Blazar's form."""
    period = lease.terms.period
    return {
        "id": lease.id,
        **of_lease(lease),
        "project_id": lease.project_id,
        "user_id": lease.user_id,
        "start_date": f"{to_datetime(period.start):%Y-%m-%d %H:%M}",
        "end_date": f"{to_datetime(period.end):%Y-%m-%d %H:%M}",
        "units": lease.units,
        "priority": lease.terms.priority,
        "reservations": [
            {
                "id": one.id,
                "role": one.role,
                "amount": ensemble.count(one.role),
                "resources": dict(ensemble.role(one.role).resources),
            }
            for one in lease.reservations
        ],
    }


def ended(lease: Lease, now: Instant) -> Iterator[Change]:
    """Tell the check that a lease which it allowed has ended."""
    if lease.checked:
        yield fact(
            EffectKind.ENDED,
            lease.id,
            lease.project_id,
            due=now,
            now=now,
            details={
                **of_lease(lease),
                "id": lease.id,
                "project_id": lease.project_id,
                "user_id": lease.user_id,
                "units": lease.units,
            },
            same=(lease.id,),
        )
