"""Checks of bodies and queries against JSON schemas: those of Nova's API of server groups."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema import ValidationError

    from moorage.http.microversion import JSON, NegotiatedVersion

_DIGITS: Final = r"^[0-9]*\Z"
_COUNT: Final = {"type": ["integer", "string"], "pattern": _DIGITS, "minLength": 1}
_QUERY: Final = {
    "type": "object",
    "properties": {
        "all_projects": {"type": "string"},
        "limit": {**_COUNT, "minimum": 0},
        "offset": {**_COUNT, "minimum": 0},
    },
    "additionalProperties": False,
}
_CREATE: Final[JSON] = {
    "type": "object",
    "properties": {
        "server_group": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 255},
                "policy": {
                    "type": "string",
                    "enum": ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"],
                },
                "rules": {
                    "type": "object",
                    "properties": {"max_server_per_host": {**_COUNT, "minimum": 1}},
                    "additionalProperties": False,
                },
            },
            "required": ["name", "policy"],
            "additionalProperties": False,
        }
    },
    "required": ["server_group"],
    "additionalProperties": False,
}
_BODIES: Final = {"groups.create": _CREATE}


def check_query(operation: str, negotiated: NegotiatedVersion, query: Mapping[str, str]) -> None:
    """Check the parameters of a listing against the schema of the client's version.

    Raises:
        InvalidDescription: one is no number, or unknown to a version that refuses such.
    """
    if operation == "groups.list":
        _refuse(best_match(_query_validator(negotiated).iter_errors(dict(query))))


def check_body(operation: str, negotiated: NegotiatedVersion, body: JSON) -> None:
    """Check a body against the schema of the client's version.

    Raises:
        InvalidDescription: it does not validate.
    """
    if operation not in _BODIES:
        return
    _refuse(best_match(_body_validator(operation, negotiated).iter_errors(body)))
    name = body["server_group"]["name"]
    if name != name.strip() or not all(map(_is_printable, name)):
        raise InvalidDescription(
            f"a name is printable and does not begin or end with a space: {name!r}", path="name"
        )


def _refuse(error: ValidationError | None) -> None:
    if error is not None:
        path = str(error.path[-1]) if error.path else None
        raise InvalidDescription(error.message, path=path)


def _is_printable(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] != "C" and (category[0] != "Z" or category == "Zs")


def _minimum(validator: Any, minimum: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - jsonschema's
    """As usual, also of numbers in texts: Nova takes both."""
    if isinstance(instance, str) and instance.isascii() and instance.isdigit():
        instance = min(len(instance.lstrip("0")), 1)
    yield from Draft202012Validator.VALIDATORS["minimum"](validator, minimum, instance, schema)


_Validator: Final[type[Draft202012Validator]] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"minimum": _minimum}
)


@cache
def _query_validator(negotiated: NegotiatedVersion) -> Draft202012Validator:
    return _Validator(negotiated.schema("groups.list", _QUERY))


@cache
def _body_validator(operation: str, negotiated: NegotiatedVersion) -> Draft202012Validator:
    return _Validator(negotiated.schema(operation, _BODIES[operation]))
