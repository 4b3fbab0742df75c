"""The grammar of query values: resources, traits, aggregates, trees.

Sentences are the reference's; clients and wire tests quote them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from moorage.api.placement.refusals import BadQuery
from moorage.api.placement.validation import is_uuid_like
from moorage.domain.resources import MAX_AMOUNT

RESOURCES_FORM: Final = (
    "Badly formed resources parameter. Expected resources query string parameter in form: "
    "?resources=VCPU:2,MEMORY_MB:1024. Got: "
)
BEYOND: Final = MAX_AMOUNT + 1
"""More than any `max_unit`. Amounts above it fit as little as it does."""

INVALID: Final = "Invalid query string parameters: "


class VersionedQuery(Protocol):
    """A query, and the version whose grammar applies."""

    def has(self, feature: str) -> bool:
        """Whether the version has the feature."""

    def values(self, key: str) -> list[str]:
        """Every value of a parameter, in order."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Required sets (all of them, any trait of each) and forbidden traits."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()

    def conflicts(self) -> list[frozenset[str]]:
        """Required sets of which the forbidden traits leave nothing."""
        return [any_of for any_of in self.required if any_of <= self.forbidden]


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Required sets (all of them, any aggregate of each) and forbidden aggregates."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


def resources(text: str) -> dict[str, int]:
    """Read `VCPU:2,MEMORY_MB:1024`; the last of a repeated class counts."""
    if not text.strip():
        raise BadQuery(RESOURCES_FORM + "empty string.")
    found = {}
    for item in text.split(","):
        name, colon, amount = item.partition(":")
        if not colon or ":" in amount:
            raise BadQuery(f"{RESOURCES_FORM}{item}.")
        found[name] = _amount(name, amount)
    return found


def _amount(name: str, text: str) -> int:
    try:
        amount = int(text)
    except ValueError:
        raise BadQuery(
            f"Requested resource {name} expected positive integer amount. Got: {text}."
        ) from None
    if amount < 1:
        raise BadQuery(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    return min(amount, BEYOND)


def traits(request: VersionedQuery, key: str) -> Traits:
    """Read every value of a `required…` parameter, in the grammar of the client's version."""
    values = request.values(key)
    if not request.has("any-traits"):
        values = values[-1:]
    parsed = [
        trait_list(
            value,
            forbidden=request.has("forbidden-traits"),
            any_of=request.has("any-traits"),
        )
        for value in values
    ]
    return Traits(
        tuple(any_of for one in parsed for any_of in one.required),
        frozenset(trait for one in parsed for trait in one.forbidden),
    )


def trait_list(text: str, *, forbidden: bool, any_of: bool) -> Traits:
    """Read `A,!B`, or `in:A,B` where `any_of` allows it; `!` where `forbidden` allows it."""
    if text.startswith("in:"):
        if not any_of:
            raise BadQuery(
                f"{INVALID}The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since "
                f"microversion 1.39. Got: {text}"
            )
        return Traits((_any_of(text),))
    names = [name.strip() for name in text.split(",")]
    refused = frozenset(name.lstrip("!") for name in names if name.startswith("!"))
    if not all(names) or not all(refused):
        form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if forbidden else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
        raise BadQuery(f"{_expected(form)} Got an empty trait in: {text}")
    if refused and not forbidden:
        raise BadQuery(f"{_expected('HW_CPU_X86_VMX,CUSTOM_MAGIC')} Got: {text}")
    wanted = tuple(frozenset({name}) for name in names if not name.startswith("!"))
    return Traits(wanted, refused)


def _any_of(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.removeprefix("in:").split(","))
    if not all(names):
        raise BadQuery(
            f"{_expected('in:HW_CPU_X86_VMX,CUSTOM_MAGIC')} Got an empty trait in: {text}"
        )
    if any(name.startswith("!") for name in names):
        raise BadQuery(
            f"{INVALID}The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does not support forbidden "
            f"traits. Got: {text}"
        )
    return names


def _expected(form: str) -> str:
    return f"{INVALID}Expected 'required' parameter value of the form: {form}."


def aggregates(request: VersionedQuery, suffix: str = "") -> Aggregates:
    """Read every value of a `member_of…` parameter: `U`, `in:U,V`, `!U`, `!in:U,V`."""
    values = request.values(f"member_of{suffix}")
    if len(values) > 1 and not request.has("repeated-member-of"):
        raise BadQuery(f"Multiple member_of{suffix} parameters are not supported")
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        refuses, uuids = _aggregate_list(value)
        if not refuses:
            required.append(uuids)
        elif request.has("forbidden-aggregates"):
            forbidden |= uuids
        else:
            raise BadQuery(
                f"Forbidden member_of{suffix} parameters are not supported in the specified "
                "microversion"
            )
    return Aggregates(tuple(required), frozenset(forbidden))


def _aggregate_list(text: str) -> tuple[bool, frozenset[str]]:
    """Whether the aggregates are forbidden, and their UUIDs."""
    bare = text.removeprefix("!")
    if "," in bare and not bare.startswith("in:"):
        raise BadQuery(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            f"using the valid microversion. Got: {text}"
        )
    uuids = frozenset(bare.removeprefix("in:").split(",")) if bare.startswith("in:") else {bare}
    for uuid in sorted(uuids):
        if not is_uuid_like(uuid):
            raise BadQuery(
                f"{INVALID}Expected 'member_of' parameter to contain valid UUID(s). Got: {uuid}"
            )
    return text.startswith("!"), frozenset(uuids)


def tree(text: str) -> str:
    """Read an `in_tree…` value: the UUID of any provider in the tree."""
    uuid = text.strip()
    if not is_uuid_like(uuid):
        raise BadQuery(f"{INVALID}Expected 'in_tree' parameter to be a format of uuid. Got: {text}")
    return uuid
