"""Settings of the service: addresses, processes, time limits, and how long things last."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import (
    AUTO,
    FOREVER,
    UNLIMITED,
    Setting,
    duration,
    host,
    lifetime,
    mount,
    number_or_words,
    one_of,
    planners,
    project_lifetime,
    show_lifetime,
    show_planners,
    show_project_lifetime,
    show_size,
    show_truth,
    size,
    truth,
    whole,
    word,
)

_LARGEST_PORT: Final = 65535
_MOST_NAMES: Final = 1_000_000


SERVICE: Final = (
    Setting("host", host, "127.0.0.1", "ADDRESS", "Address to listen on."),
    Setting(
        "port", whole(0, _LARGEST_PORT), "8778", "PORT", "Port to listen on; 0 is any free one."
    ),
    Setting(
        "database",
        str,
        "",
        "URL",
        "Where the ledger is. Empty: SQLite in $XDG_DATA_HOME/moorage/moorage.db"
        " (~/.local/share without that variable).",
        secret=True,
    ),
    Setting(
        "mount",
        mount,
        (),
        "NAME=/PATH",
        "Where an API or the page is served: placement (default: /placement), native (/v1),"
        " reservation (Blazar's API, /reservation), compute (Nova's server groups, /compute) and"
        " web (the page for browsers, /ui, which needs native). / is allowed, the longest path"
        " wins, NAME= leaves it out. May be repeated; comma-separated in the environment.",
        multi=True,
    ),
    Setting(
        "workers",
        whole(1, 256),
        "1",
        "N",
        "HTTP worker processes. With SQLite more than one is no faster.",
    ),
    Setting("threads", whole(2, 1024), "16", "N", "Requests one worker works on at the same time."),
    Setting(
        "planners",
        planners,
        AUTO,
        "N",
        "Planner processes, which work on requests that search: decisions, leases, offers, series,"
        " templates, explanations, questions about capacity. auto: half as many as there are CPUs,"
        " at least two, or one on a single CPU. 0: the HTTP workers do it themselves, as with a"
        " ledger in memory.",
        show=show_planners,
    ),
    Setting(
        "body_limit",
        size,
        "16M",
        "SIZE",
        "Longest request body; more is refused with 413.",
        show=show_size,
    ),
    Setting("solver_workers", whole(1, 256), "1", "N", "Solver processes."),
    Setting(
        "solver_queue",
        whole(1, 1000),
        "8",
        "N",
        "Requests that may wait for a solver process; more are refused with 503.",
    ),
    Setting(
        "solver_memory", size, "2G", "SIZE", "Memory one solver process may have.", show=show_size
    ),
    Setting(
        "solver_strategies",
        word,
        ("cpsat",),
        "NAME",
        "What searches after counting and the greedy search, in this order: cpsat, and the"
        " strategies of installed plug-ins. Each has an equal share of the time that is left. May"
        " be repeated; comma-separated in the environment.",
        multi=True,
    ),
    Setting(
        "solve_time_limit",
        duration,
        "5s",
        "DURATION",
        "How long a decision may be searched for, if the request does not say. At most a fifth of"
        " it goes into improving an answer that is valid already.",
        show=say_duration,
    ),
    Setting(
        "longest_time_limit",
        duration,
        "1m",
        "DURATION",
        "The longest search a request may ask for.",
        show=say_duration,
    ),
    Setting(
        "objective",
        one_of("spread", "pack", "balance", "room"),
        "spread",
        "NAME",
        "What is best among placements that meet the policies equally well, if a request does not"
        " say: `spread` uses many hosts, `pack` few, `balance` fills the fullest host least, `room`"
        " leaves most room for what others ask for. Ties are always decided as `room` does.",
    ),
    Setting(
        "explanation_time",
        whole(1, 100),
        "1",
        "N",
        "How long a refusal may be explained after the search, as a multiple of the request's time"
        " limit; at least a second. What is not finished then is said: the explanation's `complete`"
        " is false.",
    ),
    Setting(
        "request_time_limit",
        duration,
        "1m",
        "DURATION",
        "The longest time for one request: reading it, every search and every explanation together."
        " A time limit in a request cannot exceed it.",
        show=say_duration,
    ),
    Setting(
        "expensive_per_project",
        whole(1, 1024),
        "8",
        "N",
        "Requests of one project that may search, such as decisions, leases and questions"
        " about capacity, worked on by one worker at once; more are refused with 429. Operators"
        " are not counted. All projects together have three quarters of the threads at most.",
    ),
    Setting(
        "commit_attempts",
        whole(1, 1000),
        "25",
        "N",
        "How often a request is retried after conflicting commits, within its time limit; a"
        " decision is then tried once more while other writers wait.",
    ),
    Setting(
        "hold_default",
        duration,
        "10m",
        "DURATION",
        "How long a decision is held, if the request does not say.",
        show=say_duration,
    ),
    Setting("longest_hold", duration, "4h", "DURATION", "The longest hold.", show=say_duration),
    Setting("max_renewals", whole(0, 10_000), "10", "N", "How often a hold may be renewed."),
    Setting(
        "claim_lifetime",
        duration,
        "1h",
        "DURATION",
        "How long a claim keeps its place while its server is built.",
        show=say_duration,
    ),
    Setting(
        "longest_claim",
        duration,
        "1d",
        "DURATION",
        "The longest lifetime a claim may ask for.",
        show=say_duration,
    ),
    Setting(
        "spent_claims",
        one_of("ignore", "refuse"),
        "ignore",
        "WHAT",
        "A new server whose request presents a claim that is over (lapsed, failed, ended, or used"
        " by another server): treat it like any other server (ignore), or refuse its allocations"
        " with 409, so that Nova builds it nowhere (refuse). The claim's owner is told by the event"
        " claim.spent.",
    ),
    Setting(
        "misplaced_members",
        one_of("refuse", "report", "plan_repair"),
        "refuse",
        "WHAT",
        "A member's server that Nova moves (migration, evacuation, resize, unshelve) to a host on"
        " which the member breaks required policies of its ensemble that have no on_violation:"
        " refuse its allocations with 409, so that Nova takes another host (refuse), write them"
        " (report), or write them and make a plan to repair the ensemble (plan_repair). The event"
        " member.misplaced reports it to the project.",
    ),
    Setting(
        "foreign_servers",
        one_of("refuse", "report"),
        "report",
        "WHAT",
        "A server that Nova places on a host which the policy exclusive of an ensemble keeps from"
        " it, if the policy has no on_violation: refuse its allocations with 409 (refuse), or write"
        " them (report). The ensemble's project is told by the event policy.violated. With report,"
        " only operators may write on_violation: refuse.",
    ),
    Setting(
        "max_allocation_candidates",
        number_or_words(1, 10_000_000, AUTO, UNLIMITED),
        AUTO,
        "N",
        "Allocation candidates in one answer of Placement at most, whatever the query's limit;"
        " unlimited; or auto: 1,000, or as many as there are hosts, if these are more.",
    ),
    Setting(
        "allocation_candidates_generation_strategy",
        one_of("breadth-first", "depth-first"),
        "breadth-first",
        "WHICH",
        "Which candidates a number as max_allocation_candidates keeps: one of every host before a"
        " second of any (breadth-first), or all of one host before any of the next (depth-first)."
        " What auto keeps, and what a query's limit takes, is always breadth-first.",
    ),
    Setting(
        "randomize_allocation_candidates",
        truth,
        "false",
        "BOOL",
        "Whether answers with allocation candidates are random samples: hosts, and the devices of"
        " each host, in random order; with depth-first, of the candidates that the number keeps.",
        show=show_truth,
    ),
    Setting(
        "order_candidates_by_room",
        truth,
        "false",
        "BOOL",
        "Whether answers with all allocation candidates are ordered: first those that leave most"
        " room for what others ask for (moorage mix show). Nova's weighers may order hosts anew.",
        show=show_truth,
    ),
    Setting(
        "failed_builds",
        one_of("keep", "elsewhere"),
        "keep",
        "WHAT",
        "The place of a server whose allocations are deleted while its decision is held, as Nova"
        " does when it could not build the server: keep it held on its host (keep), or place the"
        " member anew on another host, all others staying (elsewhere).",
    ),
    Setting(
        "build_retries",
        whole(0, 20),
        "0",
        "N",
        "How many other hosts are candidates of a claim that is presented, for Nova's own retries"
        " of a failed build; a server that is written on one of them has its member placed there."
        " Needs the filter in nova-api and the weigher in nova-scheduler (moorage.nova_filter).",
    ),
    Setting(
        "server_provider_grace",
        duration,
        "1h",
        "DURATION",
        "How long a server may have no allocations, as a shelved one, until what it offers as a"
        " server provider ends with all slices on it.",
        show=say_duration,
    ),
    Setting(
        "offered_names",
        whole(0, _MOST_NAMES),
        "100",
        "N",
        "Custom resource classes and traits that the servers of one project may bring in by what"
        " they offer. They are deleted when no provider has them any more.",
    ),
    Setting(
        "lifetime",
        lifetime,
        FOREVER,
        "DURATION",
        "Assumed lifetime of a server that declares no end, when leases are planned; forever: no"
        " end.",
        show=show_lifetime,
    ),
    Setting(
        "project_lifetime",
        project_lifetime,
        (),
        "PROJECT=DURATION",
        "The same for one project, by id. May be repeated; comma-separated in the environment.",
        multi=True,
        show=show_project_lifetime,
    ),
    Setting(
        "held_members",
        whole(1, 10_000_000),
        "10000",
        "N",
        "Places one project may hold unclaimed at once.",
    ),
    Setting(
        "explanations_kept",
        whole(1, 10_000_000),
        "1000",
        "N",
        "Explanations of refusals kept for one project, with their instances: the newest.",
    ),
    Setting(
        "clock_file",
        str,
        "",
        "FILE",
        "For simulations: the file whose instant is the service's time. Empty: the machine's time.",
    ),
    Setting(
        "pid_file", str, "", "FILE", "Where the supervisor writes its process id. Empty: nowhere."
    ),
)
