"""The ports of the use cases: the store, the solver, the clock and the source of ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, Self

from moorage.domain.actors import Actor
from moorage.usecases.paging import WHOLE_LEDGER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.consumers import Consumer
    from moorage.domain.decision_records import DecisionRecord
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect, Lane
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Refusal, Stage
    from moorage.domain.flavors import Flavor
    from moorage.domain.leases import Lease, LeaseState
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.plans import Move
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.quotas import Quota, QuotaName, QuotaUse
    from moorage.domain.records import Deletable, RecordKind, RecordPlace
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.server_providers import ServerProvider
    from moorage.domain.templates import Template
    from moorage.domain.waitlist import EntryState, WaitlistEntry
    from moorage.engine.joint.problem import Outcome, Problem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.engine.time.quotas import ProjectLeases
    from moorage.usecases.compliance_ports import ComplianceRecords
    from moorage.usecases.event_ports import EventLog
    from moorage.usecases.paging import Page
    from moorage.usecases.plan_ports import PlanRecords


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
    """Whether an access rule makes the caller an operator in this request, whatever its roles."""
    believed: bool = False
    """Whether the roles are what the request says itself (`noauth2`)."""
    global_request_id: str | None = None
    """The id of the client's own request, if it sent one."""

    @property
    def operator(self) -> bool:
        """Whether the caller sees every project, host names and exact counts."""
        return self.as_operator or bool(self.roles & {"admin", "service"})

    @property
    def actor(self) -> Actor:
        """Who causes what this request changes."""
        return Actor(
            self.user_id or None,
            self.project_id,
            self.request_id or None,
            self.global_request_id,
            self.operator,
        )


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """A resource class or trait with its time of creation or last change."""

    name: str
    updated_at: Instant
    offered: bool = False
    """Whether a tenant's server has brought it in."""


@dataclass(frozen=True, slots=True)
class ExclusiveEnsembles:
    """What keeps others out: ensembles (see `Ensemble.keeps_others_out`), and targets of moves."""

    ensembles: tuple[Ensemble, ...]
    of_consumer: Mapping[str, tuple[Ensemble, ...]]
    """Consumer of a member or of headroom -> the ensembles that it is of."""
    targets: Mapping[str, tuple[Move, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Server -> its moves of plans that run or are paused, whose targets are held for it."""


@dataclass(frozen=True, slots=True)
class OverrunConsumer:
    """A consumer whose allocations still exist after their planned end."""

    consumer: Consumer
    end: Instant
    yields_to: str | None
    """The lease for which they were to end; None: they reached their own end."""


class Clock(Protocol):
    """The source of the time: the machine's clock, or a simulation's, which can be set."""

    def now(self) -> Instant:
        """The present instant."""


class Records(Protocol):
    """Records of finished objects, which are kept for a limited time."""

    def deletable(
        self, kind: RecordKind, before: Instant, after: RecordPlace, most: int
    ) -> Deletable:
        """Of the next `most` records of a kind that ended before `before`, the deletable ones."""


class Store(Protocol):
    """The ledger. Reads see every commit that finished before the call began."""

    @property
    def event_log(self) -> EventLog:
        """Events and subscriptions."""

    @property
    def records(self) -> Records:
        """Records of finished objects."""

    @property
    def compliance(self) -> ComplianceRecords:
        """Violations, and which ensembles are to be judged."""

    @property
    def plans(self) -> PlanRecords:
        """Plans: ordered moves of servers."""

    def now(self) -> Instant:
        """The store's clock: the database's, or the simulator's."""

    def snapshot(self) -> Snapshot:
        """The snapshot at the newest revision, taken now."""

    def last_snapshot(self) -> Snapshot:
        """The snapshot that this process read last, without asking the database; it may be old.

        For what a commit relies on and judges.
        """

    def commit(self, changeset: Changeset) -> Committed:
        """Write the changeset as a whole or not at all; each change names the errors it raises."""

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        """Call `propose` and commit its changeset while all other writers wait.

        So no other commit can conflict with it. As all writers wait, `propose` should be quick. It
        may read but not commit, and is called again if the database aborts the transaction; if it
        returns None nothing is written. Its errors are raised.
        """

    def dry_run(self, *, explained: bool = False) -> Store:
        """A view of the ledger whose commits write nothing, or explanations only (ADR-0053)."""

    def hypothetical(self, at: Instant | None = None) -> HypotheticalStore:
        """A dry run whose snapshot has what it, and this dry run, left out (ADR-0061).

        It stands still at `at`, which is not before now; None: now.
        """

    @property
    def left_out(self) -> Sequence[Change]:
        """Of a dry run what it would have written so far; of the ledger nothing."""

    def by(self, actor: Actor) -> Self:
        """A view of the ledger whose commits say that this actor caused them (ADR-0058)."""

    def session_key(self) -> bytes:
        """The key that seals sessions of browsers: 32 random bytes in URL-safe base64."""

    def last_actor(
        self, providers: Collection[str], after: int, *, operators_first: bool = False
    ) -> Actor | None:
        """Who last changed any of these providers, or what is booked there, since a revision.

        With `operators_first` the last operator who did, if there is one. None if nobody did, or
        the change log does not reach back so far; `UNKNOWN` if it does not say who.
        """

    def provider(self, uuid: str) -> ResourceProvider:
        """A provider with its inventories, traits and aggregates, read from the database. NotFound.

        For reading a few providers: it does not update the snapshot.
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
        """As `consumer`, with the generation of each of its providers, in one consistent read."""

    def allocations_of_provider(self, uuid: str) -> tuple[int, Sequence[tuple[Consumer, Booking]]]:
        """A provider's generation and the allocations on it, in one consistent read. NotFound."""

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
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[tuple[Consumer, Booking]]:
        """Live bookings of every state, for operators."""

    def idle_consumers(self) -> Sequence[str]:
        """Stored consumers without any booking; a consistent ledger has none."""

    def ensemble(self, ensemble_id: str) -> Ensemble:
        """An ensemble by id. NotFound."""

    def ensembles(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Ensemble]:
        """Ensembles by creation; `project_id` None means every project.

        The copies that hold the places of offers are left out.
        """

    def ensembles_named(self, project_id: str, name: str) -> Sequence[str]:
        """Ids of the project's ensembles in use of a name, oldest first; see `ExpectUniqueName`."""

    def ensembles_of_server(self, server: str) -> Sequence[Ensemble]:
        """Every project's ensembles of which a server is a member, by creation.

        Consumers of headroom count as servers here.
        """

    def ensemble_of_share(self, share_id: str) -> Ensemble:
        """The ensemble one of whose roles has this share. NotFound."""

    def shares(
        self, *, project_id: str | None, page: Page = WHOLE_LEDGER
    ) -> Sequence[tuple[str, Ensemble]]:
        """Shares that a project has given or received, by creation: their ids and ensembles."""

    def exclusive_ensembles(self, snapshot: Snapshot) -> ExclusiveEnsembles:
        """Every project's ensembles that keep others out, by creation, as the snapshot knows them.

        They may be newer. A commit that relies on `snapshot.exclusive_revision` fails then.
        """

    def held(self, project_id: str | None) -> int:
        """How many of the project's members have places held or claimed at `now()`.

        None means every project's.
        """

    def decision(self, decision_id: str) -> Decision:
        """A decision by id. NotFound."""

    def decision_record(self, decision_id: str) -> tuple[DecisionRecord | None, Actor]:
        """A decision's record, None of a version that kept none, and who made it. NotFound."""

    def decisions(
        self, *, project_id: str | None, ensemble_id: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Decision]:
        """Decisions, newest first."""

    def decisions_seen_by(self, project_id: str, page: Page) -> Sequence[Decision]:
        """Its own, and those about ensembles that name it in a share; newest first."""

    def newest_decisions(self, ensembles: Collection[str]) -> Mapping[str, Decision]:
        """Ensemble -> its newest decision, in any state; those without any are left out."""

    def claim(self, claim_id: str) -> Claim:
        """A claim by id. NotFound."""

    def claims(self, *, decision_id: str, page: Page | None = None) -> Sequence[Claim]:
        """The claims of a decision, oldest first; all of them without a page."""

    def open_claims(self, decisions: Collection[str]) -> Mapping[str, int]:
        """Decision -> number of its claims that are building or active; without any: left out."""

    def explanation(self, explanation_id: str) -> tuple[Refusal, str]:
        """An explanation with what was refused, and what is stored of its problem. NotFound."""

    def refusals(
        self,
        *,
        project_id: str | None,
        ensemble: str | None = None,
        stage: Stage | None = None,
        since: Instant | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Refusal]:
        """Explanations that are kept, newest first; `project_id` None means every project.

        `ensemble` is the id or name of the refused ensemble; `since` is the earliest time.
        """

    def refusal(
        self, request: str, *, project_id: str | None, digest: str | None = None
    ) -> tuple[Refusal, str]:
        """The newest explanation of a refused request, by the id the client gave. NotFound.

        `project_id` None means every project, `digest` None a request of any content.
        """

    def flavor(self, name: str) -> Flavor:
        """A flavor by id or name. NotFound."""

    def flavors(self, page: Page | None = None) -> Sequence[Flavor]:
        """Flavors, by name; all of them without a page."""

    def lease(self, lease_id: str) -> Lease:
        """A lease by id. NotFound."""

    def leases(
        self,
        *,
        project_id: str | None,
        name: str | None = None,
        state: LeaseState | None = None,
        series_id: str | None = None,
        overlaps: Period | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        """Leases by creation; `project_id` None means every project. Offers are not among them.

        With `overlaps` those whose own period, without lead and cleaning, overlaps it.
        """

    def offers(
        self,
        *,
        project_id: str | None,
        over: bool = False,
        series_id: str | None = None,
        overlaps: Period | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Lease]:
        """Offers that were not accepted, by creation; with `over` also those that are over.

        An expired offer may not be marked as over yet. The offers that hold places while a series
        is being created are listed only with its `series_id`.
        """

    def series(self, series_id: str) -> Series:
        """A series by id. NotFound."""

    def all_series(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Series]:
        """Series by creation; `project_id` None means every project."""

    def occurrences(self, series_ids: Collection[str]) -> Mapping[str, Mapping[LeaseState, int]]:
        """Series id -> lease state -> number of the series' leases in that state."""

    def lease_of_reservation(self, reservation_id: str) -> Lease:
        """The lease that has this reservation. NotFound."""

    def leases_of(self, ensemble_id: str) -> Sequence[Lease]:
        """Every lease of an ensemble, by creation."""

    def exclusive_until_start(self) -> Sequence[Lease]:
        """Leases not yet started that restrict the use of their places until the start."""

    def yielding(self, lease_id: str) -> Sequence[tuple[Consumer, Booking]]:
        """Live bookings that end early for a lease."""

    def effects(self, subject: str, *, page: Page = WHOLE_LEDGER) -> Sequence[Effect]:
        """The effects of a subject, pending and finished, by creation."""

    def due_effects(self, limit: int, lane: Lane | None = None) -> Sequence[Effect]:
        """Pending effects that a worker may take at `now()`, the longest due first.

        `lane` None means every lane.
        """

    def next_due(self) -> Instant:
        """The next instant after `now()` at which an effect, or what `due` gives, becomes due.

        FOREVER if there is none.
        """

    def pending_effects(self) -> Mapping[Lane, tuple[int, Instant]]:
        """Lane -> the number of effects due at `now()`, and the instant the oldest became due."""

    def overrun(self, after: tuple[Instant, str], limit: int) -> Sequence[OverrunConsumer]:
        """Consumers with allocations past their end, ordered by end, then UUID.

        `after` is an end and a UUID: only consumers that follow it in this order.
        """

    def template(self, template_id: str, version: int | None = None) -> Template:
        """A version of a template; None: the newest. NotFound."""

    def templates(
        self, *, project_id: str | None, name: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[Template]:
        """The newest versions of the project's templates and of shared ones, by creation.

        `project_id` None means every project's.
        """

    def capacity_window(self, window_id: str) -> CapacityWindow:
        """A capacity window by id. NotFound."""

    def capacity_windows(self, *, page: Page = WHOLE_LEDGER) -> Sequence[CapacityWindow]:
        """Capacity windows by creation, including those that are over."""

    def server_providers(
        self, *, server_id: str | None = None, page: Page = WHOLE_LEDGER
    ) -> Sequence[ServerProvider]:
        """What servers offer, by creation; with `server_id` only that of this server, if any."""

    def reservables(self, kind: ReservableKind) -> Sequence[Reservable]:
        """Everything of a kind that is offered for reservation, by creation."""

    def quota(self, project_id: str) -> Quota | None:
        """The quota that an operator has set for a project; None: the defaults apply."""

    def quotas(self, page: Page = WHOLE_LEDGER) -> Sequence[Quota]:
        """The quotas set for projects, by project id, which is also the page's marker."""

    def lessee(self, project_id: str, since: Instant, *, but: str = "") -> ProjectLeases:
        """A project's leases that end after `since`, except the lease `but`."""

    def stored(self, project_id: str) -> Mapping[QuotaName, int]:
        """Quota name (of `quotas.STORED`) -> a project's number of such objects, without offers."""

    def uses_of_lease(self, lease_id: str) -> Sequence[QuotaUse]:
        """The quota uses of a lease, in order."""

    def waitlist_entry(self, entry_id: str) -> WaitlistEntry:
        """An entry of the waitlist by id. NotFound."""

    def waitlist(
        self,
        *,
        project_id: str | None,
        state: EntryState | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[WaitlistEntry]:
        """Entries of the waitlist by creation; `project_id` None means every project."""

    def waiting_entries(self, period: Period, limit: int) -> Sequence[WaitlistEntry]:
        """The first `limit` waiting entries, in waitlist order, that could have places in `period`.

        Entries whose latest start has passed may be among them.
        """

    def waitlist_counts(self) -> Mapping[EntryState, int]:
        """Entry state -> number of entries; states without entries are left out."""

    def due(self, limit: int) -> Sequence[Decision | Claim]:
        """Held decisions and building claims that have lapsed at `now()`."""


class HypotheticalStore(Store, Protocol):
    """A ledger as it would be: what one use case would hold there, the next one finds taken."""

    def suppose(self, change: Callable[[Snapshot], Snapshot]) -> None:
        """Replace its snapshot by what `change` makes of it."""


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
