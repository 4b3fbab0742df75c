"""What the members of one run share: the service, Nova, the decision in force, and pauses."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.client.boot_plan import ERROR, Rules, Seen, SeenClaim, SeenServer, State, is_own_claim
from moorage.client.boot_requests import ENSEMBLE, MEMBER
from moorage.client.errors import Busy, ServerFault, Unreachable
from moorage.client.placement_wire import SourceFailed
from moorage.domain.errors import MoorageError
from moorage.domain.period import SECOND, parse_instant
from moorage.domain.retry_policy import Retries, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moorage.client.boot_requests import RoleRequest
    from moorage.client.moorage import Moorage
    from moorage.client.nova import Nova, Server
    from moorage.wire.claims import Claim
    from moorage.wire.decisions import Decision
    from moorage.wire.ensembles import Ensemble
    from moorage.wire.members import Member

T = TypeVar("T")

LOST: Final = frozenset({None, 502, 504})
"""Answers to the creation of a server after which Nova may still be creating it; None: no answer.
"""
PASSING: Final = frozenset({429, 500, 503})
"""Answers after which it is tried again. After a 500 the server may exist as well."""
_CREATE: Final = RetryPolicy(first_pause=1.0, longest_pause=20.0, attempts=7)
_CALLS: Final = RetryPolicy(first_pause=0.5, longest_pause=10.0, limit=120.0)


class Interrupted(MoorageError):
    """The run was interrupted."""


class NotBuilt(MoorageError):
    """The server cannot be built, or its place cannot be taken; the message says why."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Pauses in seconds, and how often is tried again."""

    poll: float = 1.0
    """Between two looks at a server that is being built."""
    create: RetryPolicy = _CREATE
    """Of the creation of a server that Nova could not be asked for just then."""
    calls: RetryPolicy = _CALLS
    """Of all other calls, while a service does not answer."""
    timeout: float = 3600.0
    """For how long servers are waited for, in one run."""
    leave: float = 300.0
    """For how long Nova may delete a failed server."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one member."""

    member: str
    state: State
    server_id: str | None = None
    message: str = ""
    error: MoorageError | None = None
    """What the service or Nova answered, where that is the reason."""


@dataclass(eq=False)
class BootRun:
    """What the members of one run share."""

    moorage: Moorage
    nova: Nova
    ensemble: Ensemble
    requests: Mapping[tuple[str, int], RoleRequest]
    """By role, and the number of the alternative (0 without any)."""
    rules: Rules
    timing: Timing
    notice: Callable[[str, str], None]
    """Hears of a member, and what happens with it that takes time."""
    decision: Decision
    """The one in force; a failed build may bring another."""
    clock: Callable[[], float]
    """The service's time, in seconds since the epoch."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while the decision is used for a claim, or changes."""
    interrupted: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)
    no_more: threading.Event = field(default_factory=threading.Event)
    """No further member is begun."""

    @property
    def late(self) -> bool:
        """Whether the run has waited as long as it may."""
        return time.monotonic() - self.began > self.timing.timeout

    def pause(self, seconds: float) -> None:
        """Wait.

        Raises:
            Interrupted: meanwhile.
        """
        if self.interrupted.wait(seconds):
            raise Interrupted("interrupted")

    def patiently(self, member: str, call: Callable[[], T]) -> T:
        """A call that may be repeated, tried again while its service does not answer.

        Raises:
            MoorageError: as the call, or since it took too long.
        """
        retries = Retries()
        while True:
            try:
                return call()
            except (Unreachable, Busy, ServerFault, SourceFailed) as error:
                if isinstance(error, SourceFailed) and error.status not in LOST | PASSING:
                    raise
                pause = retries.next_pause(self.timing.calls, time.monotonic())
                if pause is None:
                    raise
                self.notice(member, f"{error.message}; trying again")
                self.pause(pause)

    def refresh(self, member: str) -> None:
        """Read which decision is in force."""
        with self.lock:
            shown = self.patiently(member, lambda: self.moorage.ensembles.show(self.ensemble.id))
            self.decision = shown.value.decision or self.decision

    def age(self, claim: Claim) -> float:
        """Seconds since a claim was made."""
        return self.clock() - parse_instant(claim.created_at) / SECOND


def seen_member(run: BootRun, member: Member, claim: Claim | None, server: Server | None) -> Seen:
    """What is known of a member, as a run begins."""
    own = claim is not None and is_own_claim(key_of(claim), run.ensemble.id, member.name)
    known = None if claim is None else SeenClaim(claim.id, claim.status, run.age(claim), own)
    return Seen(
        member.name,
        member.status or "",
        member.server_id,
        known,
        None if server is None else shown(server),
    )


def key_of(claim: Claim) -> str:
    """The idempotency key of a claim; a service of release 0.1 has it as the claim's id."""
    return claim.idempotency_key or claim.id


def latest(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Member -> its latest claim."""
    return {one.member: one for one in claims}


def of_member(
    servers: Iterable[Server], ensemble_id: str, member: str, server_id: str | None
) -> Server | None:
    """The server of a member: the one that has its place, else one that says it is the member's.

    Of several the one that has not failed.
    """
    marks = {ENSEMBLE: ensemble_id, MEMBER: member}
    found = [one for one in servers if one.id == server_id or marks.items() <= one.metadata.items()]
    found.sort(key=lambda one: (one.id != server_id, one.status == ERROR))
    return found[0] if found else None


def shown(server: Server) -> SeenServer:
    """A server, as far as the next step depends on it."""
    fault = "" if server.fault is None else server.fault.message
    return SeenServer(server.id, server.status, fault, server.launched_at is not None)


def servers_of(nova: Nova, ensemble_id: str, members: Sequence[Member]) -> dict[str, Server]:
    """Member -> its server, of those that Nova shows."""
    every = list(nova.servers())
    found = {}
    for member in members:
        server = of_member(every, ensemble_id, member.name, member.server_id)
        if server is not None:
            found[member.name] = server
    return found
