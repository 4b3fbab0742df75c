"""Bodies and queries against JSON schemas, worded as Python's `jsonschema` words it.

Clients and the reference's wire tests quote these sentences, so the validator is part of the
protocol. Validators are compiled once per operation and version; most values are found valid by
a quicker check first.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import UUID

import msgspec
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.exceptions import best_match

from moorage.api.placement.fast_schema import Check, compiled
from moorage.api.placement.schemas import BODIES, QUERIES
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from moorage.http.microversion import JSON, Operation, Spoken

_KEPT: Final = 256
"""Queries that are known to be valid."""

_BODY_FORMATS = FormatChecker(formats=())
"""Bodies take UUIDs in every spelling, as the reference's format checker does."""

_QUERY_FORMATS = FormatChecker(formats=("uuid",))
"""Queries take dashed UUIDs only."""


_CANONICAL: Final = re.compile("[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def is_uuid_like(text: object) -> bool:
    """Whether the text spells a UUID: dashes, braces, `urn:uuid:` and case do not matter."""
    if not isinstance(text, str):
        return False
    if _CANONICAL.fullmatch(text):  # as nearly all are; the rest takes ten times as long
        return True
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    try:
        return UUID(text).hex == bare
    except ValueError:
        return False


def canonical(text: str) -> str:
    """A text that spells a UUID, as UUIDs are written down."""
    return text if _CANONICAL.fullmatch(text) else str(UUID(text))


_BODY_FORMATS.checks("uuid")(is_uuid_like)


def decoded(raw: bytes) -> JSON:
    """Decode a JSON body.

    Raises:
        InvalidDescription: it is no JSON, or holds text that cannot be stored (NUL, a lone
            surrogate) or numbers that are none.
    """
    try:
        value = _quick(raw)
    except (ValueError, RecursionError):
        value = _in_words(raw)
    if b"\\u" in raw:
        try:
            _refuse_unstorable(json.dumps(value, ensure_ascii=False))
        except (ValueError, RecursionError) as error:
            raise InvalidDescription(f"Malformed JSON: {error}") from error
    return value


_quick = msgspec.json.Decoder().decode
"""Finds the same values as Python's own decoder wherever it finds any, in a quarter of the time."""


def _in_words(raw: bytes) -> JSON:
    """What Python's decoder finds, or says, of what is malformed or out of the ordinary."""
    try:
        text = raw.decode()
        # `loads` would make a decoder for each text; it has words for a byte order mark.
        return json.loads(text) if text.startswith("\ufeff") else _decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDescription(f"Malformed JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _refuse_unstorable(text: str) -> None:
    text.encode()
    if "\\u0000" in text:
        raise ValueError("text holds a NUL character")


def check_body(operation: Operation, spoken: Spoken, body: JSON) -> None:
    """Judge a body by the schema of the client's version.

    Raises:
        InvalidDescription: it does not validate.
    """
    if _body_check(operation, spoken)(body):
        return
    error = best_match(_body_validator(operation, spoken).iter_errors(body))
    if error is not None:
        raise InvalidDescription(f"JSON does not validate: {error}") from error


def check_query(operation: Operation, spoken: Spoken, query: tuple[tuple[str, str], ...]) -> None:
    """Judge query parameters by the schema of the client's version; the last of each counts.

    Operations without a query schema ignore their query string, as the reference does.

    Raises:
        InvalidDescription: a parameter is unknown, missing or malformed.
    """
    if operation not in QUERIES:
        return
    if _is_valid(operation, spoken, query):
        return
    error = best_match(_query_validator(operation, spoken).iter_errors(dict(query)))
    if error is not None:
        raise InvalidDescription(f"Invalid query string parameters: {error}") from error


@lru_cache(maxsize=_KEPT)
def _is_valid(operation: Operation, spoken: Spoken, query: tuple[tuple[str, str], ...]) -> bool:
    return _query_check(operation, spoken)(dict(query))


def check_value(value: JSON, schema: JSON) -> ValidationError | None:
    """The first fault of a value that is neither body nor query, or None."""
    fault: ValidationError | None = best_match(Draft202012Validator(schema).iter_errors(value))
    return fault


# All caches are bounded by operations x versions: a history makes one `Spoken` per version.


@cache
def body_schema(operation: Operation, spoken: Spoken) -> JSON:
    """The schema of the operation's body in the client's version; None where it has no body."""
    return spoken.schema(operation, BODIES.get(operation))


@cache
def _body_validator(operation: Operation, spoken: Spoken) -> Draft202012Validator:
    return Draft202012Validator(body_schema(operation, spoken), format_checker=_BODY_FORMATS)


@cache
def _body_check(operation: Operation, spoken: Spoken) -> Check:
    return compiled(body_schema(operation, spoken), {"uuid": is_uuid_like})


@cache
def _query_check(operation: Operation, spoken: Spoken) -> Check:
    schema = spoken.query(operation, QUERIES[operation])
    return compiled(schema, {"uuid": lambda text: _QUERY_FORMATS.conforms(text, "uuid")})


@cache
def _query_validator(operation: Operation, spoken: Spoken) -> Draft202012Validator:
    schema = spoken.query(operation, QUERIES[operation])
    return Draft202012Validator(schema, format_checker=_QUERY_FORMATS)
