"""The operator's external check of leases, called before a lease is written and after it ended.

The check is called outside of any transaction, after an answer was found and before its commit: a
slow check delays its caller and holds no lock. The commit may still fail after the check allowed
the lease. The end of a lease is therefore reported only for leases that were written.
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
    """The check of one request; it is called once, however often the decision is retried."""

    env: UseCaseEnvironment
    caller: Caller
    what: str
    before: Mapping[str, object] | None = None
    """The lease before the change; None for a new lease."""
    _called: bool = False

    def put(self, lease: Lease, ensemble: Ensemble) -> Lease:
        """Call the check and return the lease, marked as checked.

        Raises:
            CheckRefused: the check refuses the lease.
            Busy: the check does not answer, and is configured to refuse then.
        """
        check = self.env.check
        if check is None:
            return lease
        if not self._called:
            _call(check, self.what, self._body(lease, ensemble))
            self._called = True
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


def _call(check: LeaseCheck, what: str, body: Mapping[str, object]) -> None:
    try:
        why = check.ask(what, body)
    except CheckFailed as error:
        if check.else_allow:
            _log.warning(
                "the check of leases did not answer %s; the lease is allowed: %s",
                what,
                error.message,
            )
            return
        raise Busy(f"the operator's check of leases did not answer: {error.message}") from error
    if why is not None:
        raise CheckRefused(why or "the check of leases refuses it")


def lease_for_check(lease: Lease, ensemble: Ensemble) -> dict[str, Any]:
    """The check's view of a lease: Moorage's own fields, with dates in Blazar's format."""
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
