"""The table of settings: names, types, defaults, and what they mean.

Apart from `settings`, so that the command line's help and the reference page need nothing else.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOUNTS: Final[Mapping[str, str]] = {"placement": "/placement", "native": "/v1"}
"""Every dialect and its path, unless `mount` says otherwise."""

_SIZE: Final = re.compile(r"(\d+)([KMG]?)", re.ASCII)
_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_PATH: Final = re.compile(r"(/|(/[A-Za-z0-9._~-]+)+)?", re.ASCII)
_LARGEST_PORT: Final = 65535


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    name: str
    type: Callable[[str], Any]
    """From text to value; raises ValueError with the expectation."""
    default: Any
    """As text, or a list of texts for `multi`."""
    metavar: str
    help: str
    multi: bool = False
    secret: bool = False
    """Whether the value may hold a password."""
    show: Callable[[Any], str] = str
    """From value to text."""


def whole(least: int, most: int) -> Callable[[str], int]:
    """The type of a whole number within bounds."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return number

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """The type of a word from a list."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text

    return parse


def duration(text: str) -> int:
    """A duration of at least a second, in microseconds."""
    try:
        value = parse_duration(text)
    except InvalidDescription as error:
        raise ValueError("must be a duration such as 10m or PT10M") from error
    if value == 0:
        raise ValueError("must be longer than nothing")
    return value


def size(text: str) -> int:
    """A number of bytes: `1048576`, `512K`, `16M`, `2G`."""
    match = _SIZE.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise ValueError("must be a size in bytes such as 16M")
    return int(match[1]) * _UNITS[match[2]]


def show_size(value: int) -> str:
    """The shortest text that `size` reads as this value."""
    for unit in "GMK":
        if value % _UNITS[unit] == 0:
            return f"{value // _UNITS[unit]}{unit}"
    return str(value)


def truth(text: str) -> bool:
    """Yes or no."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ValueError("must be true or false")
    return words[text.lower()]


def mount(text: str) -> str:
    """`name=/path`; `name=` leaves the dialect out."""
    name, equals, path = text.strip().partition("=")
    if not (name and equals and _PATH.fullmatch(path.rstrip("/") or path)):
        raise ValueError("must be NAME=/PATH")
    return f"{name}={path}"


def host(text: str) -> str:
    """An address or name to listen on."""
    if not re.fullmatch(r"[A-Za-z0-9._:-]+", text):
        raise ValueError("must be an IP address or a host name")
    return text


def default_database() -> Path:
    """The SQLite file in the user's data directory: one ledger, whatever the current directory."""
    data = os.environ.get("XDG_DATA_HOME")
    base = Path(data) if data else Path.home() / ".local" / "share"
    return base / "moorage" / "moorage.db"


SETTINGS: Final = (
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
        "auth",
        one_of("noauth2"),
        "noauth2",
        "STRATEGY",
        "How callers are known. noauth2 believes the token, `user[:project]`.",
    ),
    Setting(
        "insecure",
        truth,
        "false",
        "BOOL",
        "Allow noauth2 on an address that others can reach.",
        show=lambda value: str(value).lower(),
    ),
    Setting(
        "mount",
        mount,
        (),
        "NAME=/PATH",
        "Where a dialect is served: placement (/placement unless said) and native (/v1). / is"
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
        show=format_duration,
    ),
    Setting(
        "longest_time_limit",
        duration,
        "1m",
        "DURATION",
        "The longest search a request may ask for.",
        show=format_duration,
    ),
    Setting(
        "hold_default",
        duration,
        "10m",
        "DURATION",
        "How long a decision is held, unless said.",
        show=format_duration,
    ),
    Setting("longest_hold", duration, "4h", "DURATION", "The longest hold.", show=format_duration),
    Setting("max_renewals", whole(0, 10_000), "10", "N", "How often a hold may be renewed."),
    Setting(
        "claim_lifetime",
        duration,
        "1h",
        "DURATION",
        "How long a claim keeps its place while its server is built.",
        show=format_duration,
    ),
    Setting(
        "longest_claim",
        duration,
        "1d",
        "DURATION",
        "The longest lifetime a claim may ask for.",
        show=format_duration,
    ),
    Setting(
        "held_members",
        whole(1, 10_000_000),
        "10000",
        "N",
        "Places one project may hold unclaimed at once.",
    ),
    Setting(
        "log_level",
        one_of("debug", "info", "warning", "error"),
        "info",
        "LEVEL",
        "What is logged to standard error: debug, info (a line per request), warning, error.",
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
"""All of them, in the order they are shown."""
