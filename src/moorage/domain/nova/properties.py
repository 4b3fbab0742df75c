"""Extra specs of a flavor and properties of an image: their values, and errors that name them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Mapping

TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
FALSE: Final = frozenset({"0", "f", "false", "off", "n", "no"})
_UNBOUNDED: Final = 2**63
_SHOWN: Final = 80
"""Characters of a value that an error shows."""

ValueRule: TypeAlias = Callable[[str], str | None]
"""What a value must be, for an error; None: this one is."""


@dataclass(frozen=True, slots=True)
class Properties:
    """Extra specs or image properties, with their place in errors."""

    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    path: str = "extra_specs"
    known: bool = True
    """Whether these are all there are: False for an image of which nothing is said."""

    def get(self, key: str) -> str | None:
        """The value of a key; None without it."""
        return self.values.get(key)

    def refusal(self, key: str, why: str) -> InvalidDescription:
        """The error that names one of the keys."""
        return InvalidDescription(f"{key}: {why}", path=f"{self.path}.{key}")


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a flavor and an image say about the same things: `hw:x` and `hw_x`."""

    flavor: Properties
    image: Properties

    def both(self, name: str, prefix: str = "hw") -> tuple[str | None, str | None]:
        """The flavor's value and the image's."""
        return self.flavor.get(f"{prefix}:{name}"), self.image.get(f"{prefix}_{name}")

    def agreed(self, name: str, prefix: str = "hw") -> str | None:
        """The value of one of them, or of both.

        Raises:
            InvalidDescription: they differ.
        """
        ours, theirs = self.both(name, prefix)
        if ours is not None and theirs is not None and ours != theirs:
            raise self._differs(name, prefix)
        return theirs if ours is None else ours

    def flag(self, name: str) -> bool | None:
        """The truth value that one of them states, or both; None: neither.

        Raises:
            InvalidDescription: they differ.
        """
        ours, theirs = self.both(name)
        if ours is None or theirs is None:
            stated = theirs if ours is None else ours
            return None if stated is None else is_true(stated)
        if is_true(ours) != is_true(theirs):
            raise self._differs(name, "hw")
        return is_true(ours)

    def _differs(self, name: str, prefix: str) -> InvalidDescription:
        ours, theirs = self.both(name, prefix)
        why = f"the flavor says {ours!r}, and the image {theirs!r}"
        return self.flavor.refusal(f"{prefix}:{name}", why)


def is_true(value: str) -> bool:
    """Whether a truth value is true; one that obeys the rule `flag`."""
    return value.strip().lower() in TRUE


# --- rules of values ------------------------------------------------------------------------


def anything(value: str) -> str | None:
    """Any text that is not empty."""
    return None if value else "must not be empty"


def flag(value: str) -> str | None:
    """A truth value."""
    return None if value.strip().lower() in TRUE | FALSE else "must be true or false"


def integer(value: str) -> str | None:
    """A whole number, positive or not."""
    return None if re.fullmatch(r"-?[0-9]{1,19}", value) else "must be a whole number"


def at_least(least: int, most: int = _UNBOUNDED) -> ValueRule:
    """The rule of a whole number in plain digits, within bounds."""
    bounds = f"of at least {least}" if most == _UNBOUNDED else f"from {least} to {most}"

    def rule(value: str) -> str | None:
        if re.fullmatch(r"[0-9]{1,19}", value) and least <= int(value) <= most:
            return None
        return f"must be a whole number {bounds}"

    return rule


def one_of(*words: str) -> ValueRule:
    """The rule of a word from a list."""
    return lambda value: None if value in words else f"must be {' or '.join(words)}"


def matching(pattern: str, like: str) -> ValueRule:
    """The rule of a pattern, with an example for the error."""
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: None if compiled.fullmatch(value) else f"must be like {like}"


def shown(value: str) -> str:
    """A value for an error, cut where it is long."""
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
