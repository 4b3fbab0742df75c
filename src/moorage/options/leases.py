"""Settings of leases: who is told of them, and who ends servers."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from moorage.domain.period import say_duration
from moorage.options.kinds import Setting, duration, one_of, whole

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
        "How long before its end a preemptible server is warned at least, and how long before a"
        " lease needs its place that end is.",
        show=say_duration,
    ),
    Setting(
        "preemption",
        one_of("never", "pending"),
        "never",
        "WHICH",
        "Which leases give up their places for a lease of a higher priority that cannot be granted"
        " otherwise: none, or those that have not begun.",
    ),
    Setting(
        "preemption_notice",
        duration,
        "24h",
        "DURATION",
        "How long before it begins, with its lead, a lease is safe from preemption.",
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
        "Occurrences of one series, with those that it was extended by.",
    ),
    Setting(
        "capacity_buckets",
        whole(0, 2**31 - 1),
        (
            "0",
            "1",
            "2",
            "5",
            "10",
            "20",
            "50",
            "100",
            "200",
            "500",
            "1000",
            "2000",
            "5000",
            "10000",
        ),
        "N",
        "Counts of capacity are told to tenants as the largest of these that they reach. May be"
        " repeated; what is given replaces the default, and 0 is always one of them.",
        multi=True,
    ),
    Setting(
        "end_servers",
        one_of("none", "hook", "nova", "simulated"),
        "none",
        "WHO",
        "Who ends servers whose end has come: nobody; the program of `hook`; Nova, with the"
        " credentials of section [nova]; or, where `clock_file` says that it is a simulation, the"
        " service itself, which deletes their allocations.",
    ),
    Setting(
        "hook",
        str,
        "",
        "FILE",
        "A program that ends servers, and does what leases name with hook:NAME. It gets JSON on its"
        " standard input. Empty: none.",
    ),
    Setting(
        "webhook",
        web_address,
        "",
        "URL",
        "Where notices, warnings and overruns are told: a POST with JSON each. Empty: nowhere.",
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
        "Who is asked before a lease is granted or changed, and told when it has ended: a URL,"
        " below which check-create, check-update and on-end are posted to, or a program."
        " Empty: nobody.",
        secret=True,
    ),
    Setting(
        "lease_check_timeout",
        duration,
        "5s",
        "DURATION",
        "How long whoever asked for the lease waits for that answer at most.",
        show=say_duration,
    ),
    Setting(
        "lease_check_unanswered",
        one_of("refuse", "allow"),
        "refuse",
        "WHAT",
        "What becomes of a lease about which there is no answer: refuse it with 503, or allow it.",
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
        "How often such a call is tried before it is given up, but for the end of a server; the"
        " wait in between doubles from 5s to 15m.",
    ),
)
