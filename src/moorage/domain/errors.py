"""The hierarchy of Moorage's errors.

    MoorageError
    ├── InvalidDescription            what the caller wrote cannot be understood
    │   ├── UnknownName               it names a thing that does not exist
    │   ├── UnknownPolicy             no such policy type
    │   └── Contradiction             policies that no placement can meet together
    ├── NotFound                      the addressed thing is not there (or not the caller's)
    ├── EventsLost                    what comes after a cursor is kept no more
    ├── Forbidden                     the caller may not
    │   └── CheckRefused              ... as the operator's own check of leases says
    ├── LimitExceeded                 a configured bound (longest hold, renewals)
    │   └── QuotaExceeded             ... of one project, with what is left and when it would pass
    ├── Conflict                      the state of the ledger does not allow it now
    │   ├── ConcurrentUpdate          a generation or revision moved meanwhile
    │   │   ├── ProviderConflict      ... a provider's: the write may be tried again
    │   │   ├── ConsumerConflict      ... a consumer's: the caller must look first
    │   │   └── StaleGeneration       ... before the caller asked, who named the one that was
    │   ├── DuplicateName             name or id already taken
    │   │   └── NameTaken             ... by a thing of the same project, whose id it says
    │   ├── InUse                     still referred to
    │   │   ├── InventoryInUse, ProviderInUse, ProviderHasChildren
    │   ├── CapacityExceeded          does not fit over the booking's period
    │   ├── ConstraintViolated        breaks min_unit, max_unit or step_size
    │   ├── Infeasible                no placement meets the request (carries the explanation)
    │   ├── SeriesInfeasible          some occurrences of a series do not fit (says which, and why)
    │   ├── DescriptionMismatch       the second description differs from the first
    │   ├── HoldExpired               the decision's hold has lapsed
    │   ├── OfferOver                 the offer has expired, or was given up
    │   ├── ConsentMissing            another project has not accepted the share of a role
    │   ├── OtherQuotaExceeded        the quota of another project of the ensemble is exceeded
    │   ├── InstanceOutdated          the problem of a refusal can no longer be made
    │   ├── PlaceLeft                 a server would leave the place of a decision
    │   ├── ServerOfMember            a member's server gets allocations, which was not expected
    │   └── WrongState                a lifecycle does not allow this step from here
    └── Busy                          try again later (queue full, deadline passed)
        ├── Undecided                 ... or with more time: neither placed nor refused
        └── Unavailable               ... when an operator has mended the disk or the database

Errors carry data, never an HTTP status: each dialect owns one table from error to
status, code and sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Instant = int
    """As `period.Instant`, which is built on this module."""


class MoorageError(Exception):
    """Root of all errors Moorage raises on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def message_with_path(self) -> str:
        """The message, with the place in the body: some dialects have no field for it."""
        return self.message


class InvalidDescription(MoorageError):
    """The caller's description is invalid.

    `path` names the place in it (`members[2].count`), `line` the line of the file, if known.
    """

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line

    @property
    def message_with_path(self) -> str:
        """The message, after the path unless it names that itself."""
        if self.path is None or self.path in self.message:
            return self.message
        return f"{self.path}: {self.message}"


class BadConfiguration(InvalidDescription):
    """A setting of the service, or of a command, cannot be used until it is changed."""


class BadPlugin(BadConfiguration):
    """An installed plug-in cannot be used; says which, and why."""


class UnknownName(InvalidDescription):
    """A name in the description refers to nothing. `kind` is the noun, as in the glossary.

    The most similar of the names `known` to the caller is suggested.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        path: str | None = None,
        line: int | None = None,
        known: Iterable[str] = (),
    ) -> None:
        hint = did_you_mean(name, known)
        super().__init__(f"no such {kind}: {name}{hint}", path=path, line=line)
        self.kind = kind
        self.name = name


class UnknownPolicy(InvalidDescription):
    """The policy type is not known here."""


class Contradiction(InvalidDescription):
    """Policies that no placement on any fleet can meet together; `policies` names them."""

    def __init__(self, message: str, *, policies: tuple[str, ...]) -> None:
        super().__init__(message)
        self.policies = policies


class NotFound(MoorageError):
    """The addressed record does not exist, or the caller may not see it; `hint`: what does."""

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        super().__init__(f"no {kind} {name}{hint}")
        self.kind = kind
        self.name = name


class EventsLost(MoorageError):
    """Events after a cursor have been deleted, or the ledger does not know the cursor.

    `oldest` is the cursor to go on from: all that is kept comes after it. `before` is the instant
    from which on no event is lost.
    """

    def __init__(self, message: str, *, oldest: str, before: int) -> None:
        super().__init__(message)
        self.oldest = oldest
        self.before = before


class Forbidden(MoorageError):
    """The caller may not do this."""


class LimitExceeded(MoorageError):
    """A configured limit is exceeded; `told` replaces the standard message."""

    def __init__(
        self, what: str, *, limit: int, requested: int, used: int = 0, told: str | None = None
    ) -> None:
        super().__init__(told or f"{what}: limit {limit}, used {used}, requested {requested}")
        self.what = what
        self.limit = limit
        self.requested = requested
        self.used = used


class CheckRefused(Forbidden):
    """The operator's own check of leases refuses the lease, with its own message."""


class QuotaExceeded(LimitExceeded):
    """A quota of the project is exceeded.

    Numbers are counts, unit-hours or, of durations, seconds. `passes_at` is the first start with
    which the same lease would pass, or with `when_asked` when it would pass if it were asked for
    then; None: never as long as nothing else changes. `asked_from` is the first time at which it
    may be asked for with that start; None: at once.
    """

    def __init__(  # noqa: PLR0913 - all fields of a refusal
        self,
        name: str,
        told: str,
        *,
        limit: int,
        requested: int,
        used: int = 0,
        passes_at: Instant | None = None,
        when_asked: bool = False,
        asked_from: Instant | None = None,
    ) -> None:
        super().__init__(name, limit=limit, requested=requested, used=used, told=told)
        self.left = max(limit - used, 0)
        self.passes_at = passes_at
        self.when_asked = when_asked
        self.asked_from = asked_from
        self.explanation: object = None
        """The `explain.Explanation`, once a use case has made it; None before."""
        self.remedies: tuple[str, ...] = ()
        """What can be done about it, in words; made with the explanation."""
        self.stored = False
        """Whether the explanation can be read again by its id."""

    @property
    def start_at_once(self) -> Instant | None:
        """The first start with which it would pass if requested now; None: none."""
        return None if self.when_asked or self.asked_from is not None else self.passes_at


class Conflict(MoorageError):
    """The present state does not allow the change."""


class ConcurrentUpdate(Conflict):
    """Something that the change relied on was changed meanwhile."""

    def __init__(self, message: str, *, subject: str) -> None:
        super().__init__(message)
        self.subject = subject


class ProviderConflict(ConcurrentUpdate):
    """A provider's generation or revision moved; `subject` is its UUID."""


class ConsumerConflict(ConcurrentUpdate):
    """A consumer's generation is not the expected one; `subject` is its UUID."""

    def __init__(self, subject: str, *, expected: int | None, actual: int | None) -> None:
        super().__init__(
            f"consumer {subject}: generation expected {expected}, found {actual}", subject=subject
        )
        self.expected = expected
        self.actual = actual


class StaleGeneration(ConcurrentUpdate):
    """The caller named a generation that is not the stored one; `subject` is the id."""

    def __init__(self, kind: str, subject: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"{kind} {subject} has generation {actual}, not {expected}", subject=subject
        )
        self.expected = expected
        self.actual = actual


class DuplicateName(Conflict):
    """The name or id is already taken; `message` replaces the usual one."""

    def __init__(self, kind: str, name: str, *, message: str | None = None) -> None:
        article = "an" if kind[:1] in "aeio" else "a"
        super().__init__(message or f"{article} {kind} {name} already exists")
        self.kind = kind
        self.name = name


class NameTaken(DuplicateName):
    """Another record of the project has the name; `existing` is its id."""

    def __init__(self, kind: str, name: str, existing: str) -> None:
        article = "an" if kind[:1] in "aeio" else "a"
        message = (
            f"the project has {article} {kind} named {name} already: {existing};"
            " change or delete that one, or choose another name"
        )
        super().__init__(kind, name, message=message)
        self.existing = existing


class WouldBreakLease(Conflict):
    """The hosts cannot be away then: leases hold places there that cannot be moved.

    `leases` are their ids, their handles as the caller sees them, their names, and why; `earliest`
    is when the hosts may be away for as long instead, if that is known.
    """

    def __init__(
        self,
        leases: tuple[tuple[str, str, str, str], ...],
        *,
        earliest: int | None = None,
        instead: str = "",
    ) -> None:
        said = ", ".join(f"{called} ({why})" for _, called, _, why in leases)
        super().__init__(f"{said}   {instead}" if instead else said)
        self.leases = leases
        self.earliest = earliest


class InUse(Conflict):
    """The record is still referred to; `why` names what refers to it, if known.

    `remedies` are parameters with which the same request is carried out.
    """

    def __init__(
        self, kind: str, name: str, why: str = "", *, remedies: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"{kind} {name} is in use" + (f": {why}" if why else ""))
        self.kind = kind
        self.name = name
        self.remedies = remedies


class InventoryInUse(InUse):
    """An inventory still has bookings.

    Where all of them are places that are held or promised, `held_by` names their consumers.
    """

    def __init__(
        self,
        provider: str,
        resource_classes: tuple[str, ...],
        held_by: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__("inventory", ", ".join(resource_classes))
        self.provider = provider
        self.resource_classes = resource_classes
        self.held_by = held_by


class ProviderInUse(InUse):
    """A provider still has bookings; for `held_by` see `InventoryInUse`."""

    def __init__(self, provider: str, held_by: frozenset[str] = frozenset()) -> None:
        super().__init__("resource provider", provider)
        self.provider = provider
        self.held_by = held_by


class ProviderHasChildren(InUse):
    """A provider still has child providers."""

    def __init__(self, provider: str) -> None:
        super().__init__("resource provider", provider)
        self.provider = provider


class CapacityExceeded(Conflict):
    """The amount does not fit, at some instant of the booking's period."""

    def __init__(self, provider: str, resource_class: str, *, free: int, requested: int) -> None:
        super().__init__(
            f"{resource_class} on {provider}: requested {requested}, free {max(free, 0)}"
        )
        self.provider = provider
        self.resource_class = resource_class
        self.free = free
        self.requested = requested


class ConstraintViolated(Conflict):
    """The amount breaks the inventory's min_unit, max_unit or step_size, or there is none."""

    def __init__(self, provider: str, resource_class: str, *, requested: int, rule: str) -> None:
        super().__init__(f"{resource_class} on {provider}: {requested} breaks {rule}")
        self.provider = provider
        self.resource_class = resource_class
        self.requested = requested
        self.rule = rule


class Infeasible(Conflict):
    """No placement meets the request; `explanation` says why (see `domain.explain`).

    `stored`: whether it can be read again by its id; not after a dry run.
    """

    def __init__(self, message: str, *, explanation: object, stored: bool = True) -> None:
        super().__init__(message)
        self.explanation = explanation
        self.stored = stored


class SeriesInfeasible(Conflict):
    """Occurrences of a series do not fit, so none is granted.

    `refused` are those occurrences (`usecases.series.refused`), `of` is how many were asked for;
    `instead` are changes of the series that a solve has shown to fit.
    """

    def __init__(
        self, message: str, *, of: int, refused: tuple[object, ...], instead: tuple[object, ...]
    ) -> None:
        super().__init__(message)
        self.of = of
        self.refused = refused
        self.instead = instead


class DescriptionMismatch(Conflict):
    """The second description differs from the first; `diff` lists the fields."""

    def __init__(self, member: str, diff: tuple[Mapping[str, object], ...]) -> None:
        super().__init__(f"{member} differs from its description")
        self.member = member
        self.diff = diff


class OfferOver(Conflict):
    """The offer has expired or was withdrawn: its places are no longer held."""


class HoldExpired(Conflict):
    """The hold has lapsed; decide again."""


class OfferCycle(Conflict):
    """A consumer would stand on what it offers itself, perhaps by way of others."""

    def __init__(self, consumer: str, provider: str) -> None:
        super().__init__(
            f"consumer {consumer} cannot use provider {provider}: what offers it stands on what"
            f" {consumer} offers itself"
        )
        self.consumer = consumer
        self.provider = provider


class PlaceLeft(Conflict):
    """Consumers would give up places of leases, and what follows is not said; no client sees it."""

    def __init__(self, consumers: tuple[str, ...]) -> None:
        super().__init__(f"places of leases are left by {', '.join(consumers)}")
        self.consumers = consumers


class ServerOfMember(Conflict):
    """A member's server would get allocations, and nobody has judged that; no client sees it."""


class ConsentMissing(Conflict):
    """A role belongs to another project, which has not accepted its share; `remedy` says how."""

    def __init__(self, role: str, project_id: str, remedy: str) -> None:
        super().__init__(
            f"role {role} belongs to project {project_id}, which has not accepted it{remedy}"
        )
        self.role = role
        self.project_id = project_id


class OtherQuotaExceeded(Conflict):
    """The quota of another project of the ensemble is exceeded: its numbers are its own affair."""


class InstanceOutdated(Conflict):
    """The problem of a refusal or decision can no longer be made, since its hosts have changed.

    With `made_at` (a revision) None its request was too large to be stored.
    """

    def __init__(self, of: str, *, made_at: int | None = None) -> None:
        because = (
            "its request is too large to be kept"
            if made_at is None
            else f"its hosts have changed since revision {made_at}"
        )
        super().__init__(f"the problem of {of} cannot be made: {because}")


class WrongState(Conflict):
    """The lifecycle does not allow this step from the present state."""


class Busy(MoorageError):
    """The service cannot answer now; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Undecided(Busy):
    """Time ran out before a placement was found, or a proof that there is none.

    `explanation` is of verdict `undecided` (see `domain.explain`); `stored`: whether it can be read
    again by its id.
    """

    def __init__(self, message: str, *, explanation: object, stored: bool) -> None:
        super().__init__(message, retry_after=5)
        self.explanation = explanation
        self.stored = stored


class TooManyRequests(Busy):
    """The caller has as many requests of a kind under way as it may have at once."""


class Unavailable(Busy):
    """The ledger cannot be used until an operator repairs its storage: a full disk, a lost file."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=30)
