"""Brings one member of an ensemble from its held place to an active server."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.client.boot_plan import (
    ACTIVE,
    BUILDING,
    ERROR,
    HELD,
    IN_WORK,
    Action,
    Seen,
    SeenClaim,
    SeenServer,
    State,
    elsewhere,
    is_own_claim,
    new_key,
    next_step,
)
from moorage.client.boot_session import (
    LOST,
    PASSING,
    BootRun,
    Interrupted,
    NotBuilt,
    Outcome,
    key_of,
    latest,
    of_member,
    shown,
)
from moorage.client.errors import (
    Conflict,
    DescriptionMismatch,
    Forbidden,
    Infeasible,
    LoginRefused,
    Unreachable,
)
from moorage.client.placement_wire import SourceFailed
from moorage.domain.errors import MoorageError
from moorage.domain.retry_policy import Retries

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.client.boot_requests import RoleRequest

T = TypeVar("T")

_NOT_SENT: Final = 503
"""Stands for a request that was not sent, since Keystone or Nova could not be reached."""
_CONFLICTS: Final = 5
"""Claims of one member that are refused since the decision has changed meanwhile."""


class MemberBoot:
    """The work on one member, in one thread."""

    def __init__(self, run: BootRun, seen: Seen) -> None:
        self._run = run
        self._seen = seen
        age = 0.0 if seen.claim is None else seen.claim.age
        self._since = time.monotonic() - age
        """When the claim was made, or the server last asked for, by the monotonic clock."""
        self._creations = Retries()
        self._conflicts = 0

    def boot(self) -> Outcome:
        """Do what is to be done, until there is nothing left to do."""
        run = self._run
        try:
            while True:
                step = next_step(self._seen, run.rules)
                if step.action is Action.END:
                    return self._outcome(step.state, step.message)
                if run.interrupted.is_set():
                    return self._interrupted()
                if step.action is Action.CLAIM and (run.no_more.is_set() or run.late):
                    return self._outcome(State.WAITING, "not begun")
                if step.action is Action.LOOK and run.late:
                    return self._outcome(State.WAITING, "not there in time; Nova may go on with it")
                self._do(step.action)
        except Interrupted:
            return self._interrupted()
        except MoorageError as error:
            if isinstance(error, Unreachable | SourceFailed | LoginRefused | Forbidden):
                run.no_more.set()
            return replace(self._outcome(State.FAILED, error.message), error=error)

    def _interrupted(self) -> Outcome:
        begun = self._seen.status != HELD or self._seen.server is not None
        return self._outcome(State.WAITING, "interrupted" if begun else "not begun")

    def _outcome(self, state: State, message: str) -> Outcome:
        server = self._seen.server
        known = self._seen.server_id if server is None else server.id
        return Outcome(self._seen.member, state, known, message)

    def _do(self, action: Action) -> None:
        match action:
            case Action.CLAIM:
                self._claim()
            case Action.CREATE:
                self._create()
            case Action.LOOK:
                self._run.pause(self._run.timing.poll)
                self._look()
            case Action.MARK:
                self._mark()
            case Action.REPLACE:
                self._replace()

    def _patiently(self, call: Callable[[], T]) -> T:
        return self._run.patiently(self._seen.member, call)

    @property
    def _request(self) -> RoleRequest:
        member = self._seen.member
        placed = [one for one in self._run.decision.assignments if one.member == member]
        number = (placed[0].alternative or 0) if placed else 0
        return self._run.requests[member.partition("[")[0], number]

    def _claim(self) -> None:
        run, member = self._run, self._seen.member
        key = new_key(run.ensemble.id, member, os.urandom(8))
        claim = {"id": key, "member": member, "server": self._request.described()}
        with run.lock:
            decision = run.decision.id
            try:
                made = self._patiently(lambda: run.moorage.claims.create(decision, claim)).value
            except DescriptionMismatch:
                raise
            except Conflict:
                self._conflicts += 1
                run.refresh(member)
                self._look()
                held = self._seen.status == HELD and self._seen.server is None
                if (held and run.decision.id == decision) or self._conflicts >= _CONFLICTS:
                    raise
                return
        self._since = time.monotonic()
        own = SeenClaim(made.id, BUILDING, 0.0, own=True, fresh=True)
        self._seen = replace(self._seen, status=BUILDING, claim=own)

    def _create(self) -> None:
        """Create the server; what Nova does with a request that it does not answer is seen later.

        Raises:
            NotBuilt: Nova refuses it, or could not be asked too often.
        """
        run, member, claim = self._run, self._seen.member, self._seen.claim
        assert claim is not None
        body = self._request.server(run.ensemble, member, claim.id)
        self._since = time.monotonic()
        try:
            server_id = run.nova.create(body, f"req-{claim.id}")
        except (SourceFailed, Unreachable) as error:  # the latter: Keystone
            asked = error if isinstance(error, SourceFailed) and error.sent else None
            status = _NOT_SENT if asked is None else asked.status
            pause = self._creations.next_pause(run.timing.create, self._since)
            if status not in LOST | PASSING or pause is None:
                raise self._refused(error, claim.id[:8]) from error
            lost = status in LOST
            run.notice(member, f"{error.message}; {'looking for it' if lost else 'trying again'}")
            run.pause(pause)
            # A request that was not answered may still be under way: it is not repeated at once.
            self._seen = replace(self._seen, claim=replace(claim, fresh=not lost, age=0.0))
            self._look()
            return
        self._seen = replace(self._seen, server=SeenServer(server_id, "BUILD"))

    def _refused(self, error: MoorageError, claim: str) -> NotBuilt:
        self._run.no_more.set()  # the next would fare no better
        return NotBuilt(
            f"{error.message}; its place stays claimed for a while: run this again to go on, or"
            f" free it: moorage claim set {claim} --failed"
        )

    def _look(self) -> None:
        """Look at the server, and where it is not under way, at its member and claim as well."""
        run, seen = self._run, self._seen
        server = self._server()
        if server is not None and server.status in IN_WORK:
            self._seen = replace(seen, server=server)
            return
        member = self._patiently(
            lambda: run.moorage.ensembles.member(run.ensemble.id, seen.member)
        ).value
        claim = seen.claim if member.status == BUILDING else None
        if member.status == BUILDING:
            claim = self._claim_now(claim)
        self._seen = replace(
            seen,
            status=member.status or "",
            server_id=member.server_id,
            claim=claim,
            server=server,
        )

    def _claim_now(self, known: SeenClaim | None) -> SeenClaim | None:
        """The claim that has the member's place, and how long ago its server was asked for."""
        run, member = self._run, self._seen.member
        if known is not None:
            return replace(known, age=time.monotonic() - self._since)
        run.refresh(member)
        claims = self._patiently(lambda: run.moorage.claims.all(run.decision.id)).value
        found = latest(claims).get(member)
        if found is None:
            return None
        self._since = time.monotonic() - run.age(found)
        own = is_own_claim(key_of(found), run.ensemble.id, member)
        return SeenClaim(found.id, found.status, run.age(found), own)

    def _server(self) -> SeenServer | None:
        """The member's server, as Nova shows it now."""
        run, seen = self._run, self._seen
        if seen.server is not None:
            known = seen.server.id
            found = self._patiently(lambda: run.nova.server(known))
        else:
            every = self._patiently(lambda: list(run.nova.servers()))
            found = of_member(every, run.ensemble.id, seen.member, seen.server_id)
        return None if found is None else shown(found)

    def _mark(self) -> None:
        run, seen = self._run, self._seen
        assert seen.claim is not None
        assert seen.server is not None
        claim_id, server_id = seen.claim.id, seen.server.id
        change = {"status": "active", "server_id": server_id}
        try:
            self._patiently(lambda: run.moorage.claims.set(claim_id, change))
        except Conflict as error:
            raise NotBuilt(f"{elsewhere(seen.member, server_id)} ({error.detail})") from error
        self._seen = replace(seen, status=ACTIVE, server_id=server_id)

    def _replace(self) -> None:
        """Delete the failed server, and place the member on another host; no other member moves."""
        run, failed = self._run, self._seen.server
        assert failed is not None
        fault = failed.fault.rstrip(".") or ERROR
        run.notice(self._seen.member, f"{fault}; deleting it, and placing it anew")
        self._patiently(lambda: run.nova.delete(failed.id))
        self._await(lambda: self._patiently(lambda: run.nova.server(failed.id)) is None)
        self._seen = replace(self._seen, server=None, renewed=self._seen.renewed + 1)
        self._await(self._is_left)
        if self._seen.status == HELD:
            self._claim()  # a held place is the failed host's: the claim of it fails, and so moves
        if self._seen.status == BUILDING:
            self._redecide()

    def _is_left(self) -> bool:
        """Whether the deleted server has left the member's place."""
        self._look()
        return self._seen.status != ACTIVE

    def _await(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + self._run.timing.leave
        while not done():
            if time.monotonic() > until:
                raise NotBuilt("Nova does not delete its failed server; run this again to go on")
            self._run.pause(self._run.timing.poll)

    def _redecide(self) -> None:
        run, seen = self._run, self._seen
        assert seen.claim is not None
        claim = seen.claim
        change = {"status": "failed", "on_failure": "redecide"}
        with run.lock:
            try:
                self._patiently(lambda: run.moorage.claims.set(claim.id, change))
            except Infeasible:
                run.notice(seen.member, "no other host can take it: the same place is tried again")
                self._seen = replace(seen, claim=replace(claim, own=True, fresh=True))
                return
            run.refresh(seen.member)
        self._seen = replace(seen, status=HELD, claim=None)
