"""Blazar's requirement language: `["and", ["==", "$vcpus", "4"], [">", "$memory_mb", "2048"]]`.

A requirement is JSON in a string. Two values are compared as numbers if both are numbers, otherwise
as text. Blazar compares properties that operators added as text, so "10" is less than "9" there (a
difference that the reference page lists). A host without the key never meets a requirement.
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
"""Longest requirement, in characters; it is stored with its lease as written."""
_TERM: Final = 3


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison of a host's key with a value."""

    key: str
    operator: str
    value: str

    def met_by(self, properties: Mapping[str, object]) -> bool:
        """Whether a host with these properties meets the comparison."""
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
    """The host properties that requirements may name.

    Naming a property that every host has is refused if it is not in `ordinary`. A private property,
    which operators added, is treated as if no host had it.
    """

    ordinary: frozenset[str] | None = None
    """Allowed ones of the properties that every host has; None: all, and private ones as well."""
    private: frozenset[str] = frozenset()
    granted: frozenset[Term] = frozenset()
    """Terms that may be named, and see private properties: a reservation was granted with them."""

    def check(self, requirement: Requirement) -> None:
        """Check that a requirement names only allowed properties.

        Raises:
            Forbidden: it names another property.
        """
        if self.ordinary is None:
            return
        for term in requirement:
            if term.key in OF_EVERY_HOST - self.ordinary and term not in self.granted:
                raise Forbidden(
                    f"requirements may not name {term.key}: tenants may name"
                    f" {', '.join(sorted(self.ordinary)) or 'none of the ordinary properties'}"
                    " and what was added to hosts (setting tenant_host_properties)"
                )

    def met_by(self, host: OfferedHost, requirement: Requirement) -> bool:
        """Whether a host meets every term, as far as its properties are to be seen."""
        known = host.properties
        hidden = frozenset[str]() if self.ordinary is None else self.private
        return all(
            (term.key not in hidden or term in self.granted) and term.met_by(known)
            for term in requirement
        )


ALL: Final = Properties()
"""All properties: for operators, and for leases that another service has granted."""

Requirement: TypeAlias = "tuple[Term, ...]"
"""All terms must be met; every host meets an empty requirement."""


def read_requirement(text: object) -> Requirement:
    """Read a requirement; an empty string has no terms.

    Raises:
        InvalidDescription: the text is no requirement, or too long.
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
