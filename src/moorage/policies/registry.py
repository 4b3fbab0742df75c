"""Which policies there are: found by scanning the package, never listed by hand."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from moorage.domain.ensembles import PolicyStatement, Selector
from moorage.domain.errors import InvalidDescription, UnknownPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.policies.contract import Policy

NOVA: Final[Mapping[str, tuple[str, int | None]]] = MappingProxyType(
    {
        "affinity": ("affinity", None),
        "anti-affinity": ("anti-affinity", None),
        "soft-affinity": ("affinity", 1),
        "soft-anti-affinity": ("anti-affinity", 1),
    }
)
"""The policy names of Nova's server groups, as (type, weight) at level host."""


@cache
def discover() -> Mapping[str, type[Policy]]:
    """Every policy of this package by its wire name, sorted.

    A policy is a class with a `type` and a `violations` method, defined in a module here.
    """
    package = importlib.import_module(__package__ or "moorage.policies")
    found: dict[str, type[Policy]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for item in vars(module).values():
            if (
                isinstance(item, type)
                and item.__module__ == module.__name__
                and isinstance(getattr(item, "type", None), str)
                and hasattr(item, "violations")
            ):
                policy = cast("type[Policy]", item)
                found[policy.type] = policy
    return MappingProxyType(dict(sorted(found.items())))


def parse(statement: PolicyStatement, *, path: str | None = None) -> Policy:
    """The policy a statement means.

    `path` is the statement's place in the description, `policies.<name>` by default.

    Raises:
        UnknownPolicy: no such type; the nearest name is suggested.
        InvalidDescription: its parameters cannot be understood.
    """
    place = f"policies.{statement.name}" if path is None else path
    known = discover()
    if statement.type not in known:
        near = difflib.get_close_matches(statement.type, known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
        raise UnknownPolicy(f"unknown policy type {statement.type!r}{hint}", path=f"{place}.type")
    return known[statement.type].parse(statement.parameters, path=place)


def shorthand(text: str, *, path: str = "policies") -> PolicyStatement:
    """A statement from one of Nova's four policy names, over all members, at level host.

    Raises:
        UnknownPolicy: another word.
        InvalidDescription: not a word at all.
    """
    if not isinstance(text, str):
        raise InvalidDescription(
            f"a policy is an object or one of Nova's names: {text!r}", path=path
        )
    if text not in NOVA:
        near = difflib.get_close_matches(text, NOVA, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(NOVA)}"
        raise UnknownPolicy(f"unknown policy name {text!r}{hint}", path=path)
    type_, weight = NOVA[text]
    return PolicyStatement(name=text, type=type_, members=(Selector(everyone=True),), weight=weight)
