"""The registry of policies: those of this package, and those of installed plug-ins.

A plug-in is a package with entry points of the group `moorage.policies`: the name is the policy's
type, the object its class.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from moorage.domain.describe import STATEMENT_FIELDS
from moorage.domain.errors import BadPlugin, UnknownPolicy
from moorage.domain.words import did_you_mean
from moorage.policies.parameters import schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from moorage.domain.ensembles import PolicyStatement
    from moorage.policies.contract import Policy

GROUP: Final = "moorage.policies"
"""The group of entry points by which plug-ins offer policies."""
_OTHER_WORDS: Final = {"same-provider": "affinity with level: server"}
"""What is a policy in another's words -> that policy."""
_METHODS: Final = ("parse", "check", "violations", "slack", "post", "requirement", "weaker")


@cache
def discover() -> Mapping[str, type[Policy]]:
    """Every policy by its wire name, sorted: of this package, and of plug-ins.

    Raises:
        BadPlugin: a plug-in cannot be loaded, is no policy, or has the type of another.
    """
    found = dict(_own())
    for offered in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        if offered.name in found:
            whose = "another plug-in" if offered.name not in _own() else "Moorage itself"
            raise BadPlugin(f"{plugin_text('policy', offered)}: {whose} has a policy of that type")
        found[offered.name] = _of_plugin(offered)
    return MappingProxyType(dict(sorted(found.items())))


@cache
def _own() -> Mapping[str, type[Policy]]:
    """The policies of this package: classes with a `type` of their own, defined in a module."""
    package = importlib.import_module(__package__ or "moorage.policies")
    found: dict[str, type[Policy]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for item in vars(module).values():
            if (
                isinstance(item, type)
                and item.__module__ == module.__name__
                and isinstance(vars(item).get("type"), str)
                and hasattr(item, "violations")
            ):
                policy = cast("type[Policy]", item)
                found[policy.type] = policy
    return MappingProxyType(found)


def plugin_text(kind: str, offered: EntryPoint) -> str:
    """How messages name a plug-in: `policy plug-in quorum of example 1.0`."""
    package = "" if offered.dist is None else f" of {offered.dist.name} {offered.dist.version}"
    return f"{kind} plug-in {offered.name}{package}"


def load_plugin(kind: str, offered: EntryPoint) -> object:
    """The object that a plug-in's entry point names.

    Raises:
        BadPlugin: it cannot be loaded, whatever its module raises.
    """
    try:
        return cast("object", offered.load())
    except Exception as error:
        raise BadPlugin(f"{plugin_text(kind, offered)} cannot be loaded: {error!r}") from error


def _of_plugin(offered: EntryPoint) -> type[Policy]:
    """The policy class of a plug-in.

    Raises:
        BadPlugin: it cannot be loaded, or is no policy; see `policies.contract`.
    """
    item = load_plugin("policy", offered)
    wrong = _why_no_policy(item, offered.name)
    if wrong:
        raise BadPlugin(f"{plugin_text('policy', offered)} is no policy: {wrong}")
    return cast("type[Policy]", item)


def _why_no_policy(item: object, name: str) -> str:
    """What keeps an object from being the policy of that type; empty: nothing."""
    if not (isinstance(item, type) and is_dataclass(item)):
        return "it is not a dataclass"
    missing = [one for one in _METHODS if not callable(getattr(item, one, None))]
    if missing:
        return f"it has no {missing[0]}"
    if getattr(item, "type", None) != name:
        return f"its type is {getattr(item, 'type', None)!r}"
    taken = sorted(STATEMENT_FIELDS & {one.name for one in fields(item)})
    if taken:
        return f"{taken[0]} is a field of every policy, and cannot be its parameter"
    examples: tuple[object, ...] = getattr(item, "examples", ())
    if not (getattr(item, "summary", "") and item.__doc__ and examples):
        return "it needs a summary, a docstring and examples"
    return _why_no_parameters(item)


def _why_no_parameters(item: type) -> str:
    """What keeps a class's fields from being parameters; empty: nothing."""
    try:
        schema(item)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in's annotations and metadata raise
        return f"its fields are no parameters: {error!r}"
    return ""


def parse(statement: PolicyStatement, *, path: str | None = None) -> Policy:
    """Make the policy of a statement.

    `path` is the statement's place in the description; by default its own, or `policies.<name>`.

    Raises:
        UnknownPolicy: no such type; the nearest name is suggested.
        InvalidDescription: its parameters are invalid.
    """
    place = path or statement.path or f"policies.{statement.name}"
    known = discover()
    if statement.type not in known:
        other = _OTHER_WORDS.get(statement.type)
        hint = did_you_mean(statement.type, known) or f"; there are: {', '.join(known)}"
        hint = f"; did you mean {other}?" if other else hint
        raise UnknownPolicy(f"unknown policy type {statement.type!r}{hint}", path=f"{place}.type")
    return known[statement.type].parse(statement.parameters, path=place)
