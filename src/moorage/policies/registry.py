"""The registry of policies, found by scanning the package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from moorage.domain.errors import UnknownPolicy
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import PolicyStatement
    from moorage.policies.contract import Policy


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
    """Make the policy of a statement.

    `path` is the statement's place in the description, `policies.<name>` by default.

    Raises:
        UnknownPolicy: no such type; the nearest name is suggested.
        InvalidDescription: its parameters are invalid.
    """
    place = f"policies.{statement.name}" if path is None else path
    known = discover()
    if statement.type not in known:
        hint = did_you_mean(statement.type, known) or f"; there are: {', '.join(known)}"
        raise UnknownPolicy(f"unknown policy type {statement.type!r}{hint}", path=f"{place}.type")
    return known[statement.type].parse(statement.parameters, path=place)
