"""What the use cases need from the outside: a store, a solver, a clock and ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import Changeset, Committed
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect, Lane
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.events import Event, EventCursor, EventFilter
    from moorage.domain.explain import Explanation, Refusal, Stage
    from moorage.domain.flavors import Flavor
    from moorage.domain.leases import Lease, LeaseState
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.quotas import Quota, QuotaName, QuotaUse
    from moorage.domain.records import Deletable, RecordKind, RecordPlace
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.subscriptions import DeadLetter, DeliveryState, Subscription
    from moorage.domain.templates import Template
    from moorage.domain.waitlist import EntryState, WaitlistEntry
    from moorage.engine.joint.problem import Outcome, Problem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.engine.time.quotas import ProjectLeases


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: identity, project and roles."""

    user_id: str
    project_id: str
    roles: frozenset[str] = frozenset()
    request_id: str = ""
    project_scoped: bool = True
    """Whether the roles are roles in a project, not in the system or a domain."""
    as_operator: bool = False
    """Whether an access rule lets it act as one in this request, whatever its roles."""

    @property
    def operator(self) -> bool:
        """Whether the caller sees every project, host names and exact counts."""
        return self.as_operator or bool(self.roles & {"admin", "service"})


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """A resource class or trait with its time of creation or last change."""

    name: str
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a listing: at most `limit`, after the item with id `marker`."""

    limit: int = 1000
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class Keepers:
    """The ensembles that keep others out (see `Ensemble.keeps_others_out`) at one revision."""

    revision: int
    ensembles: tuple[Ensemble, ...]
    waited: bool = False
    """Whether somebody is on the waitlist, as it was asked last: a decision minds them, too."""


@dataclass(frozen=True, slots=True)
class OverrunConsumer:
    """A consumer whose allocations are there still at their declared end."""

    consumer: Consumer
    end: Instant
    yields_to: str | None
    """The lease for which they were to end."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in their order. `cursor` is where the next page begins, `more` if it has any now."""

    events: tuple[Event, ...]
    cursor: EventCursor
    more: bool


@dataclass(frozen=True, slots=True)
class PendingEvents:
    """What is to be delivered next to a subscription.

    Nothing else up to the position `reached` is meant for it. `lost` is not None where events
    were forgotten that it has not seen: up to there.
    """

    events: tuple[Event, ...]
    reached: int
    lost: EventCursor | None = None


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """The delivery state of an event for one subscription."""

    event: str
    subscription: Subscription
    reached: DeliveryState


class Clock(Protocol):
    """Where the time comes from: the machine's clock, or a simulation's that can be set."""

    def now(self) -> Instant:
        """The present instant."""


class EventLog(Protocol):
    """Events and subscriptions of the ledger.

    On PostgreSQL an event is seen when no commit that began before it runs any more.
    """

    def page(
        self, project_id: str | None, after: EventCursor, wanted: EventFilter, limit: int
    ) -> EventPage:
        """The next events after a cursor, of a project or of all; the work is bounded.

        EventsLost: some after the cursor are kept no more, or the ledger does not know it.
        """

    def newest(self) -> EventCursor:
        """The cursor after every event there is."""

    def oldest(self) -> EventCursor:
        """The cursor before every event that is kept."""

    def surplus(self, before: Instant, keep: int) -> bool:
        """Whether some events are older than `before`, or there are more than `keep`."""

    def subscription(self, id_: str) -> Subscription:
        """NotFound if there is none."""

    def subscriptions(self, project_id: str | None, page: Page) -> Sequence[Subscription]:
        """Subscriptions by creation; `project_id` None means every project."""

    def with_thresholds(self) -> Sequence[Subscription]:
        """Subscriptions with thresholds."""

    def due(self, limit: int) -> Sequence[Subscription]:
        """Those of whose project something has happened since, the longest due first."""

    def pending(self, one: Subscription, limit: int) -> PendingEvents:
        """What is to be delivered to a subscription next; the work is bounded."""

    def deliveries(self, project_id: str, events: Sequence[Event]) -> Sequence[EventDelivery]:
        """What became of events of a project for each subscription that they are meant for.

        What was given up so long ago that the dead letter is forgotten counts as heard.
        """

    def dead_letters(
        self, subscription_id: str, page: Page, *, queued: bool = False
    ) -> Sequence[DeadLetter]:
        """What was given up, the oldest first; `queued`: only what is to be sent again."""

    def dead(self, subscriptions: Collection[str]) -> Mapping[str, int]:
        """How many there are of those, by subscription; who has none is not named."""


class Records(Protocol):
    """What is over, and is kept for a while."""

    def deletable(
        self, kind: RecordKind, before: Instant, after: RecordPlace, most: int
    ) -> Deletable:
        """Of the next `most` records of a kind that ended before, those that may be deleted."""


class Store(Protocol):
    """The ledger. Reads see every commit that finished before the call began."""

    @property
    def event_log(self) -> EventLog:
        """Events, and who wants them."""

    @property
    def records(self) -> Records:
        """What is over, and is kept for a while."""

    def now(self) -> Instant:
        """The store's clock: the database's, or the simulator's."""

    def snapshot(self) -> Snapshot:
        """The columnar view at the newest revision, valid at this instant."""

    def commit(self, changeset: Changeset) -> Committed:
        """Write all or nothing; errors as named by each change."""

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        """Commit what is proposed while nobody else can write: so nobody overtakes it.

        Everybody waits meanwhile, so it should take no longer than a moment. It may read, must not
        commit, and is asked again from the beginning if the database could not go through with
        it; with None nothing is written. Its errors are raised.
        """

    def provider(self, uuid: str) -> ResourceProvider:
        """A provider with all it has, straight from the ledger. NotFound.

        For who needs one or two: no snapshot is brought up to date for it.
        """

    def resource_classes(self) -> Sequence[NamedRecord]:
        """Standard ones in `os_resource_classes.STANDARDS` order, then custom by creation."""

    def traits(self, names: Collection[str] | None = None) -> Sequence[NamedRecord]:
        """Every trait, or those of these names that exist."""

    def consumer(self, uuid: str) -> tuple[Consumer, Sequence[Booking]] | None:
        """A consumer with its allocations (state allocated only), or None without any."""

    def allocations_of_consumer(
        self, uuid: str
    ) -> tuple[Consumer, Sequence[Booking], Mapping[str, int]] | None:
        """As `consumer`, and the generation of each provider it has something on: of one state."""

    def allocations_of_provider(self, uuid: str) -> tuple[int, Sequence[tuple[Consumer, Booking]]]:
        """A provider's generation and the allocations on it, of one state. NotFound."""

    def usages(
        self, project_id: str, user_id: str | None = None
    ) -> Sequence[tuple[Consumer, Booking]]:
        """Every allocation of a project (and user)."""

    def bookings(
        self,
        *,
        provider: str | None = None,
        consumer: str | None = None,
        decision: str | None = None,
        page: Page = Page(),
    ) -> Sequence[tuple[Consumer, Booking]]:
        """Live bookings of every state, for operators."""

    def idle_consumers(self) -> Sequence[str]:
        """Consumers recorded without any booking: there should be none."""

    def ensemble(self, ensemble_id: str) -> Ensemble:
        """NotFound if there is none."""

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = Page()
    ) -> Sequence[Ensemble]:
        """Ensembles by creation; `project_id` None means every project.

        Copies that offers keep their places with are not among them.
        """

    def ensemble_named(self, project_id: str, name: str) -> str | None:
        """The id of the project's oldest ensemble of a name; see `ExpectUniqueName`."""

    def keepers(self) -> Keepers:
        """Every project's ensembles that keep others out, by creation, and their revision.

        To rely on it, read it before the snapshot: then nothing that a snapshot lacks is in it
        unless its revision has moved since.
        """

    def held(self, project_id: str | None) -> int:
        """How many of the project's members have places held or claimed at `now()`.

        None means every project's.
        """

    def decision(self, decision_id: str) -> Decision:
        """NotFound if there is none."""

    def decisions(
        self, *, project_id: str | None, ensemble_id: str | None = None, page: Page = Page()
    ) -> Sequence[Decision]:
        """Decisions, newest first."""

    def claim(self, claim_id: str) -> Claim:
        """NotFound if there is none."""

    def claims(self, *, decision_id: str, page: Page | None = None) -> Sequence[Claim]:
        """The claims of a decision, oldest first; all of them without a page."""

    def explanation(self, explanation_id: str) -> tuple[Explanation, str, str]:
        """An explanation, its project and the replayable instance. NotFound."""

    def refusals(
        self,
        *,
        project_id: str | None,
        ensemble: str | None = None,
        stage: Stage | None = None,
        since: Instant | None = None,
        page: Page = Page(),
    ) -> Sequence[Refusal]:
        """Explanations that are kept, newest first; `project_id` None means every project.

        `ensemble` is the id or name of what was refused, `since` an instant.
        """

    def refusal(
        self, request: str, *, project_id: str | None, digest: str | None = None
    ) -> tuple[Explanation, str, str]:
        """The newest explanation of a refused request, by the id the client gave. NotFound.

        `project_id` None means every project, `digest` None whatever was asked.
        """

    def flavor(self, name: str) -> Flavor:
        """By id or name. NotFound."""

    def flavors(self, page: Page | None = None) -> Sequence[Flavor]:
        """Flavors, by name; all of them without a page."""

    def lease(self, lease_id: str) -> Lease:
        """NotFound if there is none."""

    def leases(
        self,
        *,
        project_id: str | None,
        name: str | None = None,
        state: LeaseState | None = None,
        series_id: str | None = None,
        page: Page = Page(),
    ) -> Sequence[Lease]:
        """Leases by creation; `project_id` None means every project. Offers are not among them."""

    def offers(
        self,
        *,
        project_id: str | None,
        over: bool = False,
        series_id: str | None = None,
        page: Page = Page(),
    ) -> Sequence[Lease]:
        """Offers that nobody has accepted, by creation; with `over` also those that are over.

        Some that are not marked as over may have expired. What is kept while a series is made
        is listed for that series alone.
        """

    def series(self, series_id: str) -> Series:
        """NotFound if there is none."""

    def all_series(
        self, *, project_id: str | None, name: str | None = None, page: Page = Page()
    ) -> Sequence[Series]:
        """Series by creation; `project_id` None means every project."""

    def occurrences(self, series_ids: Collection[str]) -> Mapping[str, Mapping[LeaseState, int]]:
        """How many leases of each of these series are in which state."""

    def lease_of_reservation(self, reservation_id: str) -> Lease:
        """The lease that has this reservation. NotFound."""

    def leases_of(self, ensemble_id: str) -> Sequence[Lease]:
        """Every lease of an ensemble, by creation."""

    def exclusive_until_start(self) -> Sequence[Lease]:
        """Leases that have not begun and let not everybody use their places until then."""

    def yielding(self, lease_id: str) -> Sequence[tuple[Consumer, Booking]]:
        """Live bookings that end early for a lease."""

    def effects(self, subject: str, *, page: Page = Page()) -> Sequence[Effect]:
        """What is to be done, or was done, for a subject; by creation."""

    def due_effects(self, limit: int, lane: Lane | None = None) -> Sequence[Effect]:
        """Pending effects that a worker may take on at `now()`, the longest due first.

        Of one lane, or None: of all.
        """

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        """Per lane how many effects are due at `now()`, and since when the longest due one is."""

    def overrun(self, after: tuple[Instant, str], limit: int) -> Sequence[OverrunConsumer]:
        """Consumers with allocations whose end has come, by end, then UUID.

        `after` is an end and a UUID: only those that follow it in this order.
        """

    def template(self, template_id: str, version: int | None = None) -> Template:
        """A version of a template; None: the newest. NotFound."""

    def templates(
        self, *, project_id: str | None, name: str | None = None, page: Page = Page()
    ) -> Sequence[Template]:
        """The newest versions of the project's templates and of shared ones, by creation.

        `project_id` None means every project's.
        """

    def capacity_window(self, window_id: str) -> CapacityWindow:
        """NotFound if there is none."""

    def capacity_windows(self, *, page: Page = Page()) -> Sequence[CapacityWindow]:
        """Capacity windows by creation, those that are over too."""

    def reservables(self, kind: ReservableKind) -> Sequence[Reservable]:
        """Everything of a kind that is offered for reservation, by creation."""

    def quota(self, project_id: str) -> Quota | None:
        """What an operator has said of a project; None: the defaults hold."""

    def quotas(self, page: Page = Page()) -> Sequence[Quota]:
        """The quotas set for projects, by project id, of which one is the marker."""

    def lessee(self, project_id: str, since: Instant, *, but: str = "") -> ProjectLeases:
        """What a project has leased that ends after `since`, but for one lease."""

    def stored(self, project_id: str) -> Mapping[QuotaName, int]:
        """How much a project has of what it stores (`quotas.STORED`), but for offers."""

    def uses_of_lease(self, lease_id: str) -> Sequence[QuotaUse]:
        """What a lease counts for, in order."""

    def waitlist_entry(self, entry_id: str) -> WaitlistEntry:
        """NotFound if there is none."""

    def waitlist(
        self,
        *,
        project_id: str | None,
        state: EntryState | None = None,
        page: Page = Page(),
    ) -> Sequence[WaitlistEntry]:
        """Entries of the waitlist by creation; `project_id` None means every project."""

    def waiting_entries(self, period: Period, limit: int) -> Sequence[WaitlistEntry]:
        """Entries that wait, in the order of the list, and might have places in a period.

        The first `limit` of them; some whose time has passed may be among them.
        """

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        """How many entries there are in each state, of those that have any."""

    def due(self, limit: int) -> Sequence[Decision | Claim]:
        """Held decisions and building claims whose time has come at `now()`."""


class Solver(Protocol):
    """Answers a joint problem. Pure: the same problem, seed and strategy give the same answer."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The best placement found within the limit, or a verdict that there is none."""


class Ids(Protocol):
    """Makes identifiers, so that tests and simulations can repeat them."""

    def uuid(self) -> str:
        """A new random UUID, dashed, lower case."""

    def salt(self) -> str:
        """A new random secret of at least 128 bits, printable."""
