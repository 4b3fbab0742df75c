"""What to do next about one member of an ensemble whose servers are created.

Pure: nothing is remembered between runs. What the service and Nova show of a member is enough to
go on where an earlier run was interrupted or killed.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HELD: Final = "held"
BUILDING: Final = "building"
ACTIVE: Final = "active"
"""What the service says of members; of claims the latter two."""
ERROR: Final = "ERROR"
IN_WORK: Final = frozenset({"BUILD", "UNKNOWN"})
"""Nova's statuses of a server that is not there yet; all but `ERROR` mean that it is there."""
RENEWALS: Final = 1
"""How often the place of a member is taken anew after a failed build, in one run."""


class OnFailure(StrEnum):
    """What to do about a server that Nova cannot build."""

    KEEP = "keep"
    """Leave it in Nova, and go on with the other members."""
    DELETE = "delete"
    """Delete it, and take a place on another host, once; then as `keep`."""
    STOP = "stop"
    """Leave it, and begin no further members."""


class Action(StrEnum):
    """What is done next about a member."""

    CLAIM = "claim"
    """Claim its held place."""
    CREATE = "create"
    """Create its server in Nova; it presents the claim."""
    LOOK = "look"
    """Look again later: something is under way."""
    MARK = "mark"
    """Report to the service that its server is there."""
    REPLACE = "replace"
    """Delete its failed server, and take another place."""
    END = "end"
    """Nothing: see the outcome."""


class State(StrEnum):
    """What became of a member."""

    ACTIVE = "active"
    """Its server has its place."""
    CREATED = "created"
    """Nova builds its server, and nobody waits for it."""
    FAILED = "failed"
    """Nova could not build its server, or refused it, or the server is not in its place."""
    TAKEN = "taken"
    """Another client has claimed its place."""
    UNPLACED = "unplaced"
    """It has no place."""
    WAITING = "waiting"
    """Nothing was begun, or it is not known how it went."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The caller's choices, the same for all members."""

    on_failure: OnFailure = OnFailure.KEEP
    wait: bool = True
    """Whether servers are watched until they are active."""
    settle: float = 30.0
    """Seconds for which Nova may still be creating the server of a request that was cut off."""


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A member's latest claim."""

    id: str
    status: str
    age: float
    """Seconds since it was made."""
    own: bool
    """Whether a run of this program has made it; see `new_claim_id`."""
    fresh: bool = False
    """Whether this run has made it, and sent no request to Nova yet."""


@dataclass(frozen=True, slots=True)
class SeenServer:
    """A server that says it is the member's, or that the service says is."""

    id: str
    status: str
    fault: str = ""
    ran: bool = False
    """Whether it was active once: then it is not deleted, whatever became of it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one member."""

    member: str
    status: str
    server_id: str | None = None
    """The server that has its place, as the service says."""
    claim: SeenClaim | None = None
    server: SeenServer | None = None
    renewed: int = 0
    """How often its place was taken anew in this run."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is done next; at the end also what became of the member, and why."""

    action: Action
    state: State = State.WAITING
    message: str = ""


def next_step(seen: Seen, rules: Rules) -> Step:
    """What to do next about a member."""
    if seen.server is not None:
        return _with_server(seen, seen.server, rules)
    if seen.status == HELD:
        return Step(Action.CLAIM)
    if seen.status == BUILDING:
        return _claimed(seen.claim, rules)
    if seen.status == ACTIVE:
        return Step(
            Action.END, State.FAILED, f"Nova does not show its server {seen.server_id} to you"
        )
    return Step(
        Action.END,
        State.UNPLACED,
        "it has no place: the hold has lapsed, or was released; to place it anew:"
        " moorage decision create ENSEMBLE --hold 10m",
    )


def _with_server(seen: Seen, server: SeenServer, rules: Rules) -> Step:
    if server.status in IN_WORK:
        return Step(Action.LOOK) if rules.wait else Step(Action.END, State.CREATED)
    if server.status == ERROR:
        return _with_failed(seen, server, rules)
    if seen.status == ACTIVE and seen.server_id == server.id:
        return Step(Action.END, State.ACTIVE)
    if seen.status == BUILDING and seen.claim is not None:
        return Step(Action.MARK)
    return Step(Action.END, State.FAILED, elsewhere(seen.member, server.id))


def _with_failed(seen: Seen, server: SeenServer, rules: Rules) -> Step:
    fault = server.fault or "Nova says no more than ERROR"
    if server.ran:
        return Step(Action.END, State.FAILED, f"{fault}; it ran before, so it is left alone")
    if rules.on_failure is OnFailure.DELETE and seen.renewed < RENEWALS:
        return Step(Action.REPLACE)
    return Step(Action.END, State.FAILED, fault)


def elsewhere(member: str, server_id: str) -> str:
    """The message about a server that is active, but not in its member's place."""
    role = member.partition("[")[0]
    return (
        f"server {server_id} is active, but not in its held place; delete it, or let it join where"
        f" it is: moorage member add ENSEMBLE --server {server_id} --role {role}"
    )


def _claimed(claim: SeenClaim | None, rules: Rules) -> Step:
    """The step about a place that is claimed, for a server that nobody sees yet."""
    if claim is None or (claim.age < rules.settle and not claim.fresh):
        return Step(Action.LOOK)
    if claim.own:
        return Step(Action.CREATE)
    return Step(
        Action.END,
        State.TAKEN,
        f"another client has claimed its place and shows no server; to free the place:"
        f" moorage claim set {claim.id[:8]} --failed",
    )


# --- Whose claim -------------------------------------------------------------------------------

_RANDOM: Final = 8
"""Random bytes of a claim's idempotency key; the others follow from them and from the member."""


def new_key(ensemble_id: str, member: str, random: bytes) -> str:
    """The idempotency key of a claim by which a later run knows that an earlier one has made it.

    A claim that another client has made is not taken over: that client may still be about to
    present it. The id is a UUID of version 8, whose second half is made of the first half and the
    member.
    """
    first = bytearray(random[:_RANDOM])
    first[6] = first[6] & 0x0F | 0x80
    text = bytes(first) + f"{ensemble_id}/{member}".encode()
    second = bytearray(hashlib.sha256(text).digest()[:_RANDOM])
    second[0] = second[0] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(first + second)))


def is_own_claim(key: str, ensemble_id: str, member: str) -> bool:
    """Whether the key was made by `new_key` for this member."""
    first = uuid.UUID(key).bytes[:_RANDOM]
    return new_key(ensemble_id, member, first) == key
