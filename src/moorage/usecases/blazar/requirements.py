"""Blazar's requirement language: `["and", ["==", "$vcpus", "4"], [">", "$memory_mb", "2048"]]`.

A requirement is JSON in a string. Both sides are compared as numbers where both are, and as text
otherwise; Blazar compares what operators add to a host as text, so that "10" is less than "9" there
(one of the differences that the reference page names). A host that lacks the key never meets it.
"""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moorage.domain.errors import Forbidden, InvalidDescription
from moorage.usecases.blazar.reservables import OF_EVERY_HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.usecases.blazar.reservables import OfferedHost

_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "=": operator.eq,
        "==": operator.eq,
        "!=": operator.ne,
        ">=": operator.ge,
        "<=": operator.le,
        ">": operator.gt,
        "<": operator.lt,
    }
)
MAX_TERMS: Final = 100
MAX_LENGTH: Final = 16_384
"""Characters of one: it is kept with its lease as it was written."""
_TERM: Final = 3


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison of a host's key with a value."""

    key: str
    operator: str
    value: str

    def met_by(self, properties: Mapping[str, object]) -> bool:
        """Whether a host with these properties meets it."""
        if self.key not in properties or properties[self.key] is None:
            return False
        theirs, ours = str(properties[self.key]), self.value
        compare = _OPERATORS[self.operator]
        numbers = _number(theirs), _number(ours)
        if numbers[0] is not None and numbers[1] is not None:
            return compare(*numbers)
        return compare(theirs, ours)


@dataclass(frozen=True, slots=True)
class Properties:
    """Which properties of hosts requirements may name.

    A property that every host has is refused where it is not `ordinary`; one that operators have
    added and marked private is there for nobody, as one that does not exist.
    """

    ordinary: frozenset[str] | None = None
    """Of those that every host has; None: all, and private ones as well."""
    private: frozenset[str] = frozenset()

    def permitted(self, requirement: Requirement) -> Requirement:
        """The requirement, if it may name what it names.

        Raises:
            Forbidden: it may not.
        """
        if self.ordinary is not None:
            for term in requirement:
                if term.key in OF_EVERY_HOST and term.key not in self.ordinary:
                    raise Forbidden(
                        f"requirements may not name {term.key}: tenants may name"
                        f" {', '.join(sorted(self.ordinary)) or 'none of the ordinary properties'}"
                        " and what was added to hosts (setting tenant_host_properties)"
                    )
        return requirement

    def seen(self, host: OfferedHost) -> Mapping[str, object]:
        """What requirements find of a host."""
        if self.ordinary is None:
            return host.properties
        return {key: value for key, value in host.properties.items() if key not in self.private}


ALL: Final = Properties()
"""Everything: for operators, and what another service has granted."""

Requirement: TypeAlias = "tuple[Term, ...]"
"""All of these; none at all is met by every host."""


def read_requirement(text: object) -> Requirement:
    """Read a requirement; an empty string asks for nothing.

    Raises:
        InvalidDescription: it is not one.
    """
    if text in ("", None):
        return ()
    try:
        written = text if isinstance(text, str) else json.dumps(text)
        if len(written) > MAX_LENGTH:
            raise InvalidDescription(f"a requirement has at most {MAX_LENGTH} characters")
        source = json.loads(written)
    except (ValueError, RecursionError):
        raise _malformed(text) from None
    found = tuple(_terms(source, text))
    if len(found) > MAX_TERMS:
        raise InvalidDescription(f"a requirement has at most {MAX_TERMS} terms")
    return found


def meets(requirement: Requirement, properties: Mapping[str, object]) -> bool:
    """Whether a host with these properties meets every term."""
    return all(term.met_by(properties) for term in requirement)


def _terms(source: object, text: object) -> Iterable[Term]:
    if not isinstance(source, list) or not source:
        raise _malformed(text)
    if source[0] == "and":
        if len(source) == 1:
            raise _malformed(text)
        for one in source[1:]:
            if not isinstance(one, list) or not one or one[0] == "and":
                raise _malformed(text)
            yield from _terms(one, text)
        return
    if len(source) != _TERM or not all(isinstance(one, str) for one in source):
        raise _malformed(text)
    sign, key, value = source
    if sign not in _OPERATORS or not key.startswith("$") or len(key) == 1:
        raise _malformed(text)
    yield Term(key[1:], sign, value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _malformed(text: object) -> InvalidDescription:
    return InvalidDescription(f"Malformed requirements {str(text)[:200]}")
