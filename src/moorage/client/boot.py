"""Creates the servers of an ensemble in Nova, each in its held place, and confirms the decision.

What an earlier run has done is found by what the service and Nova show: every claim of a run has an
id that says so, and every server the claim's id in its metadata. So a run may be interrupted or
killed at any time, and the next one goes on.
"""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.client.boot_member import MemberBoot
from moorage.client.boot_plan import HELD, Action, OnFailure, Rules, Seen, State, next_step
from moorage.client.boot_requests import role_requests
from moorage.client.boot_session import BootRun, Outcome, Timing, latest, seen_member, servers_of
from moorage.client.errors import ApiError, Missing, Unreachable
from moorage.domain.ensembles import OF_NOVA
from moorage.domain.errors import InvalidDescription, WrongState
from moorage.domain.nova_servers import ServerOptions
from moorage.domain.period import SECOND, parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from concurrent.futures import Future

    from moorage.client.moorage import Moorage
    from moorage.client.nova import Nova
    from moorage.wire.decisions import Decision

PARALLEL: Final = 8
"""Servers that are created and watched at once, by default."""
_RENEW_WITHIN: Final = 120.0
"""Seconds before its end at which a hold is renewed; at most half of its length."""
_TICK: Final = 1.0
_PASSING: Final = {409, 412, 429, *range(500, 600)}
"""Answers to a renewal that may differ at the next try: another change came first, or an outage."""


@dataclass(frozen=True, slots=True)
class BootOrder:
    """What is to be created, and how."""

    ensemble_id: str
    members: frozenset[str] | None = None
    """Names of members; None: all."""
    role: str | None = None
    """Only members of it."""
    given: ServerOptions = field(default_factory=ServerOptions)
    """What goes before the options of the roles."""
    rules: Rules = field(default_factory=Rules)
    parallel: int = PARALLEL
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class BootListener:
    """Hears what happens."""

    begun: Callable[[int], None] = lambda _: None
    """With the number of members."""
    ended: Callable[[Outcome], None] = lambda _: None
    notice: Callable[[str, str], None] = lambda *_: None
    """With a member, and what takes time about it; called from several threads."""


@dataclass(frozen=True, slots=True)
class BootResult:
    """What became of each member, and of the decision."""

    ensemble_id: str
    decision: Decision
    outcomes: tuple[Outcome, ...]
    confirmed: dict[str, Any] | None = None
    """The service's answer; None where the decision is not confirmed."""
    unclaimed: tuple[str, ...] = ()
    """Members whose places are still held, which a confirmation would free."""

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for is done."""
        return all(one.state in {State.ACTIVE, State.CREATED} for one in self.outcomes)


class BootInterrupted(KeyboardInterrupt):
    """The run was interrupted; `result` is what was reached."""

    def __init__(self, result: BootResult) -> None:
        super().__init__()
        self.result = result


@dataclass(eq=False)
class Boot:
    """One run."""

    moorage: Moorage
    nova: Nova
    order: BootOrder
    listener: BootListener = field(default_factory=BootListener)
    _last_end: str | None = None
    """The end of a hold that the service does not renew."""

    def plan(self) -> dict[str, Seen]:
        """What is known of each member that is asked for. Nothing is written.

        Raises:
            WrongState: the ensemble was never placed.
            Missing: there is no such member or role.
            InvalidDescription: Nova creates nothing of what is asked for, such as slices.
            ApiError, SourceFailed, NoEndpoint, LoginRefused, Unreachable: the service or Nova
                refuse, or cannot be asked.
        """
        return self._prepared()[1]

    def run(self) -> BootResult:
        """Create the servers, watch them, and confirm the decision if every member has its server.

        Mistakes in what is described are found before anything is claimed. After a failure of
        single members the others go on, as the rules say; see the outcomes.

        Raises:
            BootInterrupted: Ctrl-C; the next run goes on.
            InvalidDescription, Missing, Ambiguous: see `role_requests`.
            MoorageError: as `plan`.
        """
        run, seen = self._prepared()
        self.listener.begun(len(seen))
        try:
            outcomes = self._boot_all(run, list(seen.values()))
        except _Stopped as stopped:
            result = BootResult(self.order.ensemble_id, run.decision, tuple(stopped.outcomes))
            raise BootInterrupted(result) from None
        return self._closed(run, outcomes)

    def _prepared(self) -> tuple[BootRun, dict[str, Seen]]:
        order, moorage = self.order, self.moorage
        ahead = parse_instant(moorage.now()) / SECOND - time.monotonic()
        ensemble = moorage.ensembles.show(order.ensemble_id).value
        if not ensemble.decision:
            raise WrongState(
                f"ensemble {ensemble.name} was never placed, so no places are held; to place it:"
                f" moorage decision create {ensemble.name} --hold 10m"
            )
        decision = ensemble.decision
        members = moorage.ensembles.members(ensemble.id).value
        others = {role.name for role in ensemble.members if role.others}
        own = [one for one in members if one.role not in others]
        asked = [one for one in own if self._is_asked(one.name, one.role)]
        if not asked:
            kind, names = ("member", order.members) if order.members else ("role", {order.role})
            told = ", ".join(sorted(map(str, names)))
            raise Missing(kind, f"{told} in ensemble {ensemble.name}")
        if kinds := {one.kind for one in asked} - OF_NOVA:
            asked = [one for one in asked if one.kind in OF_NOVA]
        if not asked:
            raise InvalidDescription(
                f"the members asked for in ensemble {ensemble.name} are of kind"
                f" {', '.join(sorted(kinds))}, which Nova does not create; to claim one:"
                f" moorage claim create {ensemble.name} MEMBER"
            )
        run = BootRun(
            moorage=moorage,
            nova=self.nova,
            ensemble=ensemble,
            requests={},
            rules=order.rules,
            timing=order.timing,
            notice=self.listener.notice,
            decision=decision,
            clock=lambda: time.monotonic() + ahead,
        )
        claims = latest(moorage.claims.all(decision.id).value)
        servers = servers_of(self.nova, ensemble.id, asked)
        seen = {
            one.name: seen_member(run, one, claims.get(one.name), servers.get(one.name))
            for one in asked
        }
        open_ = [one for one in seen.values() if next_step(one, run.rules).action != Action.END]
        roles = {one.member.partition("[")[0] for one in open_}
        run.requests = role_requests(self.nova, ensemble, roles, order.given)
        return run, seen

    def _is_asked(self, member: str, role: str) -> bool:
        order = self.order
        return (order.members is None or member in order.members) and order.role in {None, role}

    def _boot_all(self, run: BootRun, seen: Sequence[Seen]) -> list[Outcome]:
        """Every member's outcome, in their order."""
        pool = ThreadPoolExecutor(max(1, self.order.parallel), thread_name_prefix="boot")
        futures = [pool.submit(self._boot, run, one) for one in seen]
        pending: Collection[Future[Outcome]] = futures
        try:
            while pending:
                done, pending = wait(pending, timeout=_TICK, return_when=FIRST_COMPLETED)
                for one in done:
                    self.listener.ended(one.result())
                self._keep_hold(run)
        except KeyboardInterrupt:
            run.interrupted.set()
            pool.shutdown(wait=True)
            raise _Stopped([one.result() for one in futures]) from None
        finally:
            run.interrupted.set()
            pool.shutdown(wait=True)
        return [one.result() for one in futures]

    def _boot(self, run: BootRun, seen: Seen) -> Outcome:
        outcome = MemberBoot(run, seen).boot()
        if outcome.state is State.FAILED and run.rules.on_failure is OnFailure.STOP:
            run.no_more.set()
        return outcome

    def _keep_hold(self, run: BootRun) -> None:
        """Renew the hold before it ends; where the service refuses, claims will say so."""
        decision = run.decision
        if decision.status != HELD or decision.lease_id or decision.expires_at is None:
            return
        if decision.expires_at == self._last_end:
            return
        left = parse_instant(decision.expires_at) / SECOND - run.clock()
        if left > min(_RENEW_WITHIN, parse_duration(decision.hold) / SECOND / 2):
            return
        with run.lock:
            try:
                run.refresh(run.ensemble.name)
                now = run.decision
                if now.status == HELD and now.expires_at == decision.expires_at:
                    renewed = self.moorage.decisions.renew(now.id, now.hold, now.generation)
                    run.decision = renewed.value
            except Unreachable:
                return  # it may be there again at the next tick
            except ApiError as error:
                if error.status not in _PASSING:
                    self._last_end = decision.expires_at

    def _closed(self, run: BootRun, outcomes: Sequence[Outcome]) -> BootResult:
        """Confirm the decision if no place would be freed and no server is awaited."""
        moorage = self.moorage
        run.refresh(run.ensemble.name)
        decision = run.decision
        confirmed = None
        unclaimed: tuple[str, ...] = ()
        # Only the ensemble's own project confirms: one that takes part with a role does not.
        takes_part = any(one.project_id and not one.others for one in run.ensemble.members)
        if decision.status == HELD and not decision.lease_id and not takes_part:
            would = moorage.decisions.confirm(decision.id, dry_run=True).value
            unclaimed = tuple(would["released_members"])
            booted = all(one.state is State.ACTIVE for one in outcomes)
            if booted and not unclaimed and not would["building"]:
                confirmed = moorage.decisions.confirm(decision.id).value
        return BootResult(self.order.ensemble_id, decision, tuple(outcomes), confirmed, unclaimed)


class _Stopped(Exception):
    """Ctrl-C, with what became of the members."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes
