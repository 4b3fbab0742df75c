"""Checks of bodies and queries against JSON schemas, with the messages of Python's `jsonschema`.

Clients and the reference's wire tests quote these sentences, so the validator is part of the
protocol. It takes about a millisecond for a body, so `fastjsonschema`, which makes code of schemas,
is asked first: only what it refuses goes to `jsonschema`. Both are made once per operation and
version, at the first use.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import UUID

import fastjsonschema
import msgspec
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.exceptions import best_match

from moorage.api.placement.schemas import BODIES, QUERIES
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.http.microversion import JSON, NegotiatedVersion, Operation

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
    """The canonical spelling of a UUID."""
    return text if _CANONICAL.fullmatch(text) else str(UUID(text))


_BODY_FORMATS.checks("uuid")(is_uuid_like)


def decoded(raw: bytes) -> JSON:
    """Decode a JSON body; the kernel has checked that its texts can be stored.

    Raises:
        InvalidDescription: it is no JSON, or holds numbers that are none.
    """
    try:
        return _quick(raw)
    except (ValueError, RecursionError):
        return _in_words(raw)


_quick = msgspec.json.Decoder().decode
"""Finds the same values as Python's own decoder wherever it finds any, in a quarter of the time."""


def _in_words(raw: bytes) -> JSON:
    """A malformed or unusual body, decoded or refused as Python's decoder would."""
    try:
        text = raw.decode()
        # `loads` would make a decoder for each text; it has words for a byte order mark.
        return json.loads(text) if text.startswith("\ufeff") else _decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDescription(f"Malformed JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def check_body(operation: Operation, negotiated: NegotiatedVersion, body: JSON) -> None:
    """Check a body against the schema of the client's version.

    Raises:
        InvalidDescription: it does not validate.
    """
    try:
        if _body_check(operation, negotiated)(body):
            return
        error = best_match(_body_validator(operation, negotiated).iter_errors(body))
        text = None if error is None else f"JSON does not validate: {error}"
    except RecursionError:  # to check it, or to quote it
        raise InvalidDescription("JSON does not validate: it is nested too deeply") from None
    if text is not None:
        raise InvalidDescription(text) from error


def check_query(
    operation: Operation, negotiated: NegotiatedVersion, query: tuple[tuple[str, str], ...]
) -> None:
    """Check query parameters against the client's version's schema; the last of each counts.

    Operations without a query schema ignore their query string, as the reference does.

    Raises:
        InvalidDescription: a parameter is unknown, missing or malformed.
    """
    if operation not in QUERIES:
        return
    if _is_valid(operation, negotiated, query):
        return
    error = best_match(_query_validator(operation, negotiated).iter_errors(dict(query)))
    if error is not None:
        raise InvalidDescription(f"Invalid query string parameters: {error}") from error


@lru_cache(maxsize=_KEPT)
def _is_valid(
    operation: Operation, negotiated: NegotiatedVersion, query: tuple[tuple[str, str], ...]
) -> bool:
    return _query_check(operation, negotiated)(dict(query))


def check_value(value: JSON, schema: JSON) -> ValidationError | None:
    """The first fault of a value that is neither body nor query, or None."""
    fault: ValidationError | None = best_match(Draft202012Validator(schema).iter_errors(value))
    return fault


# All caches are bounded by operations x versions: a history makes one of these per version.


@cache
def body_schema(operation: Operation, negotiated: NegotiatedVersion) -> JSON:
    """The schema of the operation's body in the client's version; None where it has no body."""
    return negotiated.schema(operation, BODIES.get(operation))


@cache
def _body_validator(operation: Operation, negotiated: NegotiatedVersion) -> Draft202012Validator:
    return Draft202012Validator(body_schema(operation, negotiated), format_checker=_BODY_FORMATS)


def quick_check(schema: JSON, is_uuid: Callable[[str], bool]) -> Callable[[JSON], bool]:
    """A function that is true of values that `jsonschema` finds valid, and false of others.

    It may be false of a valid value too: `$` in a `pattern` means the very end here, and before a
    last line break too in `jsonschema`.
    """
    validate = fastjsonschema.compile(
        schema, formats={"uuid": is_uuid}, use_default=False, detailed_exceptions=False
    )

    def check(value: JSON) -> bool:
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return check


@cache
def _body_check(operation: Operation, negotiated: NegotiatedVersion) -> Callable[[JSON], bool]:
    return quick_check(body_schema(operation, negotiated), is_uuid_like)


@cache
def _query_check(operation: Operation, negotiated: NegotiatedVersion) -> Callable[[JSON], bool]:
    schema = negotiated.query(operation, QUERIES[operation])
    return quick_check(schema, lambda text: _QUERY_FORMATS.conforms(text, "uuid"))


@cache
def _query_validator(operation: Operation, negotiated: NegotiatedVersion) -> Draft202012Validator:
    schema = negotiated.query(operation, QUERIES[operation])
    return Draft202012Validator(schema, format_checker=_QUERY_FORMATS)
