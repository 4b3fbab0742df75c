"""Plans that nobody requests: for policies that ask for it, and for hosts that fail.

A policy with `on_violation: plan_repair` that is broken gets a plan to repair its ensemble, once
for each time that it begins to be broken. Whether plans of a kind are applied by themselves is a
setting, with a bound for each hour.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutPlan
from moorage.domain.ensembles import OnViolation
from moorage.domain.errors import MoorageError
from moorage.domain.host_states import ClosingReason
from moorage.domain.period import FOREVER, HOUR
from moorage.domain.plan_requests import PlanRequest
from moorage.domain.plans import PlanKind, PlanState
from moorage.engine.state.host_states import closings, host_states
from moorage.usecases.compliance_ports import ViolationFilter
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.paging import Page
from moorage.usecases.plans.lifecycle import apply_plan
from moorage.usecases.plans.plan_maker import make_plan
from moorage.usecases.shared.access import ITSELF

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.domain.plans import AutomaticPlans, Plan
    from moorage.domain.violations import Violation
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment

_log = logging.getLogger(__name__)
FAILED: Final = frozenset({ClosingReason.SERVICE_DOWN, ClosingReason.FORCED_DOWN})
"""Why hosts are down whose servers are evacuated without being asked for."""
UNASKED: Final = "unasked"
"""The attribute of plans that nobody requested; its value says why they were made."""
PAUSE: Final = 30.0
"""Seconds until plans are made again after one could not be."""
_READ: Final = 1_000
"""Violations, and plans, that are read at once."""


@dataclass(eq=False)
class PlanWatch:
    """Makes plans that nobody requests, in rounds. Any number of processes may run them."""

    env: UseCaseEnvironment
    settings: AutomaticPlans
    default: OnViolation = OnViolation.REFUSE
    """What becomes of violations of policies that do not say it."""
    _known: set[str] = field(default_factory=set)
    """Ids of violations that need no plan, or have one."""
    _not_before: float = 0.0
    """When plans are made again after one could not be, by the stopwatch."""

    def run_round(self) -> bool:
        """Make the plans that are missing now; whether any was made.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        self._apply_waiting()
        if self.env.stopwatch() < self._not_before:
            return False
        made = self._repairs()
        if PlanKind.EVACUATE in self.settings.kinds:
            made |= self._evacuation()
        return made

    # --- repairs ----------------------------------------------------------------------------

    def _repairs(self) -> bool:
        records = self.env.store.compliance
        wanted = ViolationFilter(required=True, open=True)
        found = records.page(wanted, Page(limit=_READ))
        fresh = [one for one in found if one.id not in self._known]
        self._known &= {one.id for one in found}
        if not fresh:
            return False
        ids = sorted({one.ensemble_id for one in fresh})
        ensembles = {one.ensemble.id: one.ensemble for one in records.ensembles_by_id(ids)}
        plans = self._plans(PlanKind.REPAIR)
        made = False
        for ensemble_id, violations in _by_ensemble(fresh).items():
            ensemble = ensembles.get(ensemble_id)
            known = {one.id for one in violations}
            if ensemble is None or not self._asks(ensemble, violations):
                self._known |= known
                continue
            since = max(one.since for one in violations)
            if any(
                plan.ensemble_id == ensemble_id and (not plan.state.over or plan.created_at > since)
                for plan in plans
            ):
                self._known |= known
                continue
            request = PlanRequest(PlanKind.REPAIR, ensemble=ensemble_id)
            if self._made(request, f"{violations[0].key} is broken"):
                made = True
                self._known |= known
        return made

    def _asks(self, ensemble: Ensemble, violations: Iterable[Violation]) -> bool:
        """Whether a broken policy asks for a plan; of members out of service any policy may."""
        asking = {
            one.name
            for one in ensemble.policies
            if one.required and (one.on_violation or self.default) is OnViolation.PLAN_REPAIR
        }
        return any(
            one.policy in asking if one.policy is not None else bool(asking) for one in violations
        )

    # --- evacuations ------------------------------------------------------------------------

    def _evacuation(self) -> bool:
        snapshot = self.env.store.snapshot()
        down = self._failed(snapshot)
        if not down:
            return False
        planned = {
            host: plan
            for plan in self._plans(PlanKind.EVACUATE)
            for host in plan.hosts
            if plan.state in {PlanState.RUNNING, PlanState.PAUSED}
            or (UNASKED in plan.attributes and plan.created_at >= down.get(host, FOREVER))
        }
        hosts = tuple(sorted(down.keys() - planned.keys()))
        if not hosts:
            return False
        return self._made(PlanRequest(PlanKind.EVACUATE, hosts=hosts), "hosts are down")

    def _failed(self, snapshot: Snapshot) -> Mapping[str, Instant]:
        """UUID of each host that has failed and holds something -> since when it is down."""
        found = {}
        closed = host_states(snapshot).closed
        rows = {row for why in FAILED & closed.keys() for row in closed[why].nonzero()[0].tolist()}
        for row in sorted(rows):
            if not any(snapshot.bookings_of(one) for one in snapshot.tree(row).tolist()):
                continue
            since = [one.start for one in closings(snapshot, row) if one.why in FAILED]
            known = max((one for one in since if one is not None), default=None)
            if known is not None and known + self.settings.settle <= snapshot.taken_at:
                found[snapshot.uuids[row]] = known
        return found

    # --- both -------------------------------------------------------------------------------

    def _plans(self, kind: PlanKind, state: PlanState | None = None) -> Sequence[Plan]:
        return self.env.store.plans.page(Page(limit=_READ), kind=kind, state=state)

    def _made(self, request: PlanRequest, why: str) -> bool:
        """Make, store and, if the settings say so, apply a plan. False: not now."""
        env = self.env
        try:
            plan = make_plan(env, ITSELF, request, RequestIdentity(env.ids.uuid()))
            plan = replace(plan, attributes={**plan.attributes, UNASKED: why})
            env.store.commit(Changeset((PutPlan(plan, None),)))
        except MoorageError as error:
            _log.warning("no plan to %s was made: %s", request.kind, error)
            self._not_before = env.stopwatch() + PAUSE
            return False
        self._apply_waiting()
        return True

    def _apply_waiting(self) -> None:
        """Apply plans that nobody requested, the oldest first, as many as this hour may have."""
        waiting = [
            plan
            for kind in self.settings.kinds
            for plan in self._plans(kind, PlanState.READY)
            if plan.moves and UNASKED in plan.attributes
        ]
        for plan in sorted(waiting, key=lambda one: (one.created_at, one.id)):
            if not self._may_apply():
                return
            try:
                apply_plan(self.env, ITSELF, plan.id)
            except MoorageError as error:
                _log.warning("plan %s is made and not applied: %s", plan.id, error)

    def _may_apply(self) -> bool:
        """Whether another plan may be applied in this hour."""
        since = self.env.store.now() - HOUR
        recent = [
            plan
            for kind in self.settings.kinds
            for plan in self._plans(kind)
            if max(plan.created_at, plan.changed_at) > since
            and UNASKED in plan.attributes
            and plan.state is not PlanState.READY
        ]
        return len(recent) < self.settings.hourly


def _by_ensemble(violations: Iterable[Violation]) -> Mapping[str, list[Violation]]:
    found: dict[str, list[Violation]] = {}
    for one in violations:
        found.setdefault(one.ensemble_id, []).append(one)
    return found
