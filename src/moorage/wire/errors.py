"""The body of every error answer."""

from __future__ import annotations

from msgspec import Struct

from moorage.wire.claims import Difference
from moorage.wire.ensembles import Violation
from moorage.wire.explanations import Explanation
from moorage.wire.fields import Link


class BrokenLease(Struct, frozen=True):
    """A lease that holds places on the hosts to be away, and that cannot be moved."""

    id: str
    name: str
    why: str


class RefusedOccurrence(Struct, frozen=True):
    """An occurrence of a series that does not fit."""

    index: int
    start: str
    end: str
    why: str
    explanation_id: str | None
    """See `/v1/explanations/{id}`; null after a dry run."""


class InsteadOfSeries(Struct, frozen=True):
    """A change of a series that a solve has shown to fit: without some dates, or another start."""

    fits: int
    """How many occurrences there are then."""
    without: list[int] | None = None
    """The numbers of those that `as_many_as_fit` leaves out."""
    start: str | None = None
    """The first, by the clock on the wall of the series' zone; with `times` as many as `fits`."""


class Error(Struct, frozen=True, omit_defaults=True):
    """An error, in the form of the API-SIG."""

    status: int
    code: str
    title: str
    detail: str
    request_id: str
    links: list[Link] = []
    path: str | None = None
    line: int | None = None
    policies: list[str] = []
    diff: list[Difference] = []
    remedies: list[str] = []
    """Parameters or steps with which it passes; of a quota sentences."""
    violations: list[Violation] = []
    longest: str | None = None
    """The longest lead that a lease may have that starts then."""
    limit: int | None = None
    used: int | None = None
    requested: int | None = None
    quota: str | None = None
    """The exceeded limit of the project; durations are in seconds."""
    left: int | None = None
    passes_at: str | None = None
    """The first start with which the same lease would pass; absent: never as things stand."""
    passes: str | None = None
    """`start`: with that start; `asked`: if it is asked for then."""
    asked_from: str | None = None
    """The first time at which it may be asked for with the start `passes_at`; absent: at once."""
    leases: list[BrokenLease] = []
    earliest: str | None = None
    explanation: Explanation | None = None
    occurrences: list[RefusedOccurrence] = []
    """Of a series: those that do not fit; `explanation` is that of the first."""
    instead: list[InsteadOfSeries] = []
    existing: str | None = None
    """The id of what has the name already."""
    oldest: str | None = None
    """The cursor from which to go on after events were lost."""
    before: str | None = None
    """Everything is kept that happened at this time or later."""


class Errors(Struct, frozen=True):
    """The body of every error answer."""

    errors: list[Error]
