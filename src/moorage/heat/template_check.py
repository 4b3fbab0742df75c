"""Checks a template without a cloud, with example values for parameters that have none.

A parameter's example is the first that its constraints allow. Where none is found the value stays
unknown, which matters only if a place hangs on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import compile_template, environment_of
from moorage.heat.deferred_values import NotKnownYet
from moorage.heat.parameters import LACKING, given_value, read_values
from moorage.heat.template import read_template
from moorage.heat.work_limit import Work
from moorage.heat.yaml_tree import to_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.compile import CompiledTemplate, Source
    from moorage.heat.yaml_tree import Plain, YamlNode


class Outcome(StrEnum):
    """The outcome of a check."""

    COMPILES = "compiles"
    NO_SERVERS = "no servers"
    NEEDS_VALUES = "needs values"
    """A place hangs on a parameter that has no value, and for which no example was found."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TemplateCheck:
    """A checked template."""

    outcome: Outcome
    compiled: CompiledTemplate | None = None
    error: InvalidDescription | None = None
    """Why it does not compile."""
    examples: Mapping[str, Plain] = field(default_factory=lambda: MappingProxyType({}))
    """Parameter -> the example that it was checked with."""


_TEXTS: Final = ("example", "a", "Passw0rd", "1", "10.0.0.1", "10.0.0.0/24", "a@example.org")
_LENGTHS: Final = 64
_EXAMPLES: Final[Mapping[str, tuple[Plain, ...]]] = MappingProxyType(
    {
        "number": (1, 0, *(2**power for power in range(1, 17)), 10, 100, 1000),
        "boolean": (False, True),
        "json": ({}, {"example": "example"}),
        "comma_delimited_list": ("example", "a,b", "1", ""),
    }
)


def check_template(source: Source) -> TemplateCheck:
    """Compile a template as far as its parameters are known, or can be given an example."""
    examples: dict[str, Plain] = {}
    try:
        examples = _examples(source)
        given = replace(source, parameters={**examples, **source.parameters})
        compiled = compile_template(given, may_be_empty=True, may_lack=True)
    except InvalidDescription as error:
        lacking = isinstance(error, NotKnownYet) and LACKING in error.message
        outcome = Outcome.NEEDS_VALUES if lacking else Outcome.REFUSED
        return TemplateCheck(outcome, None, error, examples)
    outcome = Outcome.COMPILES if compiled.keys else Outcome.NO_SERVERS
    return TemplateCheck(outcome, compiled, None, MappingProxyType(examples))


def _examples(source: Source) -> dict[str, Plain]:
    """An example for each parameter without a value, if one is found.

    Raises:
        InvalidDescription: the template or an environment cannot be read.
    """
    root = read_template(source.template)
    environment = environment_of(source, root)
    found: dict[str, Plain] = {}
    for name, declared in root.parameters.items():
        fields = declared.value if isinstance(declared.value, dict) else {}
        default = fields.get("default")
        lacks = default is None or default.value is None
        if lacks and name not in source.parameters and "type" in fields:
            value = given_value(name, environment.parameters, environment.defaults)
            if value is None or value.value is None:
                for one in _candidates(name, fields):
                    if _allows(name, declared, one):
                        found[name] = one
                        break
    return found


def _candidates(name: str, fields: Mapping[str, YamlNode]) -> Iterator[Plain]:
    constraints = fields.get("constraints")
    for one in constraints.value if constraints and isinstance(constraints.value, list) else []:
        kinds = one.value if isinstance(one.value, dict) else {}
        for kind in ("allowed_values", "range", "modulo"):
            stated = kinds.get(kind)
            if stated is not None:
                yield from _stated(stated.plain())
    yield from _EXAMPLES.get(str(fields["type"].value), (name, *_TEXTS, *_of_lengths(name)))


def _stated(value: Plain) -> list[Plain]:
    if isinstance(value, dict):
        return [one for one in value.values() if one is not None]
    return value if isinstance(value, list) else []


def _of_lengths(name: str) -> Iterator[str]:
    for length in range(1, _LENGTHS + 1):
        yield name[:length].ljust(length, "a")


def _allows(name: str, declared: YamlNode, value: Plain) -> bool:
    """Whether a value has the parameter's type and keeps its constraints."""
    node = to_node(value, line=declared.line, path=declared.path)
    try:
        read_values({name: declared}, {name: node}, {}, Work())
    except InvalidDescription:
        return False
    return True
