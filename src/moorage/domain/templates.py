"""Templates: ensemble descriptions with parameters.

A template of the format `moorage` is a description in which `{name}` stands for a parameter: a
text that is nothing else becomes the parameter's value, a number or list included; within a text
it becomes the value's text. `{{` and `}}` are braces. YAML reads a bare `{name}` as a mapping of
one name to nothing; that is a parameter as well. One of the format `hot` is a Heat template, which
declares its own parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import Instant

MAX_PARAMETERS: Final = 64
MAX_TEXT: Final = 4_096
"""Characters of a parameter's value."""
MAX_NUMBER: Final = 10**18
MAX_NODES: Final = 50_000
"""Values in a description, counted before and after its parameters are filled in."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_PIECE: Final = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]{0,62})\}|[{}]", re.ASCII)
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = MappingProxyType(
    {"string": str, "number": (int, float), "boolean": bool, "list": list}
)
_FIELDS: Final = frozenset({"type", "default", "description", "min", "max", "allowed"})


class TemplateFormat(StrEnum):
    """The language of a template."""

    MOORAGE = "moorage"
    HOT = "hot"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a template. `default` None: a value is required."""

    name: str
    type: str = "string"
    default: object = None
    description: str = ""
    least: int | float | None = None
    most: int | float | None = None
    """Bounds of a number, or of a text's or list's length."""
    allowed: tuple[object, ...] = ()
    """Values to choose from; empty: any."""


@dataclass(frozen=True, slots=True)
class Template:
    """One version of a template, owned by a project. Versions count from 1 and never change."""

    id: str
    version: int
    project_id: str
    user_id: str
    name: str
    format: TemplateFormat
    source: Mapping[str, object]
    """The description with its placeholders; of a Heat template `template`, `environment` and
    `files`, as text."""
    parameters: tuple[Parameter, ...] = ()
    shared: bool = False
    """Whether every project may use it."""
    digest: str = ""
    """Fingerprint of the request that made it: the same request again gets the same answer."""
    created_at: Instant = 0


def read_parameters(source: object) -> tuple[Parameter, ...]:
    """Read `{name: {type, default, description, min, max, allowed}}`.

    Raises:
        InvalidDescription: another form; `path` names the place.
    """
    if not isinstance(source, Mapping):
        raise InvalidDescription("parameters is a mapping of names", path="parameters")
    if len(source) > MAX_PARAMETERS:
        raise InvalidDescription(f"more than {MAX_PARAMETERS} parameters", path="parameters")
    return tuple(_parameter(name, one, f"parameters.{name}") for name, one in source.items())


def _parameter(name: object, source: object, path: str) -> Parameter:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidDescription("a parameter's name has letters, digits and _", path=path)
    fields = {} if source is None else source
    if not isinstance(fields, Mapping):
        raise InvalidDescription("a parameter has fields such as type and default", path=path)
    for one in fields:
        if one not in _FIELDS:
            raise InvalidDescription(f"a parameter has no field {one!r}", path=f"{path}.{one}")
    kind = fields.get("type", "string")
    if not isinstance(kind, str) or kind not in _TYPES:
        known = ", ".join(_TYPES)
        raise InvalidDescription(f"a parameter's type is one of {known}", path=f"{path}.type")
    allowed = fields.get("allowed", [])
    if not isinstance(allowed, list):
        raise InvalidDescription("allowed is a list of values", path=f"{path}.allowed")
    found = Parameter(
        name=name,
        type=kind,
        description=str(fields.get("description", "")),
        least=_bound(fields.get("min"), f"{path}.min"),
        most=_bound(fields.get("max"), f"{path}.max"),
        allowed=tuple(allowed),
    )
    for value in allowed:
        _typed(found, value, f"{path}.allowed")
    if (default := fields.get("default")) is None:
        return found
    checked_value(found, default, f"{path}.default")
    return Parameter(name, kind, default, found.description, found.least, found.most, found.allowed)


def _bound(source: object, path: str) -> float | None:
    if source is None:
        return None
    if isinstance(source, bool) or not isinstance(source, int | float):
        raise InvalidDescription("a bound is a number", path=path)
    _check_number(source, path)
    return source


def _check_number(value: float, path: str) -> None:
    # Written so that a NaN is refused as well.
    if not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise InvalidDescription(f"a number is between -{MAX_NUMBER} and {MAX_NUMBER}", path=path)


def _typed(parameter: Parameter, value: object, path: str) -> None:
    kind = _TYPES[parameter.type]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidDescription(
            f"{parameter.name} is a {parameter.type}, not {value!r}", path=path
        )
    if isinstance(value, int | float):
        _check_number(value, path)


def checked_value(parameter: Parameter, value: object, path: str) -> object:
    """The value, if the parameter's type and constraints allow it.

    Raises:
        InvalidDescription: it is of another type, out of bounds, or not an allowed one.
    """
    _typed(parameter, value, path)
    if parameter.allowed and value not in parameter.allowed:
        known = ", ".join(map(str, parameter.allowed))
        raise InvalidDescription(f"{parameter.name} is one of {known}, not {value}", path=path)
    size = value if isinstance(value, int | float) else len(value)  # type: ignore[arg-type]  # a text or list
    what = "" if isinstance(value, int | float) else "the length of "
    if parameter.least is not None and size < parameter.least:
        raise InvalidDescription(
            f"{what}{parameter.name} is at least {parameter.least:g}, not {size}", path=path
        )
    most = MAX_TEXT if what and parameter.most is None else parameter.most
    if most is not None and size > most:
        raise InvalidDescription(
            f"{what}{parameter.name} is at most {most:g}, not {size}", path=path
        )
    return value


def parameter_values(
    parameters: tuple[Parameter, ...], given: Mapping[str, object]
) -> Mapping[str, object]:
    """The value of every parameter: the one given, or its default.

    A number may be given as text, as a command line does.

    Raises:
        InvalidDescription: one is missing, unknown, or may not have its value.
    """
    known = {one.name: one for one in parameters}
    for name in given:
        if name not in known:
            has = ", ".join(known) or "none"
            raise InvalidDescription(
                f"the template has no parameter {name!r}; it has {has}", path=f"parameters.{name}"
            )
    found: dict[str, object] = {}
    for name, one in known.items():
        path = f"parameters.{name}"
        value = given.get(name, one.default)
        if value is None:
            raise InvalidDescription(f"parameter {name} needs a value", path=path)
        found[name] = checked_value(one, _from_text(one, value), path)
    return MappingProxyType(found)


def _from_text(parameter: Parameter, value: object) -> object:
    if not isinstance(value, str):
        return value
    match parameter.type:
        case "number":
            return _number(value)
        case "boolean":
            return {"true": True, "false": False}.get(value.lower(), value)
        case "list":
            return value.split(",") if value else []
        case _:
            return value


def _number(text: str) -> object:
    if re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"-?\d{1,18}\.\d{1,18}", text, re.ASCII):
        return float(text)
    return text


def fill_placeholders(source: Mapping[str, object], given: Mapping[str, object]) -> dict[str, Any]:
    """The description with every placeholder replaced by its parameter's value.

    Raises:
        InvalidDescription: a placeholder without a parameter, an unpaired brace, or a
            description that grows beyond `MAX_NODES` values.
    """
    budget = iter(range(MAX_NODES))
    return {name: _fill(value, given, name, budget) for name, value in source.items()}


def check_placeholders(source: Mapping[str, object], parameters: tuple[Parameter, ...]) -> None:
    """Refuse a description with an undeclared placeholder.

    Raises:
        InvalidDescription: see `fill_placeholders`.
    """
    fill_placeholders(source, {one.name: "" for one in parameters})


def _fill(value: object, given: Mapping[str, object], path: str, budget: Iterator[int]) -> object:
    if next(budget, None) is None:
        raise InvalidDescription(f"more than {MAX_NODES} values", path=path)
    if isinstance(value, str):
        return _text(value, given, path)
    if isinstance(value, list | tuple):
        return [_fill(one, given, f"{path}[{i}]", budget) for i, one in enumerate(value)]
    if isinstance(value, Mapping):
        if len(value) == 1:
            ((name, inner),) = value.items()
            if inner is None and name in given:
                return given[name]
        return {name: _fill(one, given, f"{path}.{name}", budget) for name, one in value.items()}
    return value


def _text(text: str, given: Mapping[str, object], path: str) -> object:
    whole = _PIECE.fullmatch(text)
    if whole is not None and whole["name"] is not None:
        return _of(whole["name"], given, path)
    return _PIECE.sub(_replacing(given, path), text)


def _replacing(given: Mapping[str, object], path: str) -> Callable[[re.Match[str]], str]:
    def piece(match: re.Match[str]) -> str:
        if match["name"] is not None:
            return str(_of(match["name"], given, path))
        if len(match[0]) == 1:
            raise InvalidDescription(
                f"a brace that belongs to no {{parameter}}; write {match[0] * 2} for one",
                path=path,
            )
        return match[0][0]

    return piece


def _of(name: str, given: Mapping[str, object], path: str) -> object:
    if name not in given:
        raise InvalidDescription(f"{{{name}}} is no parameter of the template", path=path)
    return given[name]
