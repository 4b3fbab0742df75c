"""The operator's own check of leases: asked before one is written, told when one has ended.

It is asked outside of any transaction, once an answer was found and before it is committed, so a
slow check delays its caller and locks nothing. The commit may still find the answer overtaken:
that a lease may be is not that it is, which is why its end is told of leases that were written.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moorage.domain.errors import Busy, CheckRefused
from moorage.domain.period import to_datetime
from moorage.usecases.effects.notifications import lease_details
from moorage.usecases.shared.lease_check import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.shared.lease_check import LeaseCheck

_log = logging.getLogger(__name__)


@dataclass
class CheckRequest:
    """The operator's check of one request; asked once, however often the decision is retried."""

    env: UseCaseEnvironment
    caller: Caller
    what: str
    before: Mapping[str, object] | None = None
    """The lease as it is, of one that changes."""
    _asked: bool = False

    def put(self, lease: Lease, ensemble: Ensemble) -> Lease:
        """The lease, marked as checked, if the check allows it.

        Raises:
            CheckRefused: it may not.
            Busy: there is no answer, and that refuses.
        """
        check = self.env.check
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
            "lease": lease_for_check(lease, ensemble),
        }
        if self.before is not None:
            body["current_lease"] = self.before
        return body


def _ask(check: LeaseCheck, what: str, body: Mapping[str, object]) -> None:
    try:
        why = check.ask(what, body)
    except CheckFailed as error:
        if check.else_allow:
            _log.warning("%s went unanswered, which allows: %s", what, error.message)
            return
        raise Busy(f"the check of leases gives no answer: {error.message}") from error
    if why is not None:
        raise CheckRefused(why or "the check of leases refuses it")


def lease_for_check(lease: Lease, ensemble: Ensemble) -> dict[str, Any]:
    """A lease as the check sees it: its own words, and dates in Blazar's form."""
    period = lease.terms.period
    return {
        "id": lease.id,
        **lease_details(lease),
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
