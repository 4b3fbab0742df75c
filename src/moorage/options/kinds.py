"""The definition of one setting, and the types of values: from text to value and back."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import parse_duration, say_duration

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_SIZE: Final = re.compile(r"(\d+)([KMG]?)", re.ASCII)
_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_PATH: Final = re.compile(r"(/|(/[A-Za-z0-9._~-]+)+)?", re.ASCII)
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9._~\[\]:-]+")
_MOST: Final = 1_000_000_000
_DIGITS: Final = 11
_TRUE: Final = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "off", "0"})
"""As oslo.config reads them."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)


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

    @property
    def written_default(self) -> str:
        """The default as written in the environment."""
        return ",".join(self.default) if self.multi else self.default


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


def or_word(parse: Callable[[str], T], word: str) -> Callable[[str], T | None]:
    """The type of what `parse` reads, or of a word: None."""

    def read(text: str) -> T | None:
        if text == word:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise ValueError(f"{error}, or {word}") from error

    return read


def number_or_words(least: int, most: int, *words: str) -> Callable[[str], int | str]:
    """The type of a whole number within bounds, or of one of these words."""

    def read(text: str) -> int | str:
        if text in words:
            return text
        try:
            return whole(least, most)(text)
        except ValueError as error:
            raise ValueError(f"{error}, or {' or '.join(words)}") from error

    return read


def show_or_word(word: str, show: Callable[[Any], str] = str) -> Callable[[Any], str]:
    """The text that `or_word` reads as a value."""
    return lambda value: word if value is None else show(value)


def _digits(least: int) -> Callable[[str], int]:
    """The type of a number in plain digits."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text[:_DIGITS]) <= _MOST):
            raise ValueError(f"must be a whole number from {least} to {_MOST}")
        return int(text)

    return parse


def _length(text: str) -> int:
    try:
        return parse_duration(text)
    except InvalidDescription as error:
        raise ValueError("must be a duration such as 90d") from error


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


AUTO: Final = "auto"
"""The number that follows from other settings, or from the number of CPUs: None."""
FOREVER: Final = "forever"
"""The lifetime that has no end: None."""
UNLIMITED: Final = "unlimited"
"""The limit that nothing passes: None."""

planners, show_planners = or_word(whole(0, 256), AUTO), show_or_word(AUTO)
"""A number of processes; `auto`: by the number of CPUs."""
number_or_auto, show_number_or_auto = or_word(_digits(1), AUTO), show_or_word(AUTO)
"""A number of at least one."""
lifetime, show_lifetime = or_word(duration, FOREVER), show_or_word(FOREVER, say_duration)
"""A duration of at least a second in microseconds."""
most, show_most = or_word(_digits(0), UNLIMITED), show_or_word(UNLIMITED)
"""A limit of a number."""
longest, show_longest = or_word(_length, UNLIMITED), show_or_word(UNLIMITED, say_duration)
"""A limit in microseconds."""


def project_lifetime(text: str) -> tuple[str, int | None]:
    """`PROJECT=DURATION`, or `PROJECT=forever`."""
    project, equals, life = text.strip().partition("=")
    if not (project and equals):
        raise ValueError(f"must be PROJECT=DURATION, or PROJECT={FOREVER}")
    return project, lifetime(life)


def show_project_lifetime(value: tuple[str, int | None]) -> str:
    """The text that `project_lifetime` reads as this value."""
    return f"{value[0]}={show_lifetime(value[1])}"


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
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("must be true or false")
    return word in _TRUE


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


def show_truth(value: bool) -> str:  # noqa: FBT001 - the value itself
    """The text that `truth` reads as this value."""
    return str(value).lower()


def origin(text: str) -> str:
    """An origin as a browser sends it: `https://host[:port]`, or `*` for any."""
    if text != "*" and not _ORIGIN.fullmatch(text):
        raise ValueError("must be an origin such as https://dashboard.example.org, or *")
    return text


def site(text: str) -> str:
    """The origin of one web site: `https://host[:port]`."""
    if not re.fullmatch(r"https?://[A-Za-z0-9._~\[\]:-]+", text):
        raise ValueError("must be an origin such as https://dashboard.example.org")
    return text


def name(text: str) -> str:
    """The name of a header or a method (a token of RFC 9110)."""
    if not _TOKEN.fullmatch(text):
        raise ValueError("must be the name of a header or a method")
    return text


def word(text: str) -> str:
    """A name of letters, digits and `_ . : -`."""
    if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", text):
        raise ValueError("must be a name of letters, digits, _ . : -")
    return text


def network(text: str) -> str:
    """An IP address or a network such as `10.0.0.0/24`."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise ValueError("must be an IP address or a network such as 10.0.0.0/24") from error
