"""Explanations of refusals: reasons, minimal conflicts and relaxations.

Reason ids are stable and documented: `capacity:<CLASS>`, `unit:<CLASS>`, `trait:<TRAIT>`,
`forbidden:<TRAIT>`, `aggregate`, `domain:<level>` (the host stands in no domain of a level a
required policy needs), `policy:<name>`, `exclusive` (another ensemble keeps the host to itself),
`disabled` (the host's compute service is disabled), `out-of-service` (the host is closed for
another reason, such as having nothing left after what is reserved), `availability_zone` (the host
is not in the zone a server asked for), `failed` (a build failed there), `devices:<group>` (no
provider of the host, or shared with it, is what a port, volume or other group asks for;
`devices:volume` and `devices:port` also of members of these kinds), `devices` (each of these can be
had there, but not all for one member); of servers that offer slices `no-location` (the server is on
no host), `away` (its host is planned to be away), `on-server` (the role names another one) and
`unnamed-project` (it is another project's, and the role names neither that nor it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from moorage.domain.period import Instant


@dataclass(frozen=True, slots=True)
class EnsembleChange:
    """A proposed change as data: of a policy's parameter, of a role's count or flavor, or of time.

    `subject` is `policy` or `member`, `name` the policy's or role's; `field` the parameter
    (`strength` with value `preferred` turns a policy soft), `before` and `after` its values.
    Of subject `time` and name `stay` are the fields `until`, `preemptible` and `start`.
    """

    subject: str
    name: str
    field: str
    before: object
    after: object
    alternative: int | None = None
    """Of subject `member`: which of its role's alternatives changes, from 0; None: it has none."""

    def __str__(self) -> str:
        where = (
            self.name if self.alternative is None else f"{self.name} alternative {self.alternative}"
        )
        return f"{where} {self.field} {self.before}->{self.after}"


class Stage(StrEnum):
    """The stage at which the request failed, from the first filter to the last."""

    STATIC = "static"
    """Never on this fleet, however empty."""
    CAPACITY = "capacity"
    """Each policy set aside, the members still do not fit; an empty fleet would do."""
    POLICY = "policy"
    TIME = "time"
    """An empty fleet would do: others have bookings in the requested time."""
    CONTENTION = "contention"
    QUOTA = "quota"
    """A quota of the project is exceeded: nothing was searched."""
    UNKNOWN = "unknown"
    """Time ran out before the stage was shown."""


_STAGES: Final = MappingProxyType(
    {
        Stage.STATIC: "not even on the empty fleet",
        Stage.CAPACITY: "too little is free",
        Stage.POLICY: "its policies leave none",
        Stage.TIME: "others have bookings in that time",
        Stage.CONTENTION: "others took the places meanwhile",
        Stage.QUOTA: "the project's quota is exceeded",
        Stage.UNKNOWN: "time ran out before it was shown why",
    }
)
"""What a stage means, where no element of a conflict says more."""

_BY_NAME: Final = frozenset({"policy", "booked", "stay", "closed", "quota"})
"""Kinds of elements whose name alone says what they are."""

_CLOSED_HOSTS: Final = MappingProxyType(
    {
        "exclusive": "{} that other ensembles keep to themselves",
        "disabled": "disabled {}",
        "away": "servers on hosts that are planned to be away",
        "out-of-service": "{} that are out of service",
        "availability_zone": "{} outside the availability zone",
        "failed": "{} on which a build failed",
    }
)


def closed_hosts_named(reason: str, what: str) -> str:
    """The phrase for hosts or pools (`what` they are) that are closed for this reason."""
    return _CLOSED_HOSTS.get(reason, f"{{}} closed for the reason {reason}").format(what)


@dataclass(frozen=True, slots=True)
class Element:
    """One removable part of a request, as conflicts name it.

    `kind` is `policy` (name = the policy's), `resources`, `devices`, `traits` or `aggregates`
    (name = the role's). Of kind `booked` is what is no part of the request but in its way: a
    lease, or servers that do not end in time. Of kind `closed` are hosts that may not be used at
    all, such as those that another ensemble keeps to itself. Of kind `quota` is a limit of the
    project. Of kind `stay` is the request as a
    whole where only its time is in question.
    """

    kind: str
    name: str
    exact: str = field(default="", compare=False)
    """The name for operators, if it differs."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def said(self) -> str:
        """The element in words: `lease L1 from ...`, `one-per-host`, `resources of web`."""
        return self.name if self.kind in _BY_NAME else f"{self.kind} of {self.name}"


class Fact(NamedTuple):
    """What a conflict runs into: a number of something that is there, or a sentence."""

    text: str
    have: int | None
    """None: the text says it all."""
    needed: int | None = None
    """More than there is; None: the number contradicts nothing by itself."""
    exact: str = ""
    """The text for operators, if it differs: with the names of domains."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Elements that cannot hold together on this fleet at this revision.

    `needs` says, per element, what it demands; `facts` are what of the fleet it runs into.
    `minimal` is True when it was proved that every proper subset can hold.
    """

    elements: tuple[Element, ...]
    needs: tuple[str, ...]
    facts: tuple[Fact, ...] = ()
    minimal: bool = True
    exact_needs: tuple[str, ...] = ()
    """The needs for operators, if any differs: with the names of racks and hosts in policies."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A change to the request that a real solve has shown to be feasible."""

    change: EnsembleChange
    cost: int
    verified: bool = True
    result: str = "fits now"


@dataclass(frozen=True, slots=True)
class Window:
    """The earliest window ahead in which a request fits, as a search has found it."""

    start: Instant
    end: Instant | None
    """None: for good."""
    proved: bool
    """Whether it was refuted that it fits at any earlier start."""
    beyond: bool = False
    """Whether it ends after the requested end: a stay of the same length, later."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest count of a role that fits when all else stays as asked, shown by a solve."""

    role: str
    count: int
    asked: int


PENDING: Final = "changes that help are still searched for"
"""Note of an explanation whose search for alternatives goes on after the answer."""
UNFINISHED: Final = "the search for changes that help was not finished: repeat the request"
"""Note of an explanation whose search for alternatives was to go on, and did not come to an end."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """The refused ensemble, and the user who asked; empty texts where a request has none."""

    ensemble_id: str
    name: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one refusal."""

    id: str
    verdict: str
    """`infeasible`, `undecided` when time ran out before an answer or a proof, or `refused` when
    nothing was searched."""
    stage: Stage
    computed_at: Instant
    revision: int
    conflicts: tuple[Conflict, ...] = ()
    """Disjoint minimal conflicts; setting all of them aside makes the request feasible."""
    relaxations: tuple[Relaxation, ...] = ()
    considered: int = 0
    """Hosts of a kind on which members to place go; for slices the servers that offer some."""
    rejected: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Reason id -> number of hosts it rejected (a host counts once per reason)."""
    note: str = ""
    earliest: Window | None = None
    """For members that have no place yet; None: there is none, or none was found in time."""
    largest: Largest | None = None
    zones: tuple[str, ...] = ()
    """Other zones in which it fits, where it asks for certain ones; each was solved."""
    moves: int | None = None
    """How many moves of other servers make room for it as it was asked for, by a plan that was
    found; None: none was, or none was looked for."""
    complete: bool = True
    """Whether every search for conflicts, changes and windows was finished in time."""
    exact: bool = False
    """Whether an operator asked: then its changes are shown as exactly as they were found, and not
    to tenants."""
    pending_until: Instant | None = None
    """Until when the search for alternatives goes on after the answer; None: it is over. If it is
    still set then, the search was not finished."""

    def at(self, now: Instant) -> Explanation:
        """The explanation as it is told at an instant: pending, or not finished."""
        if self.pending_until is None or now < self.pending_until:
            return self
        return replace(self, pending_until=None, note=UNFINISHED)

    @property
    def shortly(self) -> str:
        """A short form: `time: lease L1 from ...`."""
        return self.in_words(exact=False)

    def in_words(self, *, exact: bool) -> str:
        """The short form for operators (exact) or tenants."""
        elements = [
            element.exact or element.said if exact else element.said
            for one in self.conflicts
            for element in one.elements
        ]
        return f"{self.stage}: {'; '.join(elements)}" if elements else _STAGES[self.stage]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A stored explanation, with what was refused."""

    explanation: Explanation
    project_id: str
    asked: RefusedRequest | None = None
    """None: it was kept before this was."""

    @property
    def id(self) -> str:
        """The explanation's."""
        return self.explanation.id
