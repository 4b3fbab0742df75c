"""The table of all metrics, from which the instruments and the reference page are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """The type of a metric, in Prometheus' terms."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Row:
    """One metric."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds in seconds, of a histogram."""
    on_scrape: bool = False
    """Whether it is found out at each reading; else it is kept as things happen."""


_QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SLOW: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

REQUESTS: Final = Row(
    "moorage_http_requests_total",
    Kind.COUNTER,
    "Requests answered, by dialect (house: the pages outside every dialect), method, route and"
    " status. 499: the client left before its request was complete.",
    ("api", "method", "route", "status"),
)
REQUEST_SECONDS: Final = Row(
    "moorage_http_request_duration_seconds",
    Kind.HISTOGRAM,
    "From the end of a request's head to the end of its answer, by dialect, method and route.",
    ("api", "method", "route"),
    _QUICK,
)
COMMITS: Final = Row(
    "moorage_commits_total",
    Kind.COUNTER,
    "Changesets brought to the ledger, by outcome: committed; conflict (something it relied on had"
    " moved); refused (the end state is not allowed); busy (the database had no turn or was away);"
    " failed (an unexpected error).",
    ("outcome",),
)
COMMIT_SECONDS: Final = Row(
    "moorage_commit_duration_seconds",
    Kind.HISTOGRAM,
    "One try to commit, with its wait for a turn, by outcome.",
    ("outcome",),
    _QUICK,
)
RETRIES: Final = Row(
    "moorage_commit_retries_total",
    Kind.COUNTER,
    "Commits tried again for the same request after a conflict.",
)
REFRESH_SECONDS: Final = Row(
    "moorage_snapshot_refresh_duration_seconds",
    Kind.HISTOGRAM,
    "Bringing a worker's snapshot up to date, where the ledger had moved.",
    (),
    _QUICK,
)
REVISION: Final = Row(
    "moorage_snapshot_revision",
    Kind.GAUGE,
    "The ledger's revision that a worker's snapshot shows.",
    ("worker",),
)
IN_STEP: Final = Row(
    "moorage_snapshot_in_step_timestamp_seconds",
    Kind.GAUGE,
    "When a worker last found its snapshot to be the ledger's newest state; its lag is time() minus"
    " this. Looked at every second, and by every request.",
    ("worker",),
)
SOLVES: Final = Row(
    "moorage_solver_duration_seconds",
    Kind.HISTOGRAM,
    "Joint problems answered, by strategy and verdict (feasible, infeasible, unknown; busy: no"
    " solver was free or it died; failed).",
    ("strategy", "verdict"),
    _SLOW,
)
SOLVERS: Final = Row(
    "moorage_solver_processes",
    Kind.GAUGE,
    "Solver processes that are up.",
    on_scrape=True,
)
PLANNERS: Final = Row(
    "moorage_planner_processes",
    Kind.GAUGE,
    "Planner processes that are up.",
    on_scrape=True,
)
PLANNING: Final = Row(
    "moorage_planner_requests",
    Kind.GAUGE,
    "Requests that a planner process works on now.",
    ("planner",),
    on_scrape=True,
)
HELD: Final = Row(
    "moorage_held_places",
    Kind.GAUGE,
    "Members whose places are held or claimed now, over all projects.",
    on_scrape=True,
)
EXPIRED: Final = Row(
    "moorage_expired_total",
    Kind.COUNTER,
    "Lapsed holds and claims that this service was first to note, by kind and outcome"
    " (noted; nothing: another process was first; failed).",
    ("kind", "outcome"),
)
EXPIRY_ROUND: Final = Row(
    "moorage_expiry_round_timestamp_seconds",
    Kind.GAUGE,
    "When a worker last looked for what has lapsed, without an error.",
    ("worker",),
)
EFFECTS: Final = Row(
    "moorage_effects_total",
    Kind.COUNTER,
    "Effects taken on by this service, by kind and outcome (done; again: to be tried again;"
    " failed: given up; nothing: another process was first; error: postponed).",
    ("kind", "outcome"),
)
EFFECTS_DUE: Final = Row(
    "moorage_effects_due",
    Kind.GAUGE,
    "Effects whose time has come, by lane (life: of leases; tell: webhook; end: ending servers;"
    " hook).",
    ("lane",),
    on_scrape=True,
)
EFFECTS_AGE: Final = Row(
    "moorage_effects_oldest_due_seconds",
    Kind.GAUGE,
    "How long the longest due effect of a lane has been due.",
    ("lane",),
    on_scrape=True,
)
EFFECTS_ROUND: Final = Row(
    "moorage_effects_round_timestamp_seconds",
    Kind.GAUGE,
    "When a worker last carried out what was due in a lane, without an error.",
    ("worker", "lane"),
)
DELIVERIES: Final = Row(
    "moorage_deliveries_total",
    Kind.COUNTER,
    "Rounds of delivery to subscriptions by this service, by outcome (delivered; failed: to be"
    " retried; given-up: events became dead letters; nothing: no event, or another process was"
    " first; error).",
    ("outcome",),
)
VIOLATIONS: Final = Row(
    "moorage_violations",
    Kind.GAUGE,
    "Open violations of ensembles, by type (a policy's, or at_risk and lost for members out of"
    " service) and whether the policy is required.",
    ("type", "required"),
    on_scrape=True,
)
PLANS: Final = Row(
    "moorage_plans",
    Kind.GAUGE,
    "Plans to move servers, by state.",
    ("state",),
    on_scrape=True,
)
PLAN_MOVES: Final = Row(
    "moorage_plan_moves_total",
    Kind.COUNTER,
    "Moves of plans that are over, by kind (live, cold, evacuate) and outcome (done, failed,"
    " skipped).",
    ("kind", "outcome"),
)
MISSED: Final = Row(
    "moorage_violations_missed_total",
    Kind.COUNTER,
    "Violations begun or ended that only the sweep over all ensembles found: a fault of the"
    " service.",
)
WAITLIST: Final = Row(
    "moorage_waitlist_entries",
    Kind.GAUGE,
    "Entries of the waitlist, by state (waiting, granted, expired, cancelled, failed): those that"
    " wait, and those that are over and still kept.",
    ("state",),
    on_scrape=True,
)
CONNECTIONS: Final = Row(
    "moorage_database_connections",
    Kind.GAUGE,
    "Database connections of a worker, by state: in_use, idle; limit is how many it may have.",
    ("worker", "state"),
)
READY: Final = Row(
    "moorage_ready",
    Kind.GAUGE,
    "Whether a worker finds a part usable (1) or not (0); the parts are those of /readyz.",
    ("worker", "part"),
)
STARTS: Final = Row(
    "moorage_worker_starts_total",
    Kind.COUNTER,
    "Starts of HTTP workers and planners; more than one each means that some died and were"
    " replaced.",
    ("worker",),
)
CPU: Final = Row(
    "moorage_worker_cpu_seconds",
    Kind.GAUGE,
    "Processor time of a worker's present process.",
    ("worker",),
)
MEMORY: Final = Row(
    "moorage_worker_resident_bytes",
    Kind.GAUGE,
    "Memory of a worker's present process that is in RAM.",
    ("worker",),
)
REPLACED: Final = Row(
    "moorage_processes_replaced_total",
    Kind.COUNTER,
    "Processes that were unresponsive for worker_timeout and were killed, by process (worker"
    " 1, solver 1, planner 1, ...).",
    ("process",),
    on_scrape=True,
)
OPEN: Final = Row(
    "moorage_worker_connections",
    Kind.GAUGE,
    "Open connections of a worker.",
    ("worker",),
    on_scrape=True,
)
UNSENT: Final = Row(
    "moorage_worker_unsent_bytes",
    Kind.GAUGE,
    "Bytes of answers that clients of a worker have not read yet, where they read slowly; the limit"
    " is unsent_limit.",
    ("worker",),
    on_scrape=True,
)
ARRIVING: Final = Row(
    "moorage_worker_arriving_bytes",
    Kind.GAUGE,
    "Bytes of request bodies that a worker has received in part; the limit is arriving_limit.",
    ("worker",),
    on_scrape=True,
)
READERS_ENDED: Final = Row(
    "moorage_readers_ended_total",
    Kind.COUNTER,
    "Connections a worker ended because more than unsent_limit was not read.",
    ("worker",),
    on_scrape=True,
)
BODIES_REFUSED: Final = Row(
    "moorage_bodies_refused_total",
    Kind.COUNTER,
    "Request bodies a worker refused because more than arriving_limit was on its way.",
    ("worker",),
    on_scrape=True,
)
INFO: Final = Row(
    "moorage_build_info",
    Kind.GAUGE,
    "Always 1; the version is in the label.",
    ("version",),
    on_scrape=True,
)

TABLE: Final = (
    *(REQUESTS, REQUEST_SECONDS),
    *(COMMITS, COMMIT_SECONDS, RETRIES),
    *(REFRESH_SECONDS, REVISION, IN_STEP),
    *(SOLVES, SOLVERS, PLANNERS, PLANNING),
    *(HELD, EXPIRED, EXPIRY_ROUND),
    *(EFFECTS, EFFECTS_DUE, EFFECTS_AGE, EFFECTS_ROUND, DELIVERIES, WAITLIST),
    *(VIOLATIONS, MISSED, PLANS, PLAN_MOVES),
    *(CONNECTIONS, READY, STARTS, REPLACED, CPU, MEMORY),
    *(OPEN, UNSENT, ARRIVING, READERS_ENDED, BODIES_REFUSED, INFO),
)
"""All of them, in the order of the page."""
