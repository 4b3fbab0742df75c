"""Events: what happened in a project, reported to people and programs in the ledger's order.

An event is written by the transaction that causes it, so none is lost and none is invented. Its
types are the table `EVENT_TYPES`; `domain.derived_events` says which change means which of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import Instant


@dataclass(frozen=True, slots=True)
class EventType:
    """One row of the table."""

    name: str
    subject: str
    """What the event's subject is the id of."""
    when: str
    body: tuple[str, ...]
    """The fields of its body."""


_LEASE: Final = (
    *("name", "status", "start", "end", "degraded", "missing", "proposal", "ensemble"),
)
_DECISION: Final = ("ensemble", "status", "expires_at", "members", "lease")
_ENTRY: Final = (
    *("name", "status", "earliest_start", "latest_start", "waits_for", "estimate", "lease"),
)
_POLICY: Final = (
    *("violation", "name", "policy", "type", "required", "members", "amount"),
    *("since", "until", "because"),
)
_OUT: Final = ("violation", "name", "member", "server", "since", "until", "because")
_SHARE: Final = ("status", "ensemble", "name", "roles", "shares", "owner", "projects")
_CLAIM: Final = ("member", "status", "ensemble", "decision", "server", "lease")
_SLICE: Final = ("server_provider", "server", "resources", "status", "slice", "project")
_YIELDS: Final = (*("server", "ends", "declared_end", "order", "of", "why", "ensemble", "member"),)
_HOST: Final = ("host", "state", "former_state", "closed", "reason")
_PLAN: Final = ("kind", "of", "status", "moves", "done", "failed", "note")
_MOVE: Final = (*("server", "project", "kind", "source", "target", "ensemble", "member", "error"),)
_WINDOW: Final = ("kind", "hosts", "start", "end", "reason")

PROGRESS: Final = "decision.progress"

EVENT_TYPES: Final = (
    EventType("lease.offered", "lease", "a window is held for an offer", _LEASE),
    EventType("lease.pending", "lease", "it is granted, or an offer is accepted", _LEASE),
    EventType("lease.starting", "lease", "its lead begins: its places are final", _LEASE),
    EventType("lease.active", "lease", "its start has come: servers may be created", _LEASE),
    EventType("lease.ending", "lease", "its end has come: its servers are ended", _LEASE),
    EventType("lease.closed", "lease", "it is over, or cancelled", _LEASE),
    EventType(
        "lease.changed",
        "lease",
        "its name, period, reservations or places are others",
        (*_LEASE, "changed"),
    ),
    EventType("lease.degraded", "lease", "members lose their places, or cannot use them", _LEASE),
    EventType(
        "lease.missing",
        "lease",
        "the number of members without a place changes, or there is a proposal for them",
        _LEASE,
    ),
    EventType("lease.whole", "lease", "all its members have places again", _LEASE),
    EventType(
        "lease.preempted",
        "lease",
        "it gives up its places for a lease of a higher priority, before it has begun",
        (
            *("lease", "name", "start", "end", "status", "outcome", "priority", "ensemble"),
            *("waitlist_entry", "earliest_start", "earliest_end", "proved"),
        ),
    ),
    EventType("lease.claimed", "lease", "a place is claimed in it", ("claim", *_CLAIM)),
    EventType(
        "lease.notice",
        "lease",
        "an action `notify` that its owner wrote is due",
        ("name", "start", "end", "edge", "at", "state", "notice"),
    ),
    EventType(
        "lease.time_left",
        "lease",
        "as much time is left before its start or end as a subscription asks for",
        ("name", "edge", "at", "left", "subscription"),
    ),
    EventType("waitlist.waiting", "waitlist entry", "a lease joins the waitlist", _ENTRY),
    EventType(
        "waitlist.estimate",
        "waitlist entry",
        "the earliest window in which it would fit has changed, or there is none",
        _ENTRY,
    ),
    EventType("waitlist.granted", "waitlist entry", "it becomes a lease of the same id", _ENTRY),
    EventType("waitlist.expired", "waitlist entry", "no acceptable start is left", _ENTRY),
    EventType("waitlist.cancelled", "waitlist entry", "its owner cancels it", _ENTRY),
    EventType("waitlist.failed", "waitlist entry", "it can no longer be granted", _ENTRY),
    EventType("ensemble.created", "ensemble", "it is described", ("name", "members")),
    EventType(
        "ensemble.changed",
        "ensemble",
        "it is described otherwise: `counts` has role -> members before and after; `roles`,"
        " `policies` and `metadata` name what is new, gone or otherwise",
        ("name", "former_name", "counts", "roles", "policies", "metadata"),
    ),
    EventType("ensemble.deleted", "ensemble", "it is deleted", ("name",)),
    EventType(
        "ensemble.max_additional",
        "ensemble",
        "the number of further members of a role that fit goes below a subscription's threshold, or"
        " is back at it",
        ("name", "role", "before", "now", "below", "crossed", "subscription"),
    ),
    EventType(
        "request.refused",
        "explanation",
        "a request has no placement; repeats of it, and more than ten a minute, are only counted,"
        " in `untold` of the next event",
        ("ensemble", "name", "user", "stage", "why", "explanation", "untold"),
    ),
    EventType(
        "share.offered",
        "ensemble",
        "roles of another project's ensemble are offered, or have changed (the roles' project)",
        _SHARE,
    ),
    EventType(
        "share.accepted",
        "ensemble",
        "a role's project accepts it (the ensemble's project)",
        _SHARE,
    ),
    EventType(
        "share.revoked",
        "ensemble",
        "either project revokes it, or the ensemble is deleted: the roles' members have left (both"
        " projects)",
        _SHARE,
    ),
    EventType("decision.held", "decision", "an ensemble is placed and held", _DECISION),
    EventType("decision.confirmed", "decision", "its claimed places are kept", _DECISION),
    EventType("decision.closed", "decision", "it is confirmed, and nothing builds", _DECISION),
    EventType("decision.expired", "decision", "its hold has lapsed", _DECISION),
    EventType("decision.released", "decision", "its places are freed", _DECISION),
    EventType(
        "decision.unplaced",
        "decision",
        "members lose held places because a host or its inventory was removed; others are searched",
        ("ensemble", "members"),
    ),
    EventType("decision.superseded", "decision", "another decision replaces it", _DECISION),
    EventType(
        PROGRESS,
        "ensemble",
        "the search for its places takes longer than a second: the cost of the best placement so"
        " far (null: none yet), and the bound; only delivered to subscriptions that name it",
        ("solver", "value", "bound", "gap", "elapsed_ms", "time_limit_ms", "lease"),
    ),
    EventType("claim.building", "claim", "a place is taken for a server", _CLAIM),
    EventType("claim.active", "claim", "its server exists", _CLAIM),
    EventType("claim.failed", "claim", "the server could not be built", (*_CLAIM, "reason")),
    EventType("claim.expired", "claim", "its server was not created in time", _CLAIM),
    EventType("claim.ended", "claim", "its server is deleted", _CLAIM),
    EventType(
        "claim.spent",
        "claim",
        "a new server presents it too late: it has lapsed, failed or ended, or another server has"
        " its place; the server gets an ordinary host, or is refused",
        ("presented_by", "refused", *_CLAIM),
    ),
    EventType(
        "member.misplaced",
        "server",
        "Nova moves it to a host on which the member breaks required policies of its ensemble",
        ("ensemble", "member", "policies"),
    ),
    EventType(
        "member.removed",
        "ensemble",
        "a member is taken out; `policies` are those that hold with it and not without it",
        ("name", "member", "server", "policies"),
    ),
    EventType(
        "policy.violated",
        "ensemble",
        "its members break a policy where they are; `because` says what began it",
        _POLICY,
    ),
    EventType("policy.restored", "ensemble", "its members keep the policy again", _POLICY),
    EventType(
        "member.at_risk",
        "ensemble",
        "the host of a member is out of service; what is there may still run",
        _OUT,
    ),
    EventType(
        "member.lost",
        "ensemble",
        "the host of a member is down, away or has no inventory: nothing there runs",
        _OUT,
    ),
    EventType(
        "member.moved",
        "ensemble",
        "a plan has moved its server; `because` is the plan's kind",
        ("name", "member", "server", "how", "because"),
    ),
    EventType("member.recovered", "ensemble", "the host of a member is in service again", _OUT),
    EventType(
        "member.warned",
        "server",
        "a preemptible server gets an earlier end for a lease; for a member without a server the"
        " subject is the ensemble",
        _YIELDS,
    ),
    EventType(
        "member.reprieved",
        "server",
        "a server that was warned has its end back, or a later one",
        ("server", "ends", "declared_end", "ensemble", "member"),
    ),
    EventType(
        "member.evicted",
        "server",
        "the service has ended a server: at its own end or its lease's, or for a lease",
        ("because", *_YIELDS),
    ),
    EventType(
        "member.overrun",
        "server",
        "its declared end has passed and the server still runs",
        ("server", "ended", "ensemble", "member"),
    ),
    EventType(
        "slice.claimed",
        "claim",
        "a place on a server of the project is claimed for a slice",
        _SLICE,
    ),
    EventType("slice.active", "claim", "the slice is there, with the id `slice`", _SLICE),
    EventType("slice.gone", "claim", "the slice has ended, or was not made in time", _SLICE),
    EventType(
        "slice.lost",
        "slice",
        "what its server offers has ended, and its place with it",
        ("server_provider", "resources", "status", "because"),
    ),
    EventType(
        "server_provider.moved", "server provider", "its server is on another host", ("server",)
    ),
    EventType(
        "server_provider.suspended",
        "server provider",
        "its server has no place now, as a shelved one; slices stay booked",
        ("server",),
    ),
    EventType(
        "server_provider.resumed", "server provider", "its server has a place again", ("server",)
    ),
    EventType(
        "server_provider.ended",
        "server provider",
        "its owner has deleted it, or its server has had no place for too long",
        ("server", "slices", "because"),
    ),
    EventType(
        "capacity.planned", "capacity window", "hosts are planned to be unavailable", _WINDOW
    ),
    EventType("capacity.removed", "capacity window", "the plan is deleted", _WINDOW),
    EventType(
        "capacity.soon", "capacity window", "a notice before its hosts become unavailable", _WINDOW
    ),
    EventType("capacity.begins", "capacity window", "its hosts are unavailable", _WINDOW),
    EventType("capacity.ends", "capacity window", "its hosts are available again", _WINDOW),
    EventType(
        "host.closed",
        "host",
        "its state becomes closed or down, or another of these, or an operator closes it; `closed`"
        " says what closes it now (operators)",
        _HOST,
    ),
    EventType("host.opened", "host", "nothing closes it any more (operators)", _HOST),
    EventType(
        "plan.created", "plan", "it is made (this and all others of plans: operators)", _PLAN
    ),
    EventType("plan.started", "plan", "it is applied, or again after a pause", _PLAN),
    EventType("plan.move_begun", "plan", "a server of it is to be moved now", _MOVE),
    EventType("plan.move_done", "plan", "a server is on its target", _MOVE),
    EventType("plan.move_failed", "plan", "a move is refused or given up; the server stays", _MOVE),
    EventType(
        "plan.move_skipped", "plan", "a server needs no move: it is deleted, or elsewhere", _MOVE
    ),
    EventType(
        "plan.replanned",
        "plan",
        "the moves that had not begun are others: a host or policy allowed them no more",
        _PLAN,
    ),
    EventType(
        "plan.paused", "plan", "no further move begins until it is applied; `note` says why", _PLAN
    ),
    EventType("plan.done", "plan", "no move is left", _PLAN),
    EventType("plan.canceled", "plan", "an operator cancels it", _PLAN),
    EventType(
        "topology.changed",
        "topology",
        "the failure domains of hosts are written anew; what that breaks follows as policy.violated"
        " (operators)",
        ("levels", "domains", "hosts"),
    ),
    EventType(
        "capacity.threshold",
        "subscription",
        "what is free, or the share that is used, crosses a subscription's number (operators)",
        ("flavor", "resource_class", "zone", "before", "now", "below", "above_share", "crossed"),
    ),
    EventType(
        "events.lost",
        "subscription",
        "a subscription fell behind for longer than events are kept; only ever delivered",
        ("before", "subscription"),
    ),
)
"""Every type."""

NAMES: Final = frozenset(one.name for one in EVENT_TYPES)
THRESHOLDS: Final = frozenset({"lease.time_left", "ensemble.max_additional", "capacity.threshold"})
"""Types that exist for one subscription's thresholds, and are delivered to it alone."""
NAMED_ONLY: Final = frozenset({PROGRESS})
"""Types that are delivered only where a subscription names them: `decision.*` does not."""
OPERATORS_ONLY: Final = frozenset(
    name for name in NAMES if name.startswith(("capacity.", "host.", "plan.", "topology."))
)
"""Types that speak of hosts and of the whole cloud: no tenant of the operator's project reads
them."""

_PATTERN: Final = re.compile(r"\*|[a-z_]+\.(\*|[a-z_]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DerivedEvent:
    """An event derived from a change, before the ledger gives it time and position."""

    type: str
    project_id: str
    subject: str
    generation: int
    body: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Event:
    """A stored event. `position` is its place in the ledger's order."""

    id: str
    """The same for every receiver and every delivery."""
    type: str
    project_id: str
    subject: str
    at: Instant
    generation: int
    """The subject's, after it happened."""
    position: int
    body: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    actor: Actor = UNKNOWN
    """Who caused it."""


@dataclass(frozen=True, slots=True)
class EventCursor:
    """A place between events: after the one at this position, made at this instant."""

    position: int = 0
    at: Instant = 0

    def __str__(self) -> str:
        return f"{self.position:x}-{self.at:x}"

    @classmethod
    def parse(cls, text: str) -> EventCursor:
        """Read a cursor as `str` writes it.

        Raises:
            InvalidDescription: it is something else.
        """
        position, dash, at = text.partition("-" if not text.startswith("-") else "\0")
        try:
            found = cls(int(position, 16), int(at, 16)) if dash else None
        except ValueError:
            found = None
        if found is None or str(found) != text or not 0 <= found.position < 2**63:
            raise InvalidDescription(f"not a cursor of the event feed: {text!r}", path="after")
        return found


BEGINNING: Final = EventCursor(-1)
"""Before all that is kept, whatever that is. No reader has it as the place it has come to."""

_NUMBERS: Final = 20
"""Bits of a position that number the events of one commit."""


def position(revision: int, number: int) -> int:
    """The position of an event: the `number`th of the commit of a revision."""
    return (revision << _NUMBERS) + number


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events: by type patterns (`lease.*`, `*`) and by subjects; none of them: all."""

    types: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    """Types that are left out, whatever the patterns say."""

    def passes(self, type_: str, subject: str) -> bool:
        """Whether the filter selects an event of this type and subject."""
        if type_ in self.hidden or (self.subjects and subject not in self.subjects):
            return False
        return not self.types or any(matches(one, type_) for one in self.types)


EVERYTHING: Final = EventFilter()


def matches(pattern: str, type_: str) -> bool:
    """Whether a pattern matches a type: `lease.active`, `lease.*` or `*`."""
    if pattern == "*":
        return True
    family, _, word = pattern.partition(".")
    return type_ == pattern or (word == "*" and type_.startswith(f"{family}."))


def check_pattern(pattern: str, path: str) -> str:
    """Refuse a pattern that matches no type.

    Raises:
        InvalidDescription: it means none.
    """
    if not _PATTERN.fullmatch(pattern) or not any(matches(pattern, one) for one in NAMES):
        near = difflib.get_close_matches(pattern, sorted(NAMES), n=1, cutoff=0.6)
        families = ", ".join(sorted({one.partition(".")[0] for one in NAMES}))
        hint = f"did you mean {near[0]}?" if near else f"they are of {families}: lease.*, ..."
        raise InvalidDescription(f"no event has the type {pattern!r}; {hint}", path=path)
    return pattern
