"""Settings of leases: notices, checks, and the deletion of servers."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from moorage.domain.period import say_duration
from moorage.options.kinds import Setting, duration, lifetime, one_of, show_lifetime, whole

_WEB: Final = re.compile(r"https?://[^\s/?#]+[^\s#]*")


def web_address(text: str) -> str:
    """An http or https URL, or nothing."""
    try:
        parts = urlsplit(text)
        good = bool(parts.hostname) and parts.port != 0 and _WEB.fullmatch(text)
    except ValueError:
        good = False
    if text and not good:
        raise ValueError("must be a URL such as https://hooks.example.org/moorage")
    return text


def web_address_or_file(text: str) -> str:
    """An http or https URL, the path of a program, or nothing."""
    return web_address(text) if "://" in text else text


LEASES: Final = (
    Setting(
        "notice",
        duration,
        "5m",
        "DURATION",
        "Least time between the warning of a preemptible server and its end, and between that end"
        " and the lease that needs its place.",
        show=say_duration,
    ),
    Setting(
        "preemption",
        one_of("never", "pending"),
        "never",
        "WHICH",
        "Leases that may lose their places to a lease of a higher priority that cannot be granted"
        " otherwise: none (never), or those that have not started (pending).",
    ),
    Setting(
        "preemption_notice",
        duration,
        "24h",
        "DURATION",
        "A lease that starts sooner than this, with its lead, is not preempted.",
        show=say_duration,
    ),
    Setting(
        "longest_lease",
        duration,
        "365d",
        "DURATION",
        "The longest lease, from its start to its end.",
        show=say_duration,
    ),
    Setting(
        "longest_lead",
        duration,
        "24h",
        "DURATION",
        "The longest time before a lease's start in which its places are kept free; quotas do not"
        " count it.",
        show=say_duration,
    ),
    Setting(
        "longest_cleaning",
        duration,
        "24h",
        "DURATION",
        "The longest time after a lease's end in which its places are kept free; quotas do not"
        " count it.",
        show=say_duration,
    ),
    Setting(
        "lease_horizon",
        duration,
        "1095d",
        "DURATION",
        "How far ahead a lease may end, and the stay of an ensemble that has an end.",
        show=say_duration,
    ),
    Setting(
        "records_kept_for",
        lifetime,
        "90d",
        "DURATION",
        "How long records are kept after their end: closed leases with their series and ensembles,"
        " offers, entries of the waitlist, replaced decisions with their claims, effects and"
        " capacity windows. At least quota_window. forever: nothing is deleted.",
        show=show_lifetime,
    ),
    Setting(
        "lease_reservations",
        whole(1, 5_000),
        "200",
        "N",
        "Reservations of one lease: the roles of its ensemble.",
    ),
    Setting(
        "series_occurrences",
        whole(1, 1_000),
        "100",
        "N",
        "Occurrences of one series, extensions included.",
    ),
    Setting(
        "capacity_buckets",
        whole(0, 2**31 - 1),
        (
            *("0", "1", "2", "3", "4", "5", "8", "10", "20", "50", "100", "200", "500"),
            *("1000", "2000", "5000", "10000"),
        ),
        "N",
        "Counts are shown to tenants as the largest of these values that they reach: capacity,"
        " counts in explanations, and numbers that would fit. May be repeated; values replace"
        " the default, and 0 is always one of them.",
        multi=True,
    ),
    Setting(
        "end_servers",
        one_of("none", "hook", "nova", "simulated"),
        "none",
        "WHO",
        "How servers are deleted at their end: not at all (none); by the program `hook`; by Nova,"
        " with the credentials of section [nova]; or, in simulations only (`clock_file`), by the"
        " service itself, which deletes their allocations.",
    ),
    Setting(
        "move_servers",
        one_of("none", "nova", "simulated"),
        "none",
        "WHO",
        "Who moves servers when an operator applies a plan: nobody, so that plans can only be"
        " printed as commands (none); Nova, with the credentials of section [nova]; or, in"
        " simulations only (`clock_file`), the service itself, which writes allocations as Nova"
        " does.",
    ),
    Setting(
        "moves_shown_to",
        one_of("nobody", "operators", "everyone"),
        "operators",
        "WHO",
        "Who reads in a refusal how many moves of other servers would make room. It is not looked"
        " for where nobody who is refused reads it.",
    ),
    Setting(
        "automatic_plans",
        one_of("repair", "evacuate"),
        (),
        "KIND",
        "Plans that are applied by themselves: `repair`, those that policies with `on_violation:"
        " plan_repair` ask for; `evacuate`, which are made for hosts whose service is down for"
        " `host_settle_time` or forced down. May be repeated; by default none is.",
        multi=True,
    ),
    Setting(
        "automatic_plans_hourly",
        whole(0, 10_000),
        "4",
        "N",
        "Plans that are applied by themselves in an hour, of all kinds together; others wait for an"
        " operator.",
    ),
    Setting(
        "plan_parallel",
        whole(1, 1_000),
        "2",
        "N",
        "Moves of one plan at a time, where its request does not say.",
    ),
    Setting(
        "plan_per_host",
        whole(1, 1_000),
        "1",
        "N",
        "Moves of one plan at a time that leave or enter one host, where its request does not say.",
    ),
    Setting(
        "plan_failures",
        whole(1, 1_000),
        "2",
        "N",
        "A plan pauses at so many failed moves, where its request does not say.",
    ),
    Setting(
        "ticket_flavors",
        one_of("none", "nova"),
        "none",
        "WHO",
        "Who creates the flavors by which servers take held and leased places, and deletes them"
        " when a decision or lease is over: an operator, with the commands that `moorage decision"
        " flavors` prints (none); or Moorage, in Nova, with the credentials of section [nova].",
    ),
    Setting(
        "hook",
        str,
        "",
        "FILE",
        "A program that deletes servers, and carries out the actions hook:NAME of leases. It gets"
        " JSON on its standard input. Empty: none.",
    ),
    Setting(
        "webhook",
        web_address,
        "",
        "URL",
        "URL that notices, warnings and overruns are posted to as JSON. Empty: none.",
        secret=True,
    ),
    Setting(
        "webhook_secret_file",
        str,
        "",
        "FILE",
        "A file with the secret that requests to `webhook` and `lease_check` are signed with."
        " Empty: not signed.",
    ),
    Setting(
        "lease_check",
        web_address_or_file,
        "",
        "URL|FILE",
        "A check that is called before a lease is granted or changed, and after it has ended: a"
        " URL, below which check-create, check-update and on-end are posted, or a program."
        " Empty: none.",
        secret=True,
    ),
    Setting(
        "lease_check_timeout",
        duration,
        "5s",
        "DURATION",
        "The longest wait for the answer of `lease_check`.",
        show=say_duration,
    ),
    Setting(
        "lease_check_unanswered",
        one_of("refuse", "allow"),
        "refuse",
        "WHAT",
        "A lease for which `lease_check` gives no answer: refuse it with 503, or allow it.",
    ),
    Setting(
        "outward_timeout",
        duration,
        "10s",
        "DURATION",
        "How long one call of the hook, the webhook or Nova may take.",
        show=say_duration,
    ),
    Setting(
        "outward_attempts",
        whole(1, 100),
        "12",
        "N",
        "Attempts of such a call before it is given up; the deletion of a server is never given"
        " up. The wait between attempts doubles from 5s to 15m.",
    ),
)
