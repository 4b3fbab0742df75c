"""Settings of the service itself: where it listens, what it may use, how long things last."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import (
    FOREVER,
    Setting,
    duration,
    host,
    lifetime,
    mount,
    project_lifetime,
    show_lifetime,
    show_project_lifetime,
    show_size,
    size,
    whole,
)

_LARGEST_PORT: Final = 65535

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
        "Where a dialect is served: placement (/placement unless said), native (/v1) and"
        " reservation (Blazar's API, /reservation). / is"
        " allowed, the longest path wins, NAME= leaves it out. May be repeated; comma-separated in"
        " the environment.",
        multi=True,
    ),
    Setting(
        "workers", whole(1, 256), "1", "N", "HTTP worker processes. SQLite gains nothing from more."
    ),
    Setting("threads", whole(2, 1024), "16", "N", "Requests one worker works on at the same time."),
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
        "solve_time_limit",
        duration,
        "5s",
        "DURATION",
        "How long a decision may be searched for, unless the request says otherwise.",
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
        "commit_attempts",
        whole(1, 1000),
        "25",
        "N",
        "How often a request is tried that others overtake, for as long as its time limit;"
        " a decision then once more, while others wait.",
    ),
    Setting(
        "hold_default",
        duration,
        "10m",
        "DURATION",
        "How long a decision is held, unless said.",
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
        "lifetime",
        lifetime,
        FOREVER,
        "DURATION",
        "How long a server stays that declares no end, as leases count on it; forever: no end.",
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
